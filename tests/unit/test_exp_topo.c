/* SPDX-License-Identifier: BSD-2-Clause */
/* Topologies: what is read, what is refused and how, what is written, and the generated trees. */
#include <math.h>

#include "tests/unit/exp_file.h"
#include "tools/sim/topo.h"

static struct mrd_sim_topology topo;

static int read_back(void)
{
    return simx_topo_read(&topo, exp_path);
}

static void good(const char *text)
{
    exp_file_read(text, read_back);
}

/* Each is refused at the line, with exactly this sentence, and `topo` is as it was. */
static void bad(const struct exp_file_refusal *table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        exp_file_put(table[i].text, strlen(table[i].text));
        topo = (struct mrd_sim_topology){.hosts = 77};
        exp_file_assert_refused(read_back(), table[i].text, table[i].line, table[i].sentence);
        assert_int_equal(topo.hosts, 77);
    }
}

static void expect_tier(unsigned index, const struct mrd_sim_tier *want)
{
    const struct mrd_sim_tier *tier = &topo.tier[index];

    assert_int_equal(tier->radix_down, want->radix_down);
    assert_int_equal(tier->radix_up, want->radix_up);
    assert_int_equal(tier->bundle, want->bundle);
    assert_int_equal(tier->rate_bps, want->rate_bps);
    assert_int_equal(tier->delay_ns, want->delay_ns);
    assert_int_equal(tier->switch_ns, want->switch_ns);
}

/* 96 hosts: 2 pods of 4 leaves with 12 hosts; 3 aggs a pod, 2 links to each leaf; 3 x 4 cores. */
#define TREE_HEAD "Nodes 96\nTiers 3\nPodsize 48\n"
#define TREE_0                                                                                     \
    "Tier 0\nDownlink_speed_Gbps 50\nRadix_Down 12\nRadix_Up 6\nDownlink_Latency_ns 500\n"         \
    "Switch_Latency_ns 100\nOversubscribed 1\n"
#define TREE_1                                                                                     \
    "Tier 1\nDownlink_speed_Gbps 100\nRadix_Down 8\nRadix_Up 4\nDownlink_Latency_ns 1000\n"        \
    "Bundle 2\n"
#define TREE_2 "Tier 2\nDownlink_speed_Gbps 400\nRadix_Down 2\nDownlink_Latency_ns 2000\n"

/* Lines of a leaf-spine file of 8 hosts, 4 a leaf; of each tier what matters to the case. */
#define FLAT_HEAD "Nodes 8\nTiers 2\nPodsize 8\n"
#define FLAT_0    "Tier 0\nDownlink_speed_Gbps 10\nDownlink_Latency_ns 1\nRadix_Down 4\n"
#define FLAT_1    "Tier 1\nDownlink_speed_Gbps 10\nDownlink_Latency_ns 1\nRadix_Down 2\n"

TEST(simx_topo_read__three_tiers)
{
    good(TREE_HEAD TREE_0 TREE_1 TREE_2);
    assert_int_equal(topo.hosts, 96);
    assert_int_equal(topo.tiers, 3);
    assert_int_equal(topo.pod_hosts, 48);
    expect_tier(0, &(struct mrd_sim_tier){12, 6, 1, 50000000000, 500, 100});
    expect_tier(1, &(struct mrd_sim_tier){8, 4, 2, 100000000000, 1000, 0});
    expect_tier(2, &(struct mrd_sim_tier){2, 0, 1, 400000000000, 2000, 0});
}

/*
 * Any order of tiers and of words, any case, comments; Podsize may be absent, the top not
 * oversubscribed.
 */
TEST(simx_topo_read__lenient)
{
    good("# two\nTIERS 2\nnodes 8\n\ntier 1\nradix_down 2 # spines\noversubscribed 1\n"
         "downlink_speed_gbps 2.5\ndownlink_latency_ns 7\r\n"
         "Tier 0\n\tRadix_Down\t4\nDownlink_Latency_ns 0.0\nDownlink_speed_Gbps 0.000000001\n"
         "radix_UP 3");
    assert_int_equal(topo.hosts, 8);
    assert_int_equal(topo.pod_hosts, 8);
    expect_tier(0, &(struct mrd_sim_tier){4, 3, 1, 1, 0, 0});
    expect_tier(1, &(struct mrd_sim_tier){2, 0, 1, 2500000000, 7, 0});
}

/* Radix_Up from Oversubscribed, with the speeds on both sides; a rounded fraction will do. */
TEST(simx_topo_read__derived_links_up)
{
    static const struct {
        const char *down_gbps, *up_gbps, *oversubscribed;
        unsigned radix_up;
    } table[] = {
        {"10", "10", "1", 18},   {"10", "10", "2", 9},        {"10", "10", "18", 1},
        {"10", "20", "1", 9},    {"100", "25", "4", 18},      {"10", "10", "0.5", 36},
        {"10", "10", "2.25", 8}, {"10", "10", "2.571429", 7}, {"10", "10", "2.571", 7},
    };
    char text[512];

    for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        snprintf(text, sizeof(text),
                 "Nodes 36\nTiers 2\nTier 0\nDownlink_speed_Gbps %s\nRadix_Down 18\n"
                 "Oversubscribed %s\nDownlink_Latency_ns 1\n"
                 "Tier 1\nDownlink_speed_Gbps %s\nRadix_Down 2\nDownlink_Latency_ns 1\n",
                 table[i].down_gbps, table[i].oversubscribed, table[i].up_gbps);
        good(text);
        assert_int_equal(topo.tier[0].radix_up, table[i].radix_up);
    }
}

#define GBPS "Downlink_speed_Gbps above 0, at most 100000 and of at most 9 decimals, found "
#define WHOLE                                                                                      \
    "an Oversubscribed in tier 0 that leaves whole links up of Radix_Down 4 at 10 Gb/s, found "
#define KEYS "Tier, or Downlink_speed_Gbps, Radix_Down or another word of a tier, found "

TEST(simx_topo_read__bad_words)
{
    static const struct exp_file_refusal table[] = {
        {"", 1, "Nodes before the first Tier, found 'end of file'"},
        {"Nodes 8\n", 2, "Tiers before the first Tier, found 'end of file'"},
        {"Nodes 8\nTiers 3\nTier 0\n", 3, "Podsize before the first Tier, found 'Tier'"},
        {"Tiers 2\nTier 0\n", 2, "Nodes before the first Tier, found 'Tier'"},
        {"Nodes 1\n", 1, "Nodes of 2 .. 65536, found '1'"},
        {"Nodes 65537\n", 1, "Nodes of 2 .. 65536, found '65537'"},
        {"Nodes 4294967304\n", 1, "Nodes of 2 .. 65536, found '4294967304'"},
        {"Nodes\n", 1, "Nodes of 2 .. 65536, found 'end of line'"},
        {"Nodes 8 9\n", 1, "the end of the line, found '9'"},
        {"Nodes 8\nnodes 8\n", 2, "Nodes only once, as on line 1, found 'nodes'"},
        {"Tiers 1\n", 1, "Tiers of 2 .. 3, found '1'"},
        {"Tiers 4\n", 1, "Tiers of 2 .. 3, found '4'"},
        {"Podsize 0\n", 1, "Podsize of 1 .. 65536, found '0'"},
        {"Radix_Down 4\n", 1, "Nodes, Tiers, Podsize or Tier, found 'Radix_Down'"},
        {FLAT_HEAD "Tier 2\n", 4, "Tier of 0 .. 1, found '2'"},
        {FLAT_HEAD "Tier 0 1\n", 4, "the end of the line, found '1'"},
        {FLAT_HEAD "Tier 0\nBuffer_Down 4\n", 5, KEYS "'Buffer_Down'"},
        {FLAT_HEAD "Tier 0\nNodes 8\n", 5, KEYS "'Nodes'"},
        {FLAT_HEAD "Tier 0\nRadix_Down 0\n", 5, "Radix_Down of 1 .. 65536, found '0'"},
        {FLAT_HEAD "Tier 0\nRadix_Up 65537\n", 5, "Radix_Up of 1 .. 65536, found '65537'"},
        {FLAT_HEAD "Tier 0\nRadix_Up 1\nRadix_Up 1\n", 6,
         "Radix_Up only once, as on line 5, found 'Radix_Up'"},
        {FLAT_HEAD "Tier 0\nBundle 0\n", 5, "Bundle of 1 .. 65536, found '0'"},
        {FLAT_HEAD "Tier 0\nDownlink_Latency_ns 1.5\n", 5,
         "Downlink_Latency_ns of 0 .. 1000000000000, found '1.5'"},
        {FLAT_HEAD "Tier 0\nQueue_Down 100\n", 5,
         "no queues of a tier: --queue is of all ports, found 'Queue_Down'"},
        {FLAT_HEAD "Tier 0\nSwitch_Latency_ns 18446744073709551616\n", 5,
         "Switch_Latency_ns of 0 .. 1000000000000, found '18446744073709551616'"},
        {FLAT_HEAD "Tier 0\nDownlink_speed_Gbps 0\n", 5, GBPS "'0'"},
        {FLAT_HEAD "Tier 0\nDownlink_speed_Gbps 0.0\n", 5, GBPS "'0.0'"},
        {FLAT_HEAD "Tier 0\nDownlink_speed_Gbps 100000.1\n", 5, GBPS "'100000.1'"},
        {FLAT_HEAD "Tier 0\nDownlink_speed_Gbps 18446744083\n", 5, GBPS "'18446744083'"},
        {FLAT_HEAD "Tier 0\nDownlink_speed_Gbps 1.\n", 5, GBPS "'1.'"},
        {FLAT_HEAD "Tier 0\nDownlink_speed_Gbps .5\n", 5, GBPS "'.5'"},
        {FLAT_HEAD "Tier 0\nDownlink_speed_Gbps 1.2.3\n", 5, GBPS "'1.2.3'"},
        {FLAT_HEAD "Tier 0\nDownlink_speed_Gbps 1e2\n", 5, GBPS "'1e2'"},
        {FLAT_HEAD "Tier 0\nDownlink_speed_Gbps -1\n", 5, GBPS "'-1'"},
        {FLAT_HEAD "Tier 0\nDownlink_speed_Gbps 1.0000000001\n", 5, GBPS "'1.0000000001'"},
        {FLAT_HEAD "Tier 0\nDownlink_speed_Gbps\n", 5, GBPS "'end of line'"},
        {FLAT_HEAD "Tier 0\nOversubscribed 0\n", 5,
         "Oversubscribed above 0, at most 65536 and of at most 9 decimals, found '0'"},
    };
    bad(table, sizeof(table) / sizeof(table[0]));
    assert_int_equal(simx_topo_read(&topo, "/nonexistent/file"), -ENOENT);
    assert_string_equal(mrd_last_error(), "/nonexistent/file: No such file or directory");
}

TEST(simx_topo_read__missing)
{
    static const struct exp_file_refusal table[] = {
        {FLAT_HEAD, 4, "Tier 0, found 'end of file'"},
        {FLAT_HEAD FLAT_1, 8, "Tier 0, found 'end of file'"},
        {FLAT_HEAD FLAT_0 "Radix_Up 4\n", 9, "Tier 1, found 'end of file'"},
        {TREE_HEAD TREE_0 TREE_1, 17, "Tier 2, found 'end of file'"},
        {FLAT_HEAD FLAT_0 FLAT_1 "Tier 0\n", 12, "a Tier other than that of line 4, found '0'"},
        {FLAT_HEAD FLAT_0 FLAT_1, 4, "Radix_Up or Oversubscribed in tier 0, found 'nothing'"},
        {FLAT_HEAD "Tier 0\n" FLAT_1, 4, "Downlink_speed_Gbps in tier 0, found 'nothing'"},
        {FLAT_HEAD "Tier 0\nDownlink_speed_Gbps 1\nRadix_Up 1\n" FLAT_1, 4,
         "Radix_Down in tier 0, found 'nothing'"},
        {FLAT_HEAD FLAT_0 "Radix_Up 4\nTier 1\nDownlink_speed_Gbps 1\nRadix_Down 2\n", 9,
         "Downlink_Latency_ns in tier 1, found 'nothing'"},
    };
    bad(table, sizeof(table) / sizeof(table[0]));
}

TEST(simx_topo_read__oversubscribed_disagrees)
{
    static const struct exp_file_refusal table[] = {
        {FLAT_HEAD FLAT_0 "Radix_Up 2\nOversubscribed 1\n" FLAT_1, 9,
         "Oversubscribed 2 in tier 0, as Radix_Down 4 at 10 Gb/s is to Radix_Up 2 at 10 Gb/s, "
         "found '1'"},
        {FLAT_HEAD FLAT_0 "Radix_Up 3\nOversubscribed 1.3\n" FLAT_1, 9,
         "Oversubscribed 1.33333 in tier 0, as Radix_Down 4 at 10 Gb/s is to Radix_Up 3 at 10 "
         "Gb/s, found '1.3'"},
        /* The speeds count. */
        {FLAT_HEAD "Tier 0\nDownlink_speed_Gbps 2.5\nDownlink_Latency_ns 1\nRadix_Down 4\n"
                   "Radix_Up 4\nOversubscribed 1\n" FLAT_1,
         9,
         "Oversubscribed 0.25 in tier 0, as Radix_Down 4 at 2.5 Gb/s is to Radix_Up 4 at 10 Gb/s, "
         "found '1'"},
        {FLAT_HEAD FLAT_0 "Oversubscribed 3\n" FLAT_1, 8, WHOLE "'3'"},
        {FLAT_HEAD FLAT_0 "Oversubscribed 8\n" FLAT_1, 8, WHOLE "'8'"},
        {FLAT_HEAD FLAT_0 "Oversubscribed 65536\n" FLAT_1, 8, WHOLE "'65536'"},
        {FLAT_HEAD FLAT_0 "Oversubscribed 0.00001\n" FLAT_1, 8, WHOLE "'0.00001'"},
        {FLAT_HEAD FLAT_0 "Radix_Up 4\n" FLAT_1 "Oversubscribed 2\n", 13,
         "no Oversubscribed in the top tier, 1, found '2'"},
    };
    bad(table, sizeof(table) / sizeof(table[0]));
}

/* Faults between words are reported at the line of the word. */
TEST(simx_topo_read__impossible)
{
    static const struct exp_file_refusal table[] = {
        {"Tiers 2\nNodes 9\n" FLAT_0 "Radix_Up 4\n" FLAT_1, 2,
         "Nodes in multiples of Radix_Down 4 of tier 0, found '9'"},
        {"Nodes 8\nTiers 2\nPodsize 4\n" FLAT_0 "Radix_Up 4\n" FLAT_1, 3,
         "Podsize 8, all Nodes, with 2 tiers, found '4'"},
        {"Nodes 12\nTiers 2\n" FLAT_0 "Radix_Up 4\n" FLAT_1, 11,
         "Radix_Down 3 in tier 1, one for each of 3 leaves times Bundle 1, found '2'"},
        {FLAT_HEAD FLAT_0 "Radix_Up 4\n" FLAT_1 "Radix_Up 1\n", 13,
         "no Radix_Up in the top tier, 1, found '1'"},
        {FLAT_HEAD FLAT_0 "Radix_Up 4\nBundle 2\n" FLAT_1, 9,
         "Bundle 1 in tier 0, as a host has one link, found '2'"},
        {FLAT_HEAD FLAT_0 "Radix_Up 3\n" FLAT_1 "Bundle 2\n", 13,
         "a Bundle in tier 1 that divides Radix_Up 3 of tier 0, found '2'"},
        {FLAT_HEAD FLAT_0 "Radix_Up 3\n" FLAT_1 "Bundle 3\n", 13,
         "a Bundle in tier 1 that divides its Radix_Down 2, found '3'"},
        {FLAT_HEAD FLAT_0 "Radix_Up 4\n" FLAT_1 "Bundle 2\n", 12,
         "Radix_Down 4 in tier 1, one for each of 2 leaves times Bundle 2, found '2'"},
        {"Nodes 96\nTiers 3\nPodsize 36\n" TREE_0 TREE_1 TREE_2, 3,
         "a Podsize that divides Nodes 96, found '36'"},
        {"Nodes 96\nTiers 3\nPodsize 32\n" TREE_0 TREE_1 TREE_2, 3,
         "Podsize in multiples of Radix_Down 12 of tier 0, found '32'"},
        {"Nodes 96\nTiers 3\nPodsize 24\n" TREE_0 TREE_1 TREE_2, 13,
         "Radix_Down 4 in tier 1, one for each of 2 leaves of a pod times Bundle 2, found '8'"},
        {"Nodes 144\nTiers 3\nPodsize 48\n" TREE_0 TREE_1 TREE_2, 19,
         "Radix_Down 3 in tier 2, one for each of 3 pods times Bundle 1, found '2'"},
    };
    bad(table, sizeof(table) / sizeof(table[0]));
}

TEST(simx_topo_check__values)
{
    struct mrd_sim_topology flat = {
        .hosts = 8, .tiers = 2, .tier = {{4, 4, 0, 10, 0, 0}, {2, 0, 0, 10, 0, 0}}};
    const struct {
        uint32_t *field;
        uint32_t value;
        const char *sentence;
    } table[] = {
        {&flat.hosts, 0, "expected Nodes of 2 .. 65536, found '0'"},
        {&flat.hosts, 65540, "expected Nodes of 2 .. 65536, found '65540'"},
        {&flat.tiers, 1, "expected Tiers of 2 .. 3, found '1'"},
        {&flat.tiers, 4, "expected Tiers of 2 .. 3, found '4'"},
        {&flat.tier[0].radix_down, 0, "expected Radix_Down of 1 .. 65536 in tier 0, found '0'"},
        {&flat.tier[1].radix_down, 65537,
         "expected Radix_Down of 1 .. 65536 in tier 1, found '65537'"},
        {&flat.tier[0].radix_up, 0, "expected Radix_Up of 1 .. 65536 in tier 0, found '0'"},
        {&flat.tier[1].radix_up, 1, "expected no Radix_Up in the top tier, 1, found '1'"},
        {&flat.pod_hosts, 4, "expected Podsize 8, all Nodes, with 2 tiers, found '4'"},
        {&flat.tier[1].bundle, UINT32_MAX,
         "expected a Bundle in tier 1 that divides its Radix_Down 2, found '4294967295'"},
    };

    assert_int_equal(simx_topo_check(&flat), 0);
    for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        uint32_t was = *table[i].field;

        *table[i].field = table[i].value;
        assert_int_equal(simx_topo_check(&flat), -EINVAL);
        assert_string_equal(mrd_last_error(), table[i].sentence);
        *table[i].field = was;
    }
    flat.tier[1].rate_bps = 0;
    assert_int_equal(simx_topo_check(&flat), -EINVAL);
    assert_string_equal(mrd_last_error(), "expected 1 b/s .. 100000 Gb/s in tier 1, found '0'");
}

TEST(simx_topo_make__shapes)
{
    static const struct {
        uint32_t hosts, tiers, leaf;
        double oversubscription;
        uint32_t pod_hosts, up_0, down_1, up_1, down_2;
    } table[] = {
        {1024, 2, 32, 1, 1024, 32, 32, 0, 0}, {1024, 2, 32, 4, 1024, 8, 32, 0, 0},
        {32, 2, 8, 4, 32, 2, 4, 0, 0},        {36, 2, 9, 1.5, 36, 6, 4, 0, 0},
        {6, 2, 3, 0.5, 6, 6, 2, 0, 0},        {5, 2, 5, 5, 5, 1, 1, 0, 0},
        {128, 3, 4, 1, 16, 4, 4, 4, 8},       {128, 3, 4, 4, 16, 1, 4, 4, 8},
        {1024, 3, 32, 2, 512, 16, 16, 16, 2}, {70, 3, 10, 2, 10, 5, 1, 1, 7},
        {90, 3, 6, 3, 30, 2, 5, 5, 3},        {65536, 3, 32, 1, 1024, 32, 32, 32, 64},
        {4, 3, 4, 1, 4, 4, 1, 1, 1},          {65536, 2, 1, 1, 65536, 1, 65536, 0, 0},
    };

    for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (simx_topo_make(&topo, table[i].hosts, table[i].tiers, table[i].leaf,
                           table[i].oversubscription, 2.5, 700))
            fail_msg("row %u: %s", i, mrd_last_error());
        assert_int_equal(topo.hosts, table[i].hosts);
        assert_int_equal(topo.pod_hosts, table[i].pod_hosts);
        expect_tier(0, &(struct mrd_sim_tier){table[i].leaf, table[i].up_0, 1, 2500000000, 700, 0});
        expect_tier(1,
                    &(struct mrd_sim_tier){table[i].down_1, table[i].up_1, 1, 2500000000, 700, 0});
        if (topo.tiers == 3)
            expect_tier(2, &(struct mrd_sim_tier){table[i].down_2, 0, 1, 2500000000, 700, 0});
    }
}

#define LEAVES "expected an oversubscription that leaves whole links up of 4 links down, found "

TEST(simx_topo_make__refused)
{
    static const struct {
        uint32_t hosts, tiers, leaf;
        double oversubscription, gbps;
        const char *sentence;
    } table[] = {
        {9, 2, 4, 1, 1, "expected hosts in multiples of 4, those of a leaf, found '9'"},
        {4, 2, 8, 1, 1, "expected hosts in multiples of 8, those of a leaf, found '4'"},
        {1, 2, 1, 1, 1, "expected Nodes of 2 .. 65536, found '1'"},
        {131072, 3, 32, 1, 1, "expected Nodes of 2 .. 65536, found '131072'"},
        {8, 2, 4, 3, 1, LEAVES "'3'"},
        {8, 2, 4, 8, 1, LEAVES "'8'"},
        {8, 2, 4, 0, 1, LEAVES "'0'"},
        {8, 2, 4, -1, 1, LEAVES "'-1'"},
        {8, 2, 4, NAN, 1, LEAVES "'nan'"},
        {8, 2, 4, INFINITY, 1, LEAVES "'inf'"},
        {8, 2, 4, 1e-9, 1, LEAVES "'1e-09'"},
    };

    for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        topo = (struct mrd_sim_topology){.hosts = 77};
        assert_int_equal(simx_topo_make(&topo, table[i].hosts, table[i].tiers, table[i].leaf,
                                        table[i].oversubscription, table[i].gbps, 1),
                         -EINVAL);
        assert_string_equal(mrd_last_error(), table[i].sentence);
        assert_int_equal(topo.hosts, 77);
    }
}
