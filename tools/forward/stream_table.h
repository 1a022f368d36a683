/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The streams of a process by their ids: the index of a slot below, its generation above.
 *
 * stream_table_init(); stream_table_add(), stream_table_find(), stream_table_remove();
 * stream_table_fini(). A slot that was left is used again as late as possible, and with another
 * generation: a frame that comes late finds no stream.
 */
#ifndef FORWARD_STREAM_TABLE_H
#define FORWARD_STREAM_TABLE_H

#include <stdint.h>

struct stream;

struct stream_table {
    struct stream **slot;  /* owned array; the streams are not the table's */
    uint16_t *generation;  /* the high 16 bits of the slot's next, or present, id; owned */
    uint32_t *unused;      /* ring of free slots, the one free for longest first; owned */
    uint32_t unused_first; /* index into the ring */
    uint32_t num, max;     /* streams; max: up to 65,535 */
};

/* 0, or -ENOMEM; what it holds then is for stream_table_fini(). */
int stream_table_init(struct stream_table *t, uint32_t max);
void stream_table_fini(struct stream_table *t);
/* Returns the id, which is not 0. There must be room: num < max. */
uint32_t stream_table_add(struct stream_table *t, struct stream *s);
void stream_table_remove(struct stream_table *t, uint32_t id);
/* NULL: no stream has that id, or none has it any more. */
struct stream *stream_table_find(const struct stream_table *t, uint32_t id);
/*
 * The first stream at slot *at or above, and *at is the slot behind it; NULL: there is none. Streams
 * may be removed meanwhile.
 */
struct stream *stream_table_next(const struct stream_table *t, uint32_t *at);

#endif
