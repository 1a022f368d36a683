/* SPDX-License-Identifier: BSD-2-Clause */
/* Nothing at all, and as much as may be: lengths of zero, lists, what is injected, flags. */
#include "pair.h"

#include <string.h>

enum { KEY = 6, BYTES = 4096, LIST = 8 };

static void open_target(struct pair *p, const struct end_options *o)
{
    pair_open(p, o);
    pair_register(p, BYTES, KEY);
}

/* -------------------------------------------------------------------------------------- nothing */

/* Each way to send nothing. */
static ssize_t send_nothing(struct end *a, unsigned kind)
{
    struct fi_msg_tagged tmsg = {.tag = 3, .addr = a->to, .context = a};
    struct iovec none[LIST] = {{NULL, 0}};

    switch (kind) {
    case 0:
        return fi_send(a->ep, NULL, 0, NULL, a->to, a);
    case 1:
        return fi_sendv(a->ep, none, NULL, LIST, a->to, a);
    case 2:
        return fi_sendv(a->ep, NULL, NULL, 0, a->to, a);
    case 3:
        return fi_sendmsg(a->ep, &(struct fi_msg){.addr = a->to, .context = a},
                          FI_DELIVERY_COMPLETE | FI_INJECT);
    case 4:
        return fi_tsend(a->ep, NULL, 0, NULL, a->to, 3, a);
    default:
        return fi_tsendmsg(a->ep, &tmsg, FI_INJECT);
    }
}

/* Before the message, as lists; after it, as no buffer. */
static ssize_t receive_nothing(struct end *b, unsigned kind, bool after)
{
    struct iovec none[LIST] = {{NULL, 0}};

    if (kind >= 4)
        return after ? fi_trecv(b->ep, NULL, 0, NULL, FI_ADDR_UNSPEC, 3, 0, b)
                     : fi_trecvv(b->ep, NULL, NULL, 0, FI_ADDR_UNSPEC, 3, 0, b);
    if (after)
        return fi_recv(b->ep, NULL, 0, NULL, FI_ADDR_UNSPEC, b);
    return kind % 2 ? fi_recvv(b->ep, NULL, NULL, 0, FI_ADDR_UNSPEC, b)
                    : fi_recvv(b->ep, none, NULL, LIST, FI_ADDR_UNSPEC, b);
}

TEST_F(plain, ofi_limits__empty_messages)
{
    struct end *a = &self->a, *b = &self->b;

    for (unsigned after = 0; after < 2; after++) {
        for (unsigned kind = 0; kind < 6; kind++) {
            if (!after)
                assert_int_equal(receive_nothing(b, kind, false), 0);
            assert_int_equal(send_nothing(a, kind), 0);
            if (after) {
                ends_drive_for(5);
                assert_int_equal(receive_nothing(b, kind, true), 0);
            }
            assert_int_equal(end_ok(b->rx, b).ok.len, 0);
            end_ok(a->tx, a);
        }
        assert_int_equal(fi_recv(b->ep, NULL, 0, NULL, FI_ADDR_UNSPEC, b), 0);
        assert_int_equal(fi_inject(a->ep, NULL, 0, a->to), 0);
        assert_int_equal(end_ok(b->rx, b).ok.len, 0);
    }
    end_silent(a->tx);
}

/* A receive of no bytes takes a message of some: it is cut off, long or not. */
TEST_F(plain, ofi_limits__no_room)
{
    static const size_t lens[] = {1, EAGER_BYTES, EAGER_BYTES + 1, 100000};
    uint8_t *out = filled(100000, 1);

    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        POST(fi_recv(self->b.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, self));
        POST(fi_send(self->a.ep, out, lens[i], NULL, self->a.to, self));
        struct entry entry = end_fails(self->b.rx, self, FI_ETRUNC);
        assert_int_equal(entry.ok.len, 0);
        assert_int_equal(entry.olen, lens[i]);
        end_ok(self->a.tx, self);
    }
}

/* Of memory: a key is needed all the same, and bounds hold. */
TEST_F(pair, ofi_limits__no_memory)
{
    struct fi_rma_iov to[LIST];
    struct iovec none[LIST] = {{NULL, 0}};
    struct end *a = &self->a;
    struct fi_msg_rma msg = {.msg_iov = none, .rma_iov = to, .rma_iov_count = LIST, .context = a};
    uint64_t word = 1, old = 2;

    open_target(self, &(struct end_options){.counts = FI_WRITE | FI_READ});
    msg.addr = a->to;
    for (unsigned i = 0; i < LIST; i++)
        to[i] = (struct fi_rma_iov){i % 2 ? BYTES : 0, 0, KEY};
    end_write(a, NULL, 0, 0, KEY);
    end_read(a, NULL, 0, BYTES, KEY);
    POST(fi_write(a->ep, NULL, 0, NULL, a->to, BYTES + 1, KEY, a));
    end_fails(a->tx, a, FI_EINVAL);
    POST(fi_write(a->ep, NULL, 0, NULL, a->to, 0, KEY + 1, a));
    end_fails(a->tx, a, FI_ENOKEY);
    for (unsigned i = 0; i <= LIST; i += LIST) {
        msg.iov_count = i;
        POST(fi_writemsg(a->ep, &msg, i ? FI_INJECT : 0));
        end_ok(a->tx, a);
        POST(fi_readmsg(a->ep, &msg, 0));
        end_ok(a->tx, a);
    }
    POST(fi_writedata(a->ep, NULL, 0, NULL, 44, a->to, 0, KEY, a));
    end_ok(a->tx, a);
    assert_int_equal(end_next(self->b.rx).ok.data, 44);
    POST(fi_inject_write(a->ep, NULL, 0, a->to, 0, KEY));
    UNTIL(fi_cntr_read(end_cntr(a, FI_WRITE)) == 5);

    /* Atomics of no elements. */
    POST(fi_atomic(a->ep, NULL, 0, NULL, a->to, 0, KEY, FI_UINT64, FI_SUM, a));
    end_ok(a->tx, a);
    POST(fi_fetch_atomic(a->ep, &word, 0, NULL, &old, NULL, a->to, 0, KEY, FI_UINT8, FI_SUM, a));
    end_ok(a->tx, a);
    assert_int_equal(old, 2);
    assert_blank(self->memory, BYTES);
}

/* ---------------------------------------------------------------------------------------- lists */

TEST_F(plain, ofi_limits__lists)
{
    struct fi_rma_iov to[LIST + 1];
    struct iovec list[LIST + 1];
    struct fi_ioc ioc[LIST + 1];
    struct fi_rma_ioc there[LIST + 1];
    uint64_t words[LIST + 1] = {0};
    struct fi_msg_rma rma = {.msg_iov = list, .rma_iov = to, .iov_count = LIST};
    struct fi_msg_atomic atomic = {.msg_iov = ioc,
                                   .iov_count = LIST,
                                   .rma_iov = there,
                                   .rma_iov_count = LIST,
                                   .datatype = FI_UINT64,
                                   .op = FI_SUM};
    struct end *a = &self->a;

    pair_register(self, BYTES, KEY);
    rma.addr = atomic.addr = a->to;
    for (unsigned i = 0; i <= LIST; i++) {
        list[i] = (struct iovec){&words[i], sizeof(words[i])};
        to[i] = (struct fi_rma_iov){i * 8, 8, KEY};
        ioc[i] = (struct fi_ioc){.addr = &words[i], .count = 1};
        there[i] = (struct fi_rma_ioc){i * 8, 1, KEY};
    }
    assert_int_equal(fi_sendv(a->ep, list, NULL, LIST + 1, a->to, a), -FI_EINVAL);
    assert_int_equal(fi_tsendv(a->ep, list, NULL, LIST + 1, a->to, 0, a), -FI_EINVAL);
    assert_int_equal(fi_recvv(a->ep, list, NULL, LIST + 1, FI_ADDR_UNSPEC, a), -FI_EINVAL);
    assert_int_equal(fi_trecvv(a->ep, list, NULL, LIST + 1, FI_ADDR_UNSPEC, 0, 0, a), -FI_EINVAL);
    assert_int_equal(fi_writev(a->ep, list, NULL, LIST + 1, a->to, 0, KEY, a), -FI_EINVAL);
    assert_int_equal(fi_readv(a->ep, list, NULL, LIST + 1, a->to, 0, KEY, a), -FI_EINVAL);
    rma.rma_iov_count = LIST + 1;
    assert_int_equal(fi_writemsg(a->ep, &rma, 0), -FI_EINVAL);
    rma.rma_iov_count = 0;
    assert_int_equal(fi_writemsg(a->ep, &rma, 0), -FI_EINVAL);
    rma.rma_iov_count = LIST - 1; /* as many bytes here as there */
    assert_int_equal(fi_writemsg(a->ep, &rma, 0), -FI_EINVAL);
    assert_int_equal(fi_atomicv(a->ep, ioc, NULL, LIST + 1, a->to, 0, KEY, FI_UINT64, FI_SUM, a),
                     -FI_EINVAL);
    atomic.iov_count = LIST + 1;
    assert_int_equal(fi_atomicmsg(a->ep, &atomic, 0), -FI_EINVAL);
    atomic.iov_count = LIST;
    atomic.rma_iov_count = LIST + 1;
    assert_int_equal(fi_atomicmsg(a->ep, &atomic, 0), -FI_EINVAL);
    atomic.rma_iov_count = LIST - 1;
    assert_int_equal(fi_atomicmsg(a->ep, &atomic, 0), -FI_EINVAL);
    atomic.rma_iov_count = LIST;
    assert_int_equal(fi_fetch_atomicmsg(a->ep, &atomic, ioc, NULL, LIST + 1, 0), -FI_EINVAL);
    assert_int_equal(fi_fetch_atomicmsg(a->ep, &atomic, ioc, NULL, LIST - 1, 0), -FI_EINVAL);
    assert_int_equal(fi_compare_atomicmsg(a->ep, &atomic, ioc, NULL, LIST, ioc, NULL, LIST, 0),
                     -FI_EOPNOTSUPP);
    end_silent(a->tx);

    /* Of eight there is no harm. */
    memset(self->memory, 0, BYTES);
    words[LIST - 1] = 5;
    rma.rma_iov_count = LIST;
    rma.context = atomic.context = a;
    POST(fi_writemsg(a->ep, &rma, FI_INJECT));
    end_ok(a->tx, a);
    POST(fi_atomicmsg(a->ep, &atomic, FI_INJECT));
    end_ok(a->tx, a);
    assert_int_equal(((uint64_t *)(void *)self->memory)[LIST - 1], 10);
}

/* ------------------------------------------------------------------------------------- injected */

TEST_F(pair, ofi_limits__injected)
{
    uint8_t *out = filled(INJECT_BYTES + 1, 1), *in = blank(BYTES);
    struct iovec list[LIST];
    struct fi_msg msg = {.msg_iov = list, .iov_count = LIST};
    struct fi_rma_iov to = {0, INJECT_BYTES, KEY};
    struct fi_msg_rma rma = {
        .msg_iov = list, .iov_count = LIST, .rma_iov = &to, .rma_iov_count = 1};
    struct end *a = &self->a, *b = &self->b;

    open_target(self, &(struct end_options){.counts = FI_WRITE});
    msg.addr = rma.addr = a->to;
    msg.context = rma.context = a;
    assert_int_equal(a->info->tx_attr->inject_size, INJECT_BYTES);
    for (unsigned i = 0; i < LIST; i++)
        list[i] = (struct iovec){out + i * (INJECT_BYTES / LIST), INJECT_BYTES / LIST};
    assert_int_equal(INJECT_BYTES % LIST, 0);
    assert_int_equal(fi_inject(a->ep, out, INJECT_BYTES + 1, a->to), -FI_EMSGSIZE);
    assert_int_equal(fi_tinject(a->ep, out, INJECT_BYTES + 1, a->to, 0), -FI_EMSGSIZE);
    assert_int_equal(fi_injectdata(a->ep, out, INJECT_BYTES + 1, 0, a->to), -FI_EMSGSIZE);
    assert_int_equal(fi_inject_write(a->ep, out, INJECT_BYTES + 1, a->to, 0, KEY), -FI_EMSGSIZE);
    list[LIST - 1].iov_len++;
    assert_int_equal(fi_sendmsg(a->ep, &msg, FI_INJECT), -FI_EMSGSIZE);
    to.len++;
    assert_int_equal(fi_writemsg(a->ep, &rma, FI_INJECT), -FI_EMSGSIZE);
    list[LIST - 1].iov_len--;
    to.len--;

    /* Exactly as long as it may be; the buffer is ours again at once. */
    for (unsigned kind = 0; kind < 3; kind++) {
        memset(in, BLANK, BYTES);
        assert_int_equal(fi_recv(b->ep, in, BYTES, NULL, FI_ADDR_UNSPEC, in), 0);
        if (kind == 0)
            POST(fi_inject(a->ep, out, INJECT_BYTES, a->to));
        else if (kind == 1)
            POST(fi_injectdata(a->ep, out, INJECT_BYTES, 9, a->to));
        else
            POST(fi_sendmsg(a->ep, &msg, FI_INJECT));
        memset(out, 0, INJECT_BYTES);
        assert_int_equal(end_ok(b->rx, in).ok.len, INJECT_BYTES);
        assert_filled(in, INJECT_BYTES, 1);
        out = filled(INJECT_BYTES + 1, 1);
        for (unsigned i = 0; i < LIST; i++)
            list[i].iov_base = out + i * (INJECT_BYTES / LIST);
    }
    end_ok(a->tx, a);
    POST(fi_inject_write(a->ep, out, INJECT_BYTES, a->to, 0, KEY));
    memset(out, 0, INJECT_BYTES);
    UNTIL(fi_cntr_read(end_cntr(a, FI_WRITE)) == 1);
    assert_filled(self->memory, INJECT_BYTES, 1);
    end_silent(a->tx);
}

/* ---------------------------------------------------------------------------------------- flags */

static void flags_of(struct fid_ep *ep, uint64_t way, uint64_t expected)
{
    uint64_t flags = way;

    assert_int_equal(fi_control(&ep->fid, FI_GETOPSFLAG, &flags), 0);
    assert_int_equal(flags, expected);
}

static void set_flags(struct fid_ep *ep, uint64_t flags)
{
    assert_int_equal(fi_control(&ep->fid, FI_SETOPSFLAG, &flags), 0);
}

/* Those that calls have that name none. */
TEST_F(pair, ofi_limits__flags_by_default)
{
    uint64_t none = FI_COMPLETION;
    struct end *a = &self->a, *b = &self->b;
    uint8_t in[8];

    open_target(self, &(struct end_options){.bind = FI_SELECTIVE_COMPLETION, .counts = FI_WRITE});
    flags_of(a->ep, FI_TRANSMIT, 0);
    flags_of(a->ep, FI_RECV, 0);
    assert_int_equal(fi_control(&a->ep->fid, FI_SETOPSFLAG, &none), -FI_EINVAL);
    assert_int_equal(fi_control(&a->ep->fid, FI_GETOPSFLAG, &none), -FI_EINVAL);
    assert_int_equal(fi_recv(b->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, b), 0);
    POST(fi_send(a->ep, "x", 1, NULL, a->to, a));
    POST(fi_write(a->ep, "x", 1, NULL, a->to, 0, KEY, a));
    UNTIL(fi_cntr_read(end_cntr(a, FI_WRITE)) == 1);
    end_silent(a->tx);
    end_silent(b->rx);

    set_flags(a->ep, FI_TRANSMIT | FI_COMPLETION | FI_DELIVERY_COMPLETE);
    set_flags(b->ep, FI_RECV | FI_COMPLETION);
    flags_of(a->ep, FI_TRANSMIT, FI_COMPLETION | FI_DELIVERY_COMPLETE);
    flags_of(b->ep, FI_RECV, FI_COMPLETION);
    POST(fi_send(a->ep, "x", 1, NULL, a->to, a));
    end_silent(a->tx); /* until somebody receives it */
    assert_int_equal(fi_recv(b->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, b), 0);
    end_ok(b->rx, b);
    end_ok(a->tx, a);
    end_write(a, "x", 1, 0, KEY);

    /* Injected ones are not told of, whatever the default. */
    assert_int_equal(fi_recv(b->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, b), 0);
    POST(fi_inject(a->ep, "x", 1, a->to));
    end_ok(b->rx, b);
    end_silent(a->tx);
}

/* An error is told of always. */
TEST_F(pair, ofi_limits__selective_and_failed)
{
    struct end *a = &self->a;
    uint64_t word = 0;

    open_target(self, &(struct end_options){.bind = FI_SELECTIVE_COMPLETION});
    POST(fi_write(a->ep, "x", 1, NULL, a->to, BYTES, KEY, self));
    end_fails(a->tx, self, FI_EINVAL);
    POST(fi_inject_write(a->ep, "x", 1, a->to, BYTES, KEY));
    end_fails(a->tx, NULL, FI_EINVAL);
    POST(fi_inject_atomic(a->ep, &word, 1, a->to, BYTES, KEY, FI_UINT64, FI_SUM));
    end_fails(a->tx, NULL, FI_EINVAL);
    assert_int_equal(fi_recv(self->b.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, self), 0);
    POST(fi_send(a->ep, "x", 1, NULL, a->to, self));
    end_fails(self->b.rx, self, FI_ETRUNC);
    end_silent(a->tx);
}
