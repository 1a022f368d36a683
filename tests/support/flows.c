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

const struct mrd_sim_attr flows_pair = {
    .hosts = 2,
    .links = 1,
    .link = {.rate_bps = 100000000000, .delay_ns = 5000, .queue_bytes = 1 << 20}};

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

void flows_lose(struct flows *f, int from, int to, uint64_t mask)
{
    assert_int_equal(mrd_sim_set_loss_mask(f->sim, from, to, mask), 0);
}

struct model_flows_stats flows_stats(const struct flows *f)
{
    return model_flows_get_stats(f->model);
}

uint64_t flows_lone_ns(const struct flows *f, unsigned packets, unsigned hops, uint64_t link_ns)
{
    uint64_t bytes = (uint64_t)packets * MODEL_FLOW_PAYLOAD_BYTES;
    uint64_t wire = (uint64_t)hops * model_flows_wire_bytes(f->model, bytes, 0) +
                    (uint64_t)(packets - 1) * model_flows_wire_bytes(f->model, bytes, 1) +
                    (uint64_t)hops * f->model->wire_control[MODEL_ACK];

    return flows_wire_ns(wire, 100e9) + 2 * hops * link_ns;
}

void flows_expect_line_rate(const char *transport, bool acks)
{
    static const unsigned packets[] = {1, 2, 7, 100, 5000};
    const struct model_flows_config config = {.transport = transport};
    const struct mrd_sim_attr tree = {.seed = test_seed(), .topology = &flows_leaf_spine};

    for (unsigned i = 0; i < 2 * sizeof(packets) / sizeof(packets[0]); i++) {
        bool in_tree = i % 2;
        unsigned num = packets[i / 2];
        struct flows *f = flows_create(in_tree ? &tree : &flows_pair, &config);
        uint64_t lone_ns = flows_lone_ns(f, num, in_tree ? 4 : 1, in_tree ? 1000 : 5000);

        flows_one(f, in_tree, in_tree ? 14 : 1, (uint64_t)num * MODEL_FLOW_PAYLOAD_BYTES,
                  10 * MSEC_NS);
        assert_in_range(f->done_ns[0], lone_ns - FLOWS_ROUNDING_NS, lone_ns + FLOWS_ROUNDING_NS);
        assert_int_equal(flows_stats(f).packets, num);
        assert_true(!acks || flows_stats(f).acks == num);
    }
}

void flows_expect_deterministic(const struct mrd_sim_attr *attr,
                                const struct model_flows_config *config)
{
    struct flows *f[2];

    for (unsigned run = 0; run < 2; run++) {
        f[run] = flows_create(attr, config);
        for (uint32_t i = 0; i < 16; i++)
            flows_start(f[run], i, i, (i + 5) % 16, 200 * MODEL_FLOW_PAYLOAD_BYTES);
        flows_finish(f[run], 16, 100 * MSEC_NS);
    }
    assert_memory_equal(f[0]->done_ns, f[1]->done_ns, sizeof(f[0]->done_ns));
}
