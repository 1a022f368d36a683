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

TEST_F(ordered, ofi_tagged__untagged_ones_are_apart)
{
    uint8_t in[2][8];

    receive_tagged(self, in[0], 8, 0, ~0ull, in[0]);
    POST(fi_recv(self->b.ep, in[1], 8, NULL, FI_ADDR_UNSPEC, in[1]));
    POST(fi_inject(self->a.ep, "b", 1, self->a.to));
    end_ok(self->b.rx, in[1]);
    POST(fi_recv(self->b.ep, in[1], 8, NULL, FI_ADDR_UNSPEC, in[1]));
    arrives(self, 5, in[0]);
    end_silent(self->b.rx);
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

/* ------------------------------------------------------------------------------------- who is first */

TEST_F(ordered, ofi_tagged__first_of_the_receives_that_fit)
{
    uint8_t in[4][8];

    receive_tagged(self, in[0], 8, 1, 0, in[0]);
    receive_tagged(self, in[1], 8, 0, ~0ull, in[1]);
    receive_tagged(self, in[2], 8, 2, 0, in[2]);
    receive_tagged(self, in[3], 8, 2, 0, in[3]);
    arrives(self, 2, in[1]);
    arrives(self, 2, in[2]);
    arrives(self, 1, in[0]);
    arrives(self, 2, in[3]);
}

/* Short and long ones came in turn: they are taken in that order, past those that do not fit. */
TEST_F(ordered, ofi_tagged__first_of_the_messages_that_fit)
{
    enum { NUM = 12 };
    uint8_t *in = blank(LONG);
    struct end *b = &self->b;
    int rx;

    for (unsigned i = 0; i < NUM; i++)
        send_tagged(self, filled(LONG, i), i % 4 < 2 ? 100 : LONG, i % 2);
    ends_drive_for(20);
    for (unsigned i = 1; i < NUM; i += 2) {
        receive_tagged(self, in, LONG, 1, 0, &rx);
        assert_int_equal(end_ok(b->rx, &rx).ok.len, i % 4 < 2 ? 100 : LONG);
        assert_filled(in, i % 4 < 2 ? 100 : LONG, i);
    }
    for (unsigned i = 0; i < NUM; i += 2) {
        receive_tagged(self, in, LONG, 7, ~0ull, &rx);
        assert_int_equal(end_ok(b->rx, &rx).ok.tag, 0);
        assert_filled(in, i % 4 < 2 ? 100 : LONG, i);
    }
    for (unsigned i = 0; i < NUM; i++)
        end_ok(self->a.tx, NULL);
}

TEST_F(ordered, ofi_tagged__receives_from_one_sender)
{
    struct end *a = &self->a, *b = &self->b;
    struct end *third = end_new(&(struct end_options){.order = FI_ORDER_SAS}, NULL);
    fi_addr_t to = end_meet(third, b), other = end_meet(b, third);
    uint8_t in[3][8];

    POST(fi_trecv(b->ep, in[0], 8, NULL, other, 1, 0, in[0]));
    POST(fi_trecv(b->ep, in[1], 8, NULL, b->to, 1, 0, in[1]));
    assert_int_equal(arrives(self, 1, in[1]).src, b->to);
    POST(fi_tinject(third->ep, "c", 1, to, 1));
    assert_int_equal(end_ok(b->rx, in[0]).src, other);

    /* Of those that came before, too; and of untagged ones. */
    POST(fi_tinject(a->ep, "a", 1, a->to, 1));
    POST(fi_inject(a->ep, "a", 1, a->to));
    ends_drive_for(10);
    POST(fi_trecv(b->ep, in[0], 8, NULL, other, 1, 0, in[0]));
    POST(fi_recv(b->ep, in[2], 8, NULL, other, in[2]));
    end_silent(b->rx);
    POST(fi_tinject(third->ep, "c", 1, to, 1));
    assert_int_equal(end_ok(b->rx, in[0]).src, other);
    POST(fi_inject(third->ep, "c", 1, to));
    assert_int_equal(end_ok(b->rx, in[2]).src, other);
    receive_tagged(self, in[0], 8, 1, 0, in[0]);
    assert_int_equal(end_ok(b->rx, in[0]).src, b->to);
    POST(fi_recv(b->ep, in[2], 8, NULL, FI_ADDR_UNSPEC, in[2]));
    assert_int_equal(end_ok(b->rx, in[2]).src, b->to);
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

static void claim(struct pair *p, size_t len)
{
    uint8_t *out = filled(len, len), *in = blank(LONG);
    struct iovec iov = {in, LONG};
    int rx[3];
    struct fi_msg_tagged msg = {
        .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 1, .context = &rx[0]};

    send_tagged(p, out, len, 1);
    send_tagged(p, out, len, 1);
    assert_int_equal(find(p, 1, FI_CLAIM, &rx[0]).ok.len, len);
    receive_tagged(p, in, LONG, 1, 0, &rx[1]); /* gets the other one */
    receive_tagged(p, in, LONG, 1, 0, &rx[2]); /* gets none */
    end_ok(p->b.rx, &rx[1]);
    end_ok(p->a.tx, NULL);
    memset(in, BLANK, LONG);
    assert_int_equal(fi_trecvmsg(p->b.ep, &msg, FI_CLAIM), 0);
    assert_int_equal(end_ok(p->b.rx, &rx[0]).ok.len, len);
    assert_filled(in, len, len);
    end_ok(p->a.tx, NULL);
    send_tagged(p, out, 1, 1);
    assert_int_equal(end_ok(p->b.rx, &rx[2]).ok.len, 1);
    end_ok(p->a.tx, NULL);
}

TEST_F(ordered, ofi_tagged__claim)
{
    struct fi_context context;

    claim(self, 100);
    claim(self, LONG);
    assert_true(search(self, 1, FI_CLAIM, &context) < 0); /* nothing is claimed by it */
}

/* The sender of a long one hears that it is done with, whatever became of it. */
static void discard(struct pair *p, size_t len, bool claimed)
{
    uint8_t *out = filled(len, len);
    struct fi_context rx;

    send_tagged(p, out, len, 1);
    if (claimed) {
        find(p, 1, FI_CLAIM, &rx);
        assert_int_equal(search(p, 1, FI_CLAIM | FI_DISCARD, &rx), 0);
        end_ok(p->b.rx, &rx);
    } else {
        assert_int_equal(find(p, 1, FI_DISCARD, &rx).ok.len, len);
    }
    end_ok(p->a.tx, NULL);
    search_in_vain(p, 1, &rx);
}

TEST_F(ordered, ofi_tagged__discard)
{
    for (unsigned claimed = 0; claimed < 2; claimed++) {
        discard(self, 100, claimed);
        discard(self, LONG, claimed);
    }
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

TEST_F(ordered, ofi_tagged__cancelled_too_late)
{
    uint8_t in[8];
    int rx, unknown;

    assert_int_equal(fi_cancel(&self->b.ep->fid, &unknown), -FI_ENOENT);
    receive_tagged(self, in, sizeof(in), 1, 0, &rx);
    arrives(self, 1, &rx);
    assert_int_equal(fi_cancel(&self->b.ep->fid, &rx), -FI_ENOENT);
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
