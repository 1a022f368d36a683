/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/sim/sim_stack.h"

#include <assert.h>
#include <errno.h>

#include "transport/movers/sim/sim_host.h"
#include "transport/movers/sim/sim_world.h"

int mrd_sim_stack_attach(struct mrd_sim *sim, uint32_t number, const struct mrd_sim_stack_ops *ops,
                         void *arg)
{
    struct mrd_sim_host *host = &sim->hosts[number];

    assert(sim->num_parts == 1);
    if (host->open || host->stack)
        return -EBUSY;
    host->stack = ops;
    host->stack_arg = arg;
    host->wake_ns = MRD_SIM_NEVER;
    return 0;
}

void mrd_sim_stack_detach(struct mrd_sim *sim, uint32_t number)
{
    sim->hosts[number].stack = NULL;
}

struct mrd_sim_packet *mrd_sim_stack_alloc(struct mrd_sim *sim, uint32_t bytes)
{
    return mrd_sim_packet_alloc(&sim->parts[0].packets, bytes);
}

void mrd_sim_stack_release(struct mrd_sim *sim, struct mrd_sim_packet *packet)
{
    mrd_sim_packet_release(&sim->parts[0].packets, packet);
}

uint64_t mrd_sim_stack_send(struct mrd_sim *sim, uint32_t number, struct mrd_sim_packet *packet)
{
    const struct mrd_sim_wire *wire =
        mrd_sim_fabric_first(&sim->fabric, number, packet->to, packet->path);

    packet->from = number;
    mrd_sim_fabric_send(&sim->fabric, &sim->parts[0], packet);
    return wire->idle_at_ns;
}

void mrd_sim_stack_wake(struct mrd_sim *sim, uint32_t number, uint64_t at_ns)
{
    struct mrd_sim_host *host = &sim->hosts[number];

    host->wake_ns = at_ns;
    if (at_ns != MRD_SIM_NEVER)
        mrd_sim_host_set_timer(host, at_ns);
}

uint64_t mrd_sim_stack_idle_ns(const struct mrd_sim *sim, uint32_t number)
{
    return mrd_sim_host_idle_ns(&sim->hosts[number]);
}

const struct mrd_sim_attr *mrd_sim_stack_attr(const struct mrd_sim *sim)
{
    return &sim->attr;
}

const struct mrd_sim_link *mrd_sim_stack_link(const struct mrd_sim *sim, uint32_t from, uint32_t to)
{
    return &mrd_sim_fabric_first(&sim->fabric, from, to, 0)->attr;
}

/* Every switch takes the first of its ways: they are equally long. */
uint64_t mrd_sim_stack_latency_ns(const struct mrd_sim *sim, uint32_t from, uint32_t to,
                                  uint32_t wire_bytes)
{
    const struct mrd_sim_fabric *fabric = &sim->fabric;
    const struct mrd_sim_wire *wire = mrd_sim_fabric_first(fabric, from, to, 0);
    uint64_t ns = 0;

    for (;;) {
        ns += (uint64_t)(((unsigned __int128)wire->byte_time * wire_bytes) >> 32) +
              wire->attr.delay_ns;
        if (wire->to == to)
            return ns;

        const struct mrd_sim_switch *node = &fabric->tree->switches[wire->to - fabric->hosts];
        uint32_t num;

        wire = &fabric->wires[mrd_sim_tree_ways(node, to, &num)];
    }
}
