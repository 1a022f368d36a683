/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of links at a time: what each does, when, and to which links. */
#include <errno.h>
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/recorder.h"
#include "transport/movers/sim/sim_world.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Two hosts a leaf, four leaves, two spines, and two links from each leaf to each spine: 48 in all.
 */
static const struct mrd_sim_topology bundles = {
    8, 2, 0, {{2, 4, 0, 100000000000, 500, 300}, {8, 0, 2, 400000000000, 1000, 600}}};

static struct mrd_sim *create(void)
{
    return test_sim(&(struct mrd_sim_attr){
        .topology = &bundles,
        .link = {.queue_bytes = 77777, .ecn_min_bytes = 11111, .ecn_max_bytes = 22222}});
}

static void schedule(struct mrd_sim *sim, uint64_t at_ns, const char *links, const char *action,
                     const char *value)
{
    int ret = mrd_sim_schedule(sim, at_ns, links, action, value);

    if (ret != 0)
        fail_msg("%s %s %s: %s", links, action, value, mrd_last_error());
}

static struct mrd_sim_link link_now(const struct mrd_sim *sim, const char *name)
{
    struct mrd_sim_link link;

    assert_int_equal(mrd_sim_query_link(sim, recorder_link(sim, name), &link, NULL), 0);
    return link;
}

static bool is_equal(const struct mrd_sim_link *a, const struct mrd_sim_link *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* -------------------------------------------------------------------------------------- actions */

/* A field of struct mrd_sim_link and what it must be. */
struct field {
    size_t offset, size;
    uint64_t value;
};

#define FIELD(name, value)                                                                         \
    {                                                                                              \
        offsetof(struct mrd_sim_link, name), FIELD_BYTES(name), value                              \
    }
#define FIELD_BYTES(name) sizeof(((struct mrd_sim_link *)0)->name)

/*
 * From "leaf0>spine1.0" as it starts: 400 Gb/s, 1,600 ns with the switch, and what create() says.
 */
static const struct {
    const char *action, *value;
    struct field field[3];
} actions[] = {
    {"rate", "25", {FIELD(rate_bps, 25000000000)}},
    {"rate", "0.5", {FIELD(rate_bps, 500000000)}},
    {"rate", "1000000", {FIELD(rate_bps, 1000000000000000)}},
    {"degrade", "0.25", {FIELD(rate_bps, 100000000000)}},
    {"degrade", "1", {FIELD(rate_bps, 400000000000)}},
    {"delay", "0.25", {FIELD(delay_ns, 250)}},
    {"delay", "0", {FIELD(delay_ns, 0)}},
    {"jitter", "1.5", {FIELD(jitter_ns, 1500)}},
    {"queue", "123456", {FIELD(queue_bytes, 123456)}},
    {"queue", "0", {FIELD(queue_bytes, 0)}},
    {"ecn", "100,2e3", {FIELD(ecn_min_bytes, 100), FIELD(ecn_max_bytes, 2000)}},
    {"ecn", "500,500", {FIELD(ecn_min_bytes, 500), FIELD(ecn_max_bytes, 500)}},
    {"ecn", "0,0", {FIELD(ecn_min_bytes, 0), FIELD(ecn_max_bytes, 0)}},
    {"loss", "0.001", {FIELD(loss_ppm, 1000)}},
    {"loss", "1", {FIELD(loss_ppm, 1000000)}},
    {"corrupt", "1e-6", {FIELD(corrupt_ppm, 1)}},
    {"duplicate", "0.5", {FIELD(duplicate_ppm, 500000)}},
    {"burst",
     "0.01,0.2,0.9",
     {FIELD(burst_enter_ppm, 10000), FIELD(burst_leave_ppm, 200000),
      FIELD(burst_loss_ppm, 900000)}},
    {"blackhole", "on", {FIELD(blackhole, 1)}},
    {"down", "on", {FIELD(down, 1)}},
    {"flap", "100,2.5", {FIELD(flap_period_ns, 100000), FIELD(flap_down_ns, 2500)}},
    {"flap", "100,100", {FIELD(flap_period_ns, 100000), FIELD(flap_down_ns, 100000)}},
};

static struct mrd_sim_link expected(const struct mrd_sim_link *start, const struct field *field)
{
    struct mrd_sim_link link = *start;

    for (unsigned i = 0; i < 3 && field[i].size; i++) {
        uint32_t value32 = (uint32_t)field[i].value;

        assert_true(field[i].size == 4 || field[i].size == 8);
        memcpy((char *)&link + field[i].offset,
               field[i].size == 4 ? (const void *)&value32 : (const void *)&field[i].value,
               field[i].size);
    }
    return link;
}

/* Each does what it says at its time, not before, and to no other link; then it can be healed. */
TEST(mrd_sim_schedule__actions)
{
    struct mrd_sim *sim = create();
    struct mrd_sim_link start = link_now(sim, "leaf0>spine1.0");
    struct mrd_sim_link other = link_now(sim, "leaf0>spine1.1");

    assert_int_equal(start.rate_bps, 400000000000);
    assert_int_equal(start.delay_ns, 1600);
    assert_int_equal(start.queue_bytes, 77777);
    for (unsigned i = 0; i < COUNT(actions); i++) {
        /* Near and far: the queue of events keeps them in different places. */
        uint64_t at_ns = mrd_sim_now(sim) + (i % 2 ? 1000 : MSEC_NS);
        struct mrd_sim_link after = expected(&start, actions[i].field), now;

        schedule(sim, at_ns, "leaf0>spine1.0", actions[i].action, actions[i].value);
        mrd_sim_run_until(sim, at_ns - 1);
        now = link_now(sim, "leaf0>spine1.0");
        assert_true(is_equal(&now, &start));
        mrd_sim_run_until(sim, at_ns);
        now = link_now(sim, "leaf0>spine1.0");
        if (!is_equal(&now, &after))
            fail_msg("%s %s", actions[i].action, actions[i].value);
        now = link_now(sim, "leaf0>spine1.1");
        assert_true(is_equal(&now, &other));
        schedule(sim, at_ns, "leaf0>spine1.0", "heal", "on");
        now = link_now(sim, "leaf0>spine1.0");
        assert_true(is_equal(&now, &start));
    }
}

/* What was changed can be changed back one by one, too. */
TEST(mrd_sim_schedule__off)
{
    static const char *const rows[][3] = {{"blackhole", "on", "off"},
                                          {"down", "on", "off"},
                                          {"flap", "9,3", "0,0"},
                                          {"burst", "0.1,0.1,0.1", "0,0,0"},
                                          {"loss", "0.5", "0"},
                                          {"jitter", "3", "0"},
                                          {"ecn", "1,2", "11111,22222"},
                                          {"corrupt", "0.1", "0"},
                                          {"duplicate", "0.1", "0"},
                                          {"queue", "5", "77777"},
                                          {"delay", "0.7", "1.6"},
                                          {"rate", "1", "400"},
                                          {"degrade", "0.0000000000001", "1.0"}};
    struct mrd_sim *sim = create();
    struct mrd_sim_link start = link_now(sim, "leaf0>spine1.0");

    for (unsigned i = 0; i < COUNT(rows); i++) {
        schedule(sim, 0, "leaf0>spine1.0", rows[i][0], rows[i][1]);
        struct mrd_sim_link now = link_now(sim, "leaf0>spine1.0");
        assert_false(is_equal(&now, &start));
        schedule(sim, 0, "leaf0>spine1.0", rows[i][0], rows[i][2]);
        now = link_now(sim, "leaf0>spine1.0");
        assert_true(is_equal(&now, &start));
    }
    assert_int_equal(sim->fabric.num_down, 0);
}

/* A share of the rate that it started with, not of the one that it has. */
TEST(mrd_sim_schedule__degrade_of_start)
{
    struct mrd_sim *sim = create();

    schedule(sim, 0, "host0>leaf0", "degrade", "0.5");
    schedule(sim, 0, "host0>leaf0", "degrade", "0.5");
    assert_int_equal(link_now(sim, "host0>leaf0").rate_bps, 50000000000);
    schedule(sim, 0, "host0>leaf0", "rate", "10");
    schedule(sim, 0, "host0>leaf0", "degrade", "0.1");
    assert_int_equal(link_now(sim, "host0>leaf0").rate_bps, 10000000000);
}

/* Next to nothing is not 0, which is infinite. */
TEST(mrd_sim_schedule__least_rate)
{
    static const char *const rows[][2] = {{"rate", "1e-12"}, {"degrade", "1e-12"}};
    struct mrd_sim *sim = create();
    struct mrd_sim_wire *wire = &sim->fabric.wires[0];

    for (unsigned i = 0; i < COUNT(rows); i++) {
        schedule(sim, 0, "host0>leaf0", rows[i][0], rows[i][1]);
        assert_int_equal(wire->attr.rate_bps, 1);
        assert_true(mrd_sim_wire_pass(wire, 1250, false, 0).arrive_ns[0] >= 1000 * SEC_NS);
    }
}

/* ----------------------------------------------------------------------------------------- time */

/* What is not later than now happens at once; the rest by time, then in the order it came. */
TEST(mrd_sim_schedule__order)
{
    static const struct {
        uint64_t at_us;
        const char *value;
    } rows[] = {{500, "5"}, {20, "1"}, {20, "2"}, {500, "6"}, {300, "4"}, {100, "3"}, {20, "2.5"}};
    static const struct {
        uint64_t at_us, gbps10;
    } rates[] = {{11, 4000}, {19, 4000}, {20, 25}, {100, 30}, {299, 30}, {300, 40}, {500, 60}};
    struct mrd_sim *sim = create();

    mrd_sim_run_until(sim, 10 * USEC_NS);
    schedule(sim, 0, "leaf*", "loss", "0.5");
    schedule(sim, 10 * USEC_NS, "leaf*", "corrupt", "0.5");
    assert_int_equal(link_now(sim, "leaf2>host4").loss_ppm, 500000);
    assert_int_equal(link_now(sim, "leaf2>host4").corrupt_ppm, 500000);
    for (unsigned i = 0; i < COUNT(rows); i++)
        schedule(sim, rows[i].at_us * USEC_NS, "leaf0>spine0.0", "rate", rows[i].value);
    for (unsigned i = 0; i < COUNT(rates); i++) {
        mrd_sim_run_until(sim, rates[i].at_us * USEC_NS);
        assert_int_equal(link_now(sim, "leaf0>spine0.0").rate_bps, rates[i].gbps10 * 100000000);
    }
    schedule(sim, MSEC_NS, "*", "down", "on"); /* still to come at the end: given back */
}

/* ------------------------------------------------------------------------------------- patterns */

static unsigned count_queues(const struct mrd_sim *sim, uint64_t queue_bytes)
{
    unsigned num = 0;

    for (uint32_t link = 0; link < mrd_sim_num_links(sim); link++) {
        struct mrd_sim_link attr;

        assert_int_equal(mrd_sim_query_link(sim, link, &attr, NULL), 0);
        num += attr.queue_bytes == queue_bytes;
    }
    return num;
}

/* How many links of `bundles` a pattern names, and two of them. */
static const struct {
    const char *pattern;
    unsigned num;
    const char *one, *another;
} patterns[] = {
    {"host3>leaf1", 1, "host3>leaf1", "host3>leaf1"},
    {"host3-leaf1", 2, "host3>leaf1", "leaf1>host3"},
    {"leaf1-host3", 2, "host3>leaf1", "leaf1>host3"},
    {"leaf0>spine1.1", 1, "leaf0>spine1.1", "leaf0>spine1.1"},
    {"leaf0-spine1.1", 2, "leaf0>spine1.1", "spine1>leaf0.1"},
    {"spine1-leaf0.1", 2, "leaf0>spine1.1", "spine1>leaf0.1"},
    {"leaf0>spine1.?", 2, "leaf0>spine1.0", "leaf0>spine1.1"},
    {"leaf0>spine*", 4, "leaf0>spine0.0", "leaf0>spine1.1"},
    {"leaf0-spine*", 8, "leaf0>spine0.1", "spine1>leaf0.0"},
    {"spine*-leaf0.*", 8, "leaf0>spine0.1", "spine1>leaf0.0"},
    {"spine0-*", 16, "leaf3>spine0.1", "spine0>leaf0.1"},
    {"*-spine0.0", 8, "leaf3>spine0.0", "spine0>leaf3.0"},
    {"*>host*", 8, "leaf0>host0", "leaf3>host7"},
    {"*.1", 16, "leaf3>spine0.1", "spine0>leaf3.1"},
    {"*", 48, "host0>leaf0", "spine1>leaf3.1"},
    {"*-*", 48, "host0>leaf0", "spine1>leaf3.1"},
    {"leaf[0-2]>spine0.0", 3, "leaf0>spine0.0", "leaf2>spine0.0"},
    {"leaf[0-2]-spine[01].0", 12, "leaf0>spine0.0", "spine1>leaf2.0"},
    {"leaf[!0-2]-spine0.[0-9]", 4, "leaf3>spine0.1", "spine0>leaf3.0"},
    {"leaf[]0-2]-spine[0].0", 6, "leaf0>spine0.0", "spine0>leaf2.0"},
    {"[h][o][s][t][0][-][l][e][a][f][0]*********************************************", 0, "", ""},
    {"*************************************************************leaf0-spine0.0", 2,
     "leaf0>spine0.0", "spine0>leaf0.0"},
};

TEST(mrd_sim_schedule__patterns)
{
    struct mrd_sim *sim = create();

    for (unsigned i = 0; i < COUNT(patterns); i++) {
        if (patterns[i].num == 0) {
            assert_int_equal(mrd_sim_schedule(sim, 0, patterns[i].pattern, "queue", "1"), -ENOENT);
            continue;
        }
        schedule(sim, 0, patterns[i].pattern, "queue", "4242");
        unsigned num = count_queues(sim, 4242);
        if (num != patterns[i].num)
            fail_msg("\"%s\": %u links, not %u", patterns[i].pattern, num, patterns[i].num);
        assert_int_equal(link_now(sim, patterns[i].one).queue_bytes, 4242);
        assert_int_equal(link_now(sim, patterns[i].another).queue_bytes, 4242);
        schedule(sim, 0, "*", "heal", "on");
        assert_int_equal(count_queues(sim, 4242), 0);
    }
}

/* Names of links between pairs. */
TEST(mrd_sim_schedule__pairs)
{
    struct mrd_sim *sim = test_sim(&(struct mrd_sim_attr){.hosts = 3, .links = 2});

    schedule(sim, 0, "host0-host2.1", "queue", "4242");
    assert_int_equal(count_queues(sim, 4242), 2);
    assert_int_equal(link_now(sim, "host2>host0.1").queue_bytes, 4242);
    schedule(sim, 0, "host1-*", "queue", "4242");
    assert_int_equal(count_queues(sim, 4242), 2 + 2 * 5);
    schedule(sim, 0, "*", "heal", "on");
    assert_int_equal(count_queues(sim, 1 << 20), 18);
}

/* --------------------------------------------------------------------------------------- errors */

static const struct {
    const char *links, *action, *value;
    int ret;
    const char *why;
} errors[] = {
    {"*", "explode", "on", -EINVAL, "\"explode\" is not an action on links"},
    {"*", "", "on", -EINVAL, "\"\" is not an action on links"},
    {"*", "rate", "0", -EINVAL, "rate: expected GBPS above 0, found \"0\""},
    {"*", "rate", "-1", -EINVAL, "rate: expected GBPS above 0, found \"-1\""},
    {"*", "rate", "", -EINVAL, "rate: expected GBPS above 0, found \"\""},
    {"*", "rate", "1e7", -EINVAL, "rate: expected GBPS above 0"},
    {"*", "rate", "nan", -EINVAL, "rate: expected GBPS above 0"},
    {"*", "rate", "inf", -EINVAL, "rate: expected GBPS above 0"},
    {"*", "rate", "1e999", -EINVAL, "rate: expected GBPS above 0"},
    {"*", "rate", "5 Gb/s", -EINVAL, "found \"5 Gb/s\""},
    {"*", "degrade", "0", -EINVAL, "degrade: expected FACTOR above 0, at most 1"},
    {"*", "degrade", "1.1", -EINVAL, "degrade: expected FACTOR above 0, at most 1"},
    {"*", "delay", "-0.1", -EINVAL, "delay: expected US"},
    {"*", "delay", "1,2", -EINVAL, "delay: expected US"},
    {"*", "jitter", "much", -EINVAL, "jitter: expected US"},
    {"*", "queue", "1e13", -EINVAL, "queue: expected BYTES"},
    {"*", "ecn", "5", -EINVAL, "ecn: expected MIN,MAX bytes"},
    {"*", "ecn", "5,4", -EINVAL, "ecn: expected MIN,MAX bytes"},
    {"*", "ecn", "5,6,7", -EINVAL, "ecn: expected MIN,MAX bytes"},
    {"*", "loss", "1.01", -EINVAL, "loss: expected SHARE of 0 to 1"},
    {"*", "corrupt", "2", -EINVAL, "corrupt: expected SHARE of 0 to 1"},
    {"*", "duplicate", "x", -EINVAL, "duplicate: expected SHARE of 0 to 1"},
    {"*", "burst", "0.1,0.1", -EINVAL, "burst: expected ENTER,LEAVE,LOSS shares of 0 to 1"},
    {"*", "burst", "0.1,0.1,2", -EINVAL, "burst: expected ENTER,LEAVE,LOSS shares of 0 to 1"},
    {"*", "blackhole", "1", -EINVAL, "blackhole: expected on, ect or off"},
    {"*", "down", "", -EINVAL, "down: expected on or off"},
    {"*", "flap", "5", -EINVAL, "flap: expected PERIOD_US,DOWN_US"},
    {"*", "flap", "5,6", -EINVAL, "flap: expected PERIOD_US,DOWN_US"},
    {"leaf9>spine0.0", "down", "on", -ENOENT, "no link is named \"leaf9>spine0.0\""},
    {"leaf0>spine0", "down", "on", -ENOENT, "no link is named \"leaf0>spine0\""},
    {"leaf0-leaf1", "down", "on", -ENOENT, "no link is named \"leaf0-leaf1\""},
    {"", "down", "on", -ENOENT, "no link is named \"\""},
};

/* Nothing is changed by what fails, now or later. */
TEST(mrd_sim_schedule__errors)
{
    struct mrd_sim *sim = create();
    struct mrd_sim_link start = link_now(sim, "leaf0>spine0.0"), now;

    for (unsigned i = 0; i < 2 * COUNT(errors); i++) {
        unsigned row = i / 2;
        int ret = mrd_sim_schedule(sim, i % 2 * 1000, errors[row].links, errors[row].action,
                                   errors[row].value);

        if (ret != errors[row].ret || !strstr(mrd_last_error(), errors[row].why))
            fail_msg("%s %s %s: %d \"%s\"", errors[row].links, errors[row].action,
                     errors[row].value, ret, mrd_last_error());
    }
    mrd_sim_run_until(sim, MSEC_NS);
    now = link_now(sim, "leaf0>spine0.0");
    assert_true(is_equal(&now, &start));
}

/* Any value will do: there is nothing to choose. */
TEST(mrd_sim_schedule__heal_any_value)
{
    static const char *const values[] = {"on", "off", "", "5", NULL};
    struct mrd_sim *sim = create();
    struct mrd_sim_link start = link_now(sim, "leaf0>spine0.0"), now;

    for (unsigned i = 0; i < COUNT(values); i++) {
        schedule(sim, 0, "*", "down", "on");
        schedule(sim, 0, "*", "loss", "0.1");
        assert_int_equal(mrd_sim_schedule(sim, 0, "*", "heal", values[i]), 0);
        now = link_now(sim, "leaf0>spine0.0");
        assert_true(is_equal(&now, &start));
    }
}
