/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A path that was out is probed with an empty packet: nothing that counts is put at risk on it, and
 * yet it comes back into use once it works again.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/wiretap.h"

#define DEAD_LINKS "*.5"

enum {
    PATHS = 16,
    DEAD_PATH = 5,
    MESSAGE_BYTES = 64 << 20,
    DIES_NS = 200 * 1000,
    HEALS_NS = 700 * 1000,
    STEP_NS = 2000,
    SEEDS = 4,
};

/* One write; the path swallows all between the two times. Packets go on while it runs. */
static struct wiretap *write_with_outage(const char *spray, uint64_t seed)
{
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.seed = seed, .paths = PATHS, .spray = spray});
    struct wiretap *tap = wiretap_open(w);
    uint32_t message = sim_write(w, HOST_0, HOST_1, MESSAGE_BYTES);
    uint64_t start_ns = mrd_sim_now(w->sim);

    sim_run(w, DIES_NS);
    sim_links(w, DEAD_LINKS, "blackhole", "on");
    sim_run(w, HEALS_NS - DIES_NS);
    test_check(seed, !w->messages[message].sent, "%s: it was over before the path healed", spray);
    sim_links(w, DEAD_LINKS, "blackhole", "off");
    while (!w->messages[message].sent) {
        test_check(seed, mrd_sim_now(w->sim) < start_ns + 5 * MSEC_NS, "%s: too slow", spray);
        sim_run(w, STEP_NS);
    }
    test_check(seed, sim_payload_equal(w, HOST_1), "%s: wrong bytes", spray);
    return tap;
}

static bool is_from_sender(const struct wire_packet *p)
{
    return p->from == HOST_0 && p->head.type == MRD_WIRE_DATA;
}

/* The packet that first repeats one that the path swallowed: from here on it is known. */
static uint32_t first_detection(const struct wiretap *tap)
{
    static bool swallowed[MESSAGE_BYTES / 1024];
    uint32_t i;

    memset(swallowed, 0, sizeof(swallowed));

    for (i = 0; i < tap->num; i++) {
        const struct wire_packet *p = &tap->packets[i];

        if (!is_from_sender(p))
            continue;
        assert_true(p->head.psn < MESSAGE_BYTES / 1024);
        if (swallowed[p->head.psn])
            break;
        swallowed[p->head.psn] = p->path == DEAD_PATH && p->at_ns >= DIES_NS;
    }
    return i;
}

struct use {
    uint32_t probes, data_while_dead, data_healed;
};

static struct use use_of_path(const struct wiretap *tap, uint32_t from)
{
    struct use use = {0};

    for (uint32_t i = from; i < tap->num; i++) {
        const struct wire_packet *p = &tap->packets[i];

        if (!is_from_sender(p) || p->path != DEAD_PATH)
            continue;
        use.probes += p->kind == WIRE_EMPTY;
        if (p->at_ns < HEALS_NS)
            use.data_while_dead += p->kind != WIRE_EMPTY;
        else
            use.data_healed += p->kind != WIRE_EMPTY;
    }
    return use;
}

TEST(sim_path_probe__no_data_on_a_dead_path)
{
    static const char *const sprays[] = {"adaptive", "random", "rr", "reps"};

    for (uint32_t i = 0; i < SEEDS * sizeof(sprays) / sizeof(sprays[0]); i++) {
        const char *spray = sprays[i / SEEDS];
        uint64_t seed = test_seed() + i % SEEDS;
        struct wiretap *tap = write_with_outage(spray, seed);
        struct sim_world *w = tap->w;
        struct use use = use_of_path(tap, first_detection(tap));

        test_check(seed, use.data_while_dead == 0, "%s: %u packets with data on the dead path",
                   spray, use.data_while_dead);
        /* Suspended for 4, 8, 16 round trips, ...: each probe that fails doubles it. */
        test_check(seed, use.probes >= 2 && use.probes <= 8, "%s: %u probes", spray, use.probes);
        test_check(seed, use.data_healed >= 16, "%s: %u packets with data on the healed path",
                   spray, use.data_healed);
        /* A probe that is lost is sent again as it is, empty: it may be counted twice, not once. */
        test_check(seed, sim_counter(w, HOST_0, "probes_path") <= use.probes,
                   "%s: probes on other paths", spray);
        wiretap_close(tap);
        sim_world_destroy(w);
    }
}

/* Who has nothing to send probes nothing. */
TEST(sim_path_probe__not_when_idle)
{
    uint64_t seed = test_seed(), probes;
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.seed = seed, .paths = PATHS});

    sim_links(w, DEAD_LINKS, "blackhole", "on");
    sim_write_complete(w, HOST_0, HOST_1, 1 << 20, 2 * MSEC_NS);
    test_check(seed, sim_counter(w, HOST_0, "paths_suspended") > 0, "no path was suspended");
    sim_run(w, MSEC_NS);
    probes = sim_counter(w, HOST_0, "probes_path");
    sim_run(w, 100 * MSEC_NS);
    sim_write(w, HOST_1, HOST_0, 1 << 20); /* it has acks to send, but no data */
    sim_run_until_complete(w, 2 * MSEC_NS);
    test_check(seed, sim_counter(w, HOST_0, "probes_path") == probes, "probes without data");
    /* The next data finds the time of the path come, and probes it first. */
    sim_write_complete(w, HOST_0, HOST_1, 1 << 20, 2 * MSEC_NS);
    test_check(seed, sim_counter(w, HOST_0, "probes_path") > probes, "no probe with data");
}

/*
 * Short bursts, and nothing in flight between them. The paths were slow once, so their packets have
 * long to arrive before they count as lost: the tail probe is due before. A path that is dead is
 * given up all the same.
 */
TEST(sim_path_probe__failed_among_bursts)
{
    for (uint64_t seed = test_seed(); seed < test_seed() + SEEDS; seed++) {
        struct sim_world *w = sim_fabric_world(&(struct sim_options){.seed = seed, .paths = PATHS});
        struct mrd_path_attr path;

        sim_links(w, "*", "delay", "5000");
        sim_write_complete(w, HOST_0, HOST_1, 64 << 10, 100 * MSEC_NS);
        sim_links(w, "*", "delay", "1");
        for (uint32_t i = 0; i < 10; i++)
            sim_write_complete(w, HOST_0, HOST_1, 16 << 10, 100 * MSEC_NS);
        sim_links(w, DEAD_LINKS, "blackhole", "on");
        for (uint32_t i = 0; i < 500; i++) {
            sim_write_complete(w, HOST_0, HOST_1, 16 << 10, 20 * MSEC_NS);
            sim_run(w, 5 * MSEC_NS);
        }
        assert_int_equal(mrd_query_path(w->node[HOST_0].ah[HOST_1], DEAD_PATH, &path, sizeof(path)),
                         0);
        test_check(seed, path.state == MRD_PATH_DEAD || sim_counter(w, HOST_0, "paths_replaced"),
                   "not given up: %llu packets, %llu lost, state %d",
                   (unsigned long long)path.packets, (unsigned long long)path.lost, path.state);
        sim_world_destroy(w);
    }
}

/*
 * One small message after the other: only a tail probe can tell that a packet was lost. The second
 * time that a path needs one is the last.
 */
TEST(sim_path_probe__failed_one_message_at_a_time)
{
    for (uint64_t seed = test_seed(); seed < test_seed() + SEEDS; seed++) {
        struct sim_world *w = sim_fabric_world(&(struct sim_options){.seed = seed, .paths = PATHS});

        for (uint32_t i = 0; i < 100; i++)
            sim_write_complete(w, HOST_0, HOST_1, 64, MSEC_NS);
        sim_links(w, "host0>host1.5", "blackhole", "on");
        for (uint32_t i = 0; i < 2000; i++)
            sim_write_complete(w, HOST_0, HOST_1, 64, MSEC_NS);
        test_check(seed, sim_counter(w, HOST_0, "paths_replaced") == 1, "not given up");
        test_check(seed, sim_counter(w, HOST_0, "retx_tail") <= 8, "%llu tail probes",
                   (unsigned long long)sim_counter(w, HOST_0, "retx_tail"));
        sim_world_destroy(w);
    }
}

/* One path takes far longer than the tail probe waits, and all arrives. It is not dead. */
TEST(sim_path_probe__late_path_is_not_given_up)
{
    for (uint64_t seed = test_seed(); seed < test_seed() + SEEDS; seed++) {
        struct sim_world *w = sim_fabric_world(&(struct sim_options){.seed = seed, .paths = PATHS});

        for (uint32_t i = 0; i < 100; i++)
            sim_write_complete(w, HOST_0, HOST_1, 64, MSEC_NS);
        sim_links(w, "host0>host1.5", "delay", "205"); /* 200 longer than the others */
        for (uint32_t i = 0; i < 2000; i++)
            sim_write_complete(w, HOST_0, HOST_1, 64, MSEC_NS);
        test_check(seed, sim_counter(w, HOST_0, "paths_replaced") == 0, "given up");
        test_check(seed, sim_counter(w, HOST_0, "retx_tail") > 0, "never late");
        sim_world_destroy(w);
    }
}

/* All paths that are used with few packets in flight are dead from the begin: others are tried. */
TEST(sim_path_probe__the_first_are_all_dead)
{
    enum { MANY = 4 * MRD_PATHS_FIRST };
    char link[32];

    for (uint64_t seed = test_seed(); seed < test_seed() + SEEDS; seed++) {
        struct sim_world *w = sim_fabric_world(&(struct sim_options){.seed = seed, .paths = MANY});

        for (uint32_t i = 0; i < MRD_PATHS_FIRST; i++) {
            snprintf(link, sizeof(link), "host0>host1.%u", i);
            sim_links(w, link, "blackhole", "on");
        }
        for (uint32_t i = 0; i < 20; i++) {
            uint32_t m = sim_write(w, HOST_0, HOST_1, 64);

            sim_run_until_complete(w, 50 * MSEC_NS);
            test_check(seed, w->messages[m].sent && w->messages[m].status == MRD_WC_SUCCESS,
                       "message %u did not arrive", i);
        }
        sim_world_destroy(w);
    }
}
