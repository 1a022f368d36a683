/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/cm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/sim/cm_line.h"

/* ------------------------------------------------------------------------------------ all lines */

struct key {
    uint64_t id;
    uint32_t index;
    unsigned line;
};

static int expected_number(const struct simx_cm_parser *p, unsigned line, const char *what,
                           uint64_t found)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, found);
    return simx_lines_expected_at(&p->lines, line, text, "%s", what);
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

/* Several messages of one flow have its id, and its hosts. */
static bool may_share(const struct simx_flow *a, const struct simx_flow *b)
{
    return a->is_message && b->is_message && a->src == b->src && a->dst == b->dst;
}

/* `flows`: of which the keys are; NULL: they are of triggers. */
static int sort_unique(const struct simx_cm_parser *p, struct key *keys, uint32_t count,
                       const struct simx_flow *flows, const char *what)
{
    char sentence[64];

    qsort(keys, count, sizeof(*keys), compare_keys);
    for (uint32_t i = 1; i < count; i++) {
        if (keys[i].id != keys[i - 1].id ||
            (flows && may_share(&flows[keys[i].index], &flows[keys[i - 1].index])))
            continue;
        snprintf(sentence, sizeof(sentence), "another %s id than that of line %u", what,
                 keys[i - 1].line);
        return expected_number(p, keys[i].line, sentence, keys[i].id);
    }
    return 0;
}

/* Leaves the keys of the triggers, by id. */
static int check_ids(const struct simx_cm_parser *p, struct key *keys)
{
    const struct simx_cm *cm = &p->cm;
    uint32_t count = 0;

    for (uint32_t i = 0; i < cm->num_flows; i++) {
        if (cm->flows[i].has_id)
            keys[count++] = (struct key){cm->flows[i].id, i, cm->flows[i].line};
    }
    int rc = sort_unique(p, keys, count, cm->flows, "connection");
    if (rc)
        return rc;
    for (uint32_t i = 0; i < cm->num_triggers; i++)
        keys[i] = (struct key){cm->triggers[i].id, i, cm->triggers[i].line};
    return sort_unique(p, keys, cm->num_triggers, NULL, "trigger");
}

/* Replaces the ids of triggers in a flow by their indices, and counts its events. */
static int resolve(const struct simx_cm_parser *p, const struct key *keys, struct simx_flow *flow,
                   uint32_t *fired)
{
    int32_t *const triggers[] = {&flow->trigger, &flow->send_done, &flow->recv_done};

    for (unsigned i = 0; i < 3; i++) {
        if (i == 0 ? !flow->triggered : *triggers[i] < 0)
            continue;
        struct key wanted = {.id = (uint64_t)*triggers[i]};
        const struct key *found =
            bsearch(&wanted, keys, p->cm.num_triggers, sizeof(*keys), compare_ids);
        if (!found)
            return expected_number(p, flow->line, "a trigger that is defined", wanted.id);
        *triggers[i] = (int32_t)found->index;
        fired[found->index] += i > 0;
    }
    return 0;
}

/* htsim aborts if a trigger has too many events; with too few its flows wait forever. */
static int check_count_of(const struct simx_cm_parser *p, struct simx_trigger *trigger,
                          uint32_t fired)
{
    char sentence[96];

    if (fired == 0)
        return expected_number(p, trigger->line, "a trigger that a connection fires", trigger->id);
    if (trigger->count == 0)
        trigger->count = fired;
    if (trigger->count == fired)
        return 0;
    snprintf(sentence, sizeof(sentence), "count %u, as often as trigger %u is fired", fired,
             trigger->id);
    if (trigger->kind == SIMX_ONESHOT)
        return simx_lines_expected_at(&p->lines, trigger->line, "oneshot", "barrier with %s",
                                      sentence);
    return expected_number(p, trigger->line, sentence, trigger->count);
}

/* A flow that never starts is an error. */
static int check_all_start(const struct simx_cm_parser *p)
{
    const struct simx_cm *cm = &p->cm;
    struct simx_waiting w;
    int rc = 0;

    if (!simx_waiting_init(&w, cm))
        return simx_lines_failed(&p->lines, -ENOMEM);
    for (uint32_t i = 0; rc == 0 && i < cm->num_flows; i++) {
        const struct simx_flow *flow = &cm->flows[i];

        if (flow->triggered && w.lacks[flow->trigger] > 0)
            rc = expected_number(p, flow->line,
                                 "a trigger that fires before what waits for it has started",
                                 cm->triggers[flow->trigger].id);
    }
    simx_waiting_fini(&w);
    return rc;
}

/* Makes indices of trigger ids and fills in the counts of barriers that have none. */
static int settle(struct simx_cm_parser *p)
{
    struct simx_cm *cm = &p->cm;
    struct key *keys = calloc((size_t)cm->num_flows + cm->num_triggers + 1, sizeof(*keys));
    uint32_t *fired = calloc((size_t)cm->num_triggers + 1, sizeof(*fired));
    int rc = -ENOMEM;

    if (keys && fired)
        rc = check_ids(p, keys);
    else
        simx_lines_failed(&p->lines, rc);
    for (uint32_t i = 0; rc == 0 && i < cm->num_flows; i++)
        rc = resolve(p, keys, &cm->flows[i], fired);
    for (uint32_t i = 0; rc == 0 && i < cm->num_triggers; i++)
        rc = check_count_of(p, &cm->triggers[i], fired[i]);
    free(keys);
    free(fired);
    return rc ? rc : check_all_start(p);
}

int simx_cm_read(struct simx_cm *cm, const char *path)
{
    struct simx_cm_parser p = {0};
    int rc = simx_lines_read(&p.lines, path, simx_cm_line, &p);

    if (rc == 0)
        rc = simx_cm_line_end(&p);
    if (rc == 0)
        rc = settle(&p);
    if (rc) {
        simx_cm_fini(&p.cm);
        return rc;
    }
    p.cm.nodes = (uint32_t)p.header[SIMX_CM_NODES];
    *cm = p.cm;
    return 0;
}

void simx_cm_fini(struct simx_cm *cm)
{
    free(cm->flows);
    free(cm->triggers);
    *cm = (struct simx_cm){0};
}

/* ------------------------------------------------------------------------------------- waiting */

/* Simulates flows that end as soon as they start. */
static void order_starts(struct simx_waiting *w, const struct simx_cm *cm)
{
    for (uint32_t t = 0; t < cm->num_triggers; t++)
        w->lacks[t] = cm->triggers[t].count;
    for (uint32_t i = 0; i < cm->num_flows; i++) {
        if (!cm->flows[i].triggered)
            w->order[w->num_order++] = i;
    }
    for (uint32_t i = 0; i < w->num_order; i++) {
        const struct simx_flow *flow = &cm->flows[w->order[i]];
        const int32_t events[] = {flow->send_done, flow->recv_done};

        for (unsigned j = 0; j < 2; j++) {
            if (events[j] < 0 || --w->lacks[events[j]] > 0)
                continue;
            for (uint32_t k = w->first[events[j]]; k < w->first[events[j] + 1]; k++)
                w->order[w->num_order++] = w->flows[k];
        }
    }
}

bool simx_waiting_init(struct simx_waiting *w, const struct simx_cm *cm)
{
    size_t flows = (size_t)cm->num_flows + 1, triggers = (size_t)cm->num_triggers + 2;

    *w = (struct simx_waiting){.flows = calloc(flows, sizeof(*w->flows)),
                               .first = calloc(triggers, sizeof(*w->first)),
                               .order = calloc(flows, sizeof(*w->order)),
                               .lacks = calloc(triggers, sizeof(*w->lacks))};
    if (!w->flows || !w->first || !w->order || !w->lacks) {
        simx_waiting_fini(w);
        return false;
    }
    /* first[t + 2] counts those of t, then first[t + 1] is where its next one goes. */
    for (uint32_t i = 0; i < cm->num_flows; i++) {
        if (cm->flows[i].triggered)
            w->first[cm->flows[i].trigger + 2]++;
    }
    for (uint32_t t = 0; t < cm->num_triggers; t++)
        w->first[t + 2] += w->first[t + 1];
    for (uint32_t i = 0; i < cm->num_flows; i++) {
        if (cm->flows[i].triggered)
            w->flows[w->first[cm->flows[i].trigger + 1]++] = i;
    }
    order_starts(w, cm);
    return true;
}

void simx_waiting_fini(struct simx_waiting *w)
{
    free(w->flows);
    free(w->first);
    free(w->order);
    free(w->lacks);
    *w = (struct simx_waiting){0};
}
