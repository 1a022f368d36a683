/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/model/mc.h"

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include <cmocka.h>

enum {
    CHUNK_STATES = 1 << 14,
    CHUNKS_MAX = 4096, /* 64 million states */
    TABLE_START = 1 << 16,
    STEPS_ON = 8, /* printed beyond a state that is stuck */
};

static const size_t bytes_max = (size_t)3 << 30;

/* States are numbered in the order in which they were found. */
struct mc {
    const struct mc_model *model;
    const void *rules;
    uint8_t *chunk[CHUNKS_MAX];
    uint32_t num;
    uint32_t *parent; /* of each state: where it was first found from */
    uint32_t *table;  /* number + 1, open addressing */
    uint64_t mask;
    uint32_t *edge; /* MC_STEPs: targets, grouped by source */
    size_t edges, edges_max;
    uint32_t *edge_at; /* of each visited state: its first edge */
    size_t at_max, bytes;
    size_t transitions;
    uint32_t from; /* being expanded */
    bool full;
    /* Printing: the successor whose label is wanted. */
    const void *wanted;
    FILE *to;
};

static void *grow(struct mc *mc, void *p, size_t old_bytes, size_t new_bytes)
{
    p = realloc(p, new_bytes);
    assert(p);
    mc->bytes += new_bytes - old_bytes;
    return p;
}

static uint8_t *state_of(const struct mc *mc, uint32_t id)
{
    return mc->chunk[id / CHUNK_STATES] + (size_t)(id % CHUNK_STATES) * mc->model->state_bytes;
}

static uint64_t place_of(const struct mc *mc, const void *state)
{
    return XXH3_64bits(state, mc->model->state_bytes) & mc->mask;
}

static void table_double(struct mc *mc)
{
    uint64_t old = mc->mask + 1;

    mc->table = grow(mc, mc->table, old * sizeof(uint32_t), 2 * old * sizeof(uint32_t));
    mc->mask = 2 * old - 1;
    memset(mc->table, 0, 2 * old * sizeof(uint32_t));
    for (uint32_t id = 0; id < mc->num; id++) {
        uint64_t at = place_of(mc, state_of(mc, id));

        while (mc->table[at])
            at = (at + 1) & mc->mask;
        mc->table[at] = id + 1;
    }
}

/* The number of a state, new or not. */
static uint32_t add(struct mc *mc, const void *state)
{
    size_t bytes = mc->model->state_bytes;
    uint64_t at = place_of(mc, state);

    for (; mc->table[at]; at = (at + 1) & mc->mask)
        if (!memcmp(state_of(mc, mc->table[at] - 1), state, bytes))
            return mc->table[at] - 1;
    if (mc->num % CHUNK_STATES == 0) {
        uint32_t c = mc->num / CHUNK_STATES;

        assert(c < CHUNKS_MAX);
        mc->chunk[c] = grow(mc, NULL, 0, CHUNK_STATES * bytes);
        mc->parent = grow(mc, mc->parent, mc->num * sizeof(uint32_t),
                          (mc->num + CHUNK_STATES) * sizeof(uint32_t));
    }
    mc->num++;
    memcpy(state_of(mc, mc->num - 1), state, bytes);
    mc->parent[mc->num - 1] = mc->from;
    mc->table[at] = mc->num;
    if (mc->num * 2 > mc->mask)
        table_double(mc);
    mc->full = mc->bytes > bytes_max || mc->num == (uint32_t)CHUNK_STATES * CHUNKS_MAX;
    return mc->num - 1;
}

static void add_edge(struct mc *mc, uint32_t id)
{
    if (mc->edges == mc->edges_max) {
        size_t max = mc->edges_max ? 2 * mc->edges_max : CHUNK_STATES;

        mc->edge = grow(mc, mc->edge, mc->edges_max * sizeof(uint32_t), max * sizeof(uint32_t));
        mc->edges_max = max;
    }
    mc->edge[mc->edges++] = id;
}

void mc_emit(struct mc *mc, enum mc_kind kind, const void *state, const char *label, ...)
{
    va_list args;

    if (mc->to) {
        if (!mc->wanted || memcmp(mc->wanted, state, mc->model->state_bytes))
            return;
        mc->wanted = NULL;
        va_start(args, label);
        vfprintf(mc->to, label, args);
        va_end(args);
        fprintf(mc->to, "%s\n", kind == MC_FAULT ? "   [fault]" : "");
        return;
    }
    if (mc->full)
        return;
    mc->transitions++;
    uint32_t id = add(mc, state);
    if (kind == MC_STEP && mc->model->goal && id != mc->from)
        add_edge(mc, id);
}

/* One line: the step that leads from a state to the next one. */
static void print_step(struct mc *mc, size_t number, uint32_t from, uint32_t next, FILE *to)
{
    fprintf(to, "  %3zu. ", number);
    mc->to = to;
    mc->wanted = state_of(mc, next);
    mc->model->next(mc, mc->rules, state_of(mc, from));
    mc->to = NULL;
}

static void print_state(struct mc *mc, uint32_t id, FILE *to)
{
    fprintf(to, "   then: ");
    mc->model->show(mc->rules, state_of(mc, id), to);
    fprintf(to, "\n");
}

/* The way to a state. Returns the number of steps. */
static size_t print_way(struct mc *mc, uint32_t id, FILE *to)
{
    size_t steps = 0;
    uint32_t *way;

    for (uint32_t i = id; i; i = mc->parent[i])
        steps++;
    if (!to)
        return steps;
    way = malloc((steps + 1) * sizeof(*way));
    assert(way);
    for (uint32_t i = id, k = (uint32_t)steps; k; i = mc->parent[i])
        way[k--] = i;
    way[0] = 0;
    for (size_t n = 0; n < steps; n++)
        print_step(mc, n + 1, way[n], way[n + 1], to);
    print_state(mc, id, to);
    free(way);
    return steps;
}

/* How it goes on from a stuck state, for the reader: any way over MC_STEPs to states not seen on it. */
static void print_on(struct mc *mc, uint32_t id, size_t number, FILE *to)
{
    uint32_t way[STEPS_ON + 1] = {id}, n = 0;
    bool moved = true;

    while (moved && n < STEPS_ON) {
        moved = false;
        for (uint32_t k = mc->edge_at[way[n]]; k < mc->edge_at[way[n] + 1] && !moved; k++) {
            moved = true;
            for (uint32_t i = 0; i <= n; i++)
                moved = moved && way[i] != mc->edge[k];
            if (moved)
                way[n + 1] = mc->edge[k];
        }
        if (moved) {
            print_step(mc, ++number, way[n], way[n + 1], to);
            n++;
        }
    }
    if (n)
        print_state(mc, way[n], to);
}

/*
 * Backwards from all goals, over MC_STEPs. A state that is not reached, or UINT32_MAX: the first one, or, if nothing
 * reaches a goal from the start on, the last one, to show how it ends.
 */
static uint32_t find_stuck(struct mc *mc)
{
    uint32_t n = mc->num, *begin, *source, *queue, found = UINT32_MAX;
    size_t head = 0, tail = 0;
    uint8_t *live;

    begin = calloc(n + 2, sizeof(*begin));
    source = malloc((mc->edges + 1) * sizeof(*source));
    queue = malloc(((size_t)n + 1) * sizeof(*queue));
    live = calloc(n + 1, 1);
    assert(begin && source && queue && live);
    for (size_t i = 0; i < mc->edges; i++)
        begin[mc->edge[i] + 2]++;
    for (uint32_t i = 1; i < n + 2; i++)
        begin[i] += begin[i - 1];
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = mc->edge_at[i]; k < mc->edge_at[i + 1]; k++)
            source[begin[mc->edge[k] + 1]++] = i; /* begin[x + 1] ends as the end of x */
    for (uint32_t i = 0; i < n; i++) {
        live[i] = mc->model->goal(mc->rules, state_of(mc, i));
        if (live[i])
            queue[tail++] = i;
    }
    for (; head < tail; head++)
        for (uint32_t k = begin[queue[head]]; k < begin[queue[head] + 1]; k++)
            if (!live[source[k]]) {
                live[source[k]] = 1;
                queue[tail++] = source[k];
            }
    for (uint32_t i = 0; i < n && (found == UINT32_MAX || !live[0]); i++)
        if (!live[i])
            found = i;
    free(begin);
    free(source);
    free(queue);
    free(live);
    return found;
}

/* Visit everything. The number of the first bad state, or UINT32_MAX. */
static uint32_t visit(struct mc *mc, struct mc_result *result)
{
    uint32_t level_end = 1;

    for (uint32_t i = 0; i < mc->num; i++) {
        const void *state = state_of(mc, i);

        if (i == level_end) {
            result->depth++;
            level_end = mc->num;
        }
        result->why = mc->model->bad(mc->rules, state);
        if (result->why)
            return i;
        if (i + 2 > mc->at_max) {
            size_t max = mc->at_max ? 2 * mc->at_max : CHUNK_STATES;

            mc->edge_at =
                grow(mc, mc->edge_at, mc->at_max * sizeof(uint32_t), max * sizeof(uint32_t));
            mc->at_max = max;
        }
        mc->edge_at[i] = (uint32_t)mc->edges;
        mc->from = i;
        mc->model->next(mc, mc->rules, state);
        mc->edge_at[i + 1] = (uint32_t)mc->edges;
        if (mc->full)
            break;
    }
    return UINT32_MAX;
}

struct mc_result mc_run(const struct mc_model *model, const void *rules, FILE *to)
{
    struct mc_result result = {.verdict = MC_HOLDS};
    struct mc *mc = calloc(1, sizeof(*mc));
    void *first = calloc(1, model->state_bytes);
    uint32_t found;

    assert(mc && first);
    mc->model = model;
    mc->rules = rules;
    mc->mask = TABLE_START - 1;
    mc->table = calloc(TABLE_START, sizeof(*mc->table));
    assert(mc->table);
    model->init(rules, first);
    add(mc, first);
    found = visit(mc, &result);
    if (found != UINT32_MAX)
        result.verdict = MC_BAD;
    else if (mc->full)
        result.verdict = MC_LIMIT;
    else if (model->goal && (found = find_stuck(mc)) != UINT32_MAX)
        result.verdict = MC_STUCK;
    if (found != UINT32_MAX)
        result.steps = print_way(mc, found, to);
    if (result.verdict == MC_STUCK && to)
        print_on(mc, found, result.steps, to);
    result.states = mc->num;
    result.transitions = mc->transitions;
    for (uint32_t c = 0; c < CHUNKS_MAX && mc->chunk[c]; c++)
        free(mc->chunk[c]);
    free(mc->parent);
    free(mc->table);
    free(mc->edge);
    free(mc->edge_at);
    free(mc);
    free(first);
    return result;
}

void mc_expect(const struct mc_model *model, const void *rules, const char *variant,
               enum mc_verdict verdict, const char *why)
{
    static const char *const name[] = {"holds", "bad state", "cannot reach the goal", "too large"};
    FILE *to = getenv("MRD_MODEL_TRACE") ? stdout : NULL;
    struct mc_result r = mc_run(model, rules, to);
    bool expected = r.verdict == verdict && (!why || (r.why && !strcmp(r.why, why)));

    printf("%s, %s: %s%s%s (%zu states, %zu transitions, depth %zu", model->name, variant,
           name[r.verdict], r.why ? ": " : "", r.why ? r.why : "", r.states, r.transitions,
           r.depth);
    printf(r.steps ? "; counterexample of %zu steps)\n" : ")\n", r.steps);
    if (!expected && !to)
        mc_run(model, rules, stdout);
    fflush(stdout);
    assert_true(expected);
}
