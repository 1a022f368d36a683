/* SPDX-License-Identifier: BSD-2-Clause */
/* A TCP flow with CUBIC. */
#include "tests/support/check.h"

#include <errno.h>
#include <math.h>

#include "tools/sim/models/cubic.h"

enum { MSS = 1448 };

static struct mrd_sim *make(uint64_t rate_bps, uint64_t delay_ns)
{
    struct mrd_sim *sim = mrd_sim_create(&(struct mrd_sim_attr){
        .seed = test_seed(),
        .hosts = 3,
        .links = 1,
        .link = {.rate_bps = rate_bps,
                 .delay_ns = delay_ns,

                 .queue_bytes = 10000000},
    });

    assert_non_null(sim);
    return sim;
}

/* Nobody else has the hosts; the other ones are free. */
static void model_cubic_start__takes_two_hosts(void **state)
{
    struct mrd_sim *sim = make(1000000000, 1000);
    struct model_cubic *c = model_cubic_start(sim, 0, 1, MSS);

    (void)state;
    assert_non_null(c);
    assert_null(model_cubic_start(sim, 2, 1, MSS));
    assert_int_equal(errno, EBUSY);
    assert_null(model_cubic_start(sim, 0, 2, MSS));
    assert_int_equal(errno, EBUSY);
    model_cubic_stop(c);
    model_cubic_stop(NULL);
    c = model_cubic_start(sim, 2, 1, MSS);
    assert_non_null(c);
    model_cubic_stop(c);
    mrd_sim_destroy(sim);
}

/* Without losses it fills the link: 1448 of 1546 bytes are data. */
static void model_cubic__fills_a_link(void **state)
{
    struct mrd_sim *sim = make(1000000000, 500 * USEC_NS);
    struct model_cubic *c = model_cubic_start(sim, 0, 1, MSS);
    uint64_t bytes;

    (void)state;
    mrd_sim_run_until(sim, 200 * MSEC_NS);
    bytes = model_cubic_delivered_bytes(c);
    mrd_sim_run_until(sim, 700 * MSEC_NS);
    bytes = model_cubic_delivered_bytes(c) - bytes;
    test_check(test_seed(), fabs((double)bytes * 8 / 0.5e9 - 1448. / 1546) < 0.01, "%.3f Gb/s",
               (double)bytes * 8 / 0.5e9);
    model_cubic_stop(c);
    mrd_sim_destroy(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_cubic_start__takes_two_hosts),
        cmocka_unit_test(model_cubic__fills_a_link),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
