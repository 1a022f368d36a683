/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of bottleneck.h: each played with several seeds, compared with its bounds, and printed. */
#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/bottleneck.h"

enum { SEEDS_DEFAULT = TEST_SEEDS(3) };

enum { SEEDS_MAX = 1000, SEEDS_MEDIAN = 3, SEEDS_SHOWN = 16, TEXT_BYTES = 512, NAME_BYTES = 64 };

enum good { GREAT, SMALL };

static const struct {
    const char *text;
    enum good good;
} kinds[] = {
#define BOTTLENECK_X(name, text, good) {text, good},
    BOTTLENECK_EACH_FIGURE(BOTTLENECK_X)
#undef BOTTLENECK_X
};

/* What one figure was with each seed, the best first. */
struct spread {
    double value[SEEDS_MAX];
    uint64_t seed[SEEDS_MAX];
    unsigned num;
};

static bool is_better(enum good good, double a, double b)
{
    return good == GREAT ? a > b : a < b;
}

static void spread_add(struct spread *s, enum good good, double value, uint64_t seed)
{
    unsigned at = s->num++;

    for (; at > 0 && is_better(good, value, s->value[at - 1]); at--) {
        s->value[at] = s->value[at - 1];
        s->seed[at] = s->seed[at - 1];
    }
    s->value[at] = value;
    s->seed[at] = seed;
}

static double median(const struct spread *s)
{
    return (s->value[(s->num - 1) / 2] + s->value[s->num / 2]) / 2;
}

static double worst(const struct spread *s)
{
    return s->value[s->num - 1];
}

static unsigned num_seeds(int seed_is_given)
{
    const char *text = getenv("MRD_BOTTLENECK_SEEDS");
    unsigned long n = text ? strtoul(text, NULL, 0) : 0;

    if (n == 0)
        return seed_is_given ? 1 : SEEDS_DEFAULT;
    return n < SEEDS_MAX ? (unsigned)n : SEEDS_MAX;
}

/* The scene in words. */
static void describe(const struct bottleneck *b, char *text, size_t len)
{
    static const char *const knows[] = {"sockets", "rdma", "fabric"};
    size_t at = (size_t)snprintf(text, len, "%s %gG x%g", b->shape ? "incast" : "dumbbell", b->gbps,
                                 b->speedup > 0 ? b->speedup : 1);

#define ADD(...)                                                                                   \
    do {                                                                                           \
        if (at < len)                                                                              \
            at += (size_t)snprintf(text + at, len - at, __VA_ARGS__);                              \
    } while (0)
    if (b->far_rtt_us > 0)
        ADD(" rtt %g+%gus", b->rtt_us, b->far_rtt_us);
    else
        ADD(" rtt %gus", b->rtt_us);
    ADD(" queue %.0fK%s %s %u", bottleneck_queue_bytes(b) / 1000, b->ecn ? " ecn" : "",
        knows[b->knows], b->flows);
    if (b->rpcs)
        ADD("+%u rpc", b->rpcs);
    if (b->cubics)
        ADD("+%u tcp", b->cubics);
    if (b->jitter_us > 0)
        ADD(" jitter %gus", b->jitter_us);
#undef ADD
}

/* The figures that the printed table has: bits. */
static uint64_t shown;

/* ---------------------------------------------------------------------------------------- the printed table */

static void print_head(const struct spread *spreads)
{
    printf("%-12s %-58s %5s", "row", "scene", "cpu s");
    for (unsigned i = 0; i < BOTTLENECK_FIGURES; i++) {
        if (isnan(spreads[i].value[0]))
            continue;
        shown |= 1ull << i;
        printf(" | %-15s", kinds[i].text);
    }
    printf("\n");
}

/* The median, and the worst behind it; in front of both what it took of a processor. */
static void print_row(const char *name, const char *scene, const struct spread *spreads,
                      double cpu_s)
{
    if (!shown)
        print_head(spreads);
    printf("%-12s %-58s %5.2f", name, scene, cpu_s);
    for (unsigned i = 0; i < BOTTLENECK_FIGURES; i++)
        if (shown & 1ull << i)
            printf(" | %7.*f %7.*f", i < BOTTLENECK_RPC_MEDIAN ? 4 : 1, median(&spreads[i]),
                   i < BOTTLENECK_RPC_MEDIAN ? 4 : 1, worst(&spreads[i]));
    printf("\n");
    fflush(stdout);
}

/* ------------------------------------------------------------------------------------------- the bounds */

static bool is_outside(enum good good, double value, double bound)
{
    return bound > 0 && !(good == GREAT ? value >= bound : value <= bound);
}

static bool compare(const char *name, const char *scene, unsigned figure, const struct spread *s,
                    const struct bottleneck_bound *bound)
{
    enum good good = kinds[figure].good;
    bool median_bad = s->num >= SEEDS_MEDIAN && is_outside(good, median(s), bound->median);
    bool worst_bad = is_outside(good, worst(s), bound->worst);
    char values[TEXT_BYTES] = "";

    if (!median_bad && !worst_bad)
        return true;
    for (unsigned i = 0, at = 0; i < s->num && i < SEEDS_SHOWN; i++)
        at += (unsigned)snprintf(values + at, sizeof(values) - at, " %.4g", s->value[i]);
    print_error("%s (%s): %s is to be at %s %g in the median and %g at worst, and was%s; "
                "the worst again: MRD_TEST_SEED=%" PRIu64 " MRD_BOTTLENECK_ROW=%s\n",
                name, scene, kinds[figure].text, good == GREAT ? "least" : "most", bound->median,
                bound->worst, values, s->seed[s->num - 1], name);
    return false;
}

/* Plays a scene with each seed. Is it within the bounds? */
static bool judge(const char *name, const struct bottleneck *scene,
                  const struct bottleneck_bound *bound, const enum bottleneck_figure *bounded)
{
    int is_given;
    uint64_t first = test_seed_or(test_seed(), &is_given);
    unsigned n = num_seeds(is_given);
    struct spread *spreads = calloc(BOTTLENECK_FIGURES, sizeof(*spreads));
    char text[TEXT_BYTES];
    bool is_good = true;
    clock_t start = clock();

    assert_non_null(spreads);
    describe(scene, text, sizeof(text));
    for (unsigned i = 0; i < n; i++) {
        struct bottleneck_figures figures;

        bottleneck_run(scene, first + i, &figures);
        for (unsigned k = 0; k < BOTTLENECK_FIGURES; k++)
            spread_add(&spreads[k], kinds[k].good, figures.of[k], first + i);
    }
    if (getenv("MRD_BOTTLENECK_PRINT"))
        print_row(name, text, spreads, (double)(clock() - start) / CLOCKS_PER_SEC);
    for (unsigned i = 0; i < BOTTLENECK_BOUNDED_MAX; i++)
        if (bound[i].median > 0 || bound[i].worst > 0)
            is_good = compare(name, text, bounded[i], &spreads[bounded[i]], &bound[i]) && is_good;
    free(spreads);
    return is_good;
}

static double or_common(double value, double common)
{
    return value > 0 ? value : common;
}

void bottleneck_judge(const char *table, const struct bottleneck_row *rows, size_t num,
                      const struct bottleneck *common, const enum bottleneck_figure *bounded)
{
    const char *pattern = getenv("MRD_BOTTLENECK_ROW");
    unsigned outside = 0;

    shown = 0;
    for (const struct bottleneck_row *r = rows; r < rows + num; r++) {
        struct bottleneck scene = *common;
        char name[NAME_BYTES];

        scene.shape = r->incast ? BOTTLENECK_INCAST : common->shape;
        scene.knows = r->knows ? r->knows : common->knows;
        scene.cc = r->cc ? r->cc : common->cc;
        scene.gbps = or_common(r->gbps, common->gbps);
        scene.speedup = or_common(r->speedup, common->speedup);
        scene.rtt_us = or_common(r->rtt_us, common->rtt_us);
        if (r->queue > 0)
            *(r->queue > BOTTLENECK_BDPS_MAX ? &scene.queue_bytes : &scene.queue_bdp) = r->queue;
        scene.ecn |= r->ecn;
        scene.flows = r->flows;
        scene.mtu = r->mtu ? r->mtu : common->mtu;
        scene.mss = r->mss;
        scene.loss = r->loss;
        scene.jitter_us = r->jitter_us;
        scene.stagger_ms = or_common(r->stagger_ms, common->stagger_ms);
        scene.warm_ms = or_common(r->warm_ms, common->warm_ms);
        scene.span_ms = or_common(r->span_ms, common->span_ms);
        snprintf(name, sizeof(name), "%s.%zu", table, r - rows + 1);
        if (!pattern || !*pattern || fnmatch(pattern, name, 0) == 0)
            outside += !judge(name, &scene, r->bound, bounded);
    }
    if (outside > 0)
        fail_msg("%u of %zu rows of \"%s\" are out of bounds", outside, num, table);
}
