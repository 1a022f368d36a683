/* SPDX-License-Identifier: BSD-2-Clause */
/* Tagged messages: which receive gets which, searching for those that came, and cancelled receives. */
#include "pair.h"

#include <string.h>

enum { BITS = 64, LONG = 3 * EAGER_BYTES };

static void send_tagged(struct pair *p, const uint8_t *out, size_t len, uint64_t tag)
{
    POST(fi_tsend(p->a.ep, out, len, NULL, p->a.to, tag, NULL));
}

static void receive_tagged(struct pair *p, uint8_t *in, size_t len, uint64_t tag, uint64_t ignore,
                           void *context)
{
    POST(fi_trecv(p->b.ep, in, len, NULL, FI_ADDR_UNSPEC, tag, ignore, context));
}

static ssize_t search(struct pair *p, uint64_t tag, uint64_t flags, void *context)
{
    struct fi_msg_tagged msg = {.addr = FI_ADDR_UNSPEC, .tag = tag, .context = context};

    return fi_trecvmsg(p->b.ep, &msg, flags);
}

static void search_in_vain(struct pair *p, uint64_t tag, void *context)
{
    assert_int_equal(search(p, tag, FI_PEEK, context), 0);
    end_fails(p->b.rx, context, FI_ENOMSG);
}

/* Searches until it is there: progress is up to the one who searches. */
static struct entry find(struct pair *p, uint64_t tag, uint64_t flags, void *context)
{
    uint64_t since_ns = end_now_ns();
    struct entry entry;

    for (;;) {
        assert_int_equal(search(p, tag, FI_PEEK | flags, context), 0);
        entry = end_next(p->b.rx);
        assert_ptr_equal(entry.ok.op_context, context);
        if (!entry.err)
            return entry;
        assert_int_equal(entry.err, FI_ENOMSG);
        end_patience(since_ns);
    }
}

/* A short message, which goes to the receive of that context. */
static struct entry arrives(struct pair *p, uint64_t tag, const void *context)
{
    POST(fi_tinject(p->a.ep, "b", 1, p->a.to, tag));
    return end_ok(p->b.rx, context);
}

/* ------------------------------------------------------------------------------------------- tags */

static uint64_t bit(unsigned i)
{
    return 1ull << i;
}

/* Each bit of a tag counts, of messages that receives wait for and of others. */
TEST_F(ordered, ofi_tagged__all_bits_count)
{
    uint8_t in[BITS][8];

    assert_int_equal(self->a.info->ep_attr->mem_tag_format >> (BITS - 1), 1);
    for (unsigned i = 0; i < BITS; i++)
        receive_tagged(self, in[i], 8, bit(i), 0, in[i]);
    receive_tagged(self, in[0], 8, 0, 0, self);
    for (unsigned i = 0; i < BITS; i++) {
        struct entry entry = arrives(self, bit(i * 37 % BITS), in[i * 37 % BITS]);

        assert_int_equal(entry.ok.tag, bit(i * 37 % BITS));
        assert_int_equal(entry.ok.flags, FI_RECV | FI_TAGGED);
    }
    arrives(self, 0, self);

    for (unsigned i = 0; i < BITS; i++)
        POST(fi_tinject(self->a.ep, "b", 1, self->a.to, ~bit(i)));
    ends_drive_for(5);
    for (unsigned i = 0; i < BITS; i++) {
        receive_tagged(self, in[0], 8, ~bit(i * 37 % BITS), 0, self);
        assert_int_equal(end_ok(self->b.rx, self).ok.tag, ~bit(i * 37 % BITS));
    }
}

TEST_F(ordered, ofi_tagged__ignored_bits_do_not)
{
    const uint64_t tag = 0x123456789abcdef0u, ignore = 0xff00000000000f0fu;
    uint8_t in[8];
    int rx;

    for (unsigned i = 0; i < BITS; i++) {
        bool fits = ignore & bit(i);

        receive_tagged(self, in, sizeof(in), tag, ignore, &rx);
        POST(fi_tinject(self->a.ep, "b", 1, self->a.to, tag ^ bit(i)));
        if (!fits) {
            /* Another one does. */
            assert_int_equal(arrives(self, tag ^ ignore, &rx).ok.tag, tag ^ ignore);
            receive_tagged(self, in, sizeof(in), ~tag, ~0ull, &rx);
        }
        assert_int_equal(end_ok(self->b.rx, &rx).ok.tag, tag ^ bit(i));
    }
    /* The tag's own bits are ignored, too, where the mask says so. */
    receive_tagged(self, in, sizeof(in), tag | ignore, ignore, &rx);
    arrives(self, tag & ~ignore, &rx);
}

TEST_F(plain, ofi_tagged__data_lists_and_lengths)
{
    static const size_t lens[] = {0, INJECT_BYTES, INJECT_BYTES + 1, EAGER_BYTES, LONG};
    uint8_t *out = filled(LONG, 3), *in = blank(LONG);
    struct end *a = &self->a, *b = &self->b;
    int tx, rx;

    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        struct iovec from[2] = {{out, lens[i] / 3}, {out + lens[i] / 3, lens[i] - lens[i] / 3}};
        struct iovec to[2] = {{in, lens[i] / 2}, {in + lens[i] / 2, lens[i] - lens[i] / 2}};

        POST(fi_trecvv(b->ep, to, NULL, 2, FI_ADDR_UNSPEC, i, 0, &rx));
        POST(fi_tsendv(a->ep, from, NULL, 2, a->to, i, &tx));
        assert_int_equal(end_ok(b->rx, &rx).ok.len, lens[i]);
        assert_int_equal(end_ok(a->tx, &tx).ok.flags, FI_SEND | FI_TAGGED);
        assert_filled(in, lens[i], 3);
        memset(in, BLANK, LONG);

        receive_tagged(self, in, LONG, i, 0, &rx);
        POST(fi_tsenddata(a->ep, out, lens[i], NULL, ~(uint64_t)i, a->to, i, &tx));
        struct entry entry = end_ok(b->rx, &rx);
        assert_int_equal(entry.ok.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
        assert_int_equal(entry.ok.data, ~(uint64_t)i);
        end_ok(a->tx, &tx);
        assert_filled(in, lens[i], 3);
    }
    receive_tagged(self, in, LONG, 1, 0, &rx);
    POST(fi_tinjectdata(a->ep, out, 1, 77, a->to, 1));
    assert_int_equal(end_ok(b->rx, &rx).ok.data, 77);

    receive_tagged(self, in, 10, 0, 1, &rx);
    send_tagged(self, out, LONG, 1);
    assert_int_equal(end_fails(b->rx, &rx, FI_ETRUNC).ok.tag, 1);
    end_ok(a->tx, NULL);
}

/* ------------------------------------------------------------------------------------------ search */

TEST_F(ordered, ofi_tagged__peek)
{
    uint8_t *out = filled(LONG, 1), *in = blank(LONG);
    struct entry entry;
    int rx;

    search_in_vain(self, 9, &rx);
    send_tagged(self, out, LONG, 8);
    POST(fi_tinjectdata(self->a.ep, out, 100, 55, self->a.to, 9));
    for (unsigned i = 0; i < 2; i++) {
        entry = find(self, 9, 0, &rx);
        assert_int_equal(entry.ok.len, 100);
        assert_int_equal(entry.ok.tag, 9);
        assert_int_equal(entry.ok.data, 55);
        assert_true(entry.ok.flags & FI_REMOTE_CQ_DATA);
        assert_int_equal(entry.src, self->b.to);
        assert_int_equal(find(self, 8, 0, &rx).ok.len, LONG);
    }
    search_in_vain(self, 7, &rx);
    end_silent(self->a.tx); /* the long one is but looked at */
    receive_tagged(self, in, LONG, 8, 0, &rx);
    end_ok(self->b.rx, &rx);
    assert_filled(in, LONG, 1);
    end_ok(self->a.tx, NULL);
    receive_tagged(self, in, LONG, 9, 0, &rx);
    assert_int_equal(end_ok(self->b.rx, &rx).ok.len, 100);
}

/* -------------------------------------------------------------------------------------- cancelling */

TEST_F(pair, ofi_tagged__cancelled_receives)
{
    uint8_t in[4][8];

    pair_open(self, &(struct end_options){.order = FI_ORDER_SAS, .counts = FI_RECV});
    receive_tagged(self, in[0], 8, 1, 0, in[0]);
    receive_tagged(self, in[1], 8, 1, 0, in[1]);
    POST(fi_recv(self->b.ep, in[2], 8, NULL, FI_ADDR_UNSPEC, in[2]));
    POST(fi_recv(self->b.ep, in[3], 8, NULL, FI_ADDR_UNSPEC, in[3]));
    assert_int_equal(fi_cancel(&self->b.ep->fid, in[0]), 0);
    assert_true(end_fails(self->b.rx, in[0], FI_ECANCELED).ok.flags & FI_TAGGED);
    assert_int_equal(fi_cancel(&self->b.ep->fid, in[2]), 0);
    assert_true(end_fails(self->b.rx, in[2], FI_ECANCELED).ok.flags & FI_MSG);
    assert_int_equal(fi_cntr_readerr(end_cntr(&self->b, FI_RECV)), 2);

    /* They get nothing any more; the others do. */
    arrives(self, 1, in[1]);
    POST(fi_inject(self->a.ep, "m", 1, self->a.to));
    end_ok(self->b.rx, in[3]);
    end_silent(self->b.rx);
}

/* Only tagged messages are searched for, and where there is a queue to tell what was found. */
TEST_F(end, ofi_tagged__searches_that_cannot_be)
{
    struct fi_msg_tagged peek = {.addr = FI_ADDR_UNSPEC, .tag = 1};
    struct fi_msg untagged = {.addr = FI_ADDR_UNSPEC};
    struct fid_ep *ep;

    end_open(self, &(struct end_options){.counts = FI_RECV}, NULL);
    assert_int_equal(fi_recvmsg(self->ep, &untagged, FI_PEEK), -FI_EBADFLAGS);
    assert_int_equal(fi_recvmsg(self->ep, &untagged, FI_CLAIM), -FI_EBADFLAGS);
    assert_int_equal(fi_endpoint(self->domain, self->info, &ep, NULL), 0);
    assert_int_equal(fi_ep_bind(ep, &self->av->fid, 0), 0);
    assert_int_equal(fi_ep_bind(ep, &self->tx->fid, FI_TRANSMIT), 0);
    assert_int_equal(fi_ep_bind(ep, &end_cntr(self, FI_RECV)->fid, FI_RECV), 0);
    assert_int_equal(fi_enable(ep), 0);
    assert_int_equal(fi_trecvmsg(ep, &peek, FI_PEEK), -FI_ENOCQ);
    assert_int_equal(fi_trecvmsg(ep, &peek, FI_PEEK | FI_DISCARD), -FI_ENOCQ);
    assert_int_equal(fi_close(&ep->fid), 0);
}
