/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts over a leaf-spine fabric whose links fail in every way: all bytes come, and in time. */
#include "tests/support/check.h"
#include "tests/support/world.h"

enum { MESSAGE_BYTES = 2 << 20, HOSTS = 8 };

/* Four leaves of two hosts, four spines. 2 MiB alone take about 180 us. */
static const struct mrd_sim_topology leaf_spine = {
    HOSTS, 2, 0, {{2, 4, 0, 100000000000, 500, 300}, {4, 0, 0, 100000000000, 500, 300}}};

struct change {
    uint64_t at_us;
    const char *links, *action, *value;
};

static const struct {
    const char *name;
    struct change change[4];
    bool loses; /* or damages packets */
    uint64_t budget_us;
} rows[] = {
    {"nothing", {{0}}, false, 250},
    {"a blackhole", {{20, "*-spine1", "blackhole", "on"}}, true, 1000},
    {"a blackhole for acks", {{20, "spine1>leaf0", "blackhole", "on"}}, true, 1000},
    {"no carrier", {{20, "leaf*-spine1", "down", "on"}}, false, 1000},
    {"degraded", {{20, "*-spine1", "degrade", "0.05"}}, false, 1000},
    {"degraded for a while",
     {{20, "*-spine1", "degrade", "0.05"}, {100, "*-spine1", "heal", "on"}},
     false,
     1000},
    {"flapping", {{20, "spine1>*", "flap", "100,30"}}, true, 1000},
    {"bursts of loss", {{0, "*-spine*", "burst", "0.01,0.2,0.9"}}, true, 1000},
    {"bits flip", {{0, "*-spine*", "corrupt", "0.05"}}, true, 1000},
    {"twice, and late",
     {{0, "*-spine2", "duplicate", "0.2"}, {0, "*-spine2", "jitter", "20"}},
     false,
     1000},
    {"all of it",
     {{20, "*-spine0", "blackhole", "on"},
      {0, "*-spine1", "flap", "70,20"},
      {10, "*-spine2", "degrade", "0.2"},
      {0, "*-spine*", "corrupt", "0.005"}},
     true,
     5000},
};

static void schedule_all(struct sim_world *w, const struct change *change)
{
    for (unsigned i = 0; i < 4 && change[i].links; i++) {
        int ret = mrd_sim_schedule(w->sim, change[i].at_us * USEC_NS, change[i].links,
                                   change[i].action, change[i].value);

        test_check(w->options.seed, ret == 0, "%s", mrd_last_error());
    }
}

/* Packets that were lost or damaged. */
static unsigned num_hit(const struct mrd_sim *sim)
{
    uint64_t num = 0;

    for (uint32_t link = 0; link < mrd_sim_num_links(sim); link++) {
        struct mrd_sim_stats stats;

        assert_int_equal(mrd_sim_query_link(sim, link, NULL, &stats), 0);
        num += stats.blackholed + stats.lost + stats.corrupted;
    }
    return (unsigned)num;
}

TEST(sim_leaf_spine__write_survives)
{
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sim_world *w = sim_fabric_world(&(struct sim_options){
            .seed = test_seed() + i, .topology = &leaf_spine, .queue_bytes = 200000});

        schedule_all(w, rows[i].change);
        sim_write(w, 0, 7, MESSAGE_BYTES);
        sim_write_complete(w, 6, 1, MESSAGE_BYTES, rows[i].budget_us * USEC_NS);
        test_check(w->options.seed, sim_payload_equal(w, 7) && sim_payload_equal(w, 1), "%s",
                   rows[i].name);
        test_check(w->options.seed, !rows[i].loses || num_hit(w->sim) > 0, "%s: nothing happened",
                   rows[i].name);
        /* The world's end is judged without faults. */
        assert_int_equal(mrd_sim_schedule(w->sim, 0, "*", "heal", NULL), 0);
    }
}

/* Every host writes to every other leaf while one spine dies for good and one comes back. */
TEST(sim_leaf_spine__all_to_all)
{
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.topology = &leaf_spine, .queue_bytes = 200000});
    static const struct change changes[4] = {{30, "*-spine3", "blackhole", "on"},
                                             {30, "*-spine0", "down", "on"},
                                             {200, "*-spine0", "heal", "on"}};

    schedule_all(w, changes);
    for (uint32_t from = 0; from < HOSTS; from++) {
        for (uint32_t to = 0; to < HOSTS; to++) {
            if (from / 2 != to / 2)
                sim_write(w, from, to, MESSAGE_BYTES / 16);
        }
    }
    /* Mostly 5 ms; timeouts whose retransmission is lost too, again and again, take up to 100. */
    sim_run_until_complete(w, 200 * MSEC_NS);
    for (uint32_t host = 0; host < HOSTS; host++)
        assert_true(sim_payload_equal(w, host));
}
