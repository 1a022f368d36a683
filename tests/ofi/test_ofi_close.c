/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Closing: who is used by others cannot be closed, and what is under way ends, however much it is.
 * Run with FI_MRD_PEER_TIMEOUT, or it takes seconds longer.
 */
#include "pair.h"

#include <string.h>

enum { KEY = 5, LONG = 20000, EACH = 500, KINDS = 6, DEPTH = 8192, SILENT = 2000 };

static const struct end_options deep = {.depth = DEPTH};

/* ---------------------------------------------------------------------------------------- order */

static void assert_busy(struct fid *fid)
{
    assert_int_equal(fi_close(fid), -FI_EBUSY);
    assert_int_equal(fi_close(fid), -FI_EBUSY); /* and the first try changed nothing */
}

/* All objects, each of them used by another one. */
struct objects {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_eq *eq;
    struct fid_av *av;
    struct fid_cq *tx, *rx;
    struct fid_cntr *sent, *written;
    struct fid_mr *mr;
    struct fid_poll *set;
    struct fid_ep *ep;
};

static void bind_once(struct fid_ep *ep, struct fid *fid, uint64_t flags)
{
    assert_int_equal(fi_ep_bind(ep, fid, flags), 0);
    assert_int_equal(fi_ep_bind(ep, fid, flags), -FI_EINVAL);
}

static void close_all(struct fid *const *fids, unsigned num)
{
    for (unsigned i = 0; i < num; i++)
        assert_int_equal(fi_close(fids[i]), 0);
}

static void objects_open(struct objects *o, void *memory)
{
    o->info = end_offered("127.0.0.1", NULL, FI_SOURCE, end_hints(&(struct end_options){0}));
    assert_int_equal(fi_fabric(o->info->fabric_attr, &o->fabric, NULL), 0);
    assert_int_equal(fi_eq_open(o->fabric, &(struct fi_eq_attr){0}, &o->eq, NULL), 0);
    assert_int_equal(fi_domain(o->fabric, o->info, &o->domain, NULL), 0);
    assert_int_equal(fi_av_open(o->domain, &(struct fi_av_attr){0}, &o->av, NULL), 0);
    assert_int_equal(fi_cq_open(o->domain, &(struct fi_cq_attr){0}, &o->tx, NULL), 0);
    assert_int_equal(fi_cq_open(o->domain, &(struct fi_cq_attr){0}, &o->rx, NULL), 0);
    assert_int_equal(fi_cntr_open(o->domain, &(struct fi_cntr_attr){0}, &o->sent, NULL), 0);
    assert_int_equal(fi_cntr_open(o->domain, &(struct fi_cntr_attr){0}, &o->written, NULL), 0);
    assert_int_equal(fi_poll_open(o->domain, &(struct fi_poll_attr){0}, &o->set), 0);
    assert_int_equal(
        fi_mr_reg(o->domain, memory, 8, FI_REMOTE_WRITE, 0, KEY, FI_RMA_EVENT, &o->mr, NULL), 0);
    assert_int_equal(fi_mr_bind(o->mr, &o->written->fid, FI_REMOTE_WRITE), 0);
    assert_int_equal(fi_mr_bind(o->mr, &o->written->fid, FI_REMOTE_WRITE), -FI_EINVAL);
    assert_int_equal(fi_endpoint(o->domain, o->info, &o->ep, NULL), 0);
    bind_once(o->ep, &o->av->fid, 0);
    bind_once(o->ep, &o->eq->fid, 0);
    bind_once(o->ep, &o->tx->fid, FI_TRANSMIT);
    bind_once(o->ep, &o->sent->fid, FI_SEND);
    assert_int_equal(fi_ep_bind(o->ep, &o->rx->fid, FI_RECV), 0);
    assert_int_equal(fi_ep_bind(o->ep, &o->rx->fid, 0), -FI_EINVAL);
    assert_int_equal(fi_ep_bind(o->ep, &o->mr->fid, 0), -FI_EINVAL);
}

/* All that the endpoint uses is busy; then the rest, whoever of them comes first. */
static void objects_close(struct objects *o)
{
    struct fid *used[] = {&o->av->fid, &o->tx->fid, &o->rx->fid, &o->sent->fid, &o->eq->fid};

    for (unsigned i = 0; i < sizeof(used) / sizeof(used[0]); i++)
        assert_busy(used[i]);
    assert_busy(&o->written->fid);
    assert_busy(&o->domain->fid);
    assert_busy(&o->fabric->fid);
    assert_int_equal(fi_poll_add(o->set, &o->rx->fid, 0), 0);
    assert_int_equal(fi_poll_add(o->set, &o->written->fid, 0), 0);
    assert_int_equal(fi_poll_add(o->set, &o->eq->fid, 0), 0);
    close_all((struct fid *[]){&o->ep->fid, &o->av->fid, &o->tx->fid, &o->sent->fid}, 4);
    assert_busy(&o->rx->fid); /* of the poll set */
    assert_int_equal(fi_close(&o->mr->fid), 0);
    assert_busy(&o->written->fid);
    assert_busy(&o->eq->fid);
    assert_busy(&o->domain->fid);
    assert_int_equal(fi_poll_del(o->set, &o->eq->fid, 0), 0);
    assert_int_equal(fi_poll_del(o->set, &o->eq->fid, 0), -FI_EINVAL);
    close_all((struct fid *[]){&o->set->fid, &o->rx->fid, &o->written->fid, &o->domain->fid}, 4);
    assert_busy(&o->fabric->fid);
    close_all((struct fid *[]){&o->eq->fid, &o->fabric->fid}, 2);
}

TEST(ofi_close__who_is_used_is_busy)
{
    struct objects o;
    uint64_t memory;

    objects_open(&o, &memory);
    objects_close(&o); /* the endpoint was never enabled */
    objects_open(&o, &memory);
    assert_int_equal(fi_enable(o.ep), 0);
    assert_int_equal(fi_enable(o.ep), 0);
    assert_int_equal(fi_ep_bind(o.ep, &o.written->fid, FI_RECV), -FI_EOPBADSTATE);
    objects_close(&o);
}

TEST(ofi_close__event_queue_of_others)
{
    struct fi_av_attr attr = {.flags = FI_EVENT};
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_eq *eq;
    struct fid_av *av;
    struct fi_info *info =
        end_offered("127.0.0.1", NULL, FI_SOURCE, end_hints(&(struct end_options){0}));

    assert_int_equal(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
    assert_int_equal(fi_eq_open(fabric, &(struct fi_eq_attr){0}, &eq, NULL), 0);
    assert_int_equal(fi_domain(fabric, info, &domain, NULL), 0);
    assert_int_equal(fi_domain_bind(domain, &eq->fid, FI_REG_MR), 0);
    assert_int_equal(fi_domain_bind(domain, &eq->fid, FI_REG_MR), -FI_EINVAL);
    assert_int_equal(fi_av_open(domain, &attr, &av, NULL), 0);
    assert_int_equal(fi_av_bind(av, &eq->fid, 0), 0);
    assert_int_equal(fi_av_bind(av, &eq->fid, 0), -FI_EINVAL);
    assert_busy(&eq->fid);
    assert_busy(&domain->fid);
    assert_int_equal(fi_close(&av->fid), 0);
    assert_busy(&eq->fid);
    close_all((struct fid *[]){&domain->fid, &eq->fid, &fabric->fid}, 3);
}

/* ------------------------------------------------------------------------------- much under way */

/* Two ends with memory, and buffers; the key is known. */
FIXTURE(deep)
{
    struct pair p;
    struct end *a, *b; /* of the pair */
    uint8_t *out, *in;
};

FIXTURE_SETUP(deep)
{
    self->a = &self->p.a;
    self->b = &self->p.b;
    pair_open(&self->p, &deep);
    self->out = filled(LONG, 1);
    self->in = blank(LONG);
    pair_register(&self->p, LONG, KEY);
    end_write(self->a, self->out, LONG, 0, KEY);
}

FIXTURE_TEARDOWN(deep)
{
    if (self->a->ep)
        end_close(self->a);
    if (self->b->ep)
        end_close(self->b);
}

static ssize_t post(struct deep *w, fi_addr_t to, unsigned kind)
{
    struct fid_ep *ep = w->a->ep;

    switch (kind) {
    case 0:
        return end_sendmsg(w->a, w->out, 100, to, NULL, FI_DELIVERY_COMPLETE);
    case 1:
        return fi_send(ep, w->out, LONG, NULL, to, NULL);
    case 2:
        return fi_write(ep, w->out, LONG, NULL, to, 0, KEY, NULL);
    case 3:
        return fi_read(ep, w->in, LONG, NULL, to, 0, KEY, NULL);
    case 4:
        return fi_atomic(ep, w->out, 16, NULL, to, 0, KEY, FI_UINT32, FI_BXOR, NULL);
    default:
        return fi_fetch_atomic(ep, w->out, 1, NULL, w->in, NULL, to, 8, KEY, FI_UINT64, FI_SUM,
                               NULL);
    }
}

/* Nobody drives b, so nothing of what needs its program is done. Returns how many were posted. */
static unsigned post_many(struct deep *w, fi_addr_t to)
{
    unsigned num = 0;

    for (unsigned i = 0; i < EACH * KINDS; i++) {
        ssize_t result = post(w, to, i % KINDS);

        if (result == -FI_EAGAIN)
            continue;
        assert_int_equal(result, 0);
        num++;
    }
    for (unsigned i = 0; i < EACH; i++)
        assert_int_equal(
            fi_trecv(w->a->ep, w->in, LONG, NULL, i % 2 ? to : FI_ADDR_UNSPEC, i, 0, NULL), 0);
    assert_true(num >= 2 * EACH);
    return num;
}

/* Then no buffer is used any more, and the other end goes on. */
TEST_F(deep, ofi_close__thousands_under_way)
{
    struct end *b = self->b;
    char in[8];

    post_many(self, self->a->to);
    end_close(self->a);
    memset(self->in, BLANK, LONG);
    ends_drive_for(50);
    assert_blank(self->in, LONG);

    /* What was announced by it cannot be read any more. */
    for (unsigned i = 0; i < 2; i++)
        POST(fi_recv(b->ep, self->in, LONG, NULL, FI_ADDR_UNSPEC, self->in));
    for (unsigned i = 0; i < 2; i++)
        (void)end_next(b->rx);
    struct end *other = end_new(&deep, NULL);
    other->to = end_meet(other, b);
    b->to = end_meet(b, other);
    POST(fi_trecv(b->ep, in, sizeof(in), NULL, b->to, 0, 0, in));
    POST(fi_tsend(other->ep, "x", 1, NULL, other->to, 0, other));
    end_ok(b->rx, in);
    end_ok(other->tx, other);
    end_close(other);
    end_close(b); /* with thousands of messages that nobody received */
}

/* Each operation has one end, whatever it is. */
TEST_F(deep, ofi_close__the_other_end_with_thousands_to_it)
{
    unsigned num = post_many(self, self->a->to), good = 0;
    struct fid_ep *ep = self->a->ep;

    for (unsigned i = 0; i < 10; i++) /* some of it is done, some under way */
        POST(fi_recv(self->b->ep, self->p.memory, LONG, NULL, FI_ADDR_UNSPEC, NULL));
    (void)fi_cq_read(self->b->rx, NULL, 0);
    end_close(self->b);
    for (unsigned i = 0; i < num; i++)
        good += !end_next(self->a->tx).err;
    assert_true(good < num);
    end_silent(self->a->tx);
    assert_int_equal(ep->ops->tx_size_left(ep), DEPTH);
}

/* The fi_addr of an endpoint that was there once. */
static fi_addr_t meet_gone(struct end *e)
{
    struct end *gone = end_new(&deep, NULL);
    fi_addr_t to = end_meet(e, gone);

    end_close(gone);
    return to;
}

/* To somebody who is not there: what is posted last cannot have been given up yet. */
TEST_F(deep, ofi_close__thousands_to_nobody)
{
    fi_addr_t to = meet_gone(self->a);

    for (unsigned i = 0; i < SILENT; i++)
        if (fi_inject(self->a->ep, self->out, 100, to) == -FI_EAGAIN)
            break;
    post_many(self, to);
}

/* The endpoint's own address is as good as any. */
TEST_F(deep, ofi_close__thousands_to_oneself)
{
    self->a->to = end_meet(self->a, self->a);
    post_many(self, self->a->to);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(fi_recv(self->a->ep, self->in, LONG, NULL, FI_ADDR_UNSPEC, NULL), 0);
}

/* That something injected has failed, without an entry, is no entry of the queue's. */
TEST_F(end, ofi_close__with_an_error_that_nobody_read)
{
    enum { ENTRIES = 1024 }; /* of the queue: the entry after the last was used before */
    struct end_options o = {.depth = DEPTH, .counts = FI_SEND};
    struct fi_cq_err_entry error = {0};

    end_open(self, &o, NULL);
    fi_addr_t to = meet_gone(self);
    for (unsigned i = 0; i < ENTRIES; i++)
        POST(fi_send(self->ep, "x", 1, NULL, to, NULL));
    POST(fi_inject(self->ep, "x", 1, to));
    UNTIL(fi_cntr_readerr(end_cntr(self, FI_SEND)) == ENTRIES + 1);
    for (unsigned i = 0; i < ENTRIES; i++)
        assert_int_equal(fi_cq_readerr(self->tx, &error, 0), 1);
    assert_int_equal(fi_cq_readerr(self->tx, &error, 0), -FI_EAGAIN);
}

/* At some moment of a long message that is read into a receive for many. */
TEST(ofi_close__while_messages_are_read)
{
    for (unsigned i = 0; i < 12; i++) {
        uint8_t *out = filled(LONG, 1), *in = blank(LONG);
        struct pair p;

        pair_open(&p, &deep);
        if (i % 2)
            assert_int_equal(end_recvmsg(&p.b, in, LONG, FI_ADDR_UNSPEC, NULL, FI_MULTI_RECV), 0);
        else
            POST(fi_recv(p.b.ep, in, LONG, NULL, FI_ADDR_UNSPEC, NULL));
        for (unsigned j = 0; j < 3; j++)
            POST(fi_send(p.a.ep, out, EAGER_BYTES + 1, NULL, p.a.to, NULL));
        for (unsigned j = 0; j < i / 2; j++)
            (void)fi_cq_read(p.b.rx, NULL, 0);
        if (i % 4 == 3)
            (void)fi_cancel(&p.b.ep->fid, NULL);
        end_close(i % 3 ? &p.b : &p.a);
        memset(in, BLANK, LONG);
        ends_drive_for(2);
        if (i % 3)
            assert_blank(in, LONG);
        end_close(i % 3 ? &p.a : &p.b);
    }
}
