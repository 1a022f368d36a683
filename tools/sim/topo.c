/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/topo.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tools/sim/fail.h"
#include "tools/sim/lines.h"

/* Words of the file. The first ones are of the whole, the others of a tier. */
enum simx_topo_field {
    SIMX_TOPO_NODES,
    SIMX_TOPO_TIERS,
    SIMX_TOPO_PODSIZE,
    SIMX_TOPO_HEADERS,
    SIMX_TOPO_SPEED = SIMX_TOPO_HEADERS,
    SIMX_TOPO_RADIX_DOWN,
    SIMX_TOPO_RADIX_UP,
    SIMX_TOPO_OVERSUBSCRIBED,
    SIMX_TOPO_LINK_NS,
    SIMX_TOPO_SWITCH_NS,
    SIMX_TOPO_BUNDLE,
    SIMX_TOPO_FIELDS,
};

/* Numbers with a fraction are stored as billionths, so that Gb/s are exact as b/s. */
#define BILLION 1000000000ull
enum { FRACTION_DIGITS = 9, DECIMAL_BYTES = 32 };

#define BPS_MAX   (SIMX_TOPO_GBPS_MAX * BILLION)
#define RATIO_MAX (SIMX_TOPO_RADIX_MAX * BILLION)
#define NS_MAX    (1000 * BILLION)
/* Links up that follow from Oversubscribed may be off by this: it is often a rounded fraction. */
#define LINKS_TOLERANCE 0.01

static const struct {
    const char *name;
    uint64_t low, high;
    bool decimal;  /* with a fraction; bounds and value are billionths */
    bool required; /* in each tier */
} fields[SIMX_TOPO_FIELDS] = {
    [SIMX_TOPO_NODES] = {"Nodes", 2, SIMX_TOPO_HOSTS_MAX, false, false},
    [SIMX_TOPO_TIERS] = {"Tiers", 2, MRD_SIM_TIERS_MAX, false, false},
    [SIMX_TOPO_PODSIZE] = {"Podsize", 1, SIMX_TOPO_HOSTS_MAX, false, false},
    [SIMX_TOPO_SPEED] = {"Downlink_speed_Gbps", 1, BPS_MAX, true, true},
    [SIMX_TOPO_RADIX_DOWN] = {"Radix_Down", 1, SIMX_TOPO_RADIX_MAX, false, true},
    [SIMX_TOPO_RADIX_UP] = {"Radix_Up", 1, SIMX_TOPO_RADIX_MAX, false, false},
    [SIMX_TOPO_OVERSUBSCRIBED] = {"Oversubscribed", 1, RATIO_MAX, true, false},
    [SIMX_TOPO_LINK_NS] = {"Downlink_Latency_ns", 0, NS_MAX, false, true},
    [SIMX_TOPO_SWITCH_NS] = {"Switch_Latency_ns", 0, NS_MAX, false, false},
    [SIMX_TOPO_BUNDLE] = {"Bundle", 1, SIMX_TOPO_RADIX_MAX, false, false},
};

/* Words seen so far of the header or of one tier. */
struct block {
    uint64_t value[SIMX_TOPO_FIELDS];
    unsigned field_line[SIMX_TOPO_FIELDS]; /* 0: not seen */
    unsigned line;                         /* of the word Tier; 0: not seen */
};

struct parser {
    struct simx_lines lines;
    struct block header;
    struct block tier[MRD_SIM_TIERS_MAX];
    struct block *current; /* NULL: before the first tier */
};

static bool parse_decimal(const char *text, uint64_t *billionths)
{
    const char *end = text + strlen(text);
    const char *point = strchr(text, '.');
    const char *fraction = point ? point + 1 : end;
    uint64_t whole, part = 0;

    if (!simx_parse_u64(text, point ? point : end, &whole) || whole > UINT64_MAX / BILLION - 1)
        return false;
    if (point && (end - fraction > FRACTION_DIGITS || !simx_parse_u64(fraction, end, &part)))
        return false;
    for (long digits = end - fraction; digits < FRACTION_DIGITS; digits++)
        part *= 10;
    *billionths = whole * BILLION + part;
    return true;
}

static const char *format_decimal(char *text, uint64_t billionths)
{
    int used =
        snprintf(text, DECIMAL_BYTES, "%llu.%09llu", billionths / BILLION, billionths % BILLION);

    while (text[used - 1] == '0')
        used--;
    if (text[used - 1] == '.')
        used--;
    text[used] = '\0';
    return text;
}

static int parse_field(struct parser *p, struct block *block, int index)
{
    const char *name = fields[index].name;
    const char *word = simx_lines_word(&p->lines, 1);
    uint64_t low = fields[index].low, high = fields[index].high;
    uint64_t *value = &block->value[index];

    if (block->field_line[index])
        return simx_lines_expected(&p->lines, p->lines.word[0], "%s only once, as on line %u", name,
                                   block->field_line[index]);
    block->field_line[index] = p->lines.line;
    if (!fields[index].decimal) {
        simx_lines_cut_fraction(&p->lines, 1);
        int rc = simx_lines_u64(&p->lines, 1, name, low, high, value);
        return rc ? rc : simx_lines_end(&p->lines, 2);
    }
    if (!parse_decimal(word, value) || *value < low || *value > high)
        return simx_lines_expected(&p->lines, word,
                                   "%s above 0, at most %llu and of at most %d decimals", name,
                                   (unsigned long long)(high / BILLION), FRACTION_DIGITS);
    return simx_lines_end(&p->lines, 2);
}

/* All of the header comes before the first tier. */
static int check_header(struct parser *p, const char *found)
{
    for (int i = 0; i < SIMX_TOPO_HEADERS; i++) {
        if (p->header.field_line[i])
            continue;
        if (i == SIMX_TOPO_PODSIZE && p->header.value[SIMX_TOPO_TIERS] == 2)
            continue;
        return simx_lines_expected(&p->lines, found, "%s before the first Tier", fields[i].name);
    }
    return 0;
}

static int parse_tier(struct parser *p)
{
    uint64_t tier;
    int rc = check_header(p, p->lines.word[0]);

    if (rc == 0)
        rc = simx_lines_u64(&p->lines, 1, "Tier", 0, p->header.value[SIMX_TOPO_TIERS] - 1, &tier);
    if (rc == 0)
        rc = simx_lines_end(&p->lines, 2);
    if (rc)
        return rc;
    if (p->tier[tier].line)
        return simx_lines_expected(&p->lines, p->lines.word[1], "a Tier other than that of line %u",
                                   p->tier[tier].line);
    p->current = &p->tier[tier];
    p->current->line = p->lines.line;
    return 0;
}

static int parse_line(struct simx_lines *lines, void *arg)
{
    struct parser *p = arg;
    const char *word = lines->word[0];
    int first = p->current ? SIMX_TOPO_HEADERS : 0;
    int end = p->current ? SIMX_TOPO_FIELDS : SIMX_TOPO_HEADERS;

    if (strcasecmp(word, "Tier") == 0)
        return parse_tier(p);
    for (int i = first; i < end; i++) {
        if (strcasecmp(word, fields[i].name) == 0)
            return parse_field(p, p->current ? p->current : &p->header, i);
    }
    if (strcasecmp(word, "Queue_Down") == 0 || strcasecmp(word, "Queue_Up") == 0)
        return simx_lines_expected(&p->lines, word, "no queues of a tier: --queue is of all ports");
    if (p->current)
        return simx_lines_expected(&p->lines, word,
                                   "Tier, or Downlink_speed_Gbps, Radix_Down or another word of a "
                                   "tier");
    return simx_lines_expected(&p->lines, word, "Nodes, Tiers, Podsize or Tier");
}

static int check_required(struct parser *p, unsigned index)
{
    const struct block *tier = &p->tier[index];

    if (!tier->line)
        return simx_lines_expected(&p->lines, SIMX_END_OF_FILE, "Tier %u", index);
    for (int i = SIMX_TOPO_HEADERS; i < SIMX_TOPO_FIELDS; i++) {
        if (fields[i].required && !tier->field_line[i])
            return simx_lines_expected_at(&p->lines, tier->line, "nothing", "%s in tier %u",
                                          fields[i].name, index);
    }
    return 0;
}

/* Radix_Up and Oversubscribed say the same: the one that is there, or that both agree. */
static int settle_links_up(struct parser *p, unsigned index)
{
    struct block *tier = &p->tier[index];
    uint64_t *value = tier->value;
    const uint64_t *above = tier[1].value;
    unsigned oversubscribed_line = tier->field_line[SIMX_TOPO_OVERSUBSCRIBED];
    char found[DECIMAL_BYTES], right[DECIMAL_BYTES], down[DECIMAL_BYTES], up[DECIMAL_BYTES];

    if (!oversubscribed_line && !tier->field_line[SIMX_TOPO_RADIX_UP])
        return simx_lines_expected_at(&p->lines, tier->line, "nothing",
                                      "Radix_Up or Oversubscribed in tier %u", index);
    if (!oversubscribed_line)
        return 0;
    double capacity = (double)value[SIMX_TOPO_RADIX_DOWN] * (double)value[SIMX_TOPO_SPEED];
    double links = capacity / ((double)value[SIMX_TOPO_OVERSUBSCRIBED] / (double)BILLION) /
                   (double)above[SIMX_TOPO_SPEED];

    format_decimal(found, value[SIMX_TOPO_OVERSUBSCRIBED]);
    format_decimal(down, value[SIMX_TOPO_SPEED]);
    if (!tier->field_line[SIMX_TOPO_RADIX_UP]) {
        if (fabs(links - round(links)) > LINKS_TOLERANCE || links < 0.5 ||
            links > SIMX_TOPO_RADIX_MAX)
            return simx_lines_expected_at(&p->lines, oversubscribed_line, found,
                                          "an Oversubscribed in tier %u that leaves whole links up "
                                          "of Radix_Down %" PRIu64 " at %s Gb/s",
                                          index, value[SIMX_TOPO_RADIX_DOWN], down);
        value[SIMX_TOPO_RADIX_UP] = (uint64_t)llround(links);
        return 0;
    }
    double links_up = (double)value[SIMX_TOPO_RADIX_UP];
    if (fabs(links - links_up) <= LINKS_TOLERANCE)
        return 0;
    double ratio = capacity / links_up / (double)above[SIMX_TOPO_SPEED];
    snprintf(right, sizeof(right), "%.6g", ratio);
    return simx_lines_expected_at(&p->lines, oversubscribed_line, found,
                                  "Oversubscribed %s in tier %u, as Radix_Down %" PRIu64
                                  " at %s Gb/s is to Radix_Up %" PRIu64 " at %s Gb/s",
                                  right, index, value[SIMX_TOPO_RADIX_DOWN], down,
                                  value[SIMX_TOPO_RADIX_UP],
                                  format_decimal(up, above[SIMX_TOPO_SPEED]));
}

/* The top tier has no links up: only an Oversubscribed that says nothing is let pass. */
static int check_top(struct parser *p, unsigned index)
{
    const struct block *tier = &p->tier[index];
    char found[DECIMAL_BYTES];

    if (!tier->field_line[SIMX_TOPO_OVERSUBSCRIBED] ||
        tier->value[SIMX_TOPO_OVERSUBSCRIBED] == BILLION)
        return 0;
    return simx_lines_expected_at(&p->lines, tier->field_line[SIMX_TOPO_OVERSUBSCRIBED],
                                  format_decimal(found, tier->value[SIMX_TOPO_OVERSUBSCRIBED]),
                                  "no Oversubscribed in the top tier, %u", index);
}

static void fill(const struct parser *p, struct mrd_sim_topology *topo)
{
    const uint64_t *header = p->header.value;

    *topo = (struct mrd_sim_topology){
        .hosts = (uint32_t)header[SIMX_TOPO_NODES],
        .tiers = (uint32_t)header[SIMX_TOPO_TIERS],
        .pod_hosts = (uint32_t)(p->header.field_line[SIMX_TOPO_PODSIZE] ? header[SIMX_TOPO_PODSIZE]
                                                                        : header[SIMX_TOPO_NODES]),
    };
    for (uint32_t i = 0; i < topo->tiers; i++) {
        const uint64_t *value = p->tier[i].value;

        topo->tier[i] = (struct mrd_sim_tier){
            .radix_down = (uint32_t)value[SIMX_TOPO_RADIX_DOWN],
            .radix_up = (uint32_t)value[SIMX_TOPO_RADIX_UP],
            .bundle = value[SIMX_TOPO_BUNDLE] ? (uint32_t)value[SIMX_TOPO_BUNDLE] : 1,
            .rate_bps = value[SIMX_TOPO_SPEED],
            .delay_ns = value[SIMX_TOPO_LINK_NS],
            .switch_ns = value[SIMX_TOPO_SWITCH_NS],
        };
    }
}

/* --------------------------------------------------------------------------------------- checks */

/* The word of the file that is wrong. */
struct fault {
    uint32_t tier; /* of a field that is of a tier */
    enum simx_topo_field field;
};

/* Sets the fault, and the sentence without its line. */
__attribute__((format(printf, 5, 6))) static int fault_at(struct fault *fault, uint32_t tier,
                                                          enum simx_topo_field field,
                                                          uint64_t found, const char *what, ...)
{
    char expected[192];
    va_list args;

    *fault = (struct fault){tier, field};
    va_start(args, what);
    vsnprintf(expected, sizeof(expected), what, args);
    va_end(args);
    return simx_fail(-EINVAL, "expected %s, found '%" PRIu64 "'", expected, found);
}

static uint32_t bundle_of(const struct mrd_sim_tier *tier)
{
    return tier->bundle ? tier->bundle : 1;
}

/* With these bounds no product below overflows, and no divisor is 0. */
static int check_ranges(const struct mrd_sim_topology *topo, struct fault *fault)
{
    if (topo->hosts < 2 || topo->hosts > SIMX_TOPO_HOSTS_MAX)
        return fault_at(fault, 0, SIMX_TOPO_NODES, topo->hosts, "Nodes of 2 .. %d",
                        SIMX_TOPO_HOSTS_MAX);
    if (topo->tiers < 2 || topo->tiers > MRD_SIM_TIERS_MAX)
        return fault_at(fault, 0, SIMX_TOPO_TIERS, topo->tiers, "Tiers of 2 .. %d",
                        MRD_SIM_TIERS_MAX);
    for (uint32_t i = 0; i < topo->tiers; i++) {
        const struct mrd_sim_tier *tier = &topo->tier[i];
        bool is_top = i + 1 == topo->tiers;

        if (tier->rate_bps == 0 || tier->rate_bps > SIMX_TOPO_GBPS_MAX * 1000000000ull)
            return fault_at(fault, i, SIMX_TOPO_SPEED, tier->rate_bps,
                            "1 b/s .. %d Gb/s in tier %u", SIMX_TOPO_GBPS_MAX, i);
        if (tier->radix_down == 0 || tier->radix_down > SIMX_TOPO_RADIX_MAX)
            return fault_at(fault, i, SIMX_TOPO_RADIX_DOWN, tier->radix_down,
                            "Radix_Down of 1 .. %d in tier %u", SIMX_TOPO_RADIX_MAX, i);
        if (is_top && tier->radix_up != 0)
            return fault_at(fault, i, SIMX_TOPO_RADIX_UP, tier->radix_up,
                            "no Radix_Up in the top tier, %u", i);
        if (!is_top && (tier->radix_up == 0 || tier->radix_up > SIMX_TOPO_RADIX_MAX))
            return fault_at(fault, i, SIMX_TOPO_RADIX_UP, tier->radix_up,
                            "Radix_Up of 1 .. %d in tier %u", SIMX_TOPO_RADIX_MAX, i);
    }
    return 0;
}

static int check_bundles(const struct mrd_sim_topology *topo, struct fault *fault)
{
    if (bundle_of(&topo->tier[0]) != 1)
        return fault_at(fault, 0, SIMX_TOPO_BUNDLE, topo->tier[0].bundle,
                        "Bundle 1 in tier 0, as a host has one link");
    for (uint32_t i = 1; i < topo->tiers; i++) {
        const struct mrd_sim_tier *tier = &topo->tier[i], *below = tier - 1;
        uint32_t bundle = bundle_of(tier);

        if (tier->radix_down % bundle)
            return fault_at(fault, i, SIMX_TOPO_BUNDLE, bundle,
                            "a Bundle in tier %u that divides its Radix_Down %u", i,
                            tier->radix_down);
        if (below->radix_up % bundle)
            return fault_at(fault, i, SIMX_TOPO_BUNDLE, bundle,
                            "a Bundle in tier %u that divides Radix_Up %u of tier %u", i,
                            below->radix_up, i - 1);
    }
    return 0;
}

/* The links down of each switch of tier `i` are one bundle to each of `count` switches below it. */
static int check_down(const struct mrd_sim_topology *topo, uint32_t i, uint32_t count,
                      const char *below, struct fault *fault)
{
    uint64_t links = (uint64_t)count * bundle_of(&topo->tier[i]);

    if (topo->tier[i].radix_down == links)
        return 0;
    return fault_at(fault, i, SIMX_TOPO_RADIX_DOWN, topo->tier[i].radix_down,
                    "Radix_Down %" PRIu64 " in tier %u, one for each of %u %s times Bundle %u",
                    links, i, count, below, bundle_of(&topo->tier[i]));
}

static int check_leaf_spine(const struct mrd_sim_topology *topo, struct fault *fault)
{
    uint32_t leaf_hosts = topo->tier[0].radix_down;

    if (topo->pod_hosts != 0 && topo->pod_hosts != topo->hosts)
        return fault_at(fault, 0, SIMX_TOPO_PODSIZE, topo->pod_hosts,
                        "Podsize %u, all Nodes, with 2 tiers", topo->hosts);
    if (topo->hosts % leaf_hosts)
        return fault_at(fault, 0, SIMX_TOPO_NODES, topo->hosts,
                        "Nodes in multiples of Radix_Down %u of tier 0", leaf_hosts);
    return check_down(topo, 1, topo->hosts / leaf_hosts, "leaves", fault);
}

/*
 * Each agg of a pod has a bundle to each leaf of it. Agg i of every pod has a bundle to each of the
 * same cores, those of group i, and each core one to agg i of every pod. There are then Radix_Up[1]
 * / Bundle[2] cores in a group, and their number needs no check of its own.
 */
static int check_fat_tree(const struct mrd_sim_topology *topo, struct fault *fault)
{
    uint32_t leaf_hosts = topo->tier[0].radix_down;

    if (topo->pod_hosts == 0 || topo->hosts % topo->pod_hosts)
        return fault_at(fault, 0, SIMX_TOPO_PODSIZE, topo->pod_hosts,
                        "a Podsize that divides Nodes %u", topo->hosts);
    if (topo->pod_hosts % leaf_hosts)
        return fault_at(fault, 0, SIMX_TOPO_PODSIZE, topo->pod_hosts,
                        "Podsize in multiples of Radix_Down %u of tier 0", leaf_hosts);
    int rc = check_down(topo, 1, topo->pod_hosts / leaf_hosts, "leaves of a pod", fault);
    return rc ? rc : check_down(topo, 2, topo->hosts / topo->pod_hosts, "pods", fault);
}

static int find_fault(const struct mrd_sim_topology *topo, struct fault *fault)
{
    int rc = check_ranges(topo, fault);

    if (rc == 0)
        rc = check_bundles(topo, fault);
    if (rc)
        return rc;
    return topo->tiers == 2 ? check_leaf_spine(topo, fault) : check_fat_tree(topo, fault);
}

int simx_topo_check(const struct mrd_sim_topology *topo)
{
    return find_fault(topo, &(struct fault){0});
}

/* -------------------------------------------------------------------------------------- reading */

/* Returns the line of the faulty word, or of the tier that lacks it. */
static unsigned fault_line(const struct parser *p, const struct fault *fault)
{
    const struct block *tier = &p->tier[fault->tier];

    if (fault->field < SIMX_TOPO_HEADERS)
        return p->header.field_line[fault->field];
    return tier->field_line[fault->field] ? tier->field_line[fault->field] : tier->line;
}

static int parse(struct parser *p, const char *path, struct mrd_sim_topology *topo)
{
    struct fault fault;
    int rc = simx_lines_read(&p->lines, path, parse_line, p);

    if (rc == 0)
        rc = check_header(p, SIMX_END_OF_FILE);
    unsigned tiers = (unsigned)p->header.value[SIMX_TOPO_TIERS];
    for (unsigned i = 0; rc == 0 && i < tiers; i++)
        rc = check_required(p, i);
    for (unsigned i = 0; rc == 0 && i < tiers; i++)
        rc = i + 1 < tiers ? settle_links_up(p, i) : check_top(p, i);
    if (rc)
        return rc;
    fill(p, topo);
    rc = find_fault(topo, &fault);
    return rc ? simx_fail(rc, "%s:%u: %s", path, fault_line(p, &fault), mrd_last_error()) : 0;
}

int simx_topo_read(struct mrd_sim_topology *topo, const char *path)
{
    struct parser parser = {0};
    struct mrd_sim_topology read;
    int rc = parse(&parser, path, &read);

    if (rc == 0)
        *topo = read;
    return rc;
}
