/* SPDX-License-Identifier: BSD-2-Clause */
/* A simulation in several parts: the same bits whoever runs them, and nothing late, lost or kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <xxhash.h>

#include "mrd/mrd.h"
#include "tests/support/check.h"
#include "transport/movers/sim/sim_host.h"
#include "transport/movers/sim/sim_world.h"

enum { HOSTS = 32, MESSAGES = 4, ARENA_BYTES = 256 << 10, CQE = 1024 };

/* Two tiers, 16 leaves; and three, 4 pods of 4 leaves. */
static const struct mrd_sim_topology flat = {
    HOSTS, 2, 0, {{2, 2, 0, 100000000000, 500, 300}, {16, 0, 0, 100000000000, 1000, 600}}};
static const struct mrd_sim_topology deep = {HOSTS,
                                             3,
                                             8,
                                             {{2, 2, 0, 100000000000, 500, 300},
                                              {4, 4, 0, 100000000000, 1000, 600},
                                              {4, 0, 0, 100000000000, 2000, 900}}};

struct fault {
    uint64_t at_ns;
    const char *links, *action, *value;
};

struct scene {
    const struct mrd_sim_topology *topology;
    uint32_t loss_ppb;
    bool ack_priority, by_reference;
    bool is_incast; /* all to host 0; else each to one far away */
    uint32_t message_bytes;
    struct fault fault[4];
};

struct host {
    _Alignas(128) struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    struct mrd_mr *mr;
    struct mrd_ah *ah;
    uint8_t *arena;
    uint32_t to, posted, done, failed;
    uint64_t done_ns; /* when the last one completed */
    uint64_t hash;    /* of what completed, and when */
};

struct world {
    const struct scene *scene;
    struct mrd_sim *sim;
    struct host *hosts;
    uint64_t seed;
};

static void post(struct world *w, uint32_t number)
{
    struct host *host = &w->hosts[number], *to = &w->hosts[host->to];
    struct mrd_sge sge = {(uintptr_t)host->arena, w->scene->message_bytes, host->mr->lkey};
    struct mrd_send_wr wr = {
        .wr_id = host->posted,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = MRD_WR_RDMA_WRITE,
        .send_flags = MRD_SEND_SIGNALED,
        .ud = {.ah = host->ah, .remote_qpn = to->qp->qp_num},
        /* An incast writes the same bytes again and again: senders share no state. */
        .wr.rdma = {.remote_addr = (uintptr_t)to->arena + ARENA_BYTES / 2, .rkey = to->mr->rkey},
    };
    struct mrd_send_wr *bad;

    test_check(w->seed, mrd_post_send(host->qp, &wr, &bad) == 0, "host %u cannot send", number);
    host->posted++;
}

/* Poll, take note, and post the next message: in whatever thread the host has its turn. */
static void turned(void *arg, uint32_t number)
{
    struct world *w = arg;
    struct host *host = &w->hosts[number];
    struct mrd_wc wc[8];
    int n;

    while ((n = mrd_poll_cq(host->cq, 8, wc)) > 0) {
        for (int i = 0; i < n; i++) {
            uint64_t note[3] = {wc[i].wr_id, wc[i].status, mrd_sim_host_time(w->sim, number)};

            host->done_ns = note[2];
            host->hash = XXH3_64bits_withSeed(note, sizeof(note), host->hash);
            host->done++;
            host->failed += wc[i].status != MRD_WC_SUCCESS;
            if (host->posted < MESSAGES)
                post(w, number);
        }
    }
}

static void open_host(struct world *w, uint32_t number)
{
    struct host *host = &w->hosts[number];
    char address[MRD_ADDRESS_MAX];

    host->to = w->scene->is_incast ? 0 : (number + HOSTS / 2 + 3) % HOSTS;
    host->context = mrd_open_device(mrd_sim_device(w->sim, number),
                                    &(struct mrd_context_attr){.comp_mask = MRD_CONTEXT_ATTR_SEED,
                                                               .max_peers = HOSTS * 2,
                                                               .threading = MRD_THREADING_SINGLE,
                                                               .seed = w->seed * 1000 + number});
    test_check(w->seed, host->context, "host %u: %s", number, mrd_last_error());
    host->pd = mrd_alloc_pd(host->context);
    host->cq = mrd_create_cq(host->context, CQE, NULL);
    host->qp = mrd_create_qp(
        host->pd, &(struct mrd_qp_init_attr){.send_cq = host->cq,
                                             .recv_cq = host->cq,
                                             .cap = {.max_send_wr = 16, .max_recv_wr = 1}});
    host->arena = calloc(1, ARENA_BYTES);
    memset(host->arena, (int)number + 1, ARENA_BYTES / 2);
    host->mr = mrd_reg_mr(host->pd, host->arena, ARENA_BYTES,
                          MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE);
    snprintf(address, sizeof(address), "sim:%u", host->to);
    host->ah = mrd_create_ah(host->pd, address);
    assert_true(host->pd && host->cq && host->qp && host->arena && host->mr && host->ah);
}

static void close_host(struct host *host)
{
    assert_int_equal(mrd_destroy_ah(host->ah), 0);
    assert_int_equal(mrd_destroy_qp(host->qp), 0);
    assert_int_equal(mrd_destroy_cq(host->cq), 0);
    assert_int_equal(mrd_dereg_mr(host->mr), 0);
    assert_int_equal(mrd_dealloc_pd(host->pd), 0);
    assert_int_equal(mrd_close_device(host->context), 0);
    free(host->arena);
}

static struct world create(const struct scene *scene, uint64_t seed, uint32_t parts,
                           uint32_t threads)
{
    struct world w = {.scene = scene, .seed = seed};
    struct mrd_sim_attr attr = {.knows = MRD_SIM_KNOWS_FABRIC,
                                .seed = seed,
                                .topology = scene->topology,
                                .link = {.queue_bytes = 200000, .ecn_max_bytes = 100000},
                                .loss_ppb = scene->loss_ppb,
                                .ack_priority = scene->ack_priority,
                                .payload_by_reference = scene->by_reference,
                                .clock_skew_ppm = 50};

    w.sim = mrd_sim_create(&attr);
    assert_non_null(w.sim);
    assert_int_equal(mrd_sim_set_parts(w.sim, parts, threads), 0);
    for (unsigned i = 0; i < 4 && scene->fault[i].links; i++) {
        const struct fault *f = &scene->fault[i];

        if (mrd_sim_schedule(w.sim, f->at_ns, f->links, f->action, f->value) != 0)
            test_fail(seed, "%s", mrd_last_error());
    }
    w.hosts = aligned_alloc(128, HOSTS * sizeof(*w.hosts));
    memset(w.hosts, 0, HOSTS * sizeof(*w.hosts));
    for (uint32_t i = 0; i < HOSTS; i++)
        open_host(&w, i);
    return w;
}

static void destroy(struct world *w)
{
    for (uint32_t i = 0; i < HOSTS; i++)
        close_host(&w->hosts[i]);
    mrd_sim_destroy(w->sim);
    free(w->hosts);
}

static bool is_over(const struct world *w)
{
    for (uint32_t i = w->scene->is_incast; i < HOSTS; i++) {
        if (w->hosts[i].done < MESSAGES)
            return false;
    }
    return true;
}

static void begin(struct world *w)
{
    mrd_sim_set_turn_hook(w->sim, turned, w);
    for (uint32_t i = w->scene->is_incast; i < HOSTS; i++) {
        post(w, i);
        post(w, i);
    }
}

/* Run until all messages have completed, in slices as uneven as a caller's may be. */
static void run(struct world *w)
{
    begin(w);
    for (uint64_t ns = 777; !is_over(w); ns = ns * 3 % 50021 + 1) {
        test_check(w->seed, mrd_sim_now(w->sim) < SEC_NS, "messages do not complete");
        mrd_sim_run_until(w->sim, mrd_sim_now(w->sim) + ns);
    }
}

/* Each message is there, and the hosts that it is for have nothing else. */
static void check_bytes(const struct world *w)
{
    for (uint32_t i = 0; i < HOSTS && !w->scene->is_incast; i++) {
        const struct host *host = &w->hosts[i], *to = &w->hosts[host->to];

        assert_memory_equal(host->arena, to->arena + ARENA_BYTES / 2, w->scene->message_bytes);
    }
}

/* Everything that a user can see of a run. */
static uint64_t hash_of(const struct world *w)
{
    uint64_t hash = 0;

    for (uint32_t i = 0; i < HOSTS; i++) {
        struct mrd_counter counters[128];
        int num = mrd_query_counters(w->hosts[i].context, counters, 128);

        hash = XXH3_64bits_withSeed(&w->hosts[i].hash, sizeof(uint64_t), hash);
        for (int j = 0; j < num; j++)
            hash = XXH3_64bits_withSeed(&counters[j].value, sizeof(uint64_t), hash);
        assert_int_equal(w->hosts[i].failed, 0);
    }
    for (uint32_t i = 0; i < mrd_sim_num_links(w->sim); i++) {
        struct mrd_sim_stats stats;

        assert_int_equal(mrd_sim_query_link(w->sim, i, NULL, &stats), 0);
        hash = XXH3_64bits_withSeed(&stats, sizeof(stats), hash);
    }
    return hash ^ mrd_sim_lost(w->sim);
}

static uint64_t play(const struct scene *scene, uint64_t seed, uint32_t parts, uint32_t threads)
{
    struct world w = create(scene, seed, parts, threads);

    run(&w);
    check_bytes(&w);

    uint64_t hash = hash_of(&w);

    destroy(&w);
    return hash;
}

static const struct scene scenes[] = {
    {.topology = &flat, .message_bytes = 50000},
    {.topology = &deep, .message_bytes = 50000, .by_reference = true},
    {.topology = &deep, .message_bytes = 20000, .loss_ppb = 20000000, .ack_priority = true},
    {.topology = &flat, .message_bytes = 5000, .is_incast = true, .by_reference = true},
    {.topology = &deep,
     .message_bytes = 50000,
     .fault = {{20000, "leaf0-*", "down", "on"},
               {30000, "leaf*-agg*", "corrupt", "0.01"},
               {40000, "leaf*-agg*", "duplicate", "0.01"},
               {60000, "leaf0-*", "heal", ""}}},
    /* The way gets shorter while packets are under way, in the end as short as can be. */
    {.topology = &flat,
     .message_bytes = 50000,
     .fault = {{10000, "leaf*-spine*", "delay", "0.01"}, {20000, "leaf*-spine*", "delay", "0"}}},
};

enum { SCENES = sizeof(scenes) / sizeof(scenes[0]) };

TEST(mrd_sim_set_parts__threads_change_nothing)
{
    static const uint32_t parts[] = {2, 5, 16};
    uint64_t seed = test_seed();

    for (unsigned i = 0; i < SCENES; i++) {
        uint32_t num = parts[i % 3];
        uint64_t one = play(&scenes[i], seed, num, 1);

        for (uint32_t threads = 2; threads <= 3; threads++)
            test_check(seed, play(&scenes[i], seed, num, threads) == one,
                       "scene %u: %u parts by %u threads have other results", i, num, threads);
        test_check(seed, play(&scenes[i], seed + 1, num, 2) != one,
                   "scene %u: the results do not depend on the seed", i);
    }
}

/* A packet alone takes as long through several parts as through one. */
TEST(mrd_sim_set_parts__latency)
{
    for (unsigned i = 0; i < 2; i++) {
        uint64_t at_ns[2];

        for (uint32_t j = 0; j < 2; j++) {
            struct world w = create(&scenes[i], 1, j ? 16 : 1, 2);

            mrd_sim_set_turn_hook(w.sim, turned, &w);
            w.hosts[1].posted = MESSAGES - 1;
            post(&w, 1);
            while (w.hosts[1].done == 0)
                mrd_sim_run_until(w.sim, mrd_sim_now(w.sim) + USEC_NS);
            at_ns[j] = w.hosts[1].done_ns;
            destroy(&w);
        }
        assert_int_equal(at_ns[0], at_ns[1]);
    }
}

/* Packets that end in another part go back to the pool that they are from: pools do not grow. */
TEST(mrd_sim_set_parts__pools)
{
    enum { ROUNDS = 40 };
    static const struct scene scene = {
        .topology = &flat, .message_bytes = 100000, .is_incast = true, .by_reference = true};
    struct world w = create(&scene, 1, 4, 2);
    const struct mrd_sim_packets *pool = &w.sim->parts[3].packets;
    struct mrd_sim_packet_slab *slabs = NULL;

    mrd_sim_set_turn_hook(w.sim, turned, &w);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct host *host = &w.hosts[HOSTS - 1];

        host->posted = MESSAGES - 1;
        host->done = 0;
        post(&w, HOSTS - 1);
        while (host->done == 0)
            mrd_sim_run_until(w.sim, mrd_sim_now(w.sim) + 10 * USEC_NS);
        slabs = i == 1 ? pool->slabs : slabs; /* the newest */
    }
    assert_ptr_equal(pool->slabs, slabs);
    mrd_sim_run_until(w.sim, mrd_sim_now(w.sim) + SEC_NS);
    assert_in_range(pool->out, 0, 4); /* of the last window */
    destroy(&w);
}

/* How many parts a topology may have, and which of them a host is in. */
TEST(mrd_sim_set_parts__bounds)
{
    struct mrd_sim *sim = mrd_sim_create(&(struct mrd_sim_attr){.topology = &deep});
    struct mrd_sim *pairs = mrd_sim_create(&(struct mrd_sim_attr){.hosts = 40});

    assert_int_equal(mrd_sim_parts_max(sim), 16);
    assert_int_equal(mrd_sim_parts_max(pairs), 1);
    assert_int_equal(mrd_sim_set_parts(pairs, 1, 4), 0);
    assert_int_equal(mrd_sim_part_of(sim, HOSTS - 1), 0);
    assert_int_equal(mrd_sim_set_parts(sim, 8, 100), 0);
    for (uint32_t i = 0; i < HOSTS; i++)
        assert_int_equal(mrd_sim_part_of(sim, i), i / 4);
    /* With nothing to do time passes. */
    mrd_sim_run_until(sim, SEC_NS);
    assert_int_equal(mrd_sim_now(sim), SEC_NS);
    assert_int_equal(mrd_sim_host_time(sim, HOSTS - 1), SEC_NS);
    assert_int_equal(mrd_sim_next_event_ns(sim), MRD_SIM_NEVER);
    mrd_sim_destroy(sim);
    mrd_sim_destroy(pairs);
}

/* Time does not go back when a simulation that has run is cut. */
TEST(mrd_sim_set_parts__keeps_time)
{
    struct mrd_sim *sim = mrd_sim_create(&(struct mrd_sim_attr){.topology = &flat});

    mrd_sim_run_until(sim, SEC_NS);
    assert_int_equal(mrd_sim_set_parts(sim, 4, 2), 0);
    assert_int_equal(mrd_sim_now(sim), SEC_NS);
    mrd_sim_destroy(sim);
}

/* Where no threads can be made, the caller's alone does it all, to the same end. */
TEST(mrd_sim_set_parts__no_threads)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* a sanitizer needs the room */
#else
    enum { ROOM_BYTES = 7000000 }; /* for the parts, not for the stack of a thread */
    struct scene scene = scenes[0];
    uint64_t hash = play(&scene, 1, 2, 1);
    struct rlimit before, low;
    unsigned long pages;
    FILE *file = fopen("/proc/self/statm", "r");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    low = before;
    low.rlim_cur = pages * (unsigned long)sysconf(_SC_PAGESIZE) + ROOM_BYTES;

    struct mrd_sim *sim = mrd_sim_create(&(struct mrd_sim_attr){.topology = &flat});

    assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);

    int ret = mrd_sim_set_parts(sim, 2, 2);

    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(ret, 0);
    mrd_sim_run_until(sim, SEC_NS);
    mrd_sim_destroy(sim);
    assert_int_equal(play(&scene, 1, 2, 2), hash);
#endif
}

/* It does not matter in how many calls time passes, nor how long they are. */
TEST(mrd_sim_run_until__slices)
{
    enum { END_NS = 400000 };
    static const uint64_t slices_ns[] = {END_NS, 1000, 90};
    uint64_t seed = test_seed();

    for (unsigned i = 0; i < SCENES; i++) {
        uint64_t hash[3];

        for (unsigned j = 0; j < 3; j++) {
            struct world w = create(&scenes[i], seed, i % 2 ? 16 : 3, 1);

            begin(&w);
            while (mrd_sim_now(w.sim) < END_NS)
                mrd_sim_run_until(w.sim, mrd_sim_now(w.sim) + slices_ns[j] < END_NS
                                             ? mrd_sim_now(w.sim) + slices_ns[j]
                                             : END_NS);
            hash[j] = hash_of(&w);
            destroy(&w);
        }
        test_check(seed, hash[0] == hash[1] && hash[0] == hash[2],
                   "scene %u: the results depend on where a run is cut", i);
    }
}

/* The time of the next event leads through all of them. */
TEST(mrd_sim_next_event_ns__parts)
{
    uint64_t seed = test_seed();

    for (unsigned i = 0; i < SCENES; i++) {
        struct world w = create(&scenes[i], seed, 16, 2);
        uint64_t last_ns = 0;

        for (begin(&w); !is_over(&w);) {
            uint64_t ns = mrd_sim_next_event_ns(w.sim);

            test_check(seed, ns != MRD_SIM_NEVER && ns >= last_ns, "scene %u: %llu ns after %llu",
                       i, (unsigned long long)ns, (unsigned long long)last_ns);
            mrd_sim_run_until(w.sim, ns);
            last_ns = ns;
        }
        destroy(&w);
    }
}

/* Times that are over, packets from nowhere, a host that stops, changes at the same time. */
TEST(mrd_sim_set_parts__odd_calls)
{
    struct world w = create(&scenes[0], 1, 5, 3);

    begin(&w);
    mrd_sim_run_until(w.sim, 5000);
    mrd_sim_run_until(w.sim, 100);
    assert_int_equal(mrd_sim_now(w.sim), 5000);
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_int_equal(mrd_sim_inject(w.sim, i, HOSTS - 1 - i, "abc", 3, 17), 0);
        assert_int_equal(mrd_sim_inject(w.sim, i, HOSTS - 1 - i, "abc", 3, 5000), 0);
    }
    mrd_sim_run_until(w.sim, 100);
    mrd_sim_stop_host(w.sim, 3, 1);
    mrd_sim_run_until(w.sim, 200000);
    assert_int_equal(mrd_sim_schedule(w.sim, 200001, "*-*", "delay", "0"), 0);
    assert_int_equal(mrd_sim_schedule(w.sim, 200001, "*-*", "delay", "1"), 0);
    assert_int_equal(mrd_sim_schedule(w.sim, 1, "*-*", "delay", "0"), 0);
    mrd_sim_stop_host(w.sim, 3, 0);
    mrd_sim_run_until(w.sim, 400000);
    while (!is_over(&w))
        mrd_sim_run_until(w.sim, mrd_sim_now(w.sim) + 100000);
    destroy(&w);
}
