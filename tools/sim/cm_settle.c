/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/cm_settle.h"

#include <errno.h>
#include <stdlib.h>

struct key {
    uint64_t id;
    uint32_t index;
    unsigned line;
};

/* Scratch memory of one matrix; all arrays are indices or counts of the same flows and triggers. */
struct settle {
    struct simx_cm *cm;
    const struct simx_lines *lines;
    struct key *flow_keys, *trigger_keys; /* sorted by id */
    uint32_t *fired;                      /* events that fire each trigger */
    struct simx_waiting waiting;
    uint32_t *queue; /* flows in an order in which they may start */
    bool *started;
};

static int settle_init(struct settle *s)
{
    size_t flows = s->cm->num_flows, triggers = s->cm->num_triggers;

    /* calloc(0) may be NULL. */
    s->flow_keys = calloc(flows + 1, sizeof(*s->flow_keys));
    s->trigger_keys = calloc(triggers + 1, sizeof(*s->trigger_keys));
    s->fired = calloc(triggers + 1, sizeof(*s->fired));
    s->queue = calloc(flows + 1, sizeof(*s->queue));
    s->started = calloc(flows + 1, sizeof(*s->started));
    if (!s->flow_keys || !s->trigger_keys || !s->fired || !s->queue || !s->started)
        return simx_lines_failed(s->lines, -ENOMEM);
    return 0;
}

static void settle_fini(struct settle *s)
{
    free(s->flow_keys);
    free(s->trigger_keys);
    free(s->fired);
    simx_waiting_fini(&s->waiting);
    free(s->queue);
    free(s->started);
}

static int expected_number(const struct settle *s, unsigned line, const char *what, uint64_t found)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)found);
    return simx_lines_expected(s->lines, line, text, "%s", what);
}

static int compare_ids(const void *left, const void *right)
{
    const struct key *a = left, *b = right;

    return (a->id > b->id) - (a->id < b->id);
}

/* Those with the same id in the order of the file. */
static int compare_keys(const void *left, const void *right)
{
    const struct key *a = left, *b = right;
    int order = compare_ids(a, b);

    return order ? order : (a->line > b->line) - (a->line < b->line);
}

static int sort_unique(const struct settle *s, struct key *keys, uint32_t count, const char *what)
{
    char sentence[64];

    qsort(keys, count, sizeof(*keys), compare_keys);
    for (uint32_t i = 1; i < count; i++) {
        if (keys[i].id != keys[i - 1].id)
            continue;
        snprintf(sentence, sizeof(sentence), "another %s id than that of line %u", what,
                 keys[i - 1].line);
        return expected_number(s, keys[i].line, sentence, keys[i].id);
    }
    return 0;
}

static int check_ids(struct settle *s)
{
    const struct simx_cm *cm = s->cm;
    uint32_t count = 0;

    for (uint32_t i = 0; i < cm->num_flows; i++) {
        if (cm->flows[i].has_id)
            s->flow_keys[count++] = (struct key){cm->flows[i].id, i, cm->flows[i].line};
    }
    for (uint32_t i = 0; i < cm->num_triggers; i++)
        s->trigger_keys[i] = (struct key){cm->triggers[i].id, i, cm->triggers[i].line};
    int rc = sort_unique(s, s->flow_keys, count, "connection");
    return rc ? rc : sort_unique(s, s->trigger_keys, cm->num_triggers, "trigger");
}

static int find_trigger(const struct settle *s, const struct simx_flow *flow, uint32_t id,
                        uint32_t *index)
{
    const struct key *found = bsearch(&(struct key){.id = id}, s->trigger_keys, s->cm->num_triggers,
                                      sizeof(*found), compare_ids);

    if (!found)
        return expected_number(s, flow->line, "a trigger that is defined", id);
    *index = found->index;
    return 0;
}

/* Replaces the trigger id of an event by its index and counts the event. -1: no trigger. */
static int resolve_event(struct settle *s, const struct simx_flow *flow, int32_t *trigger)
{
    uint32_t index = 0;

    if (*trigger < 0)
        return 0;
    int rc = find_trigger(s, flow, (uint32_t)*trigger, &index);
    if (rc)
        return rc;
    *trigger = (int32_t)index;
    s->fired[index]++;
    return 0;
}

static int resolve(struct settle *s)
{
    for (uint32_t i = 0; i < s->cm->num_flows; i++) {
        struct simx_flow *flow = &s->cm->flows[i];
        int rc = 0;

        if (flow->triggered) {
            rc = find_trigger(s, flow, flow->trigger, &flow->trigger);
            if (rc)
                return rc;
        }
        rc = resolve_event(s, flow, &flow->send_done);
        if (rc)
            return rc;
        rc = resolve_event(s, flow, &flow->recv_done);
        if (rc)
            return rc;
    }
    return 0;
}

/* htsim aborts if a trigger has too many events; with too few its flows wait forever. */
static int check_counts(struct settle *s)
{
    char sentence[96];

    for (uint32_t i = 0; i < s->cm->num_triggers; i++) {
        struct simx_trigger *trigger = &s->cm->triggers[i];

        if (s->fired[i] == 0)
            return expected_number(s, trigger->line, "a trigger that a connection fires",
                                   trigger->id);
        if (trigger->count == 0)
            trigger->count = s->fired[i];
        if (trigger->count == s->fired[i])
            continue;
        snprintf(sentence, sizeof(sentence), "count %u, as often as trigger %u is fired",
                 s->fired[i], trigger->id);
        if (trigger->kind == SIMX_ONESHOT)
            return simx_lines_expected(s->lines, trigger->line, "oneshot", "barrier with %s",
                                       sentence);
        return expected_number(s, trigger->line, sentence, trigger->count);
    }
    return 0;
}

/* Simulates flows that end as soon as they start: a flow that never starts is an error. */
static int check_all_start(struct settle *s)
{
    const struct simx_cm *cm = s->cm;
    const struct simx_waiting *w = &s->waiting;
    uint32_t count = 0;

    if (!simx_waiting_init(&s->waiting, cm))
        return simx_lines_failed(s->lines, -ENOMEM);
    for (uint32_t i = 0; i < cm->num_flows; i++) {
        if (!cm->flows[i].triggered)
            s->queue[count++] = i;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct simx_flow *flow = &cm->flows[s->queue[i]];
        const int32_t events[] = {flow->send_done, flow->recv_done};

        s->started[s->queue[i]] = true;
        for (unsigned j = 0; j < 2; j++) {
            if (events[j] < 0 || --s->fired[events[j]] > 0)
                continue;
            for (uint32_t k = w->first[events[j]]; k < w->first[events[j] + 1]; k++)
                s->queue[count++] = w->flows[k];
        }
    }
    for (uint32_t i = 0; i < cm->num_flows; i++) {
        const struct simx_flow *flow = &cm->flows[i];

        if (!s->started[i])
            return expected_number(s, flow->line,
                                   "a trigger that fires before what waits for it has started",
                                   cm->triggers[flow->trigger].id);
    }
    return 0;
}

int simx_cm_settle(struct simx_cm *cm, const struct simx_lines *lines)
{
    struct settle settle = {.cm = cm, .lines = lines};
    int rc = settle_init(&settle);

    if (rc == 0)
        rc = check_ids(&settle);
    if (rc == 0)
        rc = resolve(&settle);
    if (rc == 0)
        rc = check_counts(&settle);
    if (rc == 0)
        rc = check_all_start(&settle);
    settle_fini(&settle);
    return rc;
}
