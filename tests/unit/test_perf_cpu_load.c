/* SPDX-License-Identifier: BSD-2-Clause */
/* When mrd_perf finds its machine too busy for the figures. */
#include <errno.h>

#include "tests/kit/kit.h"
#include "tools/perf/measure.h"

enum { TICK_HZ = 100 };

/* The load between two first lines of /proc/stat; this process used own_user_s meanwhile. */
static struct perf_cpu_load load_of(const char *before, const char *after, double own_user_s)
{
    struct perf_cpu_times first = {.own_user_s = 7}, last = {.own_user_s = 7 + own_user_s};

    assert_int_equal(perf_cpu_parse(before, &first), 0);
    assert_int_equal(perf_cpu_parse(after, &last), 0);
    return perf_cpu_load_between(&first, &last, 0, TICK_HZ);
}

/* user nice system idle iowait irq softirq steal guest guest_nice; guests are within user. */
TEST(perf_cpu_parse__fields)
{
    struct perf_cpu_times t = {0};

    assert_int_equal(perf_cpu_parse("cpu  1 20 300 4000 50000 600000 7000000 80000000 1 2\n"
                                    "cpu0 1 2 3 4 5 6 7 8 9 10\n",
                                    &t),
                     0);
    assert_int_equal(t.user, 21);
    assert_int_equal(t.idle, 54000);
    assert_int_equal(t.steal, 80000000);
    assert_int_equal(t.total, 87654321);
}

TEST(perf_cpu_parse__other_texts)
{
    struct perf_cpu_times t = {0};

    assert_int_equal(perf_cpu_parse("", &t), -EINVAL);
    assert_int_equal(perf_cpu_parse("intr 1 2 3 4 5 6 7 8", &t), -EINVAL);
    assert_int_equal(perf_cpu_parse("cpu  1 2 3 4 5 6 7\n", &t), -EINVAL);
    assert_int_equal(t.total, 0);
}

/* Own time is no disturbance, nor is what others do on cores that are idle otherwise. */
TEST(perf_cpu_load_between__quiet)
{
    struct perf_cpu_load load = load_of("cpu  1000 0 0 0 0 0 0 0", "cpu  1150 0 50 0 0 0 0 0", 1.5);
    assert_true(load.known);
    assert_false(load.busy);
    assert_true(load.others == 0);
    load = load_of("cpu  0 0 0 0 0 0 0 0 1", "cpu  150 0 0 50 0 0 0 0 1", 1.0);
    assert_false(load.known); /* a machine without a past was not read */
    load = load_of("cpu  1 0 0 0 0 0 0 0", "cpu  151 0 0 50 0 0 0 0", 1.0);
    assert_true(load.others == 0.25);
    assert_false(load.busy);
}

/* No core is idle, and others had a part of them. */
TEST(perf_cpu_load_between__others)
{
    struct perf_cpu_load load = load_of("cpu  1000 0 0 0 0 0 0 0", "cpu  1100 90 0 5 5 0 0 0", 1.0);
    assert_true(load.others == 0.45);
    assert_false(load.busy); /* 5% idle */
    load = load_of("cpu  1000 0 0 0 0 0 0 0", "cpu  1100 95 0 3 2 0 0 0", 1.0);
    assert_true(load.busy);
}

/* The time of the other end counts as own where it runs on the same machine. */
TEST(perf_cpu_load_between__helper)
{
    struct perf_cpu_times before = {.total = 1}, after = {.total = 201, .user = 200};

    after.own_user_s = 1;
    assert_true(perf_cpu_load_between(&before, &after, 0, TICK_HZ).busy);
    assert_false(perf_cpu_load_between(&before, &after, 1, TICK_HZ).busy);
}

TEST(perf_cpu_load_between__stolen)
{
    struct perf_cpu_load load =
        load_of("cpu  1000 0 0 0 0 0 0 10", "cpu  1050 0 0 47 0 0 0 13", 0.5);
    assert_true(load.stolen == 0.03);
    assert_true(load.busy);
    assert_false(load_of("cpu  1 0 0 0 0 0 0 10", "cpu  51 0 0 49 0 0 0 11", 0.5).busy);
}

/* A tick more or less is no share of a short time. */
TEST(perf_cpu_load_between__too_few_ticks)
{
    assert_false(load_of("cpu  1 0 0 0 0 0 0 0", "cpu  5 0 0 0 0 0 0 5", 0).known);
}
