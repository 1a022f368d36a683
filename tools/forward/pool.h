/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered buffers of one size. Of the free ones the last returned is taken first: few pages are
 * ever touched, and those are in the caches.
 *
 * pool_init(); pool_take(), pool_return(); pool_fini().
 */
#ifndef FORWARD_POOL_H
#define FORWARD_POOL_H

#include <stdint.h>

#include "mrd/mrd.h"
#include "tools/forward/link.h"

enum {
    POOL_MESSAGE_BYTES = FRAME_HEAD_BYTES + LINK_DATA_BYTES,
    POOL_STRIDE = LINK_DATA_BYTES + 64, /* messages' data begin on cache lines */
};

/* What is known of a buffer that is being sent. */
struct pool_note {
    struct link_peer *peer;
    uint32_t stream;
};

struct pool {
    uint8_t *bytes;          /* owned; mapped */
    uint32_t *free;          /* stack of free buffers' indices; owned */
    struct pool_note *notes; /* owned */
    uint32_t num, num_free;
    struct mrd_mr *mr;
};

/* 0, or -errno. What it holds then is for pool_fini(). */
int pool_init(struct pool *pool, struct mrd_pd *pd, uint32_t num, int access);
void pool_fini(struct pool *pool);
/* Room for a message of POOL_MESSAGE_BYTES; NULL: there is none. */
uint8_t *pool_take(struct pool *pool);
/* `message`: as pool_take() gave it. */
void pool_return(struct pool *pool, const uint8_t *message);
struct pool_note *pool_note(struct pool *pool, const uint8_t *message);
/* The message that has this byte. */
uint8_t *pool_of(const struct pool *pool, const uint8_t *byte);

#endif
