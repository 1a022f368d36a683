/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/failing/scene.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/kit/kit.h"

enum {
    QPS = 3, /* one as by default, one of ordered messages, one with a shared receive queue */
    LENGTHS = 5,
    MESSAGE_MAX = 100000,
    MRS = 40, /* more than a first table holds */
    DEPTH = 32,
    WRITE_AT = QPS * LENGTHS * MESSAGE_MAX, /* what a peer writes, behind what it sends */
    READ_AT = WRITE_AT + MESSAGE_MAX,       /* what comes by a read */
    ATOMIC_AT = READ_AT + MESSAGE_MAX,
    ATOMIC_OLD = ATOMIC_AT + 8,
    IN_BYTES = ATOMIC_OLD + 8,
    TRIES_MAX = 1000,
    PATIENCE_S = 60,
    PERSIST_NS = 20000000,
    SENDS = QPS * LENGTHS + 3, /* of a side in a round: with a write, a read and an atomic */
    RECEIVES = QPS * LENGTHS,
};
static const uint32_t lengths[LENGTHS] = {1, 1000, 8192, 60000, MESSAGE_MAX};

struct side {
    unsigned index;
    struct mrd_context *context;
    char address[MRD_ADDRESS_MAX];
    struct mrd_pd *pd;
    struct mrd_comp_channel *channel;
    struct mrd_cq *cq;
    struct mrd_srq *srq;
    struct mrd_qp *qp[QPS];
    struct mrd_mr *mr[MRS]; /* the first is of all memory below */
    struct mrd_ah *ah, *ah_ex, *ah_wc;
    bool watches;
    struct mrd_wc received; /* the last */
    uint8_t *in, *out;      /* one block: IN_BYTES, MESSAGE_MAX */
    uint32_t sent, arrived; /* completions */
};

struct scene {
    const struct scene_rules *rules;
    struct side side[2];
    struct mrd_device **devices;
    bool over; /* one failed, and the scene gives up */
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct side *other_of(struct scene *s, const struct side *d)
{
    return &s->side[!d->index];
}

/* -------------------------------------------------------------------------------------- making */

static int list_devices(struct scene *s, struct side *d)
{
    (void)d;
    s->devices = mrd_get_device_list(NULL);
    return s->devices ? 0 : -errno;
}

static int open_device(struct scene *s, struct side *d)
{
    d->context = mrd_open_device(
        NULL, &(struct mrd_context_attr){.address = "127.0.0.1",
                                         .paths = 8,
                                         .progress = s->rules->threads ? MRD_PROGRESS_THREAD
                                                                       : MRD_PROGRESS_MANUAL});
    return d->context ? 0 : -errno;
}

static int query_address(struct scene *s, struct side *d)
{
    (void)s;
    return mrd_query_address(d->context, d->address, sizeof(d->address));
}

static int query_rest(struct scene *s, struct side *d)
{
    struct mrd_device_attr device;
    struct mrd_context_info info;
    int error = mrd_query_device(d->context, &device, sizeof(device));

    (void)s;
    if (!error)
        error = mrd_query_context(d->context, &info, sizeof(info));
    return error ? error : mrd_query_counters(d->context, NULL, 0);
}

static int resolve(struct scene *s, struct side *d)
{
    char address[MRD_ADDRESS_MAX];
    int error = mrd_resolve(d->context, "127.0.0.1:7", address, sizeof(address));

    (void)s;
    return error ? error : mrd_resolve(d->context, "localhost:7", address, sizeof(address));
}

static int pack(struct scene *s, struct side *d)
{
    uint8_t packed[MRD_PACKED_ADDRESS_MAX];
    char address[MRD_ADDRESS_MAX];
    int bytes = mrd_pack_address(d->context, d->address, packed, sizeof(packed));

    (void)s;
    if (bytes < 0)
        return bytes;
    return mrd_unpack_address(d->context, packed, (size_t)bytes, address, sizeof(address));
}

static int alloc_pd(struct scene *s, struct side *d)
{
    (void)s;
    d->pd = mrd_alloc_pd(d->context);
    return d->pd ? 0 : -errno;
}

static int create_channel(struct scene *s, struct side *d)
{
    (void)s;
    d->channel = mrd_create_comp_channel(d->context);
    return d->channel ? 0 : -errno;
}

static int create_cq(struct scene *s, struct side *d)
{
    (void)s;
    d->cq = mrd_create_cq_ex(d->context,
                             &(struct mrd_cq_init_attr){.cqe = DEPTH, .channel = d->channel});
    return d->cq ? 0 : -errno;
}

static int resize_cq(struct scene *s, struct side *d)
{
    (void)s;
    return mrd_resize_cq(d->cq, 2 * QPS * DEPTH);
}

static int create_srq(struct scene *s, struct side *d)
{
    (void)s;
    d->srq =
        mrd_create_srq(d->pd, &(struct mrd_srq_init_attr){.attr = {.max_wr = DEPTH, .max_sge = 2}});
    return d->srq ? 0 : -errno;
}

static int create_qps(struct scene *s, struct side *d)
{
    (void)s;
    for (unsigned i = 0; i < QPS; i++) {
        struct mrd_qp_init_attr init = {
            .send_cq = d->cq,
            .recv_cq = d->cq,
            .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_inline_data = 64},
            .order = i == 1 ? MRD_ORDER_MSG : MRD_ORDER_NONE,
            .srq = i == 2 ? d->srq : NULL,
        };

        if (!d->qp[i])
            d->qp[i] = mrd_create_qp(d->pd, &init);
        if (!d->qp[i])
            return -errno;
    }
    return 0;
}

static int register_memory(struct scene *s, struct side *d)
{
    const int access = MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_READ |
                       MRD_ACCESS_REMOTE_ATOMIC;

    (void)s;
    for (unsigned i = 0; i < MRS; i++) {
        if (!d->mr[i])
            d->mr[i] = mrd_reg_mr(d->pd, d->in, IN_BYTES + MESSAGE_MAX, access);
        if (!d->mr[i])
            return -errno;
    }
    return 0;
}

static int create_ahs(struct scene *s, struct side *d)
{
    const char *to = other_of(s, d)->address;

    if (!d->ah)
        d->ah = mrd_create_ah(d->pd, to);
    if (d->ah)
        d->ah_ex = mrd_create_ah_ex(d->pd, &(struct mrd_ah_init_attr){.address = to});
    return d->ah_ex ? 0 : -errno;
}

static int watch(struct scene *s, struct side *d)
{
    int error = mrd_watch_peer(d->ah, 1);

    (void)s;
    d->watches = !error;
    return error;
}

static int create_ah_from_wc(struct scene *s, struct side *d)
{
    (void)s;
    d->ah_wc = mrd_create_ah_from_wc(d->pd, &d->received);
    return d->ah_wc ? 0 : -errno;
}

static int query_peer(struct scene *s, struct side *d)
{
    struct mrd_peer_attr attr;
    struct mrd_path_attr path;
    struct mrd_async_event event;
    int error = mrd_query_peer(d->ah, &attr, sizeof(attr));

    (void)s;
    if (!error)
        error = mrd_query_path(d->ah, 0, &path, sizeof(path));
    if (!error)
        error = mrd_get_async_event(d->context, &event);
    return error == -EAGAIN ? 0 : error;
}

/* ------------------------------------------------------------------------------------ messages */

static uint8_t byte_of(unsigned side, uint32_t at)
{
    return (uint8_t)(at * 7 + at / 251 + side * 131);
}

static void fill(struct side *d)
{
    for (uint32_t i = 0; i < MESSAGE_MAX; i++)
        d->out[i] = byte_of(d->index, i);
}

static uint8_t *place(struct side *d, unsigned qp, unsigned message)
{
    return d->in + (qp * LENGTHS + message) * MESSAGE_MAX;
}

static int post_receives(struct scene *s, struct side *d)
{
    (void)s;
    while (d->arrived < RECEIVES) { /* counts what is posted, until messages are awaited */
        unsigned qp = d->arrived / LENGTHS, message = d->arrived % LENGTHS;
        struct mrd_sge sge = {(uintptr_t)place(d, qp, message), MESSAGE_MAX, d->mr[0]->lkey};
        struct mrd_recv_wr wr = {.wr_id = d->arrived, .sg_list = &sge, .num_sge = 1}, *bad;
        int error =
            qp == 2 ? mrd_post_srq_recv(d->srq, &wr, &bad) : mrd_post_recv(d->qp[qp], &wr, &bad);

        if (error)
            return error;
        d->arrived++;
    }
    return 0;
}

/* The n-th request of a round: sends to each queue pair, then a write, a read and an atomic. */
static struct mrd_send_wr request(struct scene *s, struct side *d, uint32_t n, struct mrd_sge *sge)
{
    struct side *o = other_of(s, d);
    unsigned qp = n / LENGTHS < QPS ? n / LENGTHS : 0;
    struct mrd_send_wr wr = {
        .wr_id = n,
        .sg_list = sge,
        .num_sge = 1,
        .opcode = MRD_WR_SEND,
        .send_flags = MRD_SEND_SIGNALED,
        .ud = {.ah = n % 2 ? d->ah : d->ah_ex, .remote_qpn = o->qp[qp]->qp_num},
    };
    uint64_t remote = (uintptr_t)o->in;

    *sge = (struct mrd_sge){(uintptr_t)d->out, lengths[n % LENGTHS], d->mr[0]->lkey};
    if (n < QPS * LENGTHS)
        return wr;
    sge->length = MESSAGE_MAX;
    wr.wr.rdma.remote_addr = remote + WRITE_AT;
    wr.wr.rdma.rkey = o->mr[MRS - 1]->rkey;
    if (n == QPS * LENGTHS) {
        wr.opcode = MRD_WR_RDMA_WRITE;
    } else if (n == QPS * LENGTHS + 1) {
        wr.opcode = MRD_WR_RDMA_READ;
        wr.wr.rdma.remote_addr = remote + IN_BYTES;
        sge->addr = (uintptr_t)(d->in + READ_AT);
    } else {
        wr.opcode = MRD_WR_ATOMIC_FETCH_AND_ADD;
        wr.wr.atomic.remote_addr = remote + ATOMIC_AT;
        wr.wr.atomic.compare_add = 5;
        wr.wr.atomic.swap = 0;
        wr.wr.atomic.rkey = o->mr[0]->rkey;
        *sge = (struct mrd_sge){(uintptr_t)(d->in + ATOMIC_OLD), 8, d->mr[0]->lkey};
    }
    return wr;
}

static int post_sends(struct scene *s, struct side *d)
{
    while (d->sent < SENDS) {
        struct mrd_sge sge;
        struct mrd_send_wr wr = request(s, d, d->sent, &sge), *bad;
        unsigned qp = d->sent / LENGTHS < QPS ? d->sent / LENGTHS : 0;
        int error = mrd_post_send(d->qp[qp], &wr, &bad);

        if (error)
            return error;
        d->sent++;
    }
    return 0;
}

static void take(struct side *d)
{
    struct mrd_wc wc[8];
    int num = mrd_poll_cq(d->cq, 8, wc);

    if (num < 0)
        fail_msg("poll: %s", mrd_last_error());
    for (int i = 0; i < num; i++) {
        if (wc[i].status != MRD_WC_SUCCESS)
            fail_msg("request %u of side %u: %s", (unsigned)wc[i].wr_id, d->index,
                     mrd_wc_status_str(wc[i].status));
        if (wc[i].opcode == MRD_WC_RECV) {
            d->received = wc[i];
            d->arrived++;
        } else {
            d->sent++;
        }
    }
}

static void compare(struct scene *s, struct side *d, const char *what, const uint8_t *at,
                    uint32_t len)
{
    if (memcmp(at, other_of(s, d)->out, len))
        fail_msg("side %u: other bytes by %s of %u", d->index, what, len);
}

/* Messages of a shared queue, and of an unordered one, may have taken any of its receives. */
static void compare_all(struct scene *s, struct side *d, uint32_t round)
{
    uint64_t sum;

    for (unsigned qp = 0; qp < QPS; qp++)
        for (unsigned i = 0; i < LENGTHS; i++)
            compare(s, d, "send", place(d, qp, i), qp == 1 ? lengths[i] : 1);
    compare(s, d, "write", d->in + WRITE_AT, MESSAGE_MAX);
    compare(s, d, "read", d->in + READ_AT, MESSAGE_MAX);
    memcpy(&sum, d->in + ATOMIC_AT, sizeof(sum));
    assert_int_equal(sum, 5 * (round + 1));
    memcpy(&sum, d->in + ATOMIC_OLD, sizeof(sum));
    assert_int_equal(sum, 5 * round);
}

static void exchange(struct scene *s, uint32_t round)
{
    uint64_t since_ns = now_ns();
    struct side *a = &s->side[0], *b = &s->side[1];

    a->sent = b->sent = a->arrived = b->arrived = 0;
    while (a->sent < SENDS || b->sent < SENDS || a->arrived < RECEIVES || b->arrived < RECEIVES) {
        uint64_t for_ns = now_ns() - since_ns;

        take(a);
        take(b);
        if (s->rules->gives_up && for_ns > PERSIST_NS)
            fail_end();
        if (for_ns > PATIENCE_S * 1000000000ull)
            fail_msg("%u and %u of %u sent, %u and %u of %u received", a->sent, b->sent, SENDS,
                     a->arrived, b->arrived, RECEIVES);
    }
    compare_all(s, a, round);
    compare_all(s, b, round);
}

/* ------------------------------------------------------------------------------------- clearing */

static void release(struct side *d)
{
    if (d->watches)
        assert_int_equal(mrd_watch_peer(d->ah, 0), 0);
    for (unsigned i = 0; i < QPS; i++)
        if (d->qp[i])
            assert_int_equal(mrd_destroy_qp(d->qp[i]), 0);
    for (unsigned i = 0; i < MRS; i++)
        if (d->mr[i])
            assert_int_equal(mrd_dereg_mr(d->mr[i]), 0);
    if (d->srq)
        assert_int_equal(mrd_destroy_srq(d->srq), 0);
    if (d->cq)
        assert_int_equal(mrd_destroy_cq(d->cq), 0);
    if (d->channel)
        assert_int_equal(mrd_destroy_comp_channel(d->channel), 0);
    if (d->ah)
        assert_int_equal(mrd_destroy_ah(d->ah), 0);
    if (d->ah_ex)
        assert_int_equal(mrd_destroy_ah(d->ah_ex), 0);
    if (d->ah_wc)
        assert_int_equal(mrd_destroy_ah(d->ah_wc), 0);
    if (d->pd)
        assert_int_equal(mrd_dealloc_pd(d->pd), 0);
    if (d->context)
        assert_int_equal(mrd_close_device(d->context), 0);
}

/* ---------------------------------------------------------------------------------------- scene */

struct step {
    const char *name;
    int (*run)(struct scene *s, struct side *d);
};

static const struct step before[] = {
    {"mrd_get_device_list", list_devices},
    {"mrd_open_device", open_device},
    {"mrd_query_address", query_address},
    {"mrd_query_context and others", query_rest},
    {"mrd_resolve", resolve},
    {"mrd_pack_address", pack},
    {"mrd_alloc_pd", alloc_pd},
    {"mrd_create_comp_channel", create_channel},
    {"mrd_create_cq_ex", create_cq},
    {"mrd_resize_cq", resize_cq},
    {"mrd_create_srq", create_srq},
    {"mrd_create_qp", create_qps},
    {"mrd_reg_mr", register_memory},
};
static const struct step handles[] = {
    {"mrd_create_ah", create_ahs},
    {"mrd_watch_peer", watch},
};
static const struct step post[] = {
    {"mrd_post_recv", post_receives},
    {"mrd_post_send", post_sends},
};
static const struct step after[] = {
    {"mrd_create_ah_from_wc", create_ah_from_wc},
    {"mrd_query_peer", query_peer},
};

static bool is_allowed(const struct scene *s, int error)
{
    const int *allowed = s->rules->allowed;

    while (*allowed && *allowed != -error)
        allowed++;
    return *allowed;
}

/* A sentence that no call under test says. */
static void forget_sentence(void)
{
    assert_null(mrd_open_device(NULL, &(struct mrd_context_attr){.comp_mask = ~0ull}));
}

/* Does the sentence of the last error say what failed, and not only that something did? */
static bool names_cause(int error)
{
    static const struct {
        int error;
        const char *also;
    } words[] = {
        {ENOMEM, "memory"},     {ENOMEM, "Memory"},    {EMFILE, "out of file descriptors"},
        {EADDRINUSE, "in use"}, {EACCES, "privilege"},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (words[i].error == error && strstr(mrd_last_error(), words[i].also))
            return true;
    return strstr(mrd_last_error(), strerror(error));
}

static void run(struct scene *s, const struct step *step, struct side *d)
{

    for (unsigned tries = 0; !s->over; tries++) {
        forget_sentence();

        int error = step->run(s, d);

        if (error >= 0)
            return;
        if (!is_allowed(s, error))
            fail_msg("%s after %s failed: %s (%s)", step->name, fail_last(), strerror(-error),
                     mrd_last_error());
        if (!names_cause(s->rules->plan->error))
            fail_msg("%s after %s failed does not name the cause: %s", step->name, fail_last(),
                     mrd_last_error());
        s->over = s->rules->gives_up;
        if (tries > TRIES_MAX)
            fail_msg("%s after %s failed: fails for ever", step->name, fail_last());
    }
}

static void run_all(struct scene *s, const struct step *steps, size_t num)
{
    for (unsigned side = 0; side < 2; side++)
        for (size_t i = 0; i < num && !s->over; i++)
            if (steps[i].run != list_devices || side == 0)
                run(s, &steps[i], &s->side[side]);
}
#define RUN_ALL(s_, steps_) run_all(s_, steps_, sizeof(steps_) / sizeof((steps_)[0]))

static void play(struct scene *s)
{
    RUN_ALL(s, before);
    RUN_ALL(s, handles);
    for (uint32_t i = 0; !s->over && i <= s->rules->rounds; i++) {
        for (unsigned side = 0; side < 2; side++)
            s->side[side].sent = s->side[side].arrived = 0;
        RUN_ALL(s, post);
        if (!s->over)
            exchange(s, i);
    }
    RUN_ALL(s, after);
    mrd_free_device_list(s->devices);
    release(&s->side[0]);
    release(&s->side[1]);
}

uint32_t scene_play(const struct scene_rules *rules)
{
    struct scene s = {.rules = rules, .side = {{.index = 0}, {.index = 1}}};

    for (unsigned i = 0; i < 2; i++) {
        s.side[i].in = calloc(1, IN_BYTES + MESSAGE_MAX);
        assert_non_null(s.side[i].in);
        s.side[i].out = s.side[i].in + IN_BYTES;
        fill(&s.side[i]);
    }

    uint32_t descriptors = fail_descriptors(), blocks;

    fail_mark();

    fail_begin(rules->plan);
    play(&s);

    uint32_t failed = fail_end();

    if (rules->over)
        *rules->over = s.over;
    blocks = fail_blocks();
    if (blocks || fail_descriptors() != descriptors)
        fail_msg("after %s failed: %u blocks are left, and %d descriptors", fail_last(), blocks,
                 (int)(fail_descriptors() - descriptors));
    free(s.side[0].in);
    free(s.side[1].in);
    return failed;
}

/* A failed test leaves its plan. */
void kit_before_each(void)
{
    fail_end();
}
