/* SPDX-License-Identifier: BSD-2-Clause */
/* The constants of the policies: what can be set, and that each part heeds what is. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/engine/peer_state.h"
#include "core/tune.h"
#include "tests/kit/kit.h"
#include "tests/unit/engine_pair.h"

enum { PACKET = 4160, BASE_NS = 8000 };

TEST(mrd_tune_entries__unique_names_and_defaults)
{
    unsigned num;
    const struct mrd_tune_entry *entry = mrd_tune_entries(&num);

    assert_int_equal(num * sizeof(double), sizeof(struct mrd_tune));
    for (unsigned i = 0; i < num; i++) {
        double value;

        assert_non_null(strchr(entry[i].name, '.'));
        assert_true(strlen(entry[i].help) > 0);
        assert_true(mrd_tune_get(&mrd_tune_default, entry[i].name, &value));
        assert_true(value == entry[i].value_default);
        for (unsigned k = 0; k < i; k++) {
            assert_string_not_equal(entry[i].name, entry[k].name);
            assert_int_not_equal(entry[i].offset, entry[k].offset);
        }
    }
}

TEST(mrd_tune_set__that_value_only)
{
    unsigned num;
    const struct mrd_tune_entry *entry = mrd_tune_entries(&num);
    struct mrd_tune tune = mrd_tune_default, expect = mrd_tune_default;

    assert_int_equal(mrd_tune_set(&tune, "nscc.target_rtts", 1.5), 0);
    expect.nscc.target_rtts = 1.5;
    assert_memory_equal(&tune, &expect, sizeof(tune));
    for (unsigned i = 0; i < num; i++) {
        double value = -1;

        assert_int_equal(mrd_tune_set(&tune, entry[i].name, i), 0);
        assert_true(mrd_tune_get(&tune, entry[i].name, &value));
        assert_true(value == i);
    }
}

TEST(mrd_tune_set__refuses)
{
    static const double bad[] = {-1, -DBL_MIN, (double)NAN, (double)INFINITY, -(double)INFINITY};
    struct mrd_tune tune = mrd_tune_default;
    double value = 7;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(mrd_tune_set(&tune, "cc.start_bdp", bad[i]), -EINVAL);
    assert_int_equal(mrd_tune_set(&tune, "nscc", 1), -ENOENT);
    assert_int_equal(mrd_tune_set(&tune, "", 1), -ENOENT);
    assert_int_equal(mrd_tune_set(&tune, "nscc.target_rttss", 1), -ENOENT);
    assert_false(mrd_tune_get(&tune, "target_rtts", &value));
    assert_true(value == 7);
    assert_memory_equal(&tune, &mrd_tune_default, sizeof(tune));
}

TEST(mrd_tune_ns__saturates)
{
    assert_int_equal(mrd_tune_ns(0), 0);
    assert_int_equal(mrd_tune_ns(1.9), 1);
    assert_int_equal(mrd_tune_ns(DBL_MAX), 1000000000000000000);
    assert_int_equal(mrd_tune_count(3.9), 3);
    assert_int_equal(mrd_tune_count(1e30), UINT32_MAX);
}

/* ---------------------------------------------------------------------------- the parts heed it */

/* The defaults with one value changed. */
static struct mrd_tune with(const char *name, double value)
{
    struct mrd_tune tune = mrd_tune_default;

    assert_int_equal(mrd_tune_set(&tune, name, value), 0);
    return tune;
}

/* The window in packets after an ack of 4 packets, `ce` of them marked, and then two lost. */
static double window_after(const char *cc, const struct mrd_tune *tune, uint32_t ce)
{
    struct mrd_cc_config config = {.link_bps = 100000000000, .base_rtt_ns = BASE_NS, .tune = tune};
    struct mrd_cc_ack ack = {.now_ns = MRD_MSEC,
                             .acked_packets = 4,
                             .acked_bytes = 4 * PACKET,
                             .counted_packets = 4,
                             .ce_packets = ce,
                             .rtt_ns = BASE_NS,
                             .srtt_ns = BASE_NS,
                             .rtt_min_ns = BASE_NS,
                             .inflight_bytes = 1 << 20,
                             .limited = true};
    struct mrd_cc c;

    mrd_cc_init(&c, mrd_cc_find(cc), &config, PACKET);
    c.slow_start = false;
    c.ops->ack(&c, &ack);
    c.ops->lost(&c, 2, ack.now_ns, BASE_NS, BASE_NS);
    return c.cwnd_bytes / PACKET;
}

TEST(mrd_cc_init__takes_constants)
{
    static const struct {
        const char *cc, *name;
        double value;
        uint32_t ce;
    } table[] = {
        {"nscc", "cc.start_bdp", 1, 0},        {"nscc", "nscc.below_gain", 2, 0},
        {"nscc", "nscc.fair_gain", 50, 0},     {"nscc", "nscc.loss_share", 0.01, 0},
        {"dctcp", "dctcp.gain", 0.01, 1},      {"dctcp", "dctcp.loss_share", 0.01, 1},
        {"swift", "swift.gain_packets", 9, 0}, {"none", "none.window_bdp", 9, 0},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct mrd_tune tune = with(table[i].name, table[i].value);
        double before = window_after(table[i].cc, NULL, table[i].ce);

        assert_true(before == window_after(table[i].cc, &mrd_tune_default, table[i].ce));
        assert_true(before != window_after(table[i].cc, &tune, table[i].ce));
    }
}

TEST(mrd_paths_init__takes_constants)
{
    struct mrd_tune tune = with("path.suspend_rtts", 9);
    struct mrd_paths paths;
    struct mrd_path path[4];
    struct mrd_path_load load[4];

    tune.path.loss_gain = 0.5;
    tune.path.q_gain = 1;
    memset(path, 0, sizeof(path));
    memset(load, 0, sizeof(load));
    mrd_paths_init(&paths, path, load, 4, 4, &tune, 0);
    mrd_path_sent(&paths, 1);
    mrd_path_lost(&paths, 1, BASE_NS, 1000);
    assert_int_equal(path[1].until_ns, 1000 + 9 * BASE_NS);
    assert_true(path[1].loss_ewma == 0.5f);
    mrd_path_sample(&paths, 2, 0, BASE_NS, BASE_NS, 1000);
    mrd_path_sample(&paths, 2, 100, BASE_NS, BASE_NS, 1000);
    assert_true(load[2].q_ns == 100);
}

/* Whatever is set, a time is a time. */
TEST(mrd_path_lost__suspension_saturates)
{
    struct mrd_tune tune = with("path.suspend_rtts", DBL_MAX);
    struct mrd_paths paths;
    struct mrd_path path[4];
    struct mrd_path_load load[4];

    tune.path.suspend_doublings = 1000;
    memset(path, 0, sizeof(path));
    memset(load, 0, sizeof(load));
    mrd_paths_init(&paths, path, load, 4, 4, &tune, 0);
    path[1].losses_row = 200;
    mrd_path_sent(&paths, 1);
    mrd_path_lost(&paths, 1, BASE_NS, 1000);
    assert_int_equal(path[1].until_ns, 1000 + mrd_tune_ns(DBL_MAX));
}

/* Path 0 has a delay of half a base RTT, path 1 a packet of ours: a packet's weight decides. */
TEST(mrd_spray_pick__takes_constants)
{
    struct mrd_tune tune = with("adaptive.unit_rtts", 0.6);
    struct mrd_rng rng;
    struct mrd_spray_args args = {.now_ns = 1000, .base_rtt_ns = BASE_NS, .avoid = -1, .rng = &rng};
    struct mrd_path path[2];
    struct mrd_path_load load[2];
    struct mrd_paths paths;
    struct mrd_spray spray;

    memset(path, 0, sizeof(path));
    memset(load, 0, sizeof(load));
    mrd_rng_init(&rng, 1);
    mrd_paths_init(&paths, path, load, 2, 2, NULL, 0);
    mrd_spray_find("adaptive")->init(&spray, &paths, &rng);
    load[0].q_at_ns = load[1].q_at_ns = args.now_ns;
    load[1].q_ns = 0;
    load[0].q_ns = BASE_NS / 2;
    load[1].out_packets = 1;
    args.tune = &mrd_tune_default;
    assert_int_equal(spray.ops->pick(&spray, &paths, &args), 1);
    args.tune = &tune;
    assert_int_equal(spray.ops->pick(&spray, &paths, &args), 0);
}

TEST(mrd_loss_init__takes_constants)
{
    struct mrd_tune tune = with("loss.window_min_rtts", 0.5);
    struct mrd_loss loss;

    tune.loss.initial_rtt_ns = 5000;
    tune.loss.tail_probes = 0;
    mrd_loss_init(&loss, &tune, 0);
    assert_int_equal(mrd_loss_rto_ns(&loss, 0), 5000);
    for (unsigned i = 0; i < 64; i++)
        mrd_loss_rtt(&loss, BASE_NS, 0);
    assert_int_equal(mrd_loss_window_ns(&loss), BASE_NS / 2);
    assert_int_equal(mrd_loss_tail_ns(&loss, true, 10, 0), mrd_loss_rto_ns(&loss, 0));
}

/* Acks that a long message asks for. */
static unsigned requests(const struct mrd_tune *tune)
{
    static struct pair p;
    unsigned num = 0;

    pair_config(&p);
    p.config.mover.tune = tune;
    pair_open(&p);
    pair_post(&p, 0, MRD_WR_RDMA_WRITE, 0, 32 * PAIR_PAYLOAD);
    pair_turn(&p, 0);
    for (unsigned i = 0; i < p.end[1].num_inbox; i++) {
        const struct pair_frame *f = &p.end[1].inbox[i];
        struct mrd_wire_head head;

        assert_int_equal(mrd_wire_get(f->data, f->len, &head), MRD_WIRE_OK);
        num += (head.flags & MRD_WIRE_ACK_REQUEST) != 0;
    }
    pair_settle(&p, p.now + MRD_SEC);
    pair_end(&p);
    return num;
}

TEST(mrd_engine_create__takes_constants)
{
    struct mrd_tune tune = with("engine.requests_per_window", 1000);

    assert_int_equal(requests(NULL), requests(&mrd_tune_default));
    assert_true(requests(&tune) >= 32);
    assert_true(requests(NULL) < 16);
}

/* What is set for the engine gets to the parts of a send state. */
TEST_F(pair, mrd_send_state_open__hands_constants_on)
{
    static const struct mrd_tune tune;

    pair_config(self);
    self->config.mover.tune = &tune;
    pair_open(self);
    struct mrd_engine *e = self->end[0].e;
    const struct mrd_send_state *tx = mrd_send_state_open(e, mrd_peer_open(e, &self->end[1].addr));
    assert_ptr_equal(tx->cc.tune, &tune);
    assert_ptr_equal(tx->paths.tune, &tune.path);
    assert_ptr_equal(tx->loss.tune, &tune.loss);
}
