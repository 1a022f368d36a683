/* SPDX-License-Identifier: BSD-2-Clause */
/* What doctor says of bare datagrams: each finding where its input is, and not where it is not. */
#include "tests/unit/doctor_fixture.h"

/* Judges probes that fare so on the way there, or back. */
static void judge(struct ill there)
{
    examine(&there, NULL);
    perf_doctor_judge_probes(report);
}

static void judge_back(struct ill back)
{
    examine(NULL, &back);
    perf_doctor_judge_probes(report);
}

/* The same with other arrivals; takes the array. */
static void judge_arrivals(struct json_object *arrivals)
{
    examine(NULL, NULL);
    json_object_object_add(report, "probe_arrivals", arrivals);
    perf_doctor_judge_probes(report);
}

/* How many source ports came through. */
static size_t ports_through(void)
{
    return json_object_array_length(json_object_object_get(report, "ports_through"));
}

static uint32_t bound, few; /* of what the next functions do */

/* Datagrams there are dropped by that, with that bound: one finding, with these words, or none. */
static void drop(bool (*drops)(uint32_t number, uint32_t port), uint32_t new_bound,
                 const char *name, const char *words)
{
    bound = new_bound;
    judge((struct ill){.drops = drops});
    expect_findings((const char *const[]){name, NULL});
    if (words)
        says(name, words);
}

static bool first_ports(uint32_t number, uint32_t port)
{
    (void)number;
    return port < bound;
}

TEST(judge_ports__all_well)
{
    judge((struct ill){0});
    found_none();
    assert_int_equal(ports_through(), PERF_PROBE_PORTS);
    assert_true(perf_doctor_may_run(report));
    assert_false(json_object_object_get_ex(report, "probe_arrivals", NULL));
    assert_false(json_object_object_get_ex(report, "probe_back_arrivals", NULL));
}

/* One port that is blocked is named by its number; the others are left to run from. */
TEST(judge_ports__blocked)
{
    drop(first_ports, 1, "ports_blocked", "40000");
    assert_int_equal(ports_through(), PERF_PROBE_PORTS - 1);
    assert_int_equal(json_u32_at(json_object_object_get(report, "ports_through"), 0),
                     FIRST_PORT + 1);
    drop(first_ports, PERF_PROBE_PORTS - 1, "ports_blocked", "31 of 32");
    assert_true(perf_doctor_may_run(report));
}

static bool sizes_drop(uint32_t mtu, uint32_t repeat)
{
    (void)repeat;
    return mtu >= bound;
}

/* Nothing else is said of a way on which nothing arrives. */
TEST(judge_ports__nothing_arrives)
{
    drop(first_ports, PERF_PROBE_PORTS, "no_udp_there", NULL);
    assert_false(perf_doctor_may_run(report));
}

static bool all_drop(uint32_t number, uint32_t port)
{
    (void)number, (void)port;
    return true;
}

/* One datagram here and there is no bad link. */
static bool a_few(uint32_t number, uint32_t port)
{
    (void)port;
    return number == 3 || number == 100;
}

static bool none_drop(uint32_t number, uint32_t port)
{
    (void)number, (void)port;
    return false;
}

/* Only what has ECT is dropped: UDP is not to blame, and the runs can be made. */
TEST(judge_ect__dropped)
{
    judge((struct ill){.drops = all_drop, .drops_plain = none_drop});
    found_saying("ecn_dropped", "to the server the network drops packets that are ECN-capable");
    says("ecn_dropped", "32 of 32");
    says("ecn_dropped", "MRD_ECN=off");
    assert_true(perf_doctor_may_run(report));
    judge_back((struct ill){.drops = all_drop, .drops_plain = none_drop});
    found_saying("ecn_dropped", "from the server");
    assert_true(perf_doctor_may_run(report));
}

/* By one of eight paths only: the others' ports are as they should be, and all can be used. */
TEST(judge_ect__dropped_on_some)
{
    bound = 4;
    judge((struct ill){.drops = first_ports, .drops_plain = none_drop});
    found_saying("ecn_dropped", "4 of 32");
    assert_int_equal(ports_through(), PERF_PROBE_PORTS);
}

/* A link that loses nearly all lets some of either kind pass: it is no firewall for ECT. */
static bool first_port_all_but_few(uint32_t number, uint32_t port)
{
    return port == 0 && (number - PERF_PROBE_PLAIN_BASE) / PERF_PROBE_PORTS >= few;
}

TEST(judge_ect__bad_link)
{
    bound = 1;
    few = 2; /* of 5 */
    judge((struct ill){.drops = first_ports, .drops_plain = first_port_all_but_few});
    found_saying("loss_on_some", "1 of 32");
    few = 3;
    judge((struct ill){.drops = first_ports, .drops_plain = first_port_all_but_few});
    found_saying("ecn_dropped", "1 of 32");
}

/* Sizes leave without ECT, and tell an MTU where the network drops what has it. */
TEST(judge_ect__sizes_tell)
{
    bound = 4000;
    judge((struct ill){
        .drops = all_drop, .drops_plain = none_drop, .drops_size = sizes_drop, .icmp_mtu = 1500});
    found("ecn_dropped", "mtu_path");
    assert_int_equal(json_object_get_int(json_object_object_get(report, "mtu_through")), 1500);
}

/* More is sent only where ports are silent. */
TEST(some_silent__ports)
{
    bound = 1;
    assert_false(
        perf_doctor_some_silent(json_text_own(arrivals_of(&(struct ill){.drops = a_few}))));
    assert_true(
        perf_doctor_some_silent(json_text_own(arrivals_of(&(struct ill){.drops = first_ports}))));
}

TEST(judge_back__nothing_arrives)
{
    judge_back((struct ill){.drops = all_drop});
    found("no_udp_back");
    assert_false(perf_doctor_may_run(report));
}

/* The way back is judged like the way there, and says which of the two it is. */
static bool third_of_some(uint32_t number, uint32_t port)
{
    return port < 8 && number / PERF_PROBE_PORTS % 3 == 0;
}

static int all_marked(uint32_t number, uint32_t port)
{
    (void)number, (void)port;
    return CE;
}

TEST(judge_back__like_there)
{
    judge_back((struct ill){.drops = third_of_some, .ecn = all_marked});
    found("loss_on_some", "ecn_marks");
    says("loss_on_some", "from the server");
    says("ecn_marks", "from the server");
    judge((struct ill){.drops = third_of_some});
    found_saying("loss_on_some", "to the server");
    bound = 3;
    judge_back((struct ill){.drops = first_ports});
    found_saying("ports_blocked", "3 of 32 source ports of the server");
}

/* A link that loses a third of what some ports send; one port of them is enough. */
static bool third_of_first_ports(uint32_t number, uint32_t port)
{
    return port < bound && number / PERF_PROBE_PORTS % 3 == 0;
}

TEST(judge_ports__some_lose)
{
    drop(third_of_first_ports, 8, "loss_on_some", "8 of 32");
    drop(third_of_first_ports, 1, "loss_on_some", NULL);
}

/* As few as three of a port are named, as mrd_perf(1) says, where no other loses anything. */
static bool few_of_first_ports(uint32_t number, uint32_t port)
{
    return port < bound && number / PERF_PROBE_PORTS < few;
}

TEST(judge_loss__three_of_25)
{
    few = 3;
    drop(few_of_first_ports, 1, "loss_on_some", NULL);
    drop(few_of_first_ports, 8, "loss_on_some", "8 of 32");
    drop(few_of_first_ports, 16, "loss_on_all", NULL); /* of half: chance may do that */
    few = 2;
    drop(few_of_first_ports, 1, NULL, NULL); /* of one port: by chance */
}

/* Ports that lost less are not counted among those that share a bad link. */
static bool much_of_one_little_of_next(uint32_t number, uint32_t port)
{
    return number / PERF_PROBE_PORTS < (port == 0 ? 5u : port == 1 ? 2u : 0u);
}

TEST(judge_loss__one_of_two)
{
    judge((struct ill){.drops = much_of_one_little_of_next});
    found_saying("loss_on_some", "1 of 32");
}

/* Loss that hits all alike is no bad link of some, though some lose more by chance. */
static uint32_t dice(uint32_t number)
{
    uint32_t x = number * 2654435761u;

    x ^= x >> 15;
    x *= 2246822519u;
    return (x ^ x >> 13) % 100;
}

static bool by_chance(uint32_t number, uint32_t port)
{
    (void)port;
    return dice(number) < bound;
}

TEST(judge_loss__all_alike)
{
    static const uint32_t percent[] = {2, 5, 20, 60};

    for (unsigned i = 0; i < sizeof(percent) / sizeof(percent[0]); i++) {
        bound = percent[i];
        judge((struct ill){.drops = by_chance});
        found("loss_on_all");
    }
}

/* A link that loses a third stands out of a network that loses everywhere. */
static bool chance_and_a_bad_link(uint32_t number, uint32_t port)
{
    return dice(number) < (port % 4 == 1 ? 40u : 5u);
}

TEST(judge_loss__some_and_all)
{
    judge((struct ill){.drops = chance_and_a_bad_link});
    found("loss_on_some");
}

/* From 1% on it is told, where no port stands out: 8 of 800. */
static bool first_of_some_ports(uint32_t number, uint32_t port)
{
    return port < bound && number / PERF_PROBE_PORTS == 7;
}

TEST(judge_loss__border_of_all)
{
    drop(first_of_some_ports, 7, NULL, NULL);
    drop(first_of_some_ports, 8, "loss_on_all", "1.0%");
}

/* A way of which one port is left: nothing to compare it with. */
static bool all_but_some_of_one(uint32_t number, uint32_t port)
{
    return port > 0 || number / PERF_PROBE_PORTS < 5;
}

TEST(judge_loss__one_port_left)
{
    judge((struct ill){.drops = all_but_some_of_one});
    found("ports_blocked", "loss_on_all");
    says("loss_on_all", "20.0%");
}

/* What a network delivers twice neither hides a loss nor is late. */
TEST(judge_probes__duplicates)
{
    struct json_object *arrivals = json_object_new_array();

    for (uint32_t i = 0; i < 2 * PERF_PROBE_MAX; i++)
        arrive(arrivals, i % PERF_PROBE_MAX, ECT0);
    judge_arrivals(arrivals);
    found_none();

    arrivals = json_object_new_array();
    bound = 8;
    for (uint32_t i = 0; i < PERF_PROBE_MAX; i++) {
        if (i < PERF_PROBE_SIZE_BASE && third_of_first_ports(i, i % PERF_PROBE_PORTS))
            continue;
        arrive(arrivals, i, ECT0);
        arrive(arrivals, i, ECT0);
    }
    judge_arrivals(arrivals);
    found("loss_on_some");
}

TEST(judge_ports__a_few_are_lost)
{
    judge((struct ill){.drops = a_few});
    found_none();
}

/* `bound` datagrams arrive behind their successors. */
TEST(judge_order__overtaken)
{
    for (uint32_t late = 16; late <= 17; late++) {
        struct json_object *arrivals = json_object_new_array();
        for (uint32_t i = 0; i < PERF_PROBE_SIZE_BASE; i++)
            arrive(arrivals, i < 2 * late ? i ^ 1 : i, ECT0);
        for (uint32_t i = PERF_PROBE_SIZE_BASE; i < PERF_PROBE_MAX; i++)
            arrive(arrivals, i, NOT_ECT);
        judge_arrivals(arrivals);
        if (late == 16) /* 2% of 800 are not more than 2% */
            found_none();
        else
            found("reordering");
    }
}

static int bleached(uint32_t number, uint32_t port)
{
    (void)number, (void)port;
    return NOT_ECT;
}

static int one_marked(uint32_t number, uint32_t port)
{
    (void)port;
    return number == 17 ? CE : ECT0;
}

TEST(judge_marks__bleached)
{
    judge((struct ill){.ecn = bleached});
    found_saying("ecn_bleached", "800 of 800");
}

/* A router on one of eight paths clears them; a single datagram is an accident. */
static int bleached_on_some(uint32_t number, uint32_t port)
{
    return port < bound || number == 100 ? NOT_ECT : ECT0;
}

TEST(judge_marks__bleached_on_some)
{
    bound = 4;
    judge((struct ill){.ecn = bleached_on_some});
    found_saying("ecn_bleached", "101 of 800");
    bound = 0;
    judge((struct ill){.ecn = bleached_on_some});
    found_none();
}

TEST(judge_marks__marked)
{
    judge((struct ill){.ecn = one_marked});
    found("ecn_marks");
}

/* The path takes less than the interface, and ICMP tells or does not. */
TEST(judge_sizes__path)
{
    bound = 4000;
    judge((struct ill){.drops_size = sizes_drop, .icmp_mtu = 1500});
    found("mtu_path");
    says("mtu_path", "packets of 4000 bytes do not come through; ICMP says 1500");
    judge((struct ill){.drops_size = sizes_drop});
    found("mtu_silent");
    bound = 1500;
    judge((struct ill){.drops_size = sizes_drop, .icmp_mtu = 1460});
    found("mtu_path", "mtu_small");
    judge((struct ill){.drops_size = sizes_drop});
    found("mtu_silent", "mtu_small");
}

/* What an end's own interface refuses is no fault of the path. */
TEST(judge_sizes__interface)
{
    judge((struct ill){.local_mtu = 4000});
    found_none();
    judge((struct ill){.local_mtu = 9000});
    found_none();
    judge((struct ill){.local_mtu = 9000, .icmp_mtu = 8900}); /* of another time */
    found_none();
    bound = 4000;
    judge((struct ill){.local_mtu = 9000, .drops_size = sizes_drop});
    found("mtu_silent");
}

/* A tunnel whose own interface is small is small, too, and silent by no fault of a router. */
TEST(judge_sizes__small_interface)
{
    judge((struct ill){.local_mtu = 1460});
    found("mtu_small");
    judge((struct ill){.local_mtu = 1500});
    found("mtu_small");
}

/* None of the sizes comes through, but small datagrams do. */
TEST(judge_sizes__none)
{
    bound = 0;
    judge((struct ill){.drops_size = sizes_drop});
    found("mtu_silent", "mtu_small");
    says("mtu_small", "1280 bytes do not come through");
}

/* A firewall before all ports from which sizes were sent says nothing of sizes. */
static bool ports_of_sizes(uint32_t number, uint32_t port)
{
    bool one = false;

    (void)number;
    for (uint32_t i = bound; i < PERF_PROBE_REPEATS; i++)
        one = one || port == perf_probe_size_port(i);
    return one;
}

static bool all_sizes(uint32_t mtu, uint32_t repeat)
{
    (void)mtu, (void)repeat;
    return true;
}

TEST(judge_sizes__blocked_ports)
{
    bound = 0;
    judge((struct ill){.drops = ports_of_sizes, .drops_size = all_sizes});
    found("ports_blocked");
    bound = 1; /* one gets through, and none of its sizes does */
    judge((struct ill){.drops = ports_of_sizes, .drops_size = all_sizes});
    found("ports_blocked", "mtu_silent", "mtu_small");
}

/* Some of each size are enough: a bad link takes the others. */
static bool all_but_one(uint32_t mtu, uint32_t repeat)
{
    return mtu >= 4000 && repeat != 5;
}

TEST(judge_sizes__lossy)
{
    judge((struct ill){.drops_size = all_but_one});
    found_none();
}

/* What no probe is, or none of these, is not counted. */
TEST(judge_probes__foreign_numbers)
{
    struct json_object *arrivals = json_object_new_array();

    arrive(arrivals, PERF_PROBE_MAX, ECT0);
    json_object_array_add(arrivals, json_object_new_int64(-1));
    json_object_array_add(arrivals, json_object_new_int(ECT0));
    json_object_array_add(arrivals, json_object_new_int64(1)); /* half a pair */
    judge_arrivals(arrivals);
    found("no_udp_there");
}
