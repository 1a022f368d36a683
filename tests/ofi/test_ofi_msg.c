/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages one by one: sizes, lists of buffers, injected ones, data, flags, and which are told. */
#include "pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IOVS = 8, LARGE = 5 << 20 };

static const size_t sizes[] = {
    0, 1, INJECT_BYTES, INJECT_BYTES + 1, EAGER_BYTES, EAGER_BYTES + 1, 1 << 20, LARGE};
#define NUM_SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* Posts a message, and its receive before that or after it came. Contexts are the buffers. */
static void post_both(struct end *from, uint8_t *out, size_t len, struct end *at, uint8_t *in,
                      size_t room, bool expected)
{
    if (expected)
        POST(fi_recv(at->ep, in, room, NULL, FI_ADDR_UNSPEC, in));
    POST(fi_send(from->ep, out, len, NULL, from->to, out));
    if (!expected) {
        ends_drive_for(5);
        POST(fi_recv(at->ep, in, room, NULL, FI_ADDR_UNSPEC, in));
    }
}

static void send_one(struct end *from, struct end *at, size_t len, bool expected, uint64_t message)
{
    uint8_t *out = filled(len, message), *in = blank(len + 64);

    post_both(from, out, len, at, in, len + 64, expected);
    struct entry entry = end_ok(at->rx, in);
    assert_int_equal(entry.ok.len, len);
    assert_int_equal(entry.ok.flags, FI_RECV | FI_MSG);
    assert_filled(in, len, message);
    assert_blank(in + len, 64);
    assert_int_equal(end_ok(from->tx, out).ok.flags, FI_SEND | FI_MSG);
}

TEST_F(plain, ofi_msg__all_sizes_arrive_both_ways)
{
    for (unsigned i = 0; i < 2 * NUM_SIZES; i++) {
        send_one(&self->a, &self->b, sizes[i / 2], i % 2, 2 * i);
        send_one(&self->b, &self->a, sizes[i / 2], i % 2, 2 * i + 1);
    }
}

TEST_F(pair, ofi_msg__ends_of_one_domain)
{
    pair_open_shared(self, &(struct end_options){.order = FI_ORDER_SAS});
    for (unsigned i = 0; i < NUM_SIZES; i++) {
        send_one(&self->a, &self->b, sizes[i], i % 2, i);
        send_one(&self->b, &self->a, sizes[i], i % 2, i);
    }
}

TEST_F(end, ofi_msg__to_oneself)
{
    end_open(self, &(struct end_options){.order = FI_ORDER_SAS}, NULL);
    self->to = end_meet(self, self);
    for (unsigned i = 0; i < 2 * NUM_SIZES; i++)
        send_one(self, self, sizes[i / 2], i % 2, i);
}

/* ------------------------------------------------------------------------------- lists of buffers */

/* Cuts memory into as many parts as there are, the first ones `step` bytes or more, some empty. */
static void cut(struct iovec *iov, uint8_t *memory, size_t len, size_t step)
{
    size_t at = 0;

    for (unsigned i = 0; i < IOVS; i++) {
        size_t part = i == 3 ? 0 : step + i;

        if (part > len - at || i == IOVS - 1)
            part = len - at;
        iov[i] = (struct iovec){memory + at, part};
        at += part;
    }
}

static void send_list(struct pair *p, size_t len, size_t out_step, size_t in_step)
{
    uint8_t *out = filled(len, len), *in = blank(len + 1);
    struct iovec from[IOVS], to[IOVS];
    int tx, rx;

    cut(from, out, len, out_step);
    cut(to, in, len, in_step);
    POST(fi_recvv(p->b.ep, to, NULL, IOVS, FI_ADDR_UNSPEC, &rx));
    POST(fi_sendv(p->a.ep, from, NULL, IOVS, p->a.to, &tx));
    assert_int_equal(end_ok(p->b.rx, &rx).ok.len, len);
    assert_filled(in, len, len);
    end_ok(p->a.tx, &tx);
}

TEST_F(plain, ofi_msg__lists_of_eight_buffers)
{
    static const size_t around[] = {7,           INJECT_BYTES,    INJECT_BYTES + 1,
                                    EAGER_BYTES, EAGER_BYTES + 1, 300000};
    struct iovec nine[IOVS + 1] = {{0}};

    for (unsigned i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
        send_list(self, around[i], around[i] / IOVS, around[i] / IOVS);
        send_list(self, around[i], 1, around[i] / (IOVS + 3));
        send_list(self, around[i], around[i] / (IOVS + 2), 1);
    }
    assert_int_equal(fi_sendv(self->a.ep, nine, NULL, IOVS + 1, self->a.to, NULL), -FI_EINVAL);
    assert_int_equal(fi_recvv(self->a.ep, nine, NULL, IOVS + 1, FI_ADDR_UNSPEC, NULL), -FI_EINVAL);
}

/* --------------------------------------------------------------------------------- inject and data */

/* What is injected is the caller's at once, and is not told. */
TEST_F(plain, ofi_msg__injected)
{
    static const size_t lens[] = {0, 1, 100, INJECT_BYTES};
    int rx;

    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        uint8_t *out = filled(lens[i], i), *in = blank(INJECT_BYTES);

        POST(fi_recv(self->b.ep, in, INJECT_BYTES, NULL, FI_ADDR_UNSPEC, &rx));
        POST(fi_inject(self->a.ep, out, lens[i], self->a.to));
        memset(out, 0, lens[i]);
        assert_int_equal(end_ok(self->b.rx, &rx).ok.len, lens[i]);
        assert_filled(in, lens[i], i);
    }
    end_silent(self->a.tx);
    assert_int_equal(self->a.info->tx_attr->inject_size, INJECT_BYTES);
}

TEST_F(plain, ofi_msg__injected_too_long)
{
    uint8_t out[INJECT_BYTES + 1] = {0};

    assert_int_equal(fi_inject(self->a.ep, out, sizeof(out), self->a.to), -FI_EMSGSIZE);
    end_silent(self->b.rx);
}

/* A flag of a call that has a context is no fi_inject(): it owes an entry. */
TEST_F(plain, ofi_msg__injected_by_flag_is_told)
{
    uint8_t *out = filled(INJECT_BYTES, 1), *in = blank(INJECT_BYTES);
    int tx, rx;

    POST(fi_recv(self->b.ep, in, INJECT_BYTES, NULL, FI_ADDR_UNSPEC, &rx));
    POST(end_sendmsg(&self->a, out, INJECT_BYTES, self->a.to, &tx, FI_INJECT | FI_COMPLETION));
    memset(out, 0, INJECT_BYTES);
    end_ok(self->a.tx, &tx);
    end_ok(self->b.rx, &rx);
    assert_filled(in, INJECT_BYTES, 1);
}

/* Also where there is no room for it at once. */
TEST_F(ordered, ofi_msg__injected_until_there_is_no_room)
{
    enum { MOST = 100000 };
    uint32_t in = 0, out, sent = 0, told = 0;
    struct end *a = &self->a;

    for (unsigned full = 0; full < 20 && sent < MOST; full++) {
        for (out = sent; sent < MOST && fi_inject(a->ep, &out, sizeof(out), a->to) == 0;
             out = ++sent)
            continue;
        if (end_sendmsg(a, &out, sizeof(out), a->to, NULL, FI_INJECT | FI_COMPLETION) == 0) {
            sent++;
            told++;
        }
        out = UINT32_MAX;
    }
    for (uint32_t i = 0; i < sent; i++) {
        POST(fi_recv(self->b.ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, &in));
        end_ok(self->b.rx, &in);
        assert_int_equal(in, i);
    }
    for (; told; told--)
        end_ok(a->tx, NULL);
    end_silent(a->tx);
    end_silent(self->b.rx);
}

static void expect_data(struct pair *p, int *rx, uint64_t data, size_t len)
{
    struct entry entry = end_ok(p->b.rx, rx);

    assert_int_equal(entry.ok.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
    assert_int_equal(entry.ok.data, data);
    assert_int_equal(entry.ok.len, len);
}

TEST_F(plain, ofi_msg__data_of_eight_bytes)
{
    const uint64_t data = 0xfedcba9876543210u;
    uint8_t *out = filled(EAGER_BYTES + 1, 1), *in = blank(EAGER_BYTES + 1);
    struct end *a = &self->a, *b = &self->b;
    int tx, rx;

    assert_int_equal(a->info->domain_attr->cq_data_size, sizeof(data));
    for (size_t len = 0; len <= EAGER_BYTES + 1; len += (EAGER_BYTES + 1) / 5) {
        POST(fi_recv(b->ep, in, EAGER_BYTES + 1, NULL, FI_ADDR_UNSPEC, &rx));
        POST(fi_senddata(a->ep, out, len, NULL, data + len, a->to, &tx));
        expect_data(self, &rx, data + len, len);
        end_ok(a->tx, &tx);
        assert_filled(in, len, 1);
    }
    POST(fi_recv(b->ep, in, EAGER_BYTES, NULL, FI_ADDR_UNSPEC, &rx));
    POST(fi_injectdata(a->ep, out, 10, ~data, a->to));
    expect_data(self, &rx, ~data, 10);
    POST(fi_recv(b->ep, in, EAGER_BYTES, NULL, FI_ADDR_UNSPEC, &rx));
    POST(end_sendmsg(a, out, 10, a->to, &tx, FI_REMOTE_CQ_DATA)); /* of 0 */
    expect_data(self, &rx, 0, 10);
    end_ok(a->tx, &tx);
}

/* ------------------------------------------------------------------------------------------ flags */

/* A message of one byte, of which the receiver hears this source. */
static void expect_source(struct end *from, struct end *at, fi_addr_t source)
{
    char in;

    POST(fi_recv(at->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
    POST(fi_inject(from->ep, "x", 1, from->to));
    assert_int_equal(end_ok(at->rx, &in).src, source);
}

TEST_F(plain, ofi_msg__source_is_told_of_those_who_are_known)
{
    struct end *b = &self->b, *stranger = end_new(&(struct end_options){0}, NULL);

    stranger->to = end_meet(stranger, b);
    expect_source(&self->a, b, b->to);
    expect_source(stranger, b, FI_ADDR_NOTAVAIL);
    fi_addr_t back = end_meet(b, stranger);
    assert_true(back != b->to);
    expect_source(stranger, b, back);
    assert_int_equal(fi_av_remove(b->av, &back, 1, 0), 0);
    expect_source(stranger, b, FI_ADDR_NOTAVAIL);
    assert_int_equal(fi_inject(b->ep, "b", 1, back), -FI_EINVAL);
}

TEST_F(pair, ofi_msg__selective_completion)
{
    struct end *a = &self->a, *b = &self->b;
    uint8_t in[8];
    int tx, quiet;

    pair_open(self, &(struct end_options){.bind = FI_SELECTIVE_COMPLETION,
                                          .order = FI_ORDER_SAS,
                                          .counts = FI_SEND | FI_RECV});
    POST(fi_recv(b->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &quiet));
    POST(end_recvmsg(b, in, sizeof(in), FI_ADDR_UNSPEC, in, FI_COMPLETION));
    POST(fi_send(a->ep, "y", 1, NULL, a->to, &quiet));
    POST(end_sendmsg(a, "x", 1, a->to, &tx, FI_COMPLETION));
    end_ok(a->tx, &tx);
    end_ok(b->rx, in);
    UNTIL(fi_cntr_read(end_cntr(a, FI_SEND)) == 2);
    UNTIL(fi_cntr_read(end_cntr(b, FI_RECV)) == 2);
    end_silent(a->tx);
    end_silent(b->rx);

    /* Errors are told always. */
    POST(fi_recv(b->ep, in, 1, NULL, FI_ADDR_UNSPEC, &quiet));
    POST(fi_send(a->ep, "yy", 2, NULL, a->to, &quiet));
    end_fails(b->rx, &quiet, FI_ETRUNC);
    assert_int_equal(fi_cntr_readerr(end_cntr(b, FI_RECV)), 1);
}

/* It is complete when a receive has it; without the flag, when the other end has. */
TEST_F(plain, ofi_msg__delivery_complete_waits_for_the_receive)
{
    struct end *a = &self->a, *b = &self->b;
    uint8_t in[8];
    int tx;

    POST(fi_send(a->ep, "x", 1, NULL, a->to, &tx));
    end_ok(a->tx, &tx);
    POST(fi_recv(b->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
    end_ok(b->rx, in);

    POST(end_sendmsg(a, "x", 1, a->to, &tx, FI_DELIVERY_COMPLETE));
    end_silent(a->tx);
    POST(fi_recv(b->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
    end_ok(a->tx, &tx);
    end_ok(b->rx, in);
}

TEST_F(pair, ofi_msg__delivery_complete_by_default)
{
    uint8_t in[8];
    int tx, rx;

    pair_open(self, &(struct end_options){.tx_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION});
    POST(fi_send(self->a.ep, "x", 1, NULL, self->a.to, &tx));
    end_silent(self->a.tx);
    POST(fi_recv(self->b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &rx));
    end_ok(self->a.tx, &tx);
    end_ok(self->b.rx, &rx);
}

/* --------------------------------------------------------------------------------------- too long */

static void truncate_one(struct pair *p, size_t len, size_t room, bool expected)
{
    uint8_t *out = filled(len, len), *in = blank(len);

    post_both(&p->a, out, len, &p->b, in, room, expected);
    struct entry entry = end_fails(p->b.rx, in, FI_ETRUNC);
    assert_int_equal(entry.ok.len, room);
    assert_int_equal(entry.olen, len - room);
    assert_filled(in, room, len);
    assert_blank(in + room, len - room);
    end_ok(p->a.tx, out);
}

TEST_F(plain, ofi_msg__too_long_for_the_receive)
{
    for (unsigned expected = 0; expected < 2; expected++) {
        truncate_one(self, 100, 60, expected);
        truncate_one(self, 1, 0, expected);
        truncate_one(self, EAGER_BYTES, 1000, expected);
        truncate_one(self, EAGER_BYTES + 1, EAGER_BYTES, expected);
        truncate_one(self, 1 << 20, 300001, expected);
        truncate_one(self, 1 << 20, 0, expected);
    }
    send_one(&self->a, &self->b, 1000, true, 1); /* what follows is in order */
}

/* A receive of b's is too short, and its error is read into that entry. */
static void read_error(struct pair *p, struct fi_cq_err_entry *error)
{
    struct fi_cq_tagged_entry entry;
    char in;

    POST(fi_recv(p->b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, NULL));
    POST(fi_send(p->a.ep, "yy", 2, NULL, p->a.to, NULL));
    UNTIL(fi_cq_read(p->b.rx, &entry, 1) == -FI_EAVAIL);
    assert_int_equal(fi_cq_readerr(p->b.rx, error, 0), 1);
    assert_int_equal(error->err, FI_ETRUNC);
}

/* As Open MPI does: the text of the first is no buffer for that of the second. */
TEST_F(plain, ofi_msg__errors_read_into_one_entry)
{
    struct fi_cq_err_entry error = {0};
    char in, own[8], first[END_TEXT];

    read_error(self, &error);
    assert_int_equal(error.err_data_size, 0);
    const void *text = error.err_data;
    snprintf(first, sizeof(first), "%s", (char *)error.err_data);
    assert_true(strlen(first) > sizeof(own));
    read_error(self, &error);
    assert_int_equal(error.err_data_size, 0);
    assert_string_equal(error.err_data, first);
    assert_ptr_not_equal(error.err_data, text);

    /* Who brings a buffer gets what fits. */
    error.err_data = own;
    error.err_data_size = sizeof(own);
    read_error(self, &error);
    assert_ptr_equal(error.err_data, own);
    assert_int_equal(error.err_data_size, sizeof(own));
    first[sizeof(own) - 1] = '\0';
    assert_string_equal(own, first);

    /* Nothing is written where there is nothing to say: some programs bring an entry that never was filled. */
    POST(fi_recv(self->b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
    assert_int_equal(fi_cancel(&self->b.ep->fid, &in), 0);
    error.err_data = NULL;
    error.err_data_size = 12345;
    assert_int_equal(fi_cq_readerr(self->b.rx, &error, 0), 1);
    assert_int_equal(error.err, FI_ECANCELED);
    assert_null(error.err_data);
    assert_int_equal(error.err_data_size, 0);
}
