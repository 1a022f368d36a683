/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/heap.h"

static void put(struct mrd_heap *heap, uint32_t i, struct mrd_timer *timer)
{
    heap->timer[i] = timer;
    timer->index = i;
}

static void move_up(struct mrd_heap *heap, uint32_t i, struct mrd_timer *timer)
{
    while (i && heap->timer[(i - 1) / 2]->at_ns > timer->at_ns) {
        put(heap, i, heap->timer[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(heap, i, timer);
}

static void move_down(struct mrd_heap *heap, uint32_t i, struct mrd_timer *timer)
{
    for (;;) {
        uint32_t child = 2 * i + 1;

        if (child >= heap->num)
            break;
        if (child + 1 < heap->num && heap->timer[child + 1]->at_ns < heap->timer[child]->at_ns)
            child++;
        if (heap->timer[child]->at_ns >= timer->at_ns)
            break;
        put(heap, i, heap->timer[child]);
        i = child;
    }
    put(heap, i, timer);
}

void mrd_heap_arm(struct mrd_heap *heap, struct mrd_timer *timer, uint64_t at_ns)
{
    if (at_ns >= timer->at_ns)
        return;
    if (timer->at_ns == MRD_NEVER)
        timer->index = heap->num++;
    timer->at_ns = at_ns;
    move_up(heap, timer->index, timer);
}

void mrd_heap_disarm(struct mrd_heap *heap, struct mrd_timer *timer)
{
    struct mrd_timer *last;

    if (timer->at_ns == MRD_NEVER)
        return;
    timer->at_ns = MRD_NEVER;
    last = heap->timer[--heap->num];
    if (last == timer)
        return;
    if (timer->index && heap->timer[(timer->index - 1) / 2]->at_ns > last->at_ns)
        move_up(heap, timer->index, last);
    else
        move_down(heap, timer->index, last);
}
