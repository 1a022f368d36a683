/* SPDX-License-Identifier: BSD-2-Clause */
/* Tagged messages: which receive gets which, searching for those that came, and cancelled receives. */
#include "pair.h"

#include <stdlib.h>
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

static ssize_t search(struct pair *p, uint64_t tag, uint64_t ignore, uint64_t flags, void *context)
{
    return fi_trecvmsg(
        p->b.ep,
        &(struct fi_msg_tagged){
            .addr = FI_ADDR_UNSPEC, .tag = tag, .ignore = ignore, .context = context},
        flags);
}

/* Searches until it is there: progress is up to the one who searches. */
static struct entry find(struct pair *p, uint64_t tag, uint64_t flags, void *context)
{
    uint64_t since_ns = end_now_ns();
    struct entry entry;

    for (;;) {
        assert_int_equal(search(p, tag, 0, FI_PEEK | flags, context), 0);
        entry = end_next(p->b.rx);
        assert_ptr_equal(entry.ok.op_context, context);
        if (!entry.err)
            return entry;
        assert_int_equal(entry.err, FI_ENOMSG);
        end_patience(since_ns);
    }
}

/* ------------------------------------------------------------------------------------------- tags */

static uint64_t bit(unsigned i)
{
    return 1ull << i;
}

/* Each bit of a tag counts, of messages that receives wait for and of others. */
TEST_F(pair, ofi_tagged__all_bits_count)
{
    uint8_t in[BITS][8];
    struct entry entry;

    pair_open(self, &(struct end_options){.order = FI_ORDER_SAS});
    assert_int_equal(self->a.info->ep_attr->mem_tag_format >> (BITS - 1), 1);
    for (unsigned i = 0; i < BITS; i++)
        receive_tagged(self, in[i], 8, bit(i), 0, in[i]);
    receive_tagged(self, in[0], 8, 0, 0, self);
    for (unsigned i = 0; i < BITS; i++) {
        POST(fi_tinject(self->a.ep, "b", 1, self->a.to, bit(i * 37 % BITS)));
        entry = end_ok(self->b.rx, in[i * 37 % BITS]);
        assert_int_equal(entry.ok.tag, bit(i * 37 % BITS));
        assert_int_equal(entry.ok.flags, FI_RECV | FI_TAGGED);
    }
    POST(fi_tinject(self->a.ep, "b", 1, self->a.to, 0));
    end_ok(self->b.rx, self);

    for (unsigned i = 0; i < BITS; i++)
        POST(fi_tinject(self->a.ep, "b", 1, self->a.to, ~bit(i)));
    ends_drive_for(5);
    for (unsigned i = 0; i < BITS; i++) {
        receive_tagged(self, in[0], 8, ~bit(i * 37 % BITS), 0, self);
        assert_int_equal(end_ok(self->b.rx, self).ok.tag, ~bit(i * 37 % BITS));
    }
}

TEST_F(pair, ofi_tagged__ignored_bits_do_not)
{
    const uint64_t tag = 0x123456789abcdef0u, ignore = 0xff00000000000f0fu;
    uint8_t in[8];
    int rx;

    pair_open(self, &(struct end_options){.order = FI_ORDER_SAS});
    for (unsigned i = 0; i < BITS; i++) {
        bool fits = ignore & bit(i);

        receive_tagged(self, in, sizeof(in), tag, ignore, &rx);
        POST(fi_tinject(self->a.ep, "b", 1, self->a.to, tag ^ bit(i)));
        if (!fits) {
            /* Another one does. */
            POST(fi_tinject(self->a.ep, "bb", 2, self->a.to, tag ^ ignore));
            assert_int_equal(end_ok(self->b.rx, &rx).ok.tag, tag ^ ignore);
            receive_tagged(self, in, sizeof(in), ~tag, ~0ull, &rx);
        }
        assert_int_equal(end_ok(self->b.rx, &rx).ok.tag, tag ^ bit(i));
    }
    /* The tag's own bits are ignored, too, where the mask says so. */
    receive_tagged(self, in, sizeof(in), tag | ignore, ignore, &rx);
    POST(fi_tinject(self->a.ep, "b", 1, self->a.to, tag & ~ignore));
    end_ok(self->b.rx, &rx);
}

TEST_F(pair, ofi_tagged__untagged_ones_are_apart)
{
    uint8_t in[2][8];

    pair_open(self, &(struct end_options){.order = FI_ORDER_SAS});
    receive_tagged(self, in[0], 8, 0, ~0ull, in[0]);
    POST(fi_recv(self->b.ep, in[1], 8, NULL, FI_ADDR_UNSPEC, in[1]));
    POST(fi_inject(self->a.ep, "b", 1, self->a.to));
    end_ok(self->b.rx, in[1]);
    POST(fi_recv(self->b.ep, in[1], 8, NULL, FI_ADDR_UNSPEC, in[1]));
    POST(fi_tinject(self->a.ep, "b", 1, self->a.to, 5));
    end_ok(self->b.rx, in[0]);
    end_silent(self->b.rx);
}

TEST(ofi_tagged__data_lists_and_lengths)
{
    static const size_t lens[] = {0, INJECT_BYTES, INJECT_BYTES + 1, EAGER_BYTES, LONG};
    uint8_t *out = filled(LONG, 3), *in = blank(LONG);
    struct pair p;
    int tx, rx;

    pair_open(&p, &(struct end_options){0});
    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        struct iovec from[2] = {{out, lens[i] / 3}, {out + lens[i] / 3, lens[i] - lens[i] / 3}};
        struct iovec to[2] = {{in, lens[i] / 2}, {in + lens[i] / 2, lens[i] - lens[i] / 2}};

        POST(fi_trecvv(p.b.ep, to, NULL, 2, FI_ADDR_UNSPEC, i, 0, &rx));
        POST(fi_tsendv(p.a.ep, from, NULL, 2, p.a.to, i, &tx));
        assert_int_equal(end_ok(p.b.rx, &rx).ok.len, lens[i]);
        assert_int_equal(end_ok(p.a.tx, &tx).ok.flags, FI_SEND | FI_TAGGED);
        assert_filled(in, lens[i], 3);
        memset(in, BLANK, LONG);

        receive_tagged(&p, in, LONG, i, 0, &rx);
        POST(fi_tsenddata(p.a.ep, out, lens[i], NULL, ~(uint64_t)i, p.a.to, i, &tx));
        struct entry entry = end_ok(p.b.rx, &rx);
        assert_int_equal(entry.ok.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
        assert_int_equal(entry.ok.data, ~(uint64_t)i);
        end_ok(p.a.tx, &tx);
        assert_filled(in, lens[i], 3);
    }
    receive_tagged(&p, in, LONG, 1, 0, &rx);
    POST(fi_tinjectdata(p.a.ep, out, 1, 77, p.a.to, 1));
    assert_int_equal(end_ok(p.b.rx, &rx).ok.data, 77);

    receive_tagged(&p, in, 10, 0, 1, &rx);
    send_tagged(&p, out, LONG, 1);
    assert_int_equal(end_fails(p.b.rx, &rx, FI_ETRUNC).ok.tag, 1);
    end_ok(p.a.tx, NULL);
    pair_close(&p);
    free(in);
    free(out);
}

/* ------------------------------------------------------------------------------------- who is first */

TEST_F(pair, ofi_tagged__first_of_the_receives_that_fit)
{
    uint8_t in[4][8];

    pair_open(self, &(struct end_options){.order = FI_ORDER_SAS});
    receive_tagged(self, in[0], 8, 1, 0, in[0]);
    receive_tagged(self, in[1], 8, 0, ~0ull, in[1]);
    receive_tagged(self, in[2], 8, 2, 0, in[2]);
    receive_tagged(self, in[3], 8, 2, 0, in[3]);
    POST(fi_tinject(self->a.ep, "2", 1, self->a.to, 2));
    end_ok(self->b.rx, in[1]);
    POST(fi_tinject(self->a.ep, "2", 1, self->a.to, 2));
    end_ok(self->b.rx, in[2]);
    POST(fi_tinject(self->a.ep, "1", 1, self->a.to, 1));
    end_ok(self->b.rx, in[0]);
    POST(fi_tinject(self->a.ep, "2", 1, self->a.to, 2));
    end_ok(self->b.rx, in[3]);
}

/* Short and long ones came in turn: they are taken in that order, past those that do not fit. */
TEST(ofi_tagged__first_of_the_messages_that_fit)
{
    enum { NUM = 12 };
    uint8_t *out[NUM], *in = blank(LONG);
    struct pair p;
    int rx;

    pair_open(&p, &(struct end_options){.order = FI_ORDER_SAS});
    for (unsigned i = 0; i < NUM; i++) {
        out[i] = filled(LONG, i);
        send_tagged(&p, out[i], i % 4 < 2 ? 100 : LONG, i % 2);
    }
    ends_drive_for(20);
    for (unsigned i = 1; i < NUM; i += 2) {
        receive_tagged(&p, in, LONG, 1, 0, &rx);
        assert_int_equal(end_ok(p.b.rx, &rx).ok.len, i % 4 < 2 ? 100 : LONG);
        assert_filled(in, i % 4 < 2 ? 100 : LONG, i);
    }
    for (unsigned i = 0; i < NUM; i += 2) {
        receive_tagged(&p, in, LONG, 7, ~0ull, &rx);
        assert_int_equal(end_ok(p.b.rx, &rx).ok.tag, 0);
        assert_filled(in, i % 4 < 2 ? 100 : LONG, i);
    }
    for (unsigned i = 0; i < NUM; i++)
        end_ok(p.a.tx, NULL);
    pair_close(&p);
    for (unsigned i = 0; i < NUM; i++)
        free(out[i]);
    free(in);
}

TEST_F(pair, ofi_tagged__receives_from_one_sender)
{
    uint8_t in[3][8];
    struct end third;

    pair_open(self, &(struct end_options){.order = FI_ORDER_SAS});
    end_open(&third, &(struct end_options){.order = FI_ORDER_SAS}, NULL);
    fi_addr_t to = end_meet(&third, &self->b);
    fi_addr_t other = end_meet(&self->b, &third);
    POST(fi_trecv(self->b.ep, in[0], 8, NULL, other, 1, 0, in[0]));
    POST(fi_trecv(self->b.ep, in[1], 8, NULL, self->b.to, 1, 0, in[1]));
    POST(fi_tinject(self->a.ep, "a", 1, self->a.to, 1));
    assert_int_equal(end_ok(self->b.rx, in[1]).src, self->b.to);
    POST(fi_tinject(third.ep, "c", 1, to, 1));
    assert_int_equal(end_ok(self->b.rx, in[0]).src, other);

    /* Of those that came before, too; and of untagged ones. */
    POST(fi_tinject(self->a.ep, "a", 1, self->a.to, 1));
    POST(fi_inject(self->a.ep, "a", 1, self->a.to));
    ends_drive_for(10);
    POST(fi_trecv(self->b.ep, in[0], 8, NULL, other, 1, 0, in[0]));
    POST(fi_recv(self->b.ep, in[2], 8, NULL, other, in[2]));
    end_silent(self->b.rx);
    POST(fi_tinject(third.ep, "c", 1, to, 1));
    assert_int_equal(end_ok(self->b.rx, in[0]).src, other);
    POST(fi_inject(third.ep, "c", 1, to));
    assert_int_equal(end_ok(self->b.rx, in[2]).src, other);
    POST(fi_trecv(self->b.ep, in[0], 8, NULL, FI_ADDR_UNSPEC, 1, 0, in[0]));
    assert_int_equal(end_ok(self->b.rx, in[0]).src, self->b.to);
    POST(fi_recv(self->b.ep, in[2], 8, NULL, FI_ADDR_UNSPEC, in[2]));
    assert_int_equal(end_ok(self->b.rx, in[2]).src, self->b.to);
    end_close(&third);
}

/* ------------------------------------------------------------------------------------------ search */

TEST(ofi_tagged__peek)
{
    uint8_t *out = filled(LONG, 1), *in = blank(LONG);
    struct entry entry;
    struct pair p;
    int rx;

    pair_open(&p, &(struct end_options){.order = FI_ORDER_SAS});
    assert_int_equal(search(&p, 9, 0, FI_PEEK, &rx), 0);
    end_fails(p.b.rx, &rx, FI_ENOMSG);

    send_tagged(&p, out, LONG, 8);
    POST(fi_tinjectdata(p.a.ep, out, 100, 55, p.a.to, 9));
    for (unsigned i = 0; i < 2; i++) {
        entry = find(&p, 9, 0, &rx);
        assert_int_equal(entry.ok.len, 100);
        assert_int_equal(entry.ok.tag, 9);
        assert_int_equal(entry.ok.data, 55);
        assert_true(entry.ok.flags & FI_REMOTE_CQ_DATA);
        assert_int_equal(entry.src, p.b.to);
        assert_int_equal(find(&p, 8, 0, &rx).ok.len, LONG);
    }
    assert_int_equal(search(&p, 7, 0, FI_PEEK, &rx), 0);
    end_fails(p.b.rx, &rx, FI_ENOMSG);
    end_silent(p.a.tx); /* the long one is but looked at */
    receive_tagged(&p, in, LONG, 8, 0, &rx);
    end_ok(p.b.rx, &rx);
    assert_filled(in, LONG, 1);
    end_ok(p.a.tx, NULL);
    receive_tagged(&p, in, LONG, 9, 0, &rx);
    assert_int_equal(end_ok(p.b.rx, &rx).ok.len, 100);
    pair_close(&p);
    free(in);
    free(out);
}

static void claim(struct pair *p, size_t len)
{
    uint8_t *out = filled(len, len), *in = blank(LONG);
    struct iovec iov = {in, LONG};
    int rx[3];

    send_tagged(p, out, len, 1);
    send_tagged(p, out, len, 1);
    assert_int_equal(find(p, 1, FI_CLAIM, &rx[0]).ok.len, len);
    receive_tagged(p, in, LONG, 1, 0, &rx[1]); /* gets the other one */
    receive_tagged(p, in, LONG, 1, 0, &rx[2]); /* gets none */
    end_ok(p->b.rx, &rx[1]);
    end_ok(p->a.tx, NULL);
    memset(in, BLANK, LONG);
    assert_int_equal(fi_trecvmsg(p->b.ep,
                                 &(struct fi_msg_tagged){.msg_iov = &iov,
                                                         .iov_count = 1,
                                                         .addr = FI_ADDR_UNSPEC,
                                                         .tag = 1,
                                                         .context = &rx[0]},
                                 FI_CLAIM),
                     0);
    assert_int_equal(end_ok(p->b.rx, &rx[0]).ok.len, len);
    assert_filled(in, len, len);
    end_ok(p->a.tx, NULL);
    send_tagged(p, out, 1, 1);
    assert_int_equal(end_ok(p->b.rx, &rx[2]).ok.len, 1);
    end_ok(p->a.tx, NULL);
    free(in);
    free(out);
}

TEST_F(pair, ofi_tagged__claim)
{
    struct fi_context context;

    pair_open(self, &(struct end_options){.order = FI_ORDER_SAS});
    claim(self, 100);
    claim(self, LONG);
    assert_true(search(self, 1, 0, FI_CLAIM, &context) < 0); /* nothing is claimed by it */
}

/* The sender of a long one hears that it is done with, whatever became of it. */
static void discard(struct pair *p, size_t len, bool claimed)
{
    uint8_t *out = filled(len, len);
    struct fi_context rx;

    send_tagged(p, out, len, 1);
    if (claimed) {
        find(p, 1, FI_CLAIM, &rx);
        assert_int_equal(search(p, 1, 0, FI_CLAIM | FI_DISCARD, &rx), 0);
        end_ok(p->b.rx, &rx);
    } else {
        assert_int_equal(find(p, 1, FI_DISCARD, &rx).ok.len, len);
    }
    end_ok(p->a.tx, NULL);
    assert_int_equal(search(p, 1, 0, FI_PEEK, &rx), 0);
    end_fails(p->b.rx, &rx, FI_ENOMSG);
    free(out);
}

TEST_F(pair, ofi_tagged__discard)
{
    pair_open(self, &(struct end_options){.order = FI_ORDER_SAS});
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
    POST(fi_tinject(self->a.ep, "t", 1, self->a.to, 1));
    end_ok(self->b.rx, in[1]);
    POST(fi_inject(self->a.ep, "m", 1, self->a.to));
    end_ok(self->b.rx, in[3]);
    end_silent(self->b.rx);
}

TEST_F(pair, ofi_tagged__cancelled_too_late)
{
    uint8_t in[8];
    int rx, unknown;

    pair_open(self, &(struct end_options){.order = FI_ORDER_SAS});
    assert_int_equal(fi_cancel(&self->b.ep->fid, &unknown), -FI_ENOENT);
    receive_tagged(self, in, sizeof(in), 1, 0, &rx);
    POST(fi_tinject(self->a.ep, "t", 1, self->a.to, 1));
    end_ok(self->b.rx, &rx);
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
