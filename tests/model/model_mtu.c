/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The search for the path's MTU, and packets that do not fit any more.
 *
 * Sizes are small numbers; whatever the network does, size 1 comes through. A probe is an empty
 * packet, padded to the size; lost, it is sent again without padding, since its PSN must be acked.
 * The path may become smaller (a fault), and say nothing. Data is one packet at a time, cut at the
 * size found; a retransmission keeps its size, but may be sent in pieces of the base size. Anything
 * in flight may be late as long as it likes.
 */
#include <string.h>

#include "tests/model/search.h"

enum { BASE = 1, SIZES = 3, LOSSES_MAX = 2 };

struct state {
    uint8_t path;    /* largest size that comes through now */
    uint8_t shrunk;  /* so many times */
    uint8_t widest;  /* largest path so far */
    uint8_t payload; /* size found */
    uint8_t probe;   /* size of the probe that is not acked; 0: none is */
    uint8_t padded;  /* it is on its way as it was first sent */
    uint8_t plain;   /* it is on its way without padding */
    uint8_t resent;  /* it was sent without padding */
    uint8_t acked;   /* it came, an ack is on its way */
    uint8_t failed;  /* least size given up */
    uint8_t data;    /* size of the data packet that is not acked; 0: none is */
    uint8_t there;   /* it is on its way */
    uint8_t came;
    uint8_t losses; /* of data above the base since one was acked */
};

struct rules {
    uint8_t shrinks;        /* at most */
    uint8_t narrow;         /* the path takes only size 2 from the begin on */
    uint8_t trusts_any_ack; /* hole: the ack of a probe counts, whichever copy came */
    uint8_t never_falls;    /* hole: lost data tells nothing */
    uint8_t keeps_size;     /* hole: retransmissions stay whole */
};

static void init(const struct rules *r, struct state *s)
{
    s->path = s->widest = r->narrow ? 2 : SIZES;
    s->payload = BASE;
    s->failed = SIZES + 1;
}

static void next_probe(const struct rules *r, const struct state *old)
{
    struct state s = *old;

    if (!s.probe && s.payload + 1 < s.failed) {
        s.probe = (uint8_t)(s.failed > SIZES ? SIZES : (s.payload + s.failed) / 2);
        s.padded = 1;
        search_step(&s, "a probe of size %u leaves", s.probe);
        s = *old;
    }
    if (!s.probe && s.payload < SIZES && s.payload + 1 >= s.failed) {
        s.failed = SIZES + 1;
        search_step(&s, "after a pause the search begins anew");
        s = *old;
    }
    if (s.padded) {
        s.padded = 0;
        (s.probe <= s.path ? search_fault : search_step)(&s, "the probe is lost");
        s = *old;
    }
    if (s.padded && s.probe <= s.path) {
        s.padded = 0;
        s.acked = 1;
        search_step(&s, "the probe comes through");
        s = *old;
    }
    if (s.probe && !s.plain && !s.acked) {
        s.plain = s.resent = 1;
        search_step(&s, "the probe's PSN is sent again, without padding");
        s = *old;
    }
    if (s.plain) {
        s.plain = 0;
        s.acked = 1;
        search_step(&s, "the PSN comes through without padding");
        s = *old;
    }
    if (s.acked) {
        if (!s.resent || r->trusts_any_ack)
            s.payload = s.probe > s.payload ? s.probe : s.payload;
        else if (s.probe < s.failed)
            s.failed = s.probe;
        s.probe = s.padded = s.plain = s.resent = s.acked = 0;
        search_step(&s, "the probe's PSN is acked");
    }
}

static void next_data(const struct rules *r, const struct state *old)
{
    struct state s = *old;
    uint8_t size = r->keeps_size || s.data <= s.payload ? s.data : BASE;

    if (!s.data) {
        s.data = s.payload;
        s.there = s.data;
        search_step(&s, "data of size %u leaves", s.data);
        return;
    }
    if (s.there) {
        s.there = 0;
        if (old->there > BASE && s.losses < LOSSES_MAX && !r->never_falls)
            s.losses++;
        (old->there <= s.path ? search_fault : search_step)(&s, "it is lost");
        s = *old;
    }
    if (s.there && s.there <= s.path) {
        s.there = 0;
        s.came = 1;
        search_step(&s, "it comes through");
        s = *old;
    }
    if (s.losses == LOSSES_MAX && s.payload > BASE) {
        s.payload = BASE;
        s.failed = SIZES + 1;
        s.losses = 0;
        search_step(&s, "the path has become smaller, the sender thinks");
        s = *old;
    }
    if (s.data && !s.there && !s.came) {
        s.there = size;
        search_step(&s, "data is sent again in pieces of size %u", size);
        s = *old;
    }
    if (s.came) {
        if (s.data > BASE)
            s.losses = 0;
        s.data = s.came = 0;
        search_step(&s, "data is acked");
    }
}

static void next(const struct rules *r, const struct state *old)
{
    struct state s = *old;

    next_probe(r, old);
    next_data(r, old);
    if (s.path > BASE && s.shrunk < r->shrinks) {
        s.path--;
        s.shrunk++;
        search_fault(&s, "the path shrinks to %u", s.path);
    }
}

static const char *bad(const struct rules *r, const struct state *s)
{
    (void)r;
    return s->payload > s->widest ? "a size is used that never came through" : NULL;
}

/* All data is acked, and nothing is in flight: what is used comes through. */
static bool goal(const struct rules *r, const struct state *s)
{
    (void)r;
    return !s->data && !s->probe && s->payload <= s->path;
}

const struct search_model search_model = SEARCH_MODEL("mtu");

TEST(mtu__holds)
{
    search_holds(&(struct rules){.shrinks = 0}, "a path that stays");
    search_holds(&(struct rules){.shrinks = 2}, "a path that shrinks twice");
    search_holds(&(struct rules){.narrow = 1}, "a narrow path");
    search_holds(&(struct rules){.shrinks = 2, .narrow = 1}, "a narrow path that shrinks");
}

TEST(mtu__holes)
{
    search_bad(&(struct rules){.narrow = 1, .trusts_any_ack = 1},
               "hole: any ack of the probe's PSN counts", "a size is used that never came through");
    search_stuck(&(struct rules){.shrinks = 1, .never_falls = 1}, "hole: lost data tells nothing");
    search_stuck(&(struct rules){.shrinks = 1, .keeps_size = 1}, "hole: what was cut stays whole");
}
