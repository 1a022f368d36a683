/* SPDX-License-Identifier: BSD-2-Clause */
/* Switches in tiers: how they are wired, which ways lead where, and how hashes spread over them. */
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"
#include "transport/movers/sim/sim_tree.h"

#define SPEED        .rate_bps = 100000000000, .delay_ns = 500
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Topologies and the numbers of switches that they must have. */
static const struct {
    struct mrd_sim_topology topology;
    uint32_t switches[MRD_SIM_TIERS_MAX];
    unsigned longest;
} table[] = {
    /* Two tiers: square; oversubscribed; more up than down; one leaf. */
    {{8, 2, 0, {{2, 2, 0, SPEED}, {4, 0, 0, SPEED}}}, {4, 2}, 4},
    {{16, 2, 16, {{8, 4, 1, SPEED}, {2, 0, 1, SPEED}}}, {2, 4}, 4},
    {{9, 2, 0, {{3, 5, 0, SPEED}, {3, 0, 0, SPEED}}}, {3, 5}, 4},
    {{4, 2, 0, {{4, 2, 0, SPEED}, {1, 0, 0, SPEED}}}, {1, 2}, 2},
    /* Bundles between two tiers. */
    {{12, 2, 0, {{4, 6, 0, SPEED}, {6, 0, 2, SPEED}}}, {3, 3}, 4},
    {{6, 2, 0, {{1, 4, 0, SPEED}, {24, 0, 4, SPEED}}}, {6, 1}, 4},
    /* Fat trees of switches with 4 and 8 ports. */
    {{16, 3, 4, {{2, 2, 0, SPEED}, {2, 2, 0, SPEED}, {4, 0, 0, SPEED}}}, {8, 8, 4}, 6},
    {{128, 3, 16, {{4, 4, 0, SPEED}, {4, 4, 0, SPEED}, {8, 0, 0, SPEED}}}, {32, 32, 16}, 6},
    /* Three tiers: oversubscribed at both; with bundles at both; one pod; pods of one leaf. */
    {{64, 3, 16, {{8, 4, 0, SPEED}, {2, 1, 0, SPEED}, {4, 0, 0, SPEED}}}, {8, 16, 4}, 6},
    {{24, 3, 8, {{4, 4, 0, SPEED}, {4, 6, 2, SPEED}, {9, 0, 3, SPEED}}}, {6, 6, 4}, 6},
    {{8, 3, 8, {{4, 2, 0, SPEED}, {2, 1, 0, SPEED}, {1, 0, 0, SPEED}}}, {2, 2, 2}, 4},
    {{6, 3, 2, {{2, 1, 0, SPEED}, {1, 2, 0, SPEED}, {3, 0, 0, SPEED}}}, {3, 3, 2}, 6},
    /* A large one. */
    {{2048, 3, 256, {{16, 16, 0, SPEED}, {16, 16, 0, SPEED}, {8, 0, 0, SPEED}}},
     {128, 128, 256},
     6},
};

static void tree_init(struct mrd_sim_tree *tree, const struct mrd_sim_topology *t, uint64_t seed)
{
    assert_int_equal(mrd_sim_tree_init(tree, t, seed), 0);
}

/* --------------------------------------------------------------------------------------- wiring */

TEST(mrd_sim_tree_init__numbers)
{
    for (unsigned i = 0; i < COUNT(table); i++) {
        const struct mrd_sim_topology *t = &table[i].topology;
        struct mrd_sim_tree tree;
        uint32_t wire = t->hosts;

        tree_init(&tree, t, i);
        for (uint32_t tier = 0; tier < MRD_SIM_TIERS_MAX; tier++)
            assert_int_equal(tree.tier_first[tier + 1] - tree.tier_first[tier],
                             table[i].switches[tier]);
        for (uint32_t s = 0; s < tree.num_switches; s++) {
            const struct mrd_sim_switch *node = &tree.switches[s];

            /* The switches' wires follow each other, as many as the radixes say. */
            assert_int_equal(node->down_first, wire);
            assert_int_equal(node->up_first - node->down_first, t->tier[node->tier].radix_down);
            assert_int_equal(node->num_up, t->tier[node->tier].radix_up);
            assert_int_equal(node->number, s - tree.tier_first[node->tier]);
            wire = node->up_first + node->num_up;
        }
        assert_int_equal(tree.num_wires, wire);
        mrd_sim_tree_fini(&tree);
    }
}

/* How many wires of this number among parallel ones lead from `from` to `to`: 1 is right. */
static unsigned count_wires(const struct mrd_sim_tree *tree, uint32_t from, uint32_t to,
                            uint32_t parallel)
{
    uint32_t hosts = tree->topology.hosts, first = from, end = from + 1;
    unsigned num = 0;

    if (from >= hosts) {
        const struct mrd_sim_switch *node = &tree->switches[from - hosts];

        first = node->down_first;
        end = node->up_first + node->num_up;
    }
    for (uint32_t wire = first; wire < end; wire++) {
        struct mrd_sim_ends ends = mrd_sim_tree_ends(tree, wire);

        assert_int_equal(ends.from, from);
        num += ends.to == to && ends.parallel == parallel;
    }
    return num;
}

static uint32_t tier_of(const struct mrd_sim_tree *tree, uint32_t node)
{
    return node < tree->topology.hosts ? 0 : tree->switches[node - tree->topology.hosts].tier + 1;
}

/* Each wire joins neighbouring tiers, is the only one of its number there, and one leads back. */
TEST(mrd_sim_tree_ends__consistent)
{
    for (unsigned i = 0; i < COUNT(table); i++) {
        struct mrd_sim_tree tree;

        tree_init(&tree, &table[i].topology, i);
        for (uint32_t wire = 0; wire < tree.num_wires; wire++) {
            struct mrd_sim_ends ends = mrd_sim_tree_ends(&tree, wire);
            uint32_t from = tier_of(&tree, ends.from), to = tier_of(&tree, ends.to);

            assert_true(ends.to < tree.topology.hosts + tree.num_switches);
            assert_int_equal(ends.is_up ? to : from, (ends.is_up ? from : to) + 1);
            assert_int_equal((ends.is_up ? to : from) - 1, ends.tier);
            assert_true(ends.parallel < ends.num_parallel);
            assert_int_equal(count_wires(&tree, ends.from, ends.to, ends.parallel), 1);
            assert_int_equal(count_wires(&tree, ends.to, ends.from, ends.parallel), 1);
            assert_int_equal(count_wires(&tree, ends.from, ends.to, ends.num_parallel), 0);
        }
        mrd_sim_tree_fini(&tree);
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

TEST(mrd_sim_link_name__unique)
{
    static const char *const forms[] = {
        "^(host[0-9]+>leaf[0-9]+|leaf[0-9]+>host[0-9]+|"
        "(leaf[0-9]+>spine[0-9]+|spine[0-9]+>leaf[0-9]+)(\\.[0-9]+)?)$",
        "^(host[0-9]+>leaf[0-9]+|leaf[0-9]+>host[0-9]+|(leaf[0-9]+>agg[0-9]+|agg[0-9]+>leaf[0-9]+|"
        "agg[0-9]+>core[0-9]+|core[0-9]+>agg[0-9]+)(\\.[0-9]+)?)$"};

    for (unsigned i = 0; i < COUNT(table); i++) {
        const struct mrd_sim_topology *t = &table[i].topology;
        struct mrd_sim *sim = test_sim(&(struct mrd_sim_attr){.topology = t});
        uint32_t num = mrd_sim_num_links(sim);
        char(*names)[32] = calloc(num, sizeof(*names));
        regex_t form;

        assert_int_equal(regcomp(&form, forms[t->tiers == 3], REG_EXTENDED | REG_NOSUB), 0);
        for (uint32_t link = 0; link < num; link++) {
            assert_int_equal(mrd_sim_link_name(sim, link, names[link], sizeof(names[link])), 0);
            if (regexec(&form, names[link], 0, NULL, 0) != 0)
                fail_msg("topology %u: \"%s\"", i, names[link]);
        }
        qsort(names, num, sizeof(*names), compare_names);
        for (uint32_t link = 1; link < num; link++)
            assert_int_not_equal(strcmp(names[link - 1], names[link]), 0);
        regfree(&form);
        free(names);
    }
}

TEST(mrd_sim_link_name__errors)
{
    struct mrd_sim *sim = test_sim(&(struct mrd_sim_attr){.topology = &table[0].topology});
    char name[13];

    assert_int_equal(mrd_sim_num_links(sim), 2 * (8 + 8));
    assert_int_equal(mrd_sim_link_name(sim, 32, name, sizeof(name)), -EINVAL);
    assert_int_equal(mrd_sim_query_link(sim, 32, NULL, NULL), -EINVAL);
    assert_int_equal(mrd_sim_link_name(sim, 0, name, strlen("host0>leaf0")), -ENOSPC);
    assert_int_equal(mrd_sim_link_name(sim, 0, name, sizeof("host0>leaf0")), 0);
    assert_string_equal(name, "host0>leaf0");
    assert_int_equal(mrd_sim_link_name(sim, 31, name, sizeof(name)), 0);
    assert_string_equal(name, "spine1>leaf3");
}

/* ----------------------------------------------------------------------------------------- ways */

struct walk {
    const struct mrd_sim_tree *tree;
    uint32_t to;
    unsigned hops;    /* that the way must have */
    uint8_t *visited; /* switches */
};

/* Every way from a node that was reached by so many links ends where it should, and in time. */
static void walk(const struct walk *w, uint32_t node, unsigned hops)
{
    uint32_t hosts = w->tree->topology.hosts;

    if (node < hosts) {
        assert_int_equal(node, w->to);
        assert_int_equal(hops, w->hops);
        return;
    }
    assert_true(hops < w->hops);
    w->visited[node - hosts] = 1;

    uint32_t num, first = mrd_sim_tree_ways(&w->tree->switches[node - hosts], w->to, &num);

    assert_true(num > 0);
    for (uint32_t i = 0; i < num; i++) {
        struct mrd_sim_ends ends = mrd_sim_tree_ends(w->tree, first + i);

        assert_int_equal(ends.from, node);
        walk(w, ends.to, hops + 1);
    }
}

static unsigned hops_between(const struct mrd_sim_tree *tree, uint32_t from, uint32_t to)
{
    uint32_t leaf_hosts = tree->topology.tier[0].radix_down, pod_hosts = tree->topology.pod_hosts;

    if (from / leaf_hosts == to / leaf_hosts)
        return 2;
    return from / pod_hosts == to / pod_hosts ? 4 : 6;
}

/* Any choice at any switch leads there by the shortest way, and every switch is on some way. */
TEST(mrd_sim_tree_ways__all_lead_there)
{
    for (unsigned i = 0; i < COUNT(table); i++) {
        uint32_t hosts = table[i].topology.hosts, stride = hosts > 200 ? 229 : 1;
        unsigned longest = 0;
        struct mrd_sim_tree tree;

        tree_init(&tree, &table[i].topology, i);

        uint8_t *visited = calloc(tree.num_switches, 1);

        for (uint32_t from = 0; from<hosts; from += stride> 1 ? 16 : 1) {
            for (uint32_t to = from % stride; to < hosts; to += stride) {
                struct walk w = {&tree, to, hops_between(&tree, from, to), visited};

                walk(&w, mrd_sim_tree_ends(&tree, from).to, 1);
                longest = w.hops > longest ? w.hops : longest;
            }
        }
        assert_int_equal(longest, table[i].longest);
        for (uint32_t s = 0; s < tree.num_switches && longest == 2 * table[i].topology.tiers; s++)
            assert_true(visited[s]);
        free(visited);
        mrd_sim_tree_fini(&tree);
    }
}

/* ----------------------------------------------------------------------------------- impossible */

static const struct {
    struct mrd_sim_topology topology;
    const char *why;
} impossible[] = {
    {{8, 1, 0, {{2, 0, 0, SPEED}}}, "neither 2 nor 3 tiers"},
    {{8, 4, 0, {{2, 2, 0, SPEED}}}, "neither 2 nor 3 tiers"},
    {{1, 2, 0, {{1, 2, 0, SPEED}, {1, 0, 0, SPEED}}}, "not 2 to 65536 hosts"},
    {{65537, 2, 0, {{1, 2, 0, SPEED}, {1, 0, 0, SPEED}}}, "not 2 to 65536 hosts"},
    {{8, 2, 0, {{2, 2, 0, .delay_ns = 5}, {4, 0, 0, SPEED}}}, "a link with rate zero"},
    {{8, 2, 0, {{2, 2, 0, SPEED}, {4, 0, 0, .delay_ns = 5}}}, "a link with rate zero"},
    {{8, 2, 0, {{0, 2, 0, SPEED}, {4, 0, 0, SPEED}}}, "a switch without links up or down"},
    {{8, 2, 0, {{2, 0, 0, SPEED}, {4, 0, 0, SPEED}}}, "a switch without links up or down"},
    {{8, 2, 0, {{2, 2, 0, SPEED}, {0, 0, 0, SPEED}}}, "a switch without links up or down"},
    {{8, 2, 0, {{2, 2, 0, SPEED}, {4, 1, 0, SPEED}}}, "a top tier with links up"},
    {{8, 2, 0, {{2, 65537, 0, SPEED}, {4, 0, 0, SPEED}}}, "a switch with more than 65536 links"},
    {{8, 2, 0, {{2, 2, 0, SPEED}, {65537, 0, 0, SPEED}}}, "a switch with more than 65536 links"},
    {{65536, 2, 0, {{1, 64, 0, SPEED}, {65536, 0, 0, SPEED}}}, "too many links"},
    /* Links that multiply from tier to tier: 2^33 of them. */
    {{4, 3, 2, {{1, 65536, 0, SPEED}, {2, 65536, 0, SPEED}, {2, 0, 0, SPEED}}}, "too many links"},
    {{8, 2, 0, {{2, 2, 2, SPEED}, {4, 0, 0, SPEED}}}, "hosts with more than one link"},
    {{8, 2, 4, {{2, 2, 0, SPEED}, {4, 0, 0, SPEED}}}, "two tiers are one pod"},
    {{9, 2, 0, {{2, 2, 0, SPEED}, {4, 0, 0, SPEED}}}, "hosts do not fill the pods"},
    {{16, 3, 0, {{2, 2, 0, SPEED}, {2, 2, 0, SPEED}, {4, 0, 0, SPEED}}}, "do not fill the pods"},
    {{16, 3, 5, {{2, 2, 0, SPEED}, {2, 2, 0, SPEED}, {4, 0, 0, SPEED}}}, "do not fill the pods"},
    {{18, 3, 6, {{4, 2, 0, SPEED}, {2, 2, 0, SPEED}, {3, 0, 0, SPEED}}}, "or those the leaves"},
    {{8, 2, 0, {{2, 2, 0, SPEED}, {3, 0, 0, SPEED}}}, "between tier 0 and tier 1"},
    {{8, 2, 0, {{2, 3, 0, SPEED}, {8, 0, 2, SPEED}}}, "between tier 0 and tier 1"},
    {{16, 3, 4, {{2, 2, 0, SPEED}, {2, 2, 0, SPEED}, {5, 0, 0, SPEED}}}, "tier 1 and tier 2"},
    {{16, 3, 4, {{2, 2, 0, SPEED}, {2, 3, 0, SPEED}, {8, 0, 2, SPEED}}}, "tier 1 and tier 2"},
};

TEST(mrd_sim_tree_init__impossible)
{
    for (unsigned i = 0; i < COUNT(impossible); i++) {
        errno = 0;
        assert_null(mrd_sim_create(&(struct mrd_sim_attr){.topology = &impossible[i].topology}));
        assert_int_equal(errno, EINVAL);
        if (!strstr(mrd_last_error(), "impossible topology: ") ||
            !strstr(mrd_last_error(), impossible[i].why))
            fail_msg("row %u: \"%s\"", i, mrd_last_error());
    }
}

/* -------------------------------------------------------------------------------------- longest */

/* 5,000 bytes are 400 ns at 100 Gb/s, 100 ns at 400 Gb/s, 50 ns at 800 Gb/s. */
TEST(mrd_sim_tree_longest_ns__by_hand)
{
    static const struct {
        struct mrd_sim_topology topology;
        double ns;
    } rows[] = {
        /* Two links of each tier; leaf, spine, leaf. */
        {{8, 2, 0, {{2, 2, 0, 100000000000, 500, 300}, {4, 0, 0, 400000000000, 1000, 600}}},
         2 * 400 + 2 * 100 + 2 * 500 + 2 * 1000 + 300 + 600 + 300},
        /* Nobody needs the spines. */
        {{2, 2, 0, {{2, 2, 0, 100000000000, 500, 300}, {1, 0, 0, 400000000000, 1000, 600}}},
         2 * 400 + 2 * 500 + 300},
        /* Leaf, agg, core, agg, leaf. */
        {{16,
          3,
          4,
          {{2, 2, 0, 100000000000, 500, 300},
           {2, 2, 0, 400000000000, 1000, 600},
           {4, 0, 0, 800000000000, 2000, 900}}},
         2 * (400 + 100 + 50) + 2 * (500 + 1000 + 2000) + 2 * (300 + 600) + 900},
        /* One pod: nobody needs the cores. */
        {{4,
          3,
          4,
          {{2, 2, 0, 100000000000, 500, 300},
           {2, 2, 0, 400000000000, 1000, 600},
           {1, 0, 0, 800000000000, 2000, 900}}},
         2 * (400 + 100) + 2 * (500 + 1000) + 2 * 300 + 600},
    };

    for (unsigned i = 0; i < COUNT(rows); i++) {
        double ns = mrd_sim_tree_longest_ns(&rows[i].topology, 5000);

        assert_true(ns > rows[i].ns - 0.001 && ns < rows[i].ns + 0.001);
    }
}

/* -------------------------------------------------------------------------------------- hashing */

enum { PORTS = 16, FLOWS = 16000, FLOW_PORTS = 64 };

/* A leaf-spine fabric cannot have two decisions in a row; this one has. */
static const struct mrd_sim_topology wide = {
    1024, 3, 64, {{4, PORTS, 0, SPEED}, {PORTS, PORTS, 0, SPEED}, {16, 0, 0, SPEED}}};

/* Flows as a fabric has them: few pairs of hosts, many ports. */
static struct mrd_sim_tuple tuple_of(unsigned flow)
{
    return (struct mrd_sim_tuple){.source = flow / FLOW_PORTS % 4,
                                  .destination = 64 + flow / FLOW_PORTS,
                                  .source_port = (uint16_t)(49152 + flow % FLOW_PORTS),
                                  .destination_port = 4793,
                                  .protocol = 17};
}

static double chi_square(const unsigned *count, unsigned total)
{
    double expected = (double)total / PORTS, sum = 0;

    for (unsigned i = 0; i < PORTS; i++)
        sum += (count[i] - expected) * (count[i] - expected) / expected;
    return sum;
}

/* With 15 degrees of freedom, chi-square is between these in all but 2 cases of 10,000. */
static bool is_uniform(const unsigned *count, unsigned total)
{
    double chi = chi_square(count, total);

    return chi > 2.1 && chi < 44.3;
}

/*
 * Of flows that one switch sends by one port, the next has the same share on each of its own. If
 * all hashed alike, the second would use one port of all: polarisation.
 */
TEST(mrd_sim_tree_hash__no_polarisation)
{
    struct mrd_sim_tree tree;

    tree_init(&tree, &wide, 1);
    for (unsigned port = 0; port < PORTS; port++) {
        const struct mrd_sim_switch *leaf = &tree.switches[0];
        uint32_t above = mrd_sim_tree_ends(&tree, leaf->up_first + port).to - wide.hosts;
        unsigned count[PORTS] = {0}, total = 0;

        for (unsigned flow = 0; flow < FLOWS; flow++) {
            struct mrd_sim_tuple tuple = tuple_of(flow);

            if (mrd_sim_tree_hash(leaf, &tuple) % PORTS != port)
                continue;
            count[mrd_sim_tree_hash(&tree.switches[above], &tuple) % PORTS]++;
            total++;
        }
        assert_true(total > FLOWS / PORTS / 2);
        assert_true(is_uniform(count, total));
    }
    mrd_sim_tree_fini(&tree);
}

/* The seed alone decides the ways; with another one about 1 in PORTS is the same. */
TEST(mrd_sim_tree_hash__seeded)
{
    struct mrd_sim_tree a, b, c;
    unsigned same = 0;

    tree_init(&a, &wide, 7);
    tree_init(&b, &wide, 7);
    tree_init(&c, &wide, 8);
    for (unsigned flow = 0; flow < FLOWS; flow++) {
        struct mrd_sim_tuple tuple = tuple_of(flow);
        unsigned s = flow % a.num_switches;
        uint64_t hash = mrd_sim_tree_hash(&a.switches[s], &tuple);

        assert_true(hash == mrd_sim_tree_hash(&b.switches[s], &tuple));
        same += hash % PORTS == mrd_sim_tree_hash(&c.switches[s], &tuple) % PORTS;
    }
    assert_in_range(same, FLOWS / PORTS * 8 / 10, FLOWS / PORTS * 12 / 10);
    mrd_sim_tree_fini(&a);
    mrd_sim_tree_fini(&b);
    mrd_sim_tree_fini(&c);
}
