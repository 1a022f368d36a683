/* SPDX-License-Identifier: BSD-2-Clause */
/* Delays of paths: what is a queue, and what a path's length. */
#include "tests/kit/kit.h"
#include "tests/unit/path_fixture.h"

/* First sample half from the average, then an eighth; the average a 32nd. */
TEST_F(path_fixture, mrd_path_sample__smooths_queue_delay)
{
    mrd_path_sample(&self->paths, 0, -5000, 10000, 10000, 1);
    assert_float_equal(self->load[0].q_ns, 0, 1e-3);
    mrd_path_sample(&self->paths, 1, -5000 + 6400, 20000, 10000, 2);
    assert_float_equal(self->load[1].q_ns, 3200, 1e-3);
    assert_float_equal(self->paths.q_avg_ns, 200, 1e-3);
    mrd_path_sample(&self->paths, 1, -5000 + 6400, 20000, 10000, 3);
    assert_float_equal(self->load[1].q_ns, 3600, 1e-3);
    assert_true(self->load[2].q_ns == MRD_PATH_NO_DELAY);
    assert_int_equal(self->path[1].srtt_ns, 20000);
    assert_int_equal(self->path[0].rtt_min_ns, 10000);
}

/* The least delay leaves a window of 16 RTT, at most 24 after it was seen: clocks drift. */
TEST_F(path_fixture, mrd_path_sample__least_delay_is_windowed)
{
    const uint64_t rtt_ns = 10000;
    uint64_t now_ns = SEC_NS;

    mrd_path_sample(&self->paths, 0, 0, 0, rtt_ns, now_ns);
    for (int i = 0; i < 7; i++) {
        now_ns += rtt_ns;
        mrd_path_sample(&self->paths, 1, 5000, 0, rtt_ns, now_ns);
    }
    assert_true(self->load[1].q_ns > 3500); /* against the least, which path 0 saw */
    for (int i = 0; i < 60; i++) {
        now_ns += rtt_ns;
        mrd_path_sample(&self->paths, 1, 5000, 0, rtt_ns, now_ns);
    }
    assert_true(self->load[1].q_ns < 100);
}

/* A skew of 100 ppm between two clocks does not pass for a queue, not even after an idle second. */
TEST_F(path_fixture, mrd_path_sample__clock_skew_is_no_queue)
{
    const uint64_t rtt_ns = 100000;

    begin(self, 4);
    for (int burst = 0; burst < 3; burst++) {
        for (int i = 0; i < 1000; i++) {
            uint64_t now_ns = (uint64_t)(burst + 1) * SEC_NS + (uint64_t)i * rtt_ns / 4;

            mrd_path_sample(&self->paths, (uint32_t)i % 4, (int64_t)(now_ns / 10000), 0, rtt_ns,
                            now_ns);
            assert_true(self->load[i % 4].q_ns < 300);
        }
    }
}

/* Stamps are the peer's: extremes must not overflow. */
TEST_F(path_fixture, mrd_path_sample__hostile_stamps)
{
    begin(self, 2);
    mrd_path_sample(&self->paths, 0, INT64_MIN, 1, 1000, 1);
    mrd_path_sample(&self->paths, 0, INT64_MAX, 1, 1000, 2);
    mrd_path_sample(&self->paths, 1, INT64_MAX, 1, 1000, 3);
    assert_true(self->load[0].q_ns >= 0 && self->load[1].q_ns >= 0);
}

/* The clocks differ by 1 us; the way there takes 4 us, the way back 6. */
static uint64_t sample(struct path_fixture *f, uint32_t index, int64_t more_ns, uint64_t late_ns,
                       uint64_t now_ns)
{
    uint64_t rtt_ns = BASE_NS + (uint64_t)more_ns + late_ns;
    int64_t delay_ns = 5000 + more_ns;

    mrd_path_sample(&f->paths, index, delay_ns, rtt_ns, BASE_NS, now_ns);
    return mrd_path_measure_queue_ns(&f->paths, index, delay_ns, rtt_ns, BASE_NS);
}

TEST_F(path_fixture, mrd_path_queue_ns__late_ack_is_no_queue)
{
    begin(self, 2);
    assert_int_equal(sample(self, 0, 0, 0, 10), 0);
    assert_int_equal(sample(self, 0, 0, 7000, 20), 0);
    assert_int_equal(sample(self, 0, 3000, 7000, 30), 3000);
    assert_int_equal(sample(self, 1, 3000, 0, 40), 3000);
}

static const struct mrd_path_calibration calibration = {.rtt_min_ns = BASE_NS,
                                                        .most_ns = UINT64_MAX};

/* Our queue is drained: what the paths that are used fall by, the others would have fallen, too. */
TEST_F(path_fixture, mrd_path_drain__others_fell_as_well)
{
    struct mrd_path_calibration fell = calibration;

    fell.fall_ns = 100000; /* so little of that is no queue of ours */
    for (unsigned drained = 0; drained < 2; drained++) {
        begin(self, 4);
        sample(self, 3, 0, 0, 10);
        for (uint32_t i = 0; i < 3; i++)
            sample(self, i, i < 2 ? 30000 : 35000, 0, 10);
        if (drained)
            mrd_path_drain(&self->paths, &self->alloc.ops);
        mrd_path_watch(&self->paths, &self->alloc.ops);
        for (uint32_t i = 0; i < 2; i++)
            sample(self, i, 10000, 0, 20);
        assert_true(mrd_path_calibrate(&self->paths, &self->alloc.ops, &fell, 30));
        assert_int_equal((int)self->path[0].excess_ns, 10000);
        assert_int_equal((int)self->path[2].excess_ns, drained ? 15000 : 35000);
    }
}

/* A path that is longer has no queue, and holds more packets at the same rate. */
TEST_F(path_fixture, mrd_path_calibrate__longer_path)
{
    begin(self, 2);
    sample(self, 0, 0, 0, 10);
    mrd_path_watch(&self->paths, &self->alloc.ops);
    sample(self, 0, 500, 0, 20);
    sample(self, 0, 0, 0, 30);
    sample(self, 1, 31000, 0, 40);
    sample(self, 1, 30000, 0, 50);
    mrd_path_calibrate(&self->paths, &self->alloc.ops, &calibration, 60);
    assert_int_equal((int)self->path[0].excess_ns, 0);
    assert_int_equal((int)self->path[1].excess_ns, 30000);
    assert_int_equal(sample(self, 1, 32000, 0, 70), 2000);
    /* Four times as long: a quarter of the weight. */
    assert_true(self->load[0].weight > 3.99f * self->load[1].weight);
    assert_true(self->load[0].weight < 4.01f * self->load[1].weight);
}

TEST_F(path_fixture, mrd_path_calibrate__what_fell_or_was_marked_is_a_queue)
{
    struct mrd_path_calibration fell = calibration;

    fell.fall_ns = 20000;
    begin(self, 3);
    mrd_path_watch(&self->paths, &self->alloc.ops);
    for (uint32_t i = 0; i < 3; i++)
        sample(self, i, i < 2 ? 30000 : 0, 0, 10);
    mrd_path_watch(&self->paths, &self->alloc.ops);
    sample(self, 0, 20000, 0, 20); /* fell by half of what our queue would fall */
    sample(self, 1, 29000, 0, 20);
    sample(self, 2, 0, 0, 20);
    mrd_path_calibrate(&self->paths, &self->alloc.ops, &fell, SEC_NS / 1000);
    assert_int_equal((int)self->path[0].excess_ns, 0);
    assert_int_equal((int)self->path[1].excess_ns, 29000);
    mrd_path_watch(&self->paths, &self->alloc.ops);
    sample(self, 0, 20000, 0, SEC_NS / 1000 + 10);
    self->path[0].rx_ce++;
    mrd_path_calibrate(&self->paths, &self->alloc.ops, &calibration, SEC_NS / 1000 + 20);
    assert_int_equal((int)self->path[0].excess_ns, 0);
}

/* One longer path of several has no queue of ours: soon if it never was shorter, else later. */
TEST_F(path_fixture, mrd_path_calibrate__one_longer_path_takes_time)
{
    const struct mrd_tune_path *tune = &mrd_tune_default.path;
    const uint64_t excess_ns = 30000, begin_ns = 1000000;

    for (unsigned was_shorter = 0; was_shorter < 2; was_shorter++) {
        double times = was_shorter ? tune->level_times : tune->level_new_times;
        uint64_t wait_ns = (uint64_t)(times * (double)excess_ns);

        begin(self, 4);
        for (uint32_t i = 0; i < 4; i++)
            sample(self, i, i || was_shorter ? 0 : (int64_t)excess_ns, 0, begin_ns);
        for (unsigned late = 0; late < 2; late++) {
            mrd_path_watch(&self->paths, &self->alloc.ops);
            for (uint32_t i = 0; i < 4; i++)
                sample(self, i, i ? 0 : (int64_t)excess_ns, 0, begin_ns + 10);
            assert_int_equal(mrd_path_calibrate(&self->paths, &self->alloc.ops, &calibration,
                                                begin_ns + wait_ns - 2000 + late * 4000),
                             late);
            assert_int_equal((int)self->path[0].excess_ns, late * excess_ns);
        }
    }
}

TEST_F(path_fixture, mrd_path_calibrate__shorter_again)
{
    begin(self, 2);
    sample(self, 0, 0, 0, 10);
    mrd_path_watch(&self->paths, &self->alloc.ops);
    sample(self, 1, 30000, 0, 20);
    mrd_path_calibrate(&self->paths, &self->alloc.ops, &calibration, 30);
    assert_int_equal(sample(self, 1, 5000, 0, 40), 0);
    assert_int_equal((int)self->path[1].excess_ns, 5000);
    assert_int_equal(sample(self, 1, 8000, 0, 50), 3000);
}
