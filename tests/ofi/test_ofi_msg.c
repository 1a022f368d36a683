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

/* Sends `len` bytes from one end to the other, where the receive is posted before or after. */
static void send_one(struct end *from, fi_addr_t to, struct end *at, size_t len, bool expected,
                     uint64_t message)
{
    uint8_t *out = filled(len, message), *in = blank(len + 64);
    struct entry entry;
    int tx, rx;

    if (expected)
        POST(fi_recv(at->ep, in, len + 64, NULL, FI_ADDR_UNSPEC, &rx));
    POST(fi_send(from->ep, out, len, NULL, to, &tx));
    if (!expected) {
        ends_drive_for(5);
        POST(fi_recv(at->ep, in, len + 64, NULL, FI_ADDR_UNSPEC, &rx));
    }
    entry = end_ok(at->rx, &rx);
    assert_int_equal(entry.ok.len, len);
    assert_int_equal(entry.ok.flags, FI_RECV | FI_MSG);
    assert_filled(in, len, message);
    assert_blank(in + len, 64);
    entry = end_ok(from->tx, &tx);
    assert_int_equal(entry.ok.flags, FI_SEND | FI_MSG);
    free(in);
    free(out);
}

TEST(ofi_msg__all_sizes_arrive_both_ways)
{
    struct pair p;

    pair_open(&p, &(struct end_options){0});
    for (unsigned i = 0; i < NUM_SIZES; i++) {
        send_one(&p.a, p.a.to, &p.b, sizes[i], true, 4 * i);
        send_one(&p.a, p.a.to, &p.b, sizes[i], false, 4 * i + 1);
        send_one(&p.b, p.b.to, &p.a, sizes[i], true, 4 * i + 2);
        send_one(&p.b, p.b.to, &p.a, sizes[i], false, 4 * i + 3);
    }
    pair_close(&p);
}

TEST(ofi_msg__ends_of_one_domain)
{
    struct pair p;

    pair_open_shared(&p, &(struct end_options){.order = FI_ORDER_SAS});
    for (unsigned i = 0; i < NUM_SIZES; i++) {
        send_one(&p.a, p.a.to, &p.b, sizes[i], i % 2, i);
        send_one(&p.b, p.b.to, &p.a, sizes[i], i % 2, i);
    }
    pair_close(&p);
}

TEST(ofi_msg__to_oneself)
{
    fi_addr_t self;
    struct end e;

    end_open(&e, &(struct end_options){.order = FI_ORDER_SAS}, NULL);
    self = end_meet(&e, &e);
    for (unsigned i = 0; i < NUM_SIZES; i++) {
        send_one(&e, self, &e, sizes[i], true, i);
        send_one(&e, self, &e, sizes[i], false, i);
    }
    end_close(&e);
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
    free(in);
    free(out);
}

TEST(ofi_msg__lists_of_eight_buffers)
{
    static const size_t around[] = {7,           INJECT_BYTES,    INJECT_BYTES + 1,
                                    EAGER_BYTES, EAGER_BYTES + 1, 300000};
    struct iovec nine[IOVS + 1] = {{0}};
    struct pair p;

    pair_open(&p, &(struct end_options){0});
    for (unsigned i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
        send_list(&p, around[i], around[i] / IOVS, around[i] / IOVS);
        send_list(&p, around[i], 1, around[i] / (IOVS + 3));
        send_list(&p, around[i], around[i] / (IOVS + 2), 1);
    }
    assert_int_equal(fi_sendv(p.a.ep, nine, NULL, IOVS + 1, p.a.to, NULL), -FI_EINVAL);
    assert_int_equal(fi_recvv(p.a.ep, nine, NULL, IOVS + 1, FI_ADDR_UNSPEC, NULL), -FI_EINVAL);
    pair_close(&p);
}

/* --------------------------------------------------------------------------------- inject and data */

/* What is injected is the caller's at once, and is not told. */
TEST(ofi_msg__injected)
{
    static const size_t lens[] = {0, 1, 100, INJECT_BYTES};
    struct pair p;
    int rx;

    pair_open(&p, &(struct end_options){0});
    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        uint8_t *out = filled(lens[i], i), *in = blank(INJECT_BYTES);

        POST(fi_recv(p.b.ep, in, INJECT_BYTES, NULL, FI_ADDR_UNSPEC, &rx));
        POST(fi_inject(p.a.ep, out, lens[i], p.a.to));
        memset(out, 0, lens[i]);
        assert_int_equal(end_ok(p.b.rx, &rx).ok.len, lens[i]);
        assert_filled(in, lens[i], i);
        free(in);
        free(out);
    }
    end_silent(p.a.tx);
    assert_int_equal(p.a.info->tx_attr->inject_size, INJECT_BYTES);
    pair_close(&p);
}

TEST(ofi_msg__injected_too_long)
{
    uint8_t out[INJECT_BYTES + 1] = {0};
    struct pair p;

    pair_open(&p, &(struct end_options){0});
    assert_int_equal(fi_inject(p.a.ep, out, sizeof(out), p.a.to), -FI_EMSGSIZE);
    end_silent(p.b.rx);
    pair_close(&p);
}

/* A flag of a call that has a context is no fi_inject(): it owes an entry. */
TEST(ofi_msg__injected_by_flag_is_told)
{
    uint8_t *out = filled(INJECT_BYTES, 1), *in = blank(INJECT_BYTES);
    struct iovec iov = {out, INJECT_BYTES};
    struct pair p;
    int tx, rx;

    pair_open(&p, &(struct end_options){0});
    POST(fi_recv(p.b.ep, in, INJECT_BYTES, NULL, FI_ADDR_UNSPEC, &rx));
    POST(fi_sendmsg(
        p.a.ep, &(struct fi_msg){.msg_iov = &iov, .iov_count = 1, .addr = p.a.to, .context = &tx},
        FI_INJECT | FI_COMPLETION));
    memset(out, 0, INJECT_BYTES);
    end_ok(p.a.tx, &tx);
    end_ok(p.b.rx, &rx);
    assert_filled(in, INJECT_BYTES, 1);
    pair_close(&p);
    free(in);
    free(out);
}

/* Also where there is no room for it at once. */
TEST(ofi_msg__injected_until_there_is_no_room)
{
    enum { MOST = 100000 };
    uint32_t in = 0, out, sent = 0, told = 0;
    struct iovec iov = {&out, sizeof(out)};
    struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1};
    struct entry entry;
    struct pair p;

    pair_open(&p, &(struct end_options){.order = FI_ORDER_SAS});
    msg.addr = p.a.to;
    for (unsigned full = 0; full < 20 && sent < MOST; full++) {
        for (out = sent; sent < MOST && fi_inject(p.a.ep, &out, sizeof(out), p.a.to) == 0;
             out = ++sent)
            continue;
        if (fi_sendmsg(p.a.ep, &msg, FI_INJECT | FI_COMPLETION) == 0) {
            sent++;
            told++;
        }
        out = UINT32_MAX;
    }
    for (uint32_t i = 0; i < sent; i++) {
        POST(fi_recv(p.b.ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, &in));
        end_ok(p.b.rx, &in);
        assert_int_equal(in, i);
    }
    for (; told; told--) {
        entry = end_next(p.a.tx);
        assert_int_equal(entry.err, 0);
    }
    end_silent(p.a.tx);
    end_silent(p.b.rx);
    pair_close(&p);
}

static void expect_data(struct pair *p, int *rx, uint64_t data, size_t len)
{
    struct entry entry = end_ok(p->b.rx, rx);

    assert_int_equal(entry.ok.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
    assert_int_equal(entry.ok.data, data);
    assert_int_equal(entry.ok.len, len);
}

TEST(ofi_msg__data_of_eight_bytes)
{
    const uint64_t data = 0xfedcba9876543210u;
    uint8_t *out = filled(EAGER_BYTES + 1, 1), *in = blank(EAGER_BYTES + 1);
    struct iovec iov = {out, 10};
    struct pair p;
    int tx, rx;

    pair_open(&p, &(struct end_options){0});
    assert_int_equal(p.a.info->domain_attr->cq_data_size, sizeof(data));
    for (size_t len = 0; len <= EAGER_BYTES + 1; len += (EAGER_BYTES + 1) / 5) {
        POST(fi_recv(p.b.ep, in, EAGER_BYTES + 1, NULL, FI_ADDR_UNSPEC, &rx));
        POST(fi_senddata(p.a.ep, out, len, NULL, data + len, p.a.to, &tx));
        expect_data(&p, &rx, data + len, len);
        end_ok(p.a.tx, &tx);
        assert_filled(in, len, 1);
    }
    POST(fi_recv(p.b.ep, in, EAGER_BYTES, NULL, FI_ADDR_UNSPEC, &rx));
    POST(fi_injectdata(p.a.ep, out, 10, ~data, p.a.to));
    expect_data(&p, &rx, ~data, 10);
    POST(fi_recv(p.b.ep, in, EAGER_BYTES, NULL, FI_ADDR_UNSPEC, &rx));
    POST(fi_sendmsg(p.a.ep,
                    &(struct fi_msg){
                        .msg_iov = &iov, .iov_count = 1, .addr = p.a.to, .context = &tx, .data = 0},
                    FI_REMOTE_CQ_DATA));
    expect_data(&p, &rx, 0, 10);
    end_ok(p.a.tx, &tx);
    pair_close(&p);
    free(in);
    free(out);
}

/* ------------------------------------------------------------------------------------------ flags */

TEST(ofi_msg__source_is_told_of_those_who_are_known)
{
    uint64_t in[2];
    struct end stranger;
    fi_addr_t to, back;
    struct entry entry;
    struct pair p;
    int rx;

    pair_open(&p, &(struct end_options){0});
    end_open(&stranger, &(struct end_options){0}, NULL);
    to = end_meet(&stranger, &p.b);
    POST(fi_recv(p.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &rx));
    POST(fi_inject(p.a.ep, "a", 1, p.a.to));
    assert_int_equal(end_ok(p.b.rx, &rx).src, p.b.to);

    POST(fi_recv(p.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &rx));
    POST(fi_inject(stranger.ep, "s", 1, to));
    assert_int_equal(end_ok(p.b.rx, &rx).src, FI_ADDR_NOTAVAIL);

    back = end_meet(&p.b, &stranger);
    assert_true(back != p.b.to);
    POST(fi_recv(p.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &rx));
    POST(fi_inject(stranger.ep, "s", 1, to));
    assert_int_equal(end_ok(p.b.rx, &rx).src, back);

    assert_int_equal(fi_av_remove(p.b.av, &back, 1, 0), 0);
    POST(fi_recv(p.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &rx));
    POST(fi_inject(stranger.ep, "s", 1, to));
    entry = end_ok(p.b.rx, &rx);
    assert_int_equal(entry.src, FI_ADDR_NOTAVAIL);
    assert_int_equal(fi_inject(p.b.ep, "b", 1, back), -FI_EINVAL);
    end_close(&stranger);
    pair_close(&p);
}

TEST(ofi_msg__selective_completion)
{
    struct iovec iov = {(void *)(uintptr_t) "x", 1};
    struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1};
    uint8_t in[8];
    struct iovec into = {in, sizeof(in)};
    struct fi_msg recv = {.msg_iov = &into, .iov_count = 1, .addr = FI_ADDR_UNSPEC};
    struct pair p;
    int tx, rx, quiet;

    pair_open(&p, &(struct end_options){.bind = FI_SELECTIVE_COMPLETION,
                                        .order = FI_ORDER_SAS,
                                        .counts = FI_SEND | FI_RECV});
    msg.addr = p.a.to;
    recv.context = &rx;
    msg.context = &tx;
    POST(fi_recv(p.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &quiet));
    POST(fi_recvmsg(p.b.ep, &recv, FI_COMPLETION));
    POST(fi_send(p.a.ep, "y", 1, NULL, p.a.to, &quiet));
    POST(fi_sendmsg(p.a.ep, &msg, FI_COMPLETION));
    end_ok(p.a.tx, &tx);
    end_ok(p.b.rx, &rx);
    UNTIL(fi_cntr_read(end_cntr(&p.a, FI_SEND)) == 2);
    UNTIL(fi_cntr_read(end_cntr(&p.b, FI_RECV)) == 2);
    end_silent(p.a.tx);
    end_silent(p.b.rx);

    /* Errors are told always. */
    POST(fi_recv(p.b.ep, in, 1, NULL, FI_ADDR_UNSPEC, &quiet));
    POST(fi_send(p.a.ep, "yy", 2, NULL, p.a.to, &quiet));
    end_fails(p.b.rx, &quiet, FI_ETRUNC);
    assert_int_equal(fi_cntr_readerr(end_cntr(&p.b, FI_RECV)), 1);
    pair_close(&p);
}

/* It is complete when a receive has it; without the flag, when the other end has. */
TEST(ofi_msg__delivery_complete_waits_for_the_receive)
{
    uint8_t in[8];
    struct iovec iov = {(void *)(uintptr_t) "x", 1};
    struct pair p;
    int tx, rx;

    pair_open(&p, &(struct end_options){0});
    POST(fi_send(p.a.ep, "x", 1, NULL, p.a.to, &tx));
    end_ok(p.a.tx, &tx);
    POST(fi_recv(p.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &rx));
    end_ok(p.b.rx, &rx);

    POST(fi_sendmsg(
        p.a.ep, &(struct fi_msg){.msg_iov = &iov, .iov_count = 1, .addr = p.a.to, .context = &tx},
        FI_DELIVERY_COMPLETE));
    end_silent(p.a.tx);
    POST(fi_recv(p.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &rx));
    end_ok(p.a.tx, &tx);
    end_ok(p.b.rx, &rx);
    pair_close(&p);
}

TEST(ofi_msg__delivery_complete_by_default)
{
    uint8_t in[8];
    struct pair p;
    int tx, rx;

    pair_open(&p, &(struct end_options){.tx_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION});
    POST(fi_send(p.a.ep, "x", 1, NULL, p.a.to, &tx));
    end_silent(p.a.tx);
    POST(fi_recv(p.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &rx));
    end_ok(p.a.tx, &tx);
    end_ok(p.b.rx, &rx);
    pair_close(&p);
}

/* --------------------------------------------------------------------------------------- too long */

static void truncate_one(struct pair *p, size_t len, size_t room, bool expected)
{
    uint8_t *out = filled(len, len), *in = blank(len);
    struct entry entry;
    int tx, rx;

    if (expected)
        POST(fi_recv(p->b.ep, in, room, NULL, FI_ADDR_UNSPEC, &rx));
    POST(fi_send(p->a.ep, out, len, NULL, p->a.to, &tx));
    if (!expected) {
        ends_drive_for(5);
        POST(fi_recv(p->b.ep, in, room, NULL, FI_ADDR_UNSPEC, &rx));
    }
    entry = end_fails(p->b.rx, &rx, FI_ETRUNC);
    assert_int_equal(entry.ok.len, room);
    assert_int_equal(entry.olen, len - room);
    assert_filled(in, room, len);
    assert_blank(in + room, len - room);
    end_ok(p->a.tx, &tx);
    free(in);
    free(out);
}

TEST(ofi_msg__too_long_for_the_receive)
{
    struct pair p;

    pair_open(&p, &(struct end_options){0});
    for (unsigned expected = 0; expected < 2; expected++) {
        truncate_one(&p, 100, 60, expected);
        truncate_one(&p, 1, 0, expected);
        truncate_one(&p, EAGER_BYTES, 1000, expected);
        truncate_one(&p, EAGER_BYTES + 1, EAGER_BYTES, expected);
        truncate_one(&p, 1 << 20, 300001, expected);
        truncate_one(&p, 1 << 20, 0, expected);
    }
    send_one(&p.a, p.a.to, &p.b, 1000, true, 1); /* what follows is in order */
    pair_close(&p);
}

/* As Open MPI does: the text of the first is no buffer for that of the second. */
TEST(ofi_msg__errors_read_into_one_entry)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};
    char in, own[8], first[END_TEXT] = "";
    const void *texts[2];
    struct pair p;

    pair_open(&p, &(struct end_options){0});
    for (unsigned i = 0; i < 2; i++) {
        POST(fi_recv(p.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, NULL));
        POST(fi_send(p.a.ep, "yy", 2, NULL, p.a.to, NULL));
        UNTIL(fi_cq_read(p.b.rx, &entry, 1) == -FI_EAVAIL);
        assert_int_equal(fi_cq_readerr(p.b.rx, &error, 0), 1);
        assert_int_equal(error.err, FI_ETRUNC);
        assert_int_equal(error.err_data_size, 0);
        texts[i] = error.err_data;
        if (!i)
            snprintf(first, sizeof(first), "%s", (char *)error.err_data);
        assert_string_equal(error.err_data, first);
    }
    assert_true(strlen(first) > sizeof(own));
    assert_ptr_not_equal(texts[0], texts[1]);

    /* Who brings a buffer gets what fits. */
    error.err_data = own;
    error.err_data_size = sizeof(own);
    POST(fi_recv(p.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, NULL));
    POST(fi_send(p.a.ep, "yy", 2, NULL, p.a.to, NULL));
    UNTIL(fi_cq_read(p.b.rx, &entry, 1) == -FI_EAVAIL);
    assert_int_equal(fi_cq_readerr(p.b.rx, &error, 0), 1);
    assert_ptr_equal(error.err_data, own);
    assert_int_equal(error.err_data_size, sizeof(own));
    first[sizeof(own) - 1] = '\0';
    assert_string_equal(own, first);

    /* Nothing is written where there is nothing to say: some programs bring an entry that never was filled. */
    POST(fi_recv(p.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
    assert_int_equal(fi_cancel(&p.b.ep->fid, &in), 0);
    error.err_data = NULL;
    error.err_data_size = 12345;
    assert_int_equal(fi_cq_readerr(p.b.rx, &error, 0), 1);
    assert_int_equal(error.err, FI_ECANCELED);
    assert_null(error.err_data);
    assert_int_equal(error.err_data_size, 0);
    pair_close(&p);
}
