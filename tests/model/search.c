/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/model/search.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    CHUNK_STATES = 1 << 14,
    CHUNKS_MAX = 4096, /* 64 million states */
    TABLE_START = 1 << 16,
    STEPS_ON = 8, /* printed beyond a state that is stuck */
};

static const size_t bytes_max = (size_t)3 << 30;

enum verdict {
    HOLDS,
    BAD,   /* a state is bad */
    STUCK, /* a state cannot reach the goal */
    LIMIT, /* too many states: nothing is known of the rest */
};

struct result {
    enum verdict verdict;
    const char *why; /* BAD: of bad() */
    size_t states, transitions, depth;
    size_t steps; /* of the counterexample */
};

/* The search under way. States are numbered in the order in which they were found. */
static struct {
    const struct rules *rules;
    uint8_t *chunk[CHUNKS_MAX];
    uint32_t num;
    uint32_t *parent; /* of each state: where it was first found from */
    uint32_t *table;  /* number + 1, open addressing */
    uint64_t mask;
    uint32_t *edge; /* of search_step(): targets, grouped by source */
    size_t edges, edges_max;
    uint32_t *edge_at; /* of each visited state: its first edge */
    size_t at_max, bytes;
    size_t transitions;
    uint32_t from; /* being expanded */
    bool full;
    /* Printing: the successor whose label is wanted. */
    const struct state *wanted;
    FILE *to;
} search;

static void *grow(void *p, size_t old_bytes, size_t new_bytes)
{
    p = realloc(p, new_bytes);
    assert(p);
    search.bytes += new_bytes - old_bytes;
    return p;
}

static struct state *state_of(uint32_t id)
{
    return (struct state *)(search.chunk[id / CHUNK_STATES] +
                            (size_t)(id % CHUNK_STATES) * search_model.state_bytes);
}

static uint64_t place_of(const struct state *state)
{
    return XXH3_64bits(state, search_model.state_bytes) & search.mask;
}

static void table_double(void)
{
    uint64_t old = search.mask + 1;

    search.table = grow(search.table, old * sizeof(uint32_t), 2 * old * sizeof(uint32_t));
    search.mask = 2 * old - 1;
    memset(search.table, 0, 2 * old * sizeof(uint32_t));
    for (uint32_t id = 0; id < search.num; id++) {
        uint64_t at = place_of(state_of(id));

        while (search.table[at])
            at = (at + 1) & search.mask;
        search.table[at] = id + 1;
    }
}

/* The number of a state, new or not. */
static uint32_t add(const struct state *state)
{
    size_t bytes = search_model.state_bytes;
    uint64_t at = place_of(state);

    for (; search.table[at]; at = (at + 1) & search.mask)
        if (!memcmp(state_of(search.table[at] - 1), state, bytes))
            return search.table[at] - 1;
    if (search.num % CHUNK_STATES == 0) {
        uint32_t c = search.num / CHUNK_STATES;

        assert(c < CHUNKS_MAX);
        search.chunk[c] = grow(NULL, 0, CHUNK_STATES * bytes);
        search.parent = grow(search.parent, search.num * sizeof(uint32_t),
                             (search.num + CHUNK_STATES) * sizeof(uint32_t));
    }
    search.num++;
    memcpy(state_of(search.num - 1), state, bytes);
    search.parent[search.num - 1] = search.from;
    search.table[at] = search.num;
    if (search.num * 2 > search.mask)
        table_double();
    search.full = search.bytes > bytes_max || search.num == (uint32_t)CHUNK_STATES * CHUNKS_MAX;
    return search.num - 1;
}

static void add_edge(uint32_t id)
{
    if (search.edges == search.edges_max) {
        size_t max = search.edges_max ? 2 * search.edges_max : CHUNK_STATES;

        search.edge =
            grow(search.edge, search.edges_max * sizeof(uint32_t), max * sizeof(uint32_t));
        search.edges_max = max;
    }
    search.edge[search.edges++] = id;
}

static void emit(bool is_step, const struct state *state, const char *label, va_list args)
{
    if (search.to) {
        if (!search.wanted || memcmp(search.wanted, state, search_model.state_bytes))
            return;
        search.wanted = NULL;
        vfprintf(search.to, label, args);
        fprintf(search.to, "%s\n", is_step ? "" : "   [fault]");
        return;
    }
    if (search.full)
        return;
    search.transitions++;
    uint32_t id = add(state);
    if (is_step && id != search.from)
        add_edge(id);
}

void search_step(const struct state *state, const char *label, ...)
{
    va_list args;

    va_start(args, label);
    emit(true, state, label, args);
    va_end(args);
}

void search_fault(const struct state *state, const char *label, ...)
{
    va_list args;

    va_start(args, label);
    emit(false, state, label, args);
    va_end(args);
}

/* One line: the step that leads from a state to the next one. */
static void print_step(size_t number, uint32_t from, uint32_t next, FILE *to)
{
    fprintf(to, "  %3zu. ", number);
    search.to = to;
    search.wanted = state_of(next);
    search_model.next(search.rules, state_of(from));
    search.to = NULL;
}

/* As bytes, in the order of the struct. */
static void print_state(uint32_t id, FILE *to)
{
    fprintf(to, "   then:");
    for (size_t i = 0; i < search_model.state_bytes; i++)
        fprintf(to, " %u", ((const uint8_t *)state_of(id))[i]);
    fprintf(to, "\n");
}

/* The way to a state. Returns the number of steps. */
static size_t print_way(uint32_t id, FILE *to)
{
    size_t steps = 0;

    for (uint32_t i = id; i; i = search.parent[i])
        steps++;
    if (!to)
        return steps;
    uint32_t *way = malloc((steps + 1) * sizeof(*way));
    assert(way);
    for (uint32_t i = id, k = (uint32_t)steps; k; i = search.parent[i])
        way[k--] = i;
    way[0] = 0;
    for (size_t n = 0; n < steps; n++)
        print_step(n + 1, way[n], way[n + 1], to);
    print_state(id, to);
    free(way);
    return steps;
}

/* How it goes on from a stuck state, for the reader: any way over steps to states not on it. */
static void print_on(uint32_t id, size_t number, FILE *to)
{
    uint32_t way[STEPS_ON + 1] = {id}, n = 0;
    bool moved = true;

    while (moved && n < STEPS_ON) {
        moved = false;
        for (uint32_t k = search.edge_at[way[n]]; k < search.edge_at[way[n] + 1] && !moved; k++) {
            moved = true;
            for (uint32_t i = 0; i <= n; i++)
                moved = moved && way[i] != search.edge[k];
            if (moved)
                way[n + 1] = search.edge[k];
        }
        if (moved) {
            print_step(++number, way[n], way[n + 1], to);
            n++;
        }
    }
    if (n)
        print_state(way[n], to);
}

/*
 * Backwards from all goals, over steps. A state that is not reached, or UINT32_MAX: the
 * first one, or, if nothing reaches a goal from the start on, the last one, to show how it ends.
 */
static uint32_t find_stuck(void)
{
    uint32_t n = search.num, *begin, *source, *queue, found = UINT32_MAX;
    size_t head = 0, tail = 0;

    begin = calloc(n + 2, sizeof(*begin));
    source = malloc((search.edges + 1) * sizeof(*source));
    queue = malloc(((size_t)n + 1) * sizeof(*queue));
    uint8_t *live = calloc(n + 1, 1);
    assert(begin && source && queue && live);
    for (size_t i = 0; i < search.edges; i++)
        begin[search.edge[i] + 2]++;
    for (uint32_t i = 1; i < n + 2; i++)
        begin[i] += begin[i - 1];
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = search.edge_at[i]; k < search.edge_at[i + 1]; k++)
            source[begin[search.edge[k] + 1]++] = i; /* begin[x + 1] ends as the end of x */
    for (uint32_t i = 0; i < n; i++) {
        live[i] = search_model.goal(search.rules, state_of(i));
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
static uint32_t visit(struct result *result)
{
    uint32_t level_end = 1;

    for (uint32_t i = 0; i < search.num; i++) {
        const struct state *state = state_of(i);

        if (i == level_end) {
            result->depth++;
            level_end = search.num;
        }
        result->why = search_model.bad ? search_model.bad(search.rules, state) : NULL;
        if (result->why)
            return i;
        if (i + 2 > search.at_max) {
            size_t max = search.at_max ? 2 * search.at_max : CHUNK_STATES;

            search.edge_at =
                grow(search.edge_at, search.at_max * sizeof(uint32_t), max * sizeof(uint32_t));
            search.at_max = max;
        }
        search.edge_at[i] = (uint32_t)search.edges;
        search.from = i;
        search_model.next(search.rules, state);
        search.edge_at[i + 1] = (uint32_t)search.edges;
        if (search.full)
            break;
    }
    return UINT32_MAX;
}

static struct result run(const struct rules *rules, FILE *to)
{
    struct result result = {.verdict = HOLDS};
    struct state *first = calloc(1, search_model.state_bytes);

    memset(&search, 0, sizeof(search));
    search.rules = rules;
    search.mask = TABLE_START - 1;
    search.table = calloc(TABLE_START, sizeof(*search.table));
    assert(first && search.table);
    if (search_model.init)
        search_model.init(rules, first);
    add(first);
    uint32_t found = visit(&result);
    if (found != UINT32_MAX)
        result.verdict = BAD;
    else if (search.full)
        result.verdict = LIMIT;
    else if ((found = find_stuck()) != UINT32_MAX)
        result.verdict = STUCK;
    if (found != UINT32_MAX)
        result.steps = print_way(found, to);
    if (result.verdict == STUCK && to)
        print_on(found, result.steps, to);
    result.states = search.num;
    result.transitions = search.transitions;
    for (uint32_t c = 0; c < CHUNKS_MAX && search.chunk[c]; c++)
        free(search.chunk[c]);
    free(search.parent);
    free(search.table);
    free(search.edge);
    free(search.edge_at);
    free(first);
    return result;
}

static void expect(const struct rules *rules, const char *variant, enum verdict verdict,
                   const char *why)
{
    static const char *const name[] = {"holds", "bad state", "cannot reach the goal", "too large"};
    FILE *to = getenv("MRD_MODEL_TRACE") ? stdout : NULL;
    struct result r = run(rules, to);
    bool expected = r.verdict == verdict && (!why || (r.why && !strcmp(r.why, why)));

    printf("%s, %s: %s%s%s (%zu states, %zu transitions, depth %zu", search_model.name, variant,
           name[r.verdict], r.why ? ": " : "", r.why ? r.why : "", r.states, r.transitions,
           r.depth);
    printf(r.steps ? "; counterexample of %zu steps)\n" : ")\n", r.steps);
    if (!expected && !to)
        run(rules, stdout);
    fflush(stdout);
    assert_true(expected);
}

void search_holds(const struct rules *r, const char *variant)
{
    expect(r, variant, HOLDS, NULL);
}

void search_bad(const struct rules *r, const char *variant, const char *why)
{
    expect(r, variant, BAD, why);
}

void search_stuck(const struct rules *r, const char *variant)
{
    expect(r, variant, STUCK, NULL);
}
