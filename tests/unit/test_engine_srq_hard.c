/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: events that find no room, fairness, order, and random courses of events. */
#include <errno.h>

#include "core/engine/query.h"
#include "tests/unit/engine_hand.h"

enum { FROM, TO, SHORT = 64, LONG = 5 * PAIR_PAYLOAD, QPS = 2, RECEIVES = 8, ROOM = 4 };

/* Long enough that only a READY brings a refused message back within a test's patience. */
#define RNR_NS      (100 * MRD_MSEC)
#define PATIENCE_NS (10 * MRD_MSEC)

struct shared {
    struct pair *p;
    struct mrd_engine *e;
    struct mrd_srq *srq;
    struct mrd_cq *cq[QPS]; /* each of a queue pair, with room for ROOM completions */
    struct mrd_qp *qp[QPS];
    struct mrd_pd *pd; /* of the shared queue; the queue pairs have another */
    struct mrd_mr *mr;
};

static struct pair pair;

static struct mrd_qp *make_qp(struct shared *s, unsigned i)
{
    struct mrd_qp_init_attr attr = {.send_cq = s->p->end[TO].cq,
                                    .recv_cq = s->cq[i],
                                    .qkey = PAIR_QKEY,
                                    .rnr_timer_ns = RNR_NS,
                                    .cap = {.max_send_wr = 4, .max_recv_wr = 7},
                                    .srq = s->srq};
    int error;
    struct mrd_qp *qp = mrd_engine_create_qp(s->e, s->p->end[TO].pd, &attr, &error);

    assert_non_null(qp);
    return qp;
}

static void begin(struct shared *s)
{
    struct mrd_srq_init_attr attr = {.attr = {.max_wr = RECEIVES, .max_sge = 2}};
    int error;

    pair_begin(&pair);
    *s = (struct shared){.p = &pair, .e = pair.end[TO].e};
    s->pd = mrd_engine_alloc_pd(s->e, NULL);
    s->mr = mrd_engine_reg_mr(s->e, s->pd, pair.end[TO].memory, PAIR_MEMORY, MRD_ACCESS_LOCAL_WRITE,
                              &(struct mrd_mover_mr){0}, &error);
    s->srq = mrd_engine_create_srq(s->e, s->pd, &attr, &error);
    assert_non_null(s->srq);
    for (unsigned i = 0; i < QPS; i++) {
        s->cq[i] = mrd_engine_create_cq(s->e, NULL, ROOM, NULL, &error);
        s->qp[i] = make_qp(s, i);
    }
}

static void end(struct shared *s)
{
    for (unsigned i = 0; i < QPS; i++) {
        assert_int_equal(mrd_engine_destroy_srq(s->e, s->srq), -EBUSY);
        assert_int_equal(mrd_engine_destroy_qp(s->e, s->qp[i], s->p->now), 0);
        assert_int_equal(mrd_cq_impl(s->cq[i])->reserved, 0);
        assert_int_equal(mrd_engine_destroy_cq(s->e, s->cq[i]), 0);
    }
    assert_int_equal(mrd_engine_dealloc_pd(s->e, s->pd), -EBUSY);
    assert_int_equal(mrd_engine_destroy_srq(s->e, s->srq), 0);
    assert_int_equal(mrd_engine_dereg_mr(s->e, s->mr, s->p->now), 0);
    assert_int_equal(mrd_engine_dealloc_pd(s->e, s->pd), 0);
    pair_end(s->p);
}

static uint32_t num_posted(const struct shared *s)
{
    return mrd_srq_impl(s->srq)->recvq.num_posted;
}

static void post_recv(struct shared *s, uint64_t wr_id)
{
    struct mrd_sge sge = {(uintptr_t)s->p->end[TO].memory + wr_id % RECEIVES * LONG, LONG,
                          s->mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad = NULL;

    mrd_engine_begin(s->e, s->p->now);
    assert_int_equal(mrd_engine_post_srq_recv(s->e, s->srq, &wr, &bad), 0);
}

static void send(struct shared *s, unsigned to, uint32_t len)
{
    struct hand_wr w;

    hand_wr(s->p, FROM, MRD_WR_SEND, len, &w);
    w.wr.ud.remote_qpn = s->qp[to]->qp_num;
    assert_int_equal(hand_post(s->p, FROM, &w.wr), 0);
}

/* The next completion of queue pair i's queue. */
static void expect(struct shared *s, unsigned i, uint64_t wr_id, enum mrd_wc_status status)
{
    struct mrd_wc wc;

    assert_int_equal(mrd_engine_poll_cq(s->e, s->cq[i], 1, &wc), 1);
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.status, status);
    assert_int_equal(wc.qp_num, s->qp[i]->qp_num);
}

static __attribute__((unused)) void expect_nothing(struct shared *s)
{
    struct mrd_wc wc;

    for (unsigned i = 0; i < QPS; i++)
        assert_int_equal(mrd_engine_poll_cq(s->e, s->cq[i], 1, &wc), 0);
}

static void settle(struct shared *s)
{
    pair_settle(s->p, s->p->now + PATIENCE_NS);
}

static void set_limit(struct shared *s, uint32_t limit)
{
    assert_int_equal(mrd_engine_modify_srq(s->e, s->srq, &(struct mrd_srq_attr){.srq_limit = limit},
                                           MRD_SRQ_LIMIT),
                     0);
}

/* The last receive is taken while the ring is full: nothing can be taken any more, no event. */
static void srq__limit_event_of_the_last_receive(void **state)
{
    struct mrd_engine_event event;
    struct mrd_peer *peer;
    struct shared s;
    unsigned limits = 0;

    (void)state;
    begin(&s);
    post_recv(&s, 0);
    post_recv(&s, 1);
    send(&s, 0, SHORT);
    settle(&s);
    set_limit(&s, 1);
    peer = pair_peer(s.p, TO);
    for (unsigned i = 0; i < MRD_EVENTS_MAX; i++)
        mrd_event_add(s.e, peer, MRD_EVENT_PEER_RESTARTED);
    send(&s, 0, SHORT); /* takes the last receive */
    settle(&s);
    assert_int_equal(num_posted(&s), 0);
    for (unsigned i = 0; i < 4;
         i++) { /* these wait for the application, which waits for the event */
        send(&s, 1, SHORT);
        settle(&s);
    }
    while (!mrd_engine_get_event(s.e, &event))
        limits += event.type == MRD_EVENT_SRQ_LIMIT_REACHED;
    pair_settle(s.p, s.p->now + 500 * MRD_MSEC);
    while (!mrd_engine_get_event(s.e, &event))
        limits += event.type == MRD_EVENT_SRQ_LIMIT_REACHED;
    assert_int_equal(limits, 1);
    end(&s);
}

/* D1b. The limit is set while the ring is full: the call succeeds, the event never comes. */
static void srq__limit_event_of_a_modify(void **state)
{
    struct mrd_engine_event event;
    struct mrd_peer *peer;
    struct shared s;
    unsigned limits = 0;

    (void)state;
    begin(&s);
    post_recv(&s, 0);
    send(&s, 0, SHORT);
    settle(&s);
    peer = pair_peer(s.p, TO);
    for (unsigned i = 0; i < MRD_EVENTS_MAX; i++)
        mrd_event_add(s.e, peer, MRD_EVENT_PEER_RESTARTED);
    set_limit(&s, 4);
    while (!mrd_engine_get_event(s.e, &event))
        limits += event.type == MRD_EVENT_SRQ_LIMIT_REACHED;
    pair_settle(s.p, s.p->now + 100 * MRD_MSEC);
    while (!mrd_engine_get_event(s.e, &event))
        limits += event.type == MRD_EVENT_SRQ_LIMIT_REACHED;
    assert_int_equal(limits, 1);
    end(&s);
}

/* "All queue pairs go to the error state, with an event each". */
static void srq__more_queue_pairs_than_events(void **state)
{
    enum { MANY = 300 };
    static struct mrd_qp *qp[MANY];
    struct mrd_engine_event event;
    struct shared s;
    unsigned told = 0;

    (void)state;
    begin(&s);
    for (unsigned i = 0; i < MANY; i++)
        qp[i] = make_qp(&s, 0);
    mrd_engine_fail_qps(s.e, s.p->now);
    while (!mrd_engine_get_event(s.e, &event))
        told += event.type == MRD_EVENT_QP_FATAL;
    assert_int_equal(told, MANY + QPS + 1);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(mrd_engine_destroy_qp(s.e, qp[i], s.p->now), 0);
    end(&s);
}

/* "max_recv_wr and max_recv_sge do not matter". */
static void srq__caps_of_receives_do_not_matter(void **state)
{
    struct shared s;
    struct mrd_qp *qp;
    int error;

    (void)state;
    begin(&s);
    struct mrd_qp_init_attr attr = {.send_cq = s.p->end[TO].cq,
                                    .recv_cq = s.cq[0],
                                    .cap = {.max_send_wr = 4, .max_recv_wr = UINT32_MAX},
                                    .srq = s.srq};
    qp = mrd_engine_create_qp(s.e, s.p->end[TO].pd, &attr, &error);
    assert_non_null(qp);
    assert_int_equal(mrd_engine_destroy_qp(s.e, qp, s.p->now), 0);
    end(&s);
}

/* Two half messages; the queue pair is destroyed; the oldest receive is first again. */
static void srq__returned_receives_keep_their_order(void **state)
{
    struct shared s;
    struct mrd_node *n;
    uint64_t next = 1;

    (void)state;
    begin(&s);
    post_recv(&s, 1);
    post_recv(&s, 2);
    post_recv(&s, 3);
    post_recv(&s, 4);
    send(&s, 0, SHORT);
    settle(&s);
    expect(&s, 0, 1, MRD_WC_SUCCESS);
    for (unsigned i = 0; i < 2; i++) {
        send(&s, 0, LONG);
        pair_tx(s.p, FROM);
        s.p->end[TO].num_inbox = 2;
        for (unsigned k = 0; k < 2; k++)
            pair_rx_one(s.p, TO, &s.p->end[TO].inbox[k]);
        s.p->end[TO].num_inbox = 0;
    }
    assert_int_equal(num_posted(&s), 1);
    assert_int_equal(mrd_engine_destroy_qp(s.e, s.qp[0], s.p->now), 0);
    s.qp[0] = make_qp(&s, 0);
    assert_int_equal(num_posted(&s), 3);
    for (n = mrd_srq_impl(s.srq)->recvq.posted.next; n != &mrd_srq_impl(s.srq)->recvq.posted;
         n = n->next)
        assert_int_equal(mrd_container_of(n, struct mrd_recv, node)->wr_id, ++next);
    end(&s);
}

/* Two queue pairs with endless work, one receive at a time: does each get some? */
static void srq__nobody_starves(void **state)
{
    unsigned got[QPS] = {0}, num[QPS] = {0};
    struct mrd_wc wc;
    struct shared s;

    (void)state;
    begin(&s);
    for (unsigned round = 0; round < 60; round++) {
        for (unsigned i = 0; i < QPS; i++)
            for (; num[i] - got[i] < 3; num[i]++)
                send(&s, i, SHORT);
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

/* Forgotten events take places that others need. */
static void srq__forgotten_events_take_no_place(void **state)
{
    struct mrd_srq_init_attr attr = {.attr = {.max_wr = 1, .srq_limit = 1}};
    struct mrd_engine_event event;
    struct shared s;
    int error;

    (void)state;
    begin(&s);
    for (unsigned i = 0; i < MRD_EVENTS_MAX; i++) {
        struct mrd_srq *srq = mrd_engine_create_srq(s.e, s.pd, &attr, &error);

        assert_int_equal(mrd_engine_modify_srq(s.e, srq, &attr.attr, MRD_SRQ_LIMIT), 0);
        assert_int_equal(mrd_engine_destroy_srq(s.e, srq), 0);
    }
    mrd_event_add(s.e, hand_rx_peer(s.p, TO), MRD_EVENT_PEER_UNREACHABLE);
    assert_int_equal(mrd_engine_get_event(s.e, &event), 0);
    end(&s);
}

/* D6b. As D6, but queue pair 1 posts first in each round. */
static void srq__nobody_starves_other_order(void **state)
{
    unsigned got[QPS] = {0}, num[QPS] = {0};
    struct mrd_wc wc;
    struct shared s;

    (void)state;
    begin(&s);
    for (unsigned round = 0; round < 60; round++) {
        for (unsigned i = QPS; i-- > 0;)
            for (; num[i] - got[i] < 3; num[i]++)
                send(&s, i, SHORT);
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

/* Queue pairs of one shared queue are destroyed while many wait for it. */
/* The limit of creation: there are fewer receives, a message is refused for that, no event. */
static void srq__limit_of_creation(void **state)
{
    struct mrd_srq_init_attr attr = {.attr = {.max_wr = RECEIVES, .srq_limit = 2}};
    struct mrd_engine_event event;
    struct shared s;
    int error;

    (void)state;
    begin(&s);
    for (unsigned i = 0; i < QPS; i++)
        assert_int_equal(mrd_engine_destroy_qp(s.e, s.qp[i], s.p->now), 0);
    assert_int_equal(mrd_engine_destroy_srq(s.e, s.srq), 0);
    s.srq = mrd_engine_create_srq(s.e, s.pd, &attr, &error);
    for (unsigned i = 0; i < QPS; i++)
        s.qp[i] = make_qp(&s, i);
    send(&s, 0, SHORT);
    settle(&s);
    assert_int_equal(s.e->stats.rx_refuse_rnr > 0, 1);
    error = mrd_engine_get_event(s.e, &event);
    assert_int_equal(error, 0);
    end(&s);
}

/* Held. Random work, losses, polls, queue pairs that fail or go; then all comes to an end. */
#include <stdlib.h>
static void srq__random(void **state)
{
    enum { N = 3, SRQ_WR = 8 };

    (void)state;
    for (unsigned seed = 1; seed <= 300; seed++) {
        struct shared s;
        struct mrd_cq *cq[N];
        struct mrd_qp *qp[N], *kept, *snd[2];
        struct mrd_wc wc;
        struct mrd_qp_attr err = {.qp_state = MRD_QPS_ERR};
        unsigned posted = 0, recv_done = 0, recv_posted = 0, ok_sent = 0, ok_recv = 0, gone = 0;
        unsigned done = 0;
        int error;

        srand(seed);
        begin(&s);
        snd[0] = kept = hand_swap_qp(s.p, FROM, MRD_ORDER_MSG);
        snd[1] = s.p->end[FROM].qp;
        for (unsigned i = 0; i < N; i++)
            cq[i] = mrd_engine_create_cq(s.e, NULL, 1 + rand() % 4, NULL, &error);
#define MAKE(i)                                                                                    \
    do {                                                                                           \
        struct mrd_qp_init_attr attr_ = {.send_cq = s.p->end[TO].cq,                               \
                                         .recv_cq = cq[(i) % (1 + seed % N)],                      \
                                         .qkey = PAIR_QKEY,                                        \
                                         .rnr_timer_ns = 50 * MRD_USEC,                            \
                                         .cap = {.max_send_wr = 4},                                \
                                         .srq = s.srq};                                            \
        qp[i] = mrd_engine_create_qp(s.e, s.p->end[TO].pd, &attr_, &error);                        \
        assert_non_null(qp[i]);                                                                    \
    } while (0)
        for (unsigned i = 0; i < N; i++)
            MAKE(i);
        for (unsigned step = 0; step < 600; step++) {
            bool heal = step >= 400;
            unsigned r = (unsigned)rand() % 20, i = (unsigned)rand() % N;

            if (r < 6 && !heal && posted - done < 10) {
                struct hand_wr w;

                hand_wr(s.p, FROM, rand() % 4 ? MRD_WR_SEND : MRD_WR_RDMA_WRITE_WITH_IMM,
                        rand() % 2 ? LONG : SHORT, &w);
                w.wr.ud.remote_qpn = qp[i]->qp_num;
                s.p->end[FROM].qp = snd[rand() % 2];
                if (!hand_post(s.p, FROM, &w.wr))
                    posted++;
            } else if (r < 9 || (heal && r < 12)) {
                if (num_posted(&s) + 0 < SRQ_WR - 4) {
                    post_recv(&s, recv_posted);
                    recv_posted++;
                }
            } else if (r < 13 || heal) {
                while (mrd_engine_poll_cq(s.e, cq[i], 1 + rand() % 2, (struct mrd_wc[2]){{0}}) < 0)
                    ;
            } else if (r == 13 && !heal && rand() % 4 == 0) {
                if (rand() % 2)
                    assert_int_equal(mrd_engine_modify_qp(s.e, qp[i], &err, MRD_QP_STATE, s.p->now),
                                     0);
                assert_int_equal(mrd_engine_destroy_qp(s.e, qp[i], s.p->now), 0);
                MAKE(i);
                gone++;
            }
            for (unsigned at = 0; at < 2; at++) {
                struct pair_end *end = &s.p->end[at];

                if (!heal && rand() % 4 == 0)
                    for (unsigned k = 0; k < end->num_inbox; k++)
                        if (rand() % 3 == 0)
                            end->inbox[k--] = end->inbox[--end->num_inbox];
                pair_turn(s.p, at);
                s.p->now += PAIR_HOP_NS + (unsigned)rand() % (20 * 1000);
            }
            while (pair_poll(s.p, FROM, &wc)) {
                done++;
                ok_sent += wc.status == MRD_WC_SUCCESS;
            }
        }
        for (unsigned k = 0; k < 400 && done < posted; k++) {
            if (num_posted(&s) < 4) {
                post_recv(&s, recv_posted);
                recv_posted++;
            }
            pair_settle(s.p, s.p->now + 5 * MRD_MSEC);
            for (unsigned i = 0; i < N; i++)
                while (mrd_engine_poll_cq(s.e, cq[i], 1, &wc))
                    ;
            while (pair_poll(s.p, FROM, &wc))
                done++;
        }
        if (done != posted)
            fail_msg("seed %u: %u of %u complete (%u QPs went)", seed, done, posted, gone);
        for (unsigned i = 0; i < N; i++)
            while (mrd_engine_poll_cq(s.e, cq[i], 1, &wc))
                ;
        (void)recv_done, (void)ok_sent, (void)ok_recv;
        pair_settle(s.p, s.p->now + 3 * MRD_SEC);
        for (unsigned i = 0; i < N; i++)
            if (mrd_cq_impl(cq[i])->reserved)
                fail_msg("seed %u: %u places stay reserved", seed, mrd_cq_impl(cq[i])->reserved);
        if (num_posted(&s) + hand_length(&mrd_srq_impl(s.srq)->recvq.free) != RECEIVES)
            fail_msg("seed %u: receives are lost", seed);
        for (unsigned i = 0; i < N; i++) {
            assert_int_equal(mrd_engine_destroy_qp(s.e, qp[i], s.p->now), 0);
            assert_int_equal(mrd_cq_impl(cq[i])->reserved, 0);
        }
        assert_int_equal(s.e->wants.pool.used, 0);
        for (unsigned i = 0; i < N; i++)
            assert_int_equal(mrd_engine_destroy_cq(s.e, cq[i]), 0);
        s.p->end[FROM].qp = snd[1];
        hand_restore_qp(s.p, FROM, kept);
        end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(srq__limit_event_of_the_last_receive),
        cmocka_unit_test(srq__limit_event_of_a_modify),
        cmocka_unit_test(srq__more_queue_pairs_than_events),
        cmocka_unit_test(srq__caps_of_receives_do_not_matter),
        cmocka_unit_test(srq__returned_receives_keep_their_order),
        cmocka_unit_test(srq__nobody_starves),
        cmocka_unit_test(srq__nobody_starves_other_order),
        cmocka_unit_test(srq__limit_of_creation),
        cmocka_unit_test(srq__random),
        cmocka_unit_test(srq__forgotten_events_take_no_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
