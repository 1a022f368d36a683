/* SPDX-License-Identifier: BSD-2-Clause */
/* A TCP flow with CUBIC, by itself and beside formulas. */
#include "tests/support/check.h"

#include <errno.h>
#include <math.h>

#include "tools/sim/models/cubic.h"
#include "tools/sim/models/response.h"

enum { MSS = 1448 };

/* ------------------------------------------------------------------------------------ formulas */

/* The table of RFC 9438, section 5.1: an RTT of 0.1 s, C = 0.4. */
TEST(model_response_cubic__table_of_the_rfc)
{
    static const struct {
        double loss, packets;
    } table[] = {
        {1e-2, 12},   {1e-3, 38},    {1e-4, 187},    {1e-5, 1054},
        {1e-6, 5926}, {1e-7, 33325}, {1e-8, 187400},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        double packets = model_response_cubic_packets(0.1, table[i].loss);

        test_check(0, fabs(packets / table[i].packets - 1) < 0.03, "%g at a loss of %g", packets,
                   table[i].loss);
    }
    assert_true(isinf(model_response_cubic_packets(0.1, 0)));
    /* Short paths are the Reno-friendly region: the RTT does not matter there. */
    assert_true(model_response_cubic_packets(1e-3, 1e-4) ==
                model_response_cubic_packets(2e-3, 1e-4));
}

TEST(model_response_bbr__by_hand)
{
    assert_true(fabs(model_response_bbr_share(0) - 0.98) < 1e-9);
    assert_true(fabs(model_response_bbr_share(0.1) - 0.9 * 0.98) < 1e-9);
    assert_true(model_response_bbr_share(0.2) == 0);
}

/* ---------------------------------------------------------------------------------------- flows */

static struct mrd_sim *make(uint64_t rate_bps, uint64_t delay_ns, uint32_t loss_ppm)
{
    return test_sim(&(struct mrd_sim_attr){
        .seed = test_seed(),
        .hosts = 3,
        .links = 1,
        .link = {.rate_bps = rate_bps,
                 .delay_ns = delay_ns,
                 .loss_ppm = loss_ppm,
                 .queue_bytes = 10000000},
    });
}

/* Nobody else has the hosts; the other ones are free. */
TEST(model_cubic_start__takes_two_hosts)
{
    struct mrd_sim *sim = make(1000000000, 1000, 0);
    struct model_cubic *c = model_cubic_start(sim, 0, 1, MSS);

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
}

/* Without losses it fills the link: 1448 of 1546 bytes are data. */
TEST(model_cubic__fills_a_link)
{
    struct mrd_sim *sim = make(1000000000, 500 * USEC_NS, 0);
    struct model_cubic *c = model_cubic_start(sim, 0, 1, MSS);

    mrd_sim_run_until(sim, 200 * MSEC_NS);
    uint64_t bytes = model_cubic_delivered_bytes(c);
    mrd_sim_run_until(sim, 700 * MSEC_NS);
    bytes = model_cubic_delivered_bytes(c) - bytes;
    test_check(test_seed(), fabs((double)bytes * 8 / 0.5e9 - 1448. / 1546) < 0.01, "%.3f Gb/s",
               (double)bytes * 8 / 0.5e9);
    model_cubic_stop(c);
}

/*
 * With random losses its window is that of the formulas on average, in both regions. They are of
 * losses at even distances, which random ones are not.
 */
TEST(model_cubic__average_window)
{
    static const struct {
        uint64_t delay_ns;
        uint32_t loss_ppm;
        uint64_t seconds;
    } table[] = {{500 * USEC_NS, 1000, 10}, {20 * MSEC_NS, 1000, 100}, {50 * MSEC_NS, 200, 500}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct mrd_sim *sim = make(10000000000, table[i].delay_ns, 0);
        struct mrd_sim_link link;
        struct model_cubic *c = model_cubic_start(sim, 0, 1, MSS);
        double rtt_s = 2 * (double)table[i].delay_ns / 1e9;
        double loss = table[i].loss_ppm / 1e6;

        assert_int_equal(mrd_sim_get_link(sim, 0, 1, 0, &link), 0);
        link.loss_ppm = table[i].loss_ppm;
        assert_int_equal(mrd_sim_set_link(sim, 0, 1, 0, &link), 0);
        mrd_sim_run_until(sim, table[i].seconds * SEC_NS);

        double packets =
            (double)model_cubic_delivered_bytes(c) / MSS * rtt_s / (double)table[i].seconds;
        double expected = model_response_cubic_packets(rtt_s, loss);

        test_check(test_seed(), packets > 0.7 * expected && packets < 1.4 * expected,
                   "a window of %.1f packets, not %.1f", packets, expected);
        model_cubic_stop(c);
    }
}
