/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/topo.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "tools/sim/lines.h"
#include "tools/sim/topo_check.h"

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

/* Returns the line of the faulty word, or of the tier that lacks it. */
static unsigned fault_line(const struct parser *p, const struct simx_topo_fault *fault)
{
    const struct block *tier = &p->tier[fault->tier];

    if (fault->field < SIMX_TOPO_HEADERS)
        return p->header.field_line[fault->field];
    return tier->field_line[fault->field] ? tier->field_line[fault->field] : tier->line;
}

static int parse(struct parser *p, const char *path, struct mrd_sim_topology *topo)
{
    struct simx_topo_fault fault;
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
    rc = simx_topo_find_fault(topo, &fault);
    if (rc)
        rc = simx_lines_expected_at(&p->lines, fault_line(p, &fault), fault.found, "%s",
                                    fault.expected);
    return rc;
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
