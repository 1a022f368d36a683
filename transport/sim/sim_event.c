/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/sim/sim_event.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

enum { HEAP_ARITY = 4, HEAP_FIRST = 256 };

static bool is_before(const struct mrd_sim_event *a, const struct mrd_sim_event *b)
{
    return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order);
}

void mrd_sim_events_init(struct mrd_sim_events *events)
{
    *events = (struct mrd_sim_events){0};
}

void mrd_sim_events_fini(struct mrd_sim_events *events)
{
    free(events->heap);
    events->heap = NULL;
}

static int grow(struct mrd_sim_events *events)
{
    size_t cap = events->cap ? events->cap * 2 : HEAP_FIRST;
    struct mrd_sim_event *heap = realloc(events->heap, cap * sizeof(*heap));

    if (!heap)
        return -ENOMEM;
    events->heap = heap;
    events->cap = cap;
    return 0;
}

int mrd_sim_events_push(struct mrd_sim_events *events, uint64_t at_ns, enum mrd_sim_event_kind kind,
                        void *object, uint32_t tag)
{
    if (events->len == events->cap && grow(events) != 0)
        return -ENOMEM;

    struct mrd_sim_event event = {at_ns, events->order_next++, object, kind, tag};
    size_t hole = events->len++;

    while (hole > 0) {
        size_t parent = (hole - 1) / HEAP_ARITY;

        if (!is_before(&event, &events->heap[parent]))
            break;
        events->heap[hole] = events->heap[parent];
        hole = parent;
    }
    events->heap[hole] = event;
    return 0;
}

uint64_t mrd_sim_events_next_ns(const struct mrd_sim_events *events)
{
    return events->len ? events->heap[0].at_ns : MRD_SIM_NEVER;
}

/* The first of the children of `hole`, or `len` if it has none. */
static size_t first_child(const struct mrd_sim_events *events, size_t hole)
{
    size_t child = hole * HEAP_ARITY + 1;
    size_t end = child + HEAP_ARITY < events->len ? child + HEAP_ARITY : events->len;

    if (child >= events->len)
        return events->len;
    for (size_t i = child + 1; i < end; i++) {
        if (is_before(&events->heap[i], &events->heap[child]))
            child = i;
    }
    return child;
}

struct mrd_sim_event mrd_sim_events_pop(struct mrd_sim_events *events)
{
    assert(events->len > 0);

    struct mrd_sim_event first = events->heap[0];
    struct mrd_sim_event moved = events->heap[--events->len];
    size_t hole = 0;

    for (;;) {
        size_t child = first_child(events, hole);

        if (child == events->len || !is_before(&events->heap[child], &moved))
            break;
        events->heap[hole] = events->heap[child];
        hole = child;
    }
    if (events->len)
        events->heap[hole] = moved;
    return first;
}
