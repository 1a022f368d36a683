/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/stream_table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum { GENERATION_SHIFT = 16 };

static uint32_t index_of(uint32_t id)
{
    return id & ((1u << GENERATION_SHIFT) - 1);
}

int stream_table_init(struct stream_table *t, uint32_t max)
{
    *t = (struct stream_table){.max = max};
    t->slot = calloc(max, sizeof(struct stream *));
    t->generation = malloc(max * sizeof(t->generation[0]));
    t->unused = malloc(max * sizeof(t->unused[0]));
    if (!t->slot || !t->generation || !t->unused)
        return -ENOMEM;
    for (uint32_t i = 0; i < max; i++) {
        t->generation[i] = 1;
        t->unused[i] = i;
    }
    return 0;
}

void stream_table_fini(struct stream_table *t)
{
    free(t->slot);
    free(t->generation);
    free(t->unused);
}

uint32_t stream_table_add(struct stream_table *t, struct stream *s)
{
    uint32_t index = t->unused[t->unused_first];

    assert(t->num < t->max);
    t->unused_first = (t->unused_first + 1) % t->max;
    t->num++;
    t->slot[index] = s;
    return (uint32_t)t->generation[index] << GENERATION_SHIFT | index;
}

void stream_table_remove(struct stream_table *t, uint32_t id)
{
    uint32_t index = index_of(id);

    assert(stream_table_find(t, id));
    t->slot[index] = NULL;
    if (++t->generation[index] == 0) /* no id is 0 */
        t->generation[index] = 1;
    t->unused[(t->unused_first + t->max - t->num) % t->max] = index;
    t->num--;
}

struct stream *stream_table_find(const struct stream_table *t, uint32_t id)
{
    uint32_t index = index_of(id);

    return index < t->max && t->generation[index] == id >> GENERATION_SHIFT ? t->slot[index] : NULL;
}

struct stream *stream_table_next(const struct stream_table *t, uint32_t *at)
{
    while (*at < t->max) {
        struct stream *s = t->slot[(*at)++];

        if (s)
            return s;
    }
    return NULL;
}
