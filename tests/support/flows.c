/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/support/flows.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>

#include "tests/support/check.h"

enum { NAME_BYTES = 64, STEPS = 1000 };

const struct mrd_sim_topology flows_leaf_spine = {
    .hosts = 16,
    .tiers = 2,
    .tier = {{.radix_down = 4, .radix_up = 4, .rate_bps = 100000000000, .delay_ns = 1000},
             {.radix_down = 4, .rate_bps = 100000000000, .delay_ns = 1000}}};

static void done(void *arg, uint32_t flow, uint64_t now_ns)
{
    struct flows *f = arg;

    assert_int_equal(f->done_ns[flow], 0);
    assert_int_equal(f->received[flow], f->bytes[flow]);
    assert_int_equal(now_ns, mrd_sim_now(f->sim));
    f->done_ns[flow] = now_ns;
    f->num_done++;
}

static void received(void *arg, uint32_t flow, uint64_t bytes, uint64_t now_ns)
{
    struct flows *f = arg;

    (void)now_ns;
    f->received[flow] += bytes;
    assert_true(f->received[flow] <= f->bytes[flow]);
}

static void destroy_flows(void *object)
{
    struct flows *f = object;

    model_flows_destroy(f->model);
    free(f);
}

struct flows *flows_create(const struct mrd_sim_attr *attr, const struct model_flows_config *config)
{
    struct model_flows_config copy = config ? *config : (struct model_flows_config){0};
    struct flows *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    copy.done = done;
    copy.received = received;
    copy.arg = f;
    f->sim = test_sim(attr);
    f->model = model_flows_create(f->sim, &copy);
    assert_non_null(f->model);
    kit_own(f, destroy_flows);
    return f;
}

void flows_start(struct flows *f, uint32_t flow, uint32_t src, uint32_t dst, uint64_t bytes)
{
    assert_true(flow < FLOWS_MAX);
    f->bytes[flow] = bytes;
    assert_int_equal(model_flows_start(f->model, flow, src, dst, bytes), 0);
}

void flows_finish(struct flows *f, unsigned num, uint64_t budget_ns)
{
    uint64_t start_ns = mrd_sim_now(f->sim);

    for (unsigned i = 1; i <= STEPS && f->num_done < num; i++)
        mrd_sim_run_until(f->sim, start_ns + budget_ns / STEPS * i);
    test_check(test_seed(), f->num_done >= num, "%u of %u flows were over after %" PRIu64 " ns",
               f->num_done, num, budget_ns);
}

void flows_one(struct flows *f, uint32_t src, uint32_t dst, uint64_t bytes, uint64_t budget_ns)
{
    flows_start(f, 0, src, dst, bytes);
    flows_finish(f, 1, budget_ns);
}

uint64_t flows_packets(struct flows *f, const char *links, unsigned *num_used)
{
    uint64_t packets = 0;

    if (num_used)
        *num_used = 0;
    for (uint32_t i = 0; i < mrd_sim_num_links(f->sim); i++) {
        struct mrd_sim_stats stats;
        char name[NAME_BYTES];

        assert_int_equal(mrd_sim_link_name(f->sim, i, name, sizeof(name)), 0);
        assert_int_equal(mrd_sim_query_link(f->sim, i, NULL, &stats), 0);
        if (fnmatch(links, name, 0) != 0)
            continue;
        packets += stats.packets;
        if (num_used)
            *num_used += stats.packets > 0;
    }
    return packets;
}

uint64_t flows_wire_ns(uint64_t bytes, double bps)
{
    return (uint64_t)((double)bytes * 8e9 / bps + 0.5);
}
