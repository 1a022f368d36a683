/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each allocation of a simulated network fails while it is made, or is told of faults. While it runs,
 * in virtual time, it needs memory for each packet: it has that.
 */
#include <errno.h>
#include <string.h>

#include "mrd/mrd.h"
#include "mrd/sim.h"
#include "tests/failing/fail.h"
#include "tests/kit/kit.h"

enum { HOSTS = 8 };

int kit_before_all(void)
{
    fail_watch(false);
    return 0;
}

static const struct mrd_sim_topology leaf_spine = {
    .hosts = HOSTS,
    .tiers = 2,
    .tier = {{.radix_down = 4, .radix_up = 2, .rate_bps = 100000000000, .delay_ns = 500},
             {.radix_down = 2, .rate_bps = 100000000000, .delay_ns = 500}},
};

/* 0 or -errno, of the first call that fails. */
static int make(const struct mrd_sim_topology *topology, struct mrd_sim **sim,
                struct mrd_context **context)
{
    int error;

    *sim = mrd_sim_create(&(struct mrd_sim_attr){.hosts = HOSTS, .topology = topology, .seed = 1});
    if (!*sim)
        return -errno;
    *context = mrd_open_device(mrd_sim_device(*sim, 0), NULL);
    if (!*context)
        return -errno;
    error = mrd_sim_schedule(*sim, 1000, topology ? "host0>leaf0" : "host0>host1.*", "loss", "0.1");
    if (!error && !topology)
        error = mrd_sim_set_loss_mask(*sim, 0, 1, 1);
    if (!error)
        error = mrd_sim_inject(*sim, 1, 0, "packet", 6, 2000);
    return error;
}

static uint32_t play(const struct mrd_sim_topology *topology, uint32_t first, uint32_t num)
{
    struct mrd_sim *sim;
    struct mrd_context *context = NULL;
    uint32_t failed, blocks;
    int error;

    fail_mark();
    assert_null(mrd_open_device(NULL, &(struct mrd_context_attr){.comp_mask = ~0ull}));
    fail_begin(
        &(struct fail_plan){.calls = FAIL_MEMORY, .error = ENOMEM, .first = first, .num = num});
    error = make(topology, &sim, &context);
    if (context)
        assert_int_equal(mrd_close_device(context), 0);
    if (sim)
        mrd_sim_destroy(sim);
    failed = fail_end();
    blocks = fail_blocks();
    if (blocks)
        fail_msg("after %s failed: %u blocks are left", fail_last(), blocks);
    if (error && (error != -ENOMEM || !strstr(mrd_last_error(), "memory")))
        fail_msg("after %s failed: %s (%s)", fail_last(), strerror(-error), mrd_last_error());
    return failed;
}

static void sweep(const struct mrd_sim_topology *topology)
{
    uint32_t first;

    for (first = 0; play(topology, first, 1); first++)
        ;
    assert_in_range(first, 10, 1000);
    for (first = 0; play(topology, first, 0); first++)
        ;
    assert_in_range(first, 10, 1000);
}

TEST(failing_sim__links)
{
    sweep(NULL);
}

TEST(failing_sim__leaf_spine)
{
    sweep(&leaf_spine);
}
