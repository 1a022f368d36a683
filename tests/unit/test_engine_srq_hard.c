/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: events that find no room, fairness, order, and random courses of events. */
#include <stdlib.h>

#include "core/engine/query.h"
#include "tests/unit/engine_srq.h"

/* Events of others, so that none finds room in the ring. */
static void fill_events(struct shared *s)
{
    struct mrd_peer *peer = pair_peer(s->p, TO);

    for (unsigned i = 0; i < MRD_EVENTS_MAX; i++)
        mrd_event_add(s->e, peer, MRD_EVENT_PEER_RESTARTED);
}

/* Takes all events, those of the next `ns` too. Returns how many are of a limit. */
static unsigned take_limits(struct shared *s, uint64_t ns)
{
    struct mrd_engine_event event;
    unsigned limits = 0;

    for (unsigned i = 0; i < 2; i++) {
        while (!mrd_engine_get_event(s->e, &event))
            limits += event.type == MRD_EVENT_SRQ_LIMIT_REACHED;
        if (!i)
            pair_settle(s->p, s->p->now + ns);
    }
    return limits;
}

/* The last receive is taken while the ring is full: the event comes when there is room. */
TEST_F(shared, srq__limit_event_of_the_last_receive)
{
    post_recv(self, 0);
    post_recv(self, 1);
    deliver(self, 0, SHORT);
    set_limit(self, 1);
    fill_events(self);
    deliver(self, 0, SHORT); /* takes the last receive */
    assert_int_equal(num_posted(self), 0);
    /* These wait for the application, which waits for the event. */
    for (unsigned i = 0; i < 4; i++) {
        deliver(self, 1, SHORT);
    }
    assert_int_equal(take_limits(self, 500 * MRD_MSEC), 1);
}

/* The limit is set while the ring is full: the event comes when there is room. */
TEST_F(shared, srq__limit_event_of_a_modify)
{
    post_recv(self, 0);
    deliver(self, 0, SHORT);
    fill_events(self);
    set_limit(self, 4);
    assert_int_equal(take_limits(self, 100 * MRD_MSEC), 1);
}

/* All queue pairs go to the error state, with an event each. */
TEST_F(shared, srq__more_queue_pairs_than_events)
{
    enum { MANY = 300 };
    static struct mrd_qp *qp[MANY];
    struct mrd_engine_event event;
    unsigned told = 0;

    for (unsigned i = 0; i < MANY; i++)
        qp[i] = make_qp(self, 0);
    mrd_engine_fail_qps(self->e, self->p->now);
    while (!mrd_engine_get_event(self->e, &event))
        told += event.type == MRD_EVENT_QP_FATAL;
    assert_int_equal(told, MANY + QPS + 1);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(mrd_engine_destroy_qp(self->e, qp[i], self->p->now), 0);
}

/* Two half messages; the queue pair is destroyed; the oldest receive is first again. */
TEST_F(shared, srq__returned_receives_keep_their_order)
{
    struct mrd_node *n;
    uint64_t next = 1;

    post_recv(self, 1);
    post_recv(self, 2);
    post_recv(self, 3);
    post_recv(self, 4);
    deliver(self, 0, SHORT);
    expect(self, 0, 1, MRD_WC_SUCCESS);
    for (unsigned i = 0; i < 2; i++) {
        send(self, 0, LONG);
        pair_tx(self->p, FROM);
        self->p->end[TO].num_inbox = 2;
        for (unsigned k = 0; k < 2; k++)
            pair_rx_one(self->p, TO, &self->p->end[TO].inbox[k]);
        self->p->end[TO].num_inbox = 0;
    }
    assert_int_equal(num_posted(self), 1);
    assert_int_equal(mrd_engine_destroy_qp(self->e, self->qp[0], self->p->now), 0);
    self->qp[0] = make_qp(self, 0);
    assert_int_equal(num_posted(self), 3);
    for (n = mrd_srq_impl(self->srq)->recvq.posted.next;
         n != &mrd_srq_impl(self->srq)->recvq.posted; n = n->next)
        assert_int_equal(mrd_container_of(n, struct mrd_recv, node)->wr_id, ++next);
}

/* Two queue pairs with endless work, one receive at a time: each gets some. */
static void nobody_starves(bool backwards)
{
    unsigned got[QPS] = {0}, num[QPS] = {0};
    struct mrd_wc wc;
    struct shared s;

    begin(&s);
    for (unsigned round = 0; round < 60; round++) {
        for (unsigned k = 0; k < QPS; k++) {
            unsigned i = backwards ? QPS - 1 - k : k;

            for (; num[i] - got[i] < 3; num[i]++)
                send(&s, i, SHORT);
        }
        settle(&s);
        post_recv(&s, round);
        settle(&s);
        for (unsigned i = 0; i < QPS; i++)
            while (mrd_engine_poll_cq(s.e, s.cq[i], 1, &wc))
                got[i]++;
        while (pair_poll(s.p, FROM, &wc))
            ;
    }
    assert_true(got[0] > 10 && got[1] > 10);
    end(&s);
}

TEST(srq__nobody_starves)
{
    nobody_starves(false);
}

TEST(srq__nobody_starves_other_order)
{
    nobody_starves(true);
}

/* Forgotten events take places that others need. */
TEST_F(shared, srq__forgotten_events_take_no_place)
{
    struct mrd_srq_init_attr attr = {.attr = {.max_wr = 1, .srq_limit = 1}};
    struct mrd_engine_event event;
    int error;

    for (unsigned i = 0; i < MRD_EVENTS_MAX; i++) {
        struct mrd_srq *srq = mrd_engine_create_srq(self->e, self->pd, &attr, &error);

        assert_int_equal(mrd_engine_modify_srq(self->e, srq, &attr.attr, MRD_SRQ_LIMIT), 0);
        assert_int_equal(mrd_engine_destroy_srq(self->e, srq), 0);
    }
    mrd_event_add(self->e, hand_rx_peer(self->p, TO), MRD_EVENT_PEER_UNREACHABLE);
    assert_int_equal(mrd_engine_get_event(self->e, &event), 0);
}

/* The limit of creation: there are fewer receives, and a message that is refused tells. */
TEST_F(shared, srq__limit_of_creation)
{
    struct mrd_srq_init_attr attr = {.attr = {.max_wr = RECEIVES, .srq_limit = 2}};
    struct mrd_engine_event event;
    int error;

    for (unsigned i = 0; i < QPS; i++)
        assert_int_equal(mrd_engine_destroy_qp(self->e, self->qp[i], self->p->now), 0);
    assert_int_equal(mrd_engine_destroy_srq(self->e, self->srq), 0);
    self->srq = mrd_engine_create_srq(self->e, self->pd, &attr, &error);
    for (unsigned i = 0; i < QPS; i++)
        self->qp[i] = make_qp(self, i);
    deliver(self, 0, SHORT);
    assert_int_equal(self->e->stats.rx_refuse_rnr > 0, 1);
    error = mrd_engine_get_event(self->e, &event);
    assert_int_equal(error, 0);
}

/* ------------------------------------------------------------------------------ random courses */

enum { COURSES = 300, STEPS = 600, HEAL = 400, OTHERS = 3 };

/* Queue pairs beside those of begin(), with short completion queues that some share. */
struct course {
    struct shared s;
    unsigned seed;
    struct mrd_cq *cq[OTHERS];
    struct mrd_qp *qp[OTHERS];
    struct mrd_qp *sender[2];  /* one is ordered */
    unsigned sent, done, went; /* sends posted, complete; queue pairs that went */
    unsigned resized;          /* times that a completion queue was */
    uint64_t receives;         /* posted */
};

static void make_other(struct course *c, unsigned i)
{
    struct mrd_qp_init_attr attr = {.send_cq = c->s.p->end[TO].cq,
                                    .recv_cq = c->cq[i % (1 + c->seed % OTHERS)],
                                    .qkey = PAIR_QKEY,
                                    .rnr_timer_ns = 50 * MRD_USEC,
                                    .cap = {.max_send_wr = 4},
                                    .srq = c->s.srq};
    int error;

    c->qp[i] = mrd_engine_create_qp(c->s.e, c->s.p->end[TO].pd, &attr, &error);
    assert_non_null(c->qp[i]);
}

static void begin_course(struct course *c, unsigned seed)
{
    int error;

    srand(seed);
    begin(&c->s);
    c->seed = seed;
    c->sender[0] = hand_swap_qp(c->s.p, FROM, MRD_ORDER_MSG);
    c->sender[1] = c->s.p->end[FROM].qp;
    for (unsigned i = 0; i < OTHERS; i++)
        c->cq[i] = mrd_engine_create_cq(c->s.e, NULL, 1 + rand() % 4, NULL, &error);
    for (unsigned i = 0; i < OTHERS; i++)
        make_other(c, i);
}

static void send_any(struct course *c, unsigned to)
{
    struct hand_wr w;

    hand_wr(c->s.p, FROM, rand() % 4 ? MRD_WR_SEND : MRD_WR_RDMA_WRITE_WITH_IMM,
            rand() % 2 ? LONG : SHORT, &w);
    w.wr.ud.remote_qpn = c->qp[to]->qp_num;
    c->s.p->end[FROM].qp = c->sender[rand() % 2];
    if (!hand_post(c->s.p, FROM, &w.wr))
        c->sent++;
}

/* At most four are posted at a time; messages that have begun may hold all others. */
static void post_another(struct course *c)
{
    if (num_posted(&c->s) < 4 && hand_length(&mrd_srq_impl(c->s.srq)->recvq.free) > 0)
        post_recv(&c->s, c->receives++);
}

static void poll_all(struct course *c, unsigned i)
{
    struct mrd_wc wc;

    while (mrd_engine_poll_cq(c->s.e, c->cq[i], 1, &wc))
        ;
}

/* A queue pair goes, perhaps by way of the error state, and another comes. */
static void replace_other(struct course *c, unsigned i)
{
    const struct mrd_qp_attr err = {.qp_state = MRD_QPS_ERR};

    if (rand() % 2)
        assert_int_equal(mrd_engine_modify_qp(c->s.e, c->qp[i], &err, MRD_QP_STATE, c->s.p->now),
                         0);
    assert_int_equal(mrd_engine_destroy_qp(c->s.e, c->qp[i], c->s.p->now), 0);
    make_other(c, i);
    c->went++;
}

/* A third of what lies there, now and then. */
static void lose_some(struct pair_end *end)
{
    if (rand() % 4)
        return;
    for (unsigned k = 0; k < end->num_inbox; k++)
        if (rand() % 3 == 0)
            end->inbox[k--] = end->inbox[--end->num_inbox];
}

static void count_sends(struct course *c)
{
    struct mrd_wc wc;

    while (pair_poll(c->s.p, FROM, &wc))
        c->done++;
}

static void make_step(struct course *c, bool heal)
{
    unsigned r = (unsigned)rand() % 20, i = (unsigned)rand() % OTHERS;
    struct mrd_wc wc[2];

    if (r < 6 && !heal && c->sent - c->done < 10)
        send_any(c, i);
    else if (r < 9 || (heal && r < 12))
        post_another(c);
    else if (r < 13 || heal)
        assert_true(mrd_engine_poll_cq(c->s.e, c->cq[i], 1 + rand() % 2, wc) >= 0);
    else if (r == 13 && rand() % 4 == 0)
        replace_other(c, i);
    else if (r == 14 && mrd_engine_resize_cq(c->s.e, c->cq[i], 1 + rand() % 6) == 0)
        c->resized++;
    for (unsigned at = 0; at < 2; at++) {
        if (!heal)
            lose_some(&c->s.p->end[at]);
        pair_turn(c->s.p, at);
        c->s.p->now += PAIR_HOP_NS + (unsigned)rand() % (20 * 1000);
    }
    count_sends(c);
}

/* All sends complete while somebody polls and posts receives. */
static void finish_sends(struct course *c)
{
    for (unsigned k = 0; k < 400 && c->done < c->sent; k++) {
        post_another(c);
        pair_settle(c->s.p, c->s.p->now + 5 * MRD_MSEC);
        for (unsigned i = 0; i < OTHERS; i++)
            poll_all(c, i);
        count_sends(c);
    }
    if (c->done != c->sent)
        fail_msg("seed %u: %u of %u complete (%u QPs went)", c->seed, c->done, c->sent, c->went);
}

/* Nothing is reserved, and no receive is lost. */
static void end_course(struct course *c)
{
    struct shared *s = &c->s;

    for (unsigned i = 0; i < OTHERS; i++)
        poll_all(c, i);
    pair_settle(s->p, s->p->now + 3 * MRD_SEC);
    for (unsigned i = 0; i < OTHERS; i++)
        if (mrd_cq_impl(c->cq[i])->reserved)
            fail_msg("seed %u: %u places stay reserved", c->seed, mrd_cq_impl(c->cq[i])->reserved);
    if (num_posted(s) + hand_length(&mrd_srq_impl(s->srq)->recvq.free) != RECEIVES)
        fail_msg("seed %u: receives are lost", c->seed);
    for (unsigned i = 0; i < OTHERS; i++) {
        assert_int_equal(mrd_engine_destroy_qp(s->e, c->qp[i], s->p->now), 0);
        assert_int_equal(mrd_cq_impl(c->cq[i])->reserved, 0);
    }
    assert_int_equal(s->e->rnr_waiters.pool.used, 0);
    for (unsigned i = 0; i < OTHERS; i++)
        assert_int_equal(mrd_engine_destroy_cq(s->e, c->cq[i]), 0);
    s->p->end[FROM].qp = c->sender[1];
    hand_restore_qp(s->p, FROM, c->sender[0]);
    end(s);
}

/* Random work, losses, polls, queue pairs that fail or go; then all comes to an end. */
TEST(srq__random)
{
    unsigned sent = 0, went = 0, resized = 0;

    for (unsigned seed = 1; seed <= COURSES; seed++) {
        struct course c = {0};

        begin_course(&c, seed);
        for (unsigned step = 0; step < STEPS; step++)
            make_step(&c, step >= HEAL);
        finish_sends(&c);
        end_course(&c);
        sent += c.sent;
        went += c.went;
        resized += c.resized;
    }
    assert_true(sent > 10 * COURSES && went > COURSES && resized > COURSES);
}
