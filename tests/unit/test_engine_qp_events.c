/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue pair tells what it refused, if its user asked for that. */
#include <errno.h>

#include "tests/unit/engine_hand.h"

enum { TO = 0, FROM = 1, BYTES = 64 };

static struct pair pair; /* large, and begun anew by each test */

FIXTURE(test)
{
    uint64_t events; /* that the target's queue pair tells */
    struct pair *p;
    struct mrd_qp *kept;
};

static struct test begin(uint64_t events)
{
    struct test t = {.events = events, .p = &pair};
    struct mrd_qp_init_attr attr;
    int error;

    pair_begin(t.p);
    t.kept = t.p->end[TO].qp;
    mrd_engine_query_qp(t.kept, &attr);
    attr.events = events;
    t.p->end[TO].qp = mrd_engine_create_qp(t.p->end[TO].e, t.p->end[TO].pd, &attr, &error);
    assert_non_null(t.p->end[TO].qp);
    mrd_engine_query_qp(t.p->end[TO].qp, &attr);
    assert_int_equal(attr.events, events);
    return t;
}

static void end(struct test *t)
{
    hand_restore_qp(t->p, TO, t->kept);
    pair_end(t->p);
}

FIXTURE_SETUP(test)
{
    *self = begin(self->events);
}

FIXTURE_TEARDOWN(test)
{
    end(self);
}

static struct mrd_engine_event expect_event(struct test *t)
{
    struct mrd_engine_event event = pair_expect_event(t->p, TO, MRD_EVENT_QP_REFUSED);

    assert_ptr_equal(event.object, t->p->end[TO].qp);
    assert_int_equal(event.addr.port, t->p->end[FROM].addr.port);
    assert_int_equal(event.peer_id, pair_peer(t->p, TO)->id);
    pair_expect_no_event(t->p, TO);
    return event;
}

enum request { SOUND, BAD_RKEY, BAD_RANGE, BAD_QKEY, TOO_LONG, NO_RECEIVE, NO_QP, REQUESTS };

/* Posts it and waits until it ends, or for a second. */
static void ask(struct test *t, enum request request)
{
    bool sends = request == BAD_QKEY || request == TOO_LONG || request == NO_RECEIVE;
    struct hand_wr w;
    struct mrd_wc wc;

    if (request == BAD_QKEY || request == TOO_LONG)
        pair_post_recv(t->p, TO, 0, BYTES / 2);
    hand_wr(t->p, FROM, sends ? MRD_WR_SEND : MRD_WR_RDMA_WRITE,
            request == BAD_QKEY ? BYTES / 2 : BYTES, &w);
    w.wr.wr.rdma.rkey ^= request == BAD_RKEY;
    w.wr.wr.rdma.remote_addr += request == BAD_RANGE ? PAIR_MEMORY : 0;
    w.wr.ud.remote_qkey += request == BAD_QKEY;
    w.wr.ud.remote_qpn += request == NO_QP ? 100 : 0;
    assert_int_equal(hand_post(t->p, FROM, &w.wr), 0);
    pair_settle(t->p, t->p->now + MRD_SEC);
    assert_int_equal(pair_poll(t->p, FROM, &wc), request != NO_RECEIVE);
    if (request != NO_RECEIVE)
        assert_int_equal(wc.status == MRD_WC_SUCCESS, request == SOUND);
}

TEST(qp_events__of_what_was_refused)
{
    for (unsigned asked = 0; asked < 2; asked++) {
        for (enum request request = SOUND; request < REQUESTS; request++) {
            struct test t = begin(asked ? MRD_QP_TELL_REFUSED : 0);

            ask(&t, request);
            if (asked && request >= BAD_RKEY && request <= TOO_LONG)
                expect_event(&t);
            else
                pair_expect_no_event(t.p, TO);
            end(&t);
        }
    }
}

/* One event at a time; while it is with the user its queue pair stays. */
TEST_F_WITH(test, qp_events__one_at_a_time, self->events = MRD_QP_TELL_REFUSED)
{
    struct mrd_engine *e = self->p->end[TO].e;

    for (unsigned i = 0; i < 3; i++)
        ask(self, BAD_RKEY);
    struct mrd_engine_event event = expect_event(self);
    mrd_engine_hand_event(&event);
    assert_int_equal(mrd_engine_destroy_qp(e, self->p->end[TO].qp, self->p->now), -EBUSY);
    ask(self, BAD_RKEY);
    expect_event(self);
    mrd_engine_ack_event(event.type, event.object);
    /* An event that nobody took goes with its queue pair. */
    ask(self, BAD_RKEY);
}

/* A response that finds its memory gone is no request: the requester's completion tells that. */
TEST_F_WITH(test, qp_events__not_of_responses, self->events = MRD_QP_TELL_REFUSED)
{
    struct pair_end *at = &self->p->end[TO], *from = &self->p->end[FROM];
    struct hand_wr w;

    struct mrd_mr *source = pair_register(self->p, FROM, MRD_ACCESS_REMOTE_READ);
    struct mrd_mr *target = pair_register(self->p, TO, MRD_ACCESS_LOCAL_WRITE);
    hand_wr(self->p, TO, MRD_WR_RDMA_READ, BYTES, &w);
    w.sge.lkey = target->lkey;
    w.wr.wr.rdma.rkey = source->rkey;
    assert_int_equal(hand_post(self->p, TO, &w.wr), 0);
    pair_tx(self->p, TO);
    assert_int_equal(mrd_engine_dereg_mr(at->e, target, self->p->now), 0);
    pair_settle(self->p, self->p->now + MRD_SEC);
    pair_expect(self->p, TO, MRD_WC_LOC_PROT_ERR);
    pair_expect_no_event(self->p, TO);
    assert_int_equal(mrd_engine_dereg_mr(from->e, source, self->p->now), 0);
}

TEST_F(test, qp_events__is_checked)
{
    struct mrd_qp_init_attr attr;
    int error;

    mrd_engine_query_qp(self->kept, &attr);
    attr.events = 2;
    assert_null(mrd_engine_create_qp(self->p->end[TO].e, self->p->end[TO].pd, &attr, &error));
    assert_int_equal(error, -EINVAL);
}
