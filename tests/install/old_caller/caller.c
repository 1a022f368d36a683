/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that is compiled against one version of the headers and runs with a library of another.
 *
 * Every struct that the library reads or fills lies before a page that must not be touched, so that a library that
 * takes it for longer than it is does not get away with it. HEADER_LONGER: the headers have fields (`later`) that
 * version 0.1 does not have; LIBRARY_LONGER: the library has them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mrd/mrd.h>
#include <mrd/sim.h>

#ifndef HEADER_LONGER
#define HEADER_LONGER 0
#endif
#ifndef LIBRARY_LONGER
#define LIBRARY_LONGER 0
#endif

enum { JUNK = 0xa5, MESSAGE_BYTES = 64, LATER_BYTES = 32, STEP_NS = 100000, STEPS = 10000 };

#define CHECK(condition) check((condition) ? 1 : 0, #condition, __LINE__)

static void check(int ok, const char *what, int line)
{
    if (ok)
        return;
    fprintf(stderr, "line %d: %s is not so; last error: %s\n", line, what, mrd_last_error());
    exit(1);
}

/* `bytes` of junk right before memory that cannot be read or written; never freed. */
static void *before_guard(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (bytes + page - 1) / page * page;
    char *start =
        mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(start != MAP_FAILED);
    CHECK(mprotect(start + room, page, PROT_NONE) == 0);
    return memset(start + room - bytes, JUNK, bytes);
}

static void *copy_before_guard(const void *from, size_t bytes)
{
    return memcpy(before_guard(bytes), from, bytes);
}

#define GUARDED(type, ...) copy_before_guard(&(struct type){__VA_ARGS__}, sizeof(struct type))

static int all(const void *bytes, size_t num, int value)
{
    for (size_t i = 0; i < num; i++)
        if (((const unsigned char *)bytes)[i] != value)
            return 0;
    return 1;
}

/* The library filled the struct: what it does not know is zero. */
static void check_tail(const void *end)
{
    if (HEADER_LONGER && !LIBRARY_LONGER)
        CHECK(all((const char *)end - LATER_BYTES, LATER_BYTES, 0));
}

struct host {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    struct mrd_mr *mr;
    char memory[MESSAGE_BYTES];
};

static void host_open(struct host *h, struct mrd_sim *sim, uint32_t number)
{
    h->context = mrd_open_device(mrd_sim_device(sim, number),
                                 GUARDED(mrd_context_attr, .comp_mask = MRD_CONTEXT_ATTR_SEED,
                                         .seed = number, .paths = 3, .entropy = "auto"));
    CHECK(h->context);
    h->pd = mrd_alloc_pd(h->context);
    h->cq = mrd_create_cq(h->context, 4, NULL);
    CHECK(h->pd && h->cq);
    h->qp = mrd_create_qp(h->pd, GUARDED(mrd_qp_init_attr, .send_cq = h->cq, .recv_cq = h->cq,
                                         .cap = {.max_send_wr = 1, .max_recv_wr = 1}, .qkey = 7,
                                         .rnr_timer_ns = 1000));
    CHECK(h->qp);
    h->mr = mrd_reg_mr(h->pd, h->memory, sizeof(h->memory), MRD_ACCESS_LOCAL_WRITE);
    CHECK(h->mr);
    CHECK(!mrd_modify_qp(h->qp, GUARDED(mrd_qp_attr, .qkey = 8, .rnr_timer_ns = 1000000),
                         MRD_QP_QKEY | MRD_QP_RNR_TIMER));
}

static void host_close(struct host *h)
{
    CHECK(!mrd_destroy_qp(h->qp) && !mrd_destroy_cq(h->cq) && !mrd_dereg_mr(h->mr));
    CHECK(!mrd_dealloc_pd(h->pd) && !mrd_close_device(h->context));
}

static void complete(struct mrd_sim *sim, struct mrd_cq *cq, struct mrd_wc *wc)
{
    for (int i = 0; i < STEPS; i++) {
        int n = mrd_poll_cq(cq, 1, wc);

        CHECK(n >= 0);
        if (n) {
            CHECK(wc->status == MRD_WC_SUCCESS);
            return;
        }
        mrd_sim_run_until(sim, mrd_sim_now(sim) + STEP_NS);
    }
    CHECK(!"complete");
}

/* One message from a to b. */
static void transfer(struct mrd_sim *sim, struct host *a, struct host *b, struct mrd_ah *ah)
{
    struct mrd_wc *wc = before_guard(sizeof(*wc));
    struct mrd_sge *from = GUARDED(mrd_sge, (uintptr_t)a->memory, MESSAGE_BYTES, a->mr->lkey);
    struct mrd_sge *to = GUARDED(mrd_sge, (uintptr_t)b->memory, MESSAGE_BYTES, b->mr->lkey);
    struct mrd_recv_wr *recv = GUARDED(mrd_recv_wr, .sg_list = to, .num_sge = 1), *bad_recv;
    struct mrd_send_wr *bad_send,
        *send = GUARDED(mrd_send_wr, .sg_list = from, .num_sge = 1, .opcode = MRD_WR_SEND,
                        .send_flags = MRD_SEND_SIGNALED,
                        .ud = {.ah = ah, .remote_qpn = b->qp->qp_num, .remote_qkey = 8});

    memset(a->memory, 'm', sizeof(a->memory));
    CHECK(!mrd_post_recv(b->qp, recv, &bad_recv));
    CHECK(!mrd_post_send(a->qp, send, &bad_send));
    complete(sim, b->cq, wc);
    CHECK(wc->byte_len == MESSAGE_BYTES && all(b->memory, MESSAGE_BYTES, 'm'));

    struct mrd_ah *back = mrd_create_ah_from_wc(b->pd, wc);

    CHECK(back && !mrd_destroy_ah(back));
    complete(sim, a->cq, wc);
}

/* Each element of the array has its place, whatever the library's element is. */
static void query_counters(struct mrd_context *context)
{
    int num = mrd_query_counters(context, NULL, 0);

    CHECK(num > 1);
    for (int max = 1; max <= num; max++) {
        struct mrd_counter *counters = before_guard((size_t)max * sizeof(*counters));

        CHECK(mrd_query_counters(context, counters, max) == num);
        for (int i = 0; i < max; i++) {
            CHECK(strlen(counters[i].name) > 3 && strlen(counters[i].unit) > 3);
            CHECK(!i || strcmp(counters[i].name, counters[i - 1].name) != 0);
            check_tail(&counters[i] + 1);
        }
    }
}

static void query(struct host *a, struct mrd_ah *ah)
{
    struct mrd_peer_attr *peer = before_guard(sizeof(*peer));
    struct mrd_path_attr *path = before_guard(sizeof(*path));
    struct mrd_context_info *info = before_guard(sizeof(*info));
    struct mrd_async_event *event = before_guard(sizeof(*event));

    CHECK(!mrd_query_peer(ah, peer, sizeof(*peer)));
    CHECK(peer->packets_sent > 0 && strcmp(peer->address, "sim:1") == 0);
    check_tail(peer + 1);
    CHECK(!mrd_query_peer_id(a->context, peer->peer_id, peer, sizeof(*peer)));
    check_tail(peer + 1);
    CHECK(!mrd_query_path(ah, 0, path, sizeof(*path)));
    CHECK(path->state == MRD_PATH_GOOD);
    check_tail(path + 1);
    CHECK(!mrd_query_context(a->context, info, sizeof(*info)));
    CHECK(info->paths == 3);
    check_tail(info + 1);
    CHECK(mrd_get_async_event(a->context, event) == -EAGAIN);
}

static void query_links(struct mrd_sim *sim)
{
    struct mrd_sim_stats *stats = before_guard(sizeof(*stats));
    struct mrd_sim_link *link = before_guard(sizeof(*link));

    CHECK(!mrd_sim_link_stats(sim, 0, 1, -1, stats) && stats->packets > 0 && stats->bytes > 0);
    check_tail(stats + 1);
    CHECK(!mrd_sim_get_link(sim, 0, 1, 0, link) && !mrd_sim_set_link(sim, 0, 1, 0, link));
    memset(stats, JUNK, sizeof(*stats));
    CHECK(!mrd_sim_query_link(sim, 0, link, stats) && link->rate_bps > 0 && !stats->lost);
    check_tail(stats + 1);
}

/* A size that no version has. */
static void refused(struct mrd_sim *sim, struct host *a, struct mrd_ah *ah)
{
    struct mrd_context_info *info = before_guard(sizeof(*info));
    struct mrd_peer_attr *peer = before_guard(sizeof(*peer));
    struct mrd_path_attr *path = before_guard(sizeof(*path));

    (void)sim;
    CHECK(mrd_query_context(a->context, info, 55) == -EINVAL);
    CHECK(strstr(mrd_last_error(), "struct mrd_context_info of 55 bytes"));
    CHECK(mrd_query_context(a->context, info, 1 << 20) == -EINVAL);
    CHECK(mrd_query_peer(ah, peer, 0) == -EINVAL);
    CHECK(mrd_query_peer_id(a->context, 0, peer, 8) == -EINVAL);
    CHECK(mrd_query_path(ah, 0, path, 47) == -EINVAL);
    CHECK(all(info, sizeof(*info), JUNK) && all(peer, sizeof(*peer), JUNK) &&
          all(path, sizeof(*path), JUNK));
#ifdef mrd_open_device
    CHECK(!mrd_open_device_sized(mrd_sim_device(sim, 1), GUARDED(mrd_context_attr, 0), 8));
    CHECK(errno == EINVAL && strstr(mrd_last_error(), "struct mrd_context_attr of 8 bytes"));
    CHECK(!mrd_create_qp_sized(a->pd, GUARDED(mrd_qp_init_attr, 0), 0) && errno == EINVAL);
    CHECK(mrd_query_counters_sized(a->context, NULL, 0, 16) == -EINVAL);
    CHECK(!mrd_sim_create_sized(GUARDED(mrd_sim_attr, 0), 4) && errno == EINVAL);
    CHECK(mrd_sim_link_stats_sized(sim, 0, 1, 0, NULL, 1) == -EINVAL);
    CHECK(mrd_sim_query_link_sized(sim, 0, NULL, NULL, 1) == -EINVAL);
#endif
}

#ifdef mrd_create_cq_ex /* not in the first headers */
/* The calls of objects that can be made with attributes. */
static void make_objects(struct host *a)
{
    struct mrd_device_attr *device = before_guard(sizeof(*device));
    struct mrd_srq_attr *limits = before_guard(sizeof(*limits));
    struct mrd_qp_init_attr *found = before_guard(sizeof(*found));
    struct mrd_cq *cq = mrd_create_cq_ex(a->context, GUARDED(mrd_cq_init_attr, .cqe = 3));
    struct mrd_comp_channel *channel = mrd_create_comp_channel_ex(
        a->context, GUARDED(mrd_comp_channel_init_attr, .flags = MRD_COMP_CHANNEL_EVENTS_ONLY));
    struct mrd_srq *srq =
        mrd_create_srq(a->pd, GUARDED(mrd_srq_init_attr, .srq_context = a, .attr = {.max_wr = 2}));
    struct mrd_ah *ah =
        mrd_create_ah_ex(a->pd, GUARDED(mrd_ah_init_attr, .comp_mask = MRD_AH_INIT_ATTR_DSCP,
                                        .address = "sim:1", .dscp = 3));
    struct mrd_mr *mr =
        mrd_reg_mr_ex(a->pd, GUARDED(mrd_mr_init_attr, .addr = a->memory, .length = 8));

    CHECK(cq && cq->cqe == 3 && srq && srq->srq_context == a && ah && mr && mr->length == 8);
    CHECK(!mrd_query_srq(srq, limits) && limits->max_wr == 2 && limits->max_sge == 1);
    CHECK(!mrd_query_device(a->context, device, sizeof(*device)) && device->max_sge == MRD_SGE_MAX);
    check_tail(device + 1);
    CHECK(!mrd_query_qp(a->qp, found, sizeof(*found)) && found->qkey == 8);
    check_tail(found + 1);
    CHECK(channel && !mrd_destroy_comp_channel(channel));
    CHECK(!mrd_destroy_cq(cq) && !mrd_destroy_srq(srq) && !mrd_destroy_ah(ah) && !mrd_dereg_mr(mr));

    CHECK(!mrd_create_cq_ex_sized(a->context, GUARDED(mrd_cq_init_attr, 0), 8) && errno == EINVAL);
    CHECK(
        !mrd_create_comp_channel_ex_sized(a->context, GUARDED(mrd_comp_channel_init_attr, 0), 8) &&
        errno == EINVAL);
    CHECK(!mrd_create_srq_sized(a->pd, GUARDED(mrd_srq_init_attr, 0), 8) && errno == EINVAL);
    CHECK(!mrd_create_ah_ex_sized(a->pd, GUARDED(mrd_ah_init_attr, 0), 8) && errno == EINVAL);
    CHECK(!mrd_reg_mr_ex_sized(a->pd, GUARDED(mrd_mr_init_attr, 0), 8) && errno == EINVAL);
    CHECK(mrd_query_device(a->context, device, 8) == -EINVAL);
}
#endif

#if HEADER_LONGER
/* What an older library does not know may be there as long as it is zero; a newer one takes it. */
static void set_later_fields(struct mrd_sim *sim, struct host *a)
{
    const struct mrd_device *device = mrd_sim_device(sim, 2);
    struct mrd_context_attr *open = GUARDED(mrd_context_attr, .later = {[3] = 1});
    struct mrd_qp_init_attr *create = GUARDED(mrd_qp_init_attr, .send_cq = a->cq, .recv_cq = a->cq,
                                              .cap = {.max_send_wr = 1}, .later = {[0] = 1});
    struct mrd_context *context = mrd_open_device(device, open);

    CHECK(!context == !LIBRARY_LONGER);
    if (!context)
        CHECK(errno == EINVAL && strstr(mrd_last_error(), "struct mrd_context_attr: byte"));
    else
        CHECK(!mrd_close_device(context));

    struct mrd_qp *qp = mrd_create_qp(a->pd, create);

    CHECK(!qp == !LIBRARY_LONGER);
    if (!qp)
        CHECK(errno == EINVAL && strstr(mrd_last_error(), "struct mrd_qp_init_attr: byte"));
    else
        CHECK(!mrd_destroy_qp(qp));

    struct mrd_sim *other = mrd_sim_create(GUARDED(mrd_sim_attr, .later = {[1] = 1}));

    CHECK(!other == !LIBRARY_LONGER);
    mrd_sim_destroy(other);
    /* The functions behind the macros know the first version only. */
    context = (mrd_open_device)(device, open);
    CHECK(context && !mrd_close_device(context));
}

/* As above: the object is there if the library knows the field. */
#define CHECK_LATER(object, destroy)                                                               \
    do {                                                                                           \
        void *object_ = (object);                                                                  \
                                                                                                   \
        CHECK(!object_ == !LIBRARY_LONGER);                                                        \
        if (object_)                                                                               \
            CHECK(!destroy(object_));                                                              \
        else                                                                                       \
            CHECK(errno == EINVAL && strstr(mrd_last_error(), "init_attr: byte"));                 \
    } while (0)

static void set_later_fields_of_objects(struct host *a)
{
    CHECK_LATER(
        mrd_create_cq_ex(a->context, GUARDED(mrd_cq_init_attr, .cqe = 3, .later = {[0] = 1})),
        mrd_destroy_cq);
    CHECK_LATER(mrd_create_comp_channel_ex(a->context,
                                           GUARDED(mrd_comp_channel_init_attr, .later = {[1] = 1})),
                mrd_destroy_comp_channel);
    CHECK_LATER(mrd_create_srq(
                    a->pd, GUARDED(mrd_srq_init_attr, .attr = {.max_wr = 2}, .later = {[2] = 1})),
                mrd_destroy_srq);
    CHECK_LATER(
        mrd_create_ah_ex(a->pd, GUARDED(mrd_ah_init_attr, .address = "sim:1", .later = {[3] = 1})),
        mrd_destroy_ah);
    CHECK_LATER(mrd_reg_mr_ex(a->pd, GUARDED(mrd_mr_init_attr, .addr = a->memory, .length = 8,
                                             .later = {[1] = 1})),
                mrd_dereg_mr);
}
#endif

int main(void)
{
    struct mrd_sim *sim =
        mrd_sim_create(GUARDED(mrd_sim_attr, .seed = 1, .hosts = 3, .links = 2, .paths = 16));
    struct host a, b;

    CHECK(sim);
    host_open(&a, sim, 0);
    host_open(&b, sim, 1);

    struct mrd_ah *ah = mrd_create_ah(a.pd, "sim:1");

    CHECK(ah);
    transfer(sim, &a, &b, ah);
    query_counters(a.context);
    query(&a, ah);
    query_links(sim);
    refused(sim, &a, ah);
#ifdef mrd_create_cq_ex
    make_objects(&a);
#endif
#if HEADER_LONGER
    set_later_fields(sim, &a);
    set_later_fields_of_objects(&a);
#endif
    CHECK(!mrd_destroy_ah(ah));
    host_close(&a);
    host_close(&b);
    mrd_sim_destroy(sim);
    return 0;
}
