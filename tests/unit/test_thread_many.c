/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One context that many threads use at the same time: eight post, two poll, one creates, queries
 * and destroys objects and takes events. It sends to itself, over the loopback. Each message comes
 * once, whole.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/context_fixture.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { POSTS = 500 };
#else
enum { POSTS = 4000 };
#endif

enum {
    POSTERS = 8, /* the first half with a queue pair each, the others with one together */
    OWN = POSTERS / 2,
    PAIRS = OWN + 1,
    POLLERS = 2,
    DEPTH = 64,
    WORDS = 16,
    ROUNDS_MIN = 20,
    PATIENCE_S = 800,
};

struct message {
    uint32_t poster, index, words[WORDS];
};

struct crowd {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *sends, *receives;
    struct mrd_qp *qp[PAIRS];
    struct mrd_mr *mr;
    struct mrd_ah *self;
    struct message place[PAIRS * DEPTH];
    atomic_uint posted, sent, received;
    atomic_uchar seen[POSTERS][POSTS]; /* 1: the send completed; 16: the message came */
    atomic_uint events;
};

static struct message compose(uint32_t poster, uint32_t index)
{
    struct message m = {.poster = poster, .index = index};

    for (uint32_t i = 0; i < WORDS; i++)
        m.words[i] = (poster * POSTS + index) * 2654435761u + i;
    return m;
}

static void post_receive(struct crowd *c, uint64_t place)
{
    struct mrd_sge sge = {(uintptr_t)&c->place[place], sizeof(struct message), c->mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = place, .sg_list = &sge, .num_sge = 1}, *bad;

    assert_int_equal(mrd_post_recv(c->qp[place / DEPTH], &wr, &bad), 0);
}

static void begin(struct crowd *c, enum mrd_progress progress)
{
    struct mrd_context_attr attr = {.comp_mask = MRD_CONTEXT_ATTR_CHALLENGE,
                                    .address = "127.0.0.1",
                                    .paths = 4,
                                    .max_peers = 16,
                                    .progress = progress};

    memset(c, 0, sizeof(*c));
    c->context = mrd_open_device(NULL, &attr);
    assert_non_null(c->context);
    c->pd = mrd_alloc_pd(c->context);
    c->mr = mrd_reg_mr(c->pd, c->place, sizeof(c->place), MRD_ACCESS_LOCAL_WRITE);
    assert_non_null(c->mr);
    c->sends = mrd_create_cq(c->context, PAIRS * DEPTH, NULL);
    c->receives = mrd_create_cq(c->context, PAIRS * DEPTH, NULL);
    for (unsigned i = 0; i < PAIRS; i++) {
        c->qp[i] = mrd_create_qp(c->pd, &(struct mrd_qp_init_attr){
                                            .send_cq = c->sends,
                                            .recv_cq = c->receives,
                                            .order = i % 2 ? MRD_ORDER_MSG : MRD_ORDER_NONE,
                                            .cap = {.max_send_wr = DEPTH,
                                                    .max_recv_wr = DEPTH,
                                                    .max_inline_data = sizeof(struct message)},
                                        });
        assert_non_null(c->qp[i]);
        for (uint64_t place = 0; place < DEPTH; place++)
            post_receive(c, i * DEPTH + place);
    }
    c->self = ah_to(c->pd, c->context);
}

static void end(struct crowd *c)
{
    assert_int_equal(mrd_destroy_ah(c->self), 0);
    for (unsigned i = 0; i < PAIRS; i++)
        assert_int_equal(mrd_destroy_qp(c->qp[i]), 0);
    assert_int_equal(mrd_destroy_cq(c->sends), 0);
    assert_int_equal(mrd_destroy_cq(c->receives), 0);
    assert_int_equal(mrd_dereg_mr(c->mr), 0);
    assert_int_equal(mrd_dealloc_pd(c->pd), 0);
    assert_int_equal(mrd_close_device(c->context), 0);
}

struct poster {
    struct crowd *crowd;
    uint32_t number;
};

static void *post(void *arg)
{
    const struct poster *p = arg;
    struct crowd *c = p->crowd;
    unsigned pair = p->number < OWN ? p->number : OWN;

    for (uint32_t i = 0; i < POSTS;) {
        struct message m = compose(p->number, i);
        struct mrd_sge sge = {(uintptr_t)&m, sizeof(m), 0};
        struct mrd_send_wr wr = {.wr_id = p->number * POSTS + i,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = MRD_WR_SEND,
                                 .send_flags = MRD_SEND_INLINE | MRD_SEND_SIGNALED,
                                 .ud = {c->self, c->qp[pair]->qp_num, 0}},
                           *bad;
        int error = mrd_post_send(c->qp[pair], &wr, &bad);

        if (!error) {
            i++;
            atomic_fetch_add(&c->posted, 1);
            continue;
        }
        assert_true(error == -ENOMEM || error == -EAGAIN);
        sched_yield();
    }
    return NULL;
}

/* `what` happens to a message once. */
static void note(struct crowd *c, uint32_t poster, uint32_t index, unsigned char what)
{
    assert_in_range(poster, 0, POSTERS - 1);
    assert_in_range(index, 0, POSTS - 1);
    assert_int_equal(atomic_fetch_add(&c->seen[poster][index], what) & what, 0);
}

static void take_receive(struct crowd *c, const struct mrd_wc *wc)
{
    struct message m = c->place[wc->wr_id], want = compose(m.poster, m.index);

    assert_int_equal(wc->opcode, MRD_WC_RECV);
    assert_int_equal(wc->byte_len, sizeof(m));
    assert_memory_equal(&m, &want, sizeof(m));
    post_receive(c, wc->wr_id);
    note(c, m.poster, m.index, 16);
    atomic_fetch_add(&c->received, 1);
}

static void *poll_both(void *arg)
{
    struct crowd *c = arg;

    while (atomic_load(&c->sent) < POSTERS * POSTS || atomic_load(&c->received) < POSTERS * POSTS) {
        struct mrd_wc wc[8];
        int n = mrd_poll_cq(c->receives, 8, wc);

        assert_true(n >= 0);
        for (int i = 0; i < n; i++) {
            assert_int_equal(wc[i].status, MRD_WC_SUCCESS);
            take_receive(c, &wc[i]);
        }
        n = mrd_poll_cq(c->sends, 8, wc);
        assert_true(n >= 0);
        for (int i = 0; i < n; i++) {
            assert_int_equal(wc[i].status, MRD_WC_SUCCESS);
            note(c, (uint32_t)wc[i].wr_id / POSTS, (uint32_t)wc[i].wr_id % POSTS, 1);
        }
        atomic_fetch_add(&c->sent, (unsigned)n);
    }
    return NULL;
}

static void query_all(struct crowd *c)
{
    struct mrd_counter counters[4];
    struct mrd_context_info info;
    struct mrd_device_attr device;
    struct mrd_qp_init_attr pair;
    struct mrd_peer_attr peer;
    struct mrd_path_attr path;
    char address[MRD_ADDRESS_MAX];

    assert_true(mrd_query_counters(c->context, counters, 4) > 4);
    assert_int_equal(mrd_query_context(c->context, &info, sizeof(info)), 0);
    assert_int_equal(mrd_query_device(c->context, &device, sizeof(device)), 0);
    assert_int_equal(mrd_query_qp(c->qp[0], &pair, sizeof(pair)), 0);
    assert_int_equal(mrd_query_ah(c->self, address, sizeof(address)), 0);
    (void)mrd_query_peer(c->self, &peer, sizeof(peer));
    (void)mrd_query_path(c->self, 1, &path, sizeof(path));
    assert_int_equal(mrd_watch_peer(c->self, 1), 0);
    assert_int_equal(mrd_watch_peer(c->self, 0), 0);
    (void)mrd_next_timeout_ns(c->context);
    assert_true(mrd_progress(c->context) >= 0);
}

static void take_event(struct crowd *c)
{
    struct mrd_async_event event;

    while (!mrd_get_async_event(c->context, &event)) {
        c->events += event.event_type == MRD_EVENT_SRQ_LIMIT_REACHED;
        mrd_ack_async_event(&event);
    }
}

/* One object of each kind, in use, and destroyed again. */
static void make_and_destroy(struct crowd *c)
{
    uint8_t memory[64];
    struct mrd_pd *pd = mrd_alloc_pd(c->context);
    struct mrd_mr *mr = mrd_reg_mr(pd, memory, sizeof(memory), MRD_ACCESS_LOCAL_WRITE);
    struct mrd_ah *ah = mrd_create_ah(pd, "127.0.0.1:9");
    struct mrd_comp_channel *channel = mrd_create_comp_channel(c->context);
    struct mrd_cq *found,
        *cq =
            mrd_create_cq_ex(c->context, &(struct mrd_cq_init_attr){.cqe = 4, .channel = channel});
    struct mrd_srq *srq = mrd_create_srq(
        pd, &(struct mrd_srq_init_attr){.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 1}});
    struct mrd_qp *qp =
        mrd_create_qp(pd, &(struct mrd_qp_init_attr){
                              .send_cq = cq, .recv_cq = cq, .srq = srq, .cap = {.max_send_wr = 1}});
    struct mrd_sge sge = {(uintptr_t)memory, sizeof(memory), mr ? mr->lkey : 0};
    struct mrd_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad;
    struct mrd_send_wr *bad_send,
        send = {.opcode = MRD_WR_SEND, .ud = {c->self, c->qp[0]->qp_num, 1}};
    struct mrd_qp_attr error = {.qp_state = MRD_QPS_ERR};
    void *context;

    assert_true(pd && mr && ah && channel && cq && srq && qp);
    assert_int_equal(mrd_post_srq_recv(srq, &recv, &bad), 0);
    assert_int_equal(mrd_req_notify_cq(cq, 0), 0);
    assert_int_equal(mrd_modify_qp(qp, &error, MRD_QP_STATE), 0);
    assert_int_equal(mrd_post_send(qp, &send, &bad_send), 0); /* flushed, which raises the event */
    assert_int_equal(mrd_get_cq_event(channel, &found, &context), 0);
    assert_ptr_equal(found, cq);
    take_event(c);
    mrd_ack_cq_events(cq, 1);
    assert_int_equal(mrd_destroy_qp(qp), 0);
    assert_int_equal(mrd_destroy_srq(srq), 0);
    assert_int_equal(mrd_destroy_cq(cq), 0);
    assert_int_equal(mrd_destroy_comp_channel(channel), 0);
    assert_int_equal(mrd_destroy_ah(ah), 0);
    assert_int_equal(mrd_dereg_mr(mr), 0);
    assert_int_equal(mrd_dealloc_pd(pd), 0);
}

static void *make_things(void *arg)
{
    struct crowd *c = arg;

    for (unsigned round = 0; round < ROUNDS_MIN || atomic_load(&c->posted) < POSTERS * POSTS;
         round++) {
        make_and_destroy(c);
        query_all(c);
    }
    return NULL;
}

static void run(enum mrd_progress progress)
{
    static struct crowd crowd;
    struct poster posters[POSTERS];
    pthread_t threads[POSTERS + POLLERS + 1];
    unsigned n = 0;

    begin(&crowd, progress);
    assert_int_equal(pthread_create(&threads[n++], NULL, make_things, &crowd), 0);
    for (unsigned i = 0; i < POLLERS; i++)
        assert_int_equal(pthread_create(&threads[n++], NULL, poll_both, &crowd), 0);
    for (uint32_t i = 0; i < POSTERS; i++) {
        posters[i] = (struct poster){&crowd, i};
        assert_int_equal(pthread_create(&threads[n++], NULL, post, &posters[i]), 0);
    }
    while (n)
        pthread_join(threads[--n], NULL);
    for (unsigned i = 0; i < POSTERS; i++)
        for (unsigned k = 0; k < POSTS; k++)
            assert_int_equal(atomic_load(&crowd.seen[i][k]), 1 + 16);
    assert_true(crowd.events >= ROUNDS_MIN); /* each round raised one, and took it */
    end(&crowd);
}

TEST(many__with_a_progress_thread)
{
    run(MRD_PROGRESS_THREAD);
}

TEST(many__without)
{
    run(MRD_PROGRESS_MANUAL);
}

int kit_before_all(void)
{
    alarm(PATIENCE_S);
    return 0;
}
