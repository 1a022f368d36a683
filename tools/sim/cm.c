/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/cm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/sim/lines.h"

enum header { NODES, CONNECTIONS, TRIGGERS, HEADERS };
enum attribute { ID, START, TRIGGER, SIZE, SEND_DONE, RECV_DONE, ATTRIBUTES };

/* A word and the number after it. */
struct field {
    const char *name;
    uint64_t low, high;
};

static const struct field headers[HEADERS] = {
    [NODES] = {"Nodes", 2, SIMX_NODES_MAX},
    [CONNECTIONS] = {"Connections", 1, SIMX_FLOWS_MAX},
    [TRIGGERS] = {"Triggers", 0, SIMX_TRIGGERS_MAX},
};

/* 0 is no id: htsim takes it for "none". */
static const struct field attributes[ATTRIBUTES] = {
    [ID] = {"id", 1, UINT64_MAX},
    [START] = {"start", 0, UINT64_MAX},
    [TRIGGER] = {"trigger", 1, INT32_MAX},
    [SIZE] = {"size", 1, UINT64_MAX},
    [SEND_DONE] = {"send_done_trigger", 1, INT32_MAX},
    [RECV_DONE] = {"recv_done_trigger", 1, INT32_MAX},
};

struct parser {
    struct simx_lines lines;
    struct simx_cm cm;
    uint64_t header[HEADERS];
    unsigned header_line[HEADERS]; /* 0: not seen */
};

/* The array with room for one more, or NULL: it doubles whenever its count is a power of two. */
static void *grow(void *array, uint32_t count, size_t size)
{
    if (count & (count - 1))
        return array;
    return realloc(array, (count ? 2 * (size_t)count : 1) * size);
}

/* The number after word `at`, which names field `index`; the line may have it once. */
static int read_field(struct parser *p, unsigned at, const struct field *field, unsigned index,
                      uint64_t *values, unsigned *seen)
{
    if (*seen & 1u << index)
        return simx_lines_expected(&p->lines, field->name, "%s only once", field->name);
    *seen |= 1u << index;
    return simx_lines_u64(&p->lines, at + 1, field->name, field->low, field->high, &values[index]);
}

static int find_field(const struct field *fields, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(fields[i].name, name) == 0)
            return i;
    }
    return -ENOENT;
}

static int parse_header(struct parser *p, int index)
{
    unsigned seen = p->header_line[index] ? 1u << index : 0;
    int rc = read_field(p, 0, &headers[index], (unsigned)index, p->header, &seen);
    if (rc)
        return rc;
    p->header_line[index] = p->lines.line;
    return simx_lines_end(&p->lines, 2);
}

static int parse_hosts(struct parser *p, struct simx_flow *flow)
{
    const char *word = p->lines.word[0];
    const char *arrow = strstr(word, "->");
    uint64_t src, dst;

    if (!simx_parse_u64(word, arrow, &src) ||
        !simx_parse_u64(arrow + 2, word + strlen(word), &dst) || src >= p->header[NODES] ||
        dst >= p->header[NODES])
        return simx_lines_expected(&p->lines, word, "SRC->DST with hosts of 0 .. %" PRIu64,
                                   p->header[NODES] - 1);
    if (src == dst)
        return simx_lines_expected(&p->lines, word, "two different hosts");
    flow->src = (uint32_t)src;
    flow->dst = (uint32_t)dst;
    return 0;
}

static int check_attributes(struct parser *p, unsigned seen)
{
    if (!(seen & 1u << SIZE))
        return simx_lines_expected(&p->lines, SIMX_END_OF_LINE, "size");
    if (!(seen & (1u << START | 1u << TRIGGER)))
        return simx_lines_expected(&p->lines, SIMX_END_OF_LINE, "start or trigger");
    if ((seen & 1u << START) && (seen & 1u << TRIGGER))
        return simx_lines_expected(&p->lines, "trigger", "either start or trigger, not both");
    return 0;
}

static int parse_flow(struct parser *p)
{
    struct simx_flow flow = {.line = p->lines.line};
    uint64_t values[ATTRIBUTES] = {0};
    unsigned seen = 0;

    if (p->cm.num_flows == p->header[CONNECTIONS])
        return simx_lines_expected(&p->lines, p->lines.word[0], "%u connections, as line %u says",
                                   p->cm.num_flows, p->header_line[CONNECTIONS]);
    int rc = parse_hosts(p, &flow);
    for (unsigned i = 1; rc == 0 && i < p->lines.num_words; i += 2) {
        int index = find_field(attributes, ATTRIBUTES, p->lines.word[i]);

        if (index < 0)
            return simx_lines_expected(&p->lines, p->lines.word[i],
                                       "id, start, trigger, size, send_done_trigger or "
                                       "recv_done_trigger");
        rc = read_field(p, i, &attributes[index], (unsigned)index, values, &seen);
    }
    if (rc == 0)
        rc = check_attributes(p, seen);
    if (rc)
        return rc;
    struct simx_flow *flows = grow(p->cm.flows, p->cm.num_flows, sizeof(flow));
    if (!flows)
        return simx_lines_failed(&p->lines, -ENOMEM);
    p->cm.flows = flows;

    flow.has_id = seen & 1u << ID;
    flow.id = values[ID];
    flow.triggered = seen & 1u << TRIGGER;
    flow.start_ps = values[START];
    flow.bytes = values[SIZE];
    /* Trigger ids; settle() makes indices of them. */
    flow.trigger = (int32_t)values[TRIGGER];
    flow.send_done = seen & 1u << SEND_DONE ? (int32_t)values[SEND_DONE] : -1;
    flow.recv_done = seen & 1u << RECV_DONE ? (int32_t)values[RECV_DONE] : -1;
    p->cm.flows[p->cm.num_flows++] = flow;
    return 0;
}

/* Words in any order, as htsim has it. */
static int parse_trigger_words(struct parser *p, struct simx_trigger *trigger)
{
    static const struct field fields[] = {{"id", 1, INT32_MAX},
                                          {"count", 1, 2 * SIMX_FLOWS_MAX},
                                          {"oneshot", 0, 0},
                                          {"barrier", 0, 0}};
    enum { FIELD_ID, FIELD_COUNT, FIELD_ONESHOT, FIELD_BARRIER, FIELDS };
    const struct simx_lines *lines = &p->lines;
    uint64_t values[FIELDS] = {0};
    unsigned seen = 0;

    for (unsigned i = 1; i < lines->num_words; i++) {
        int index = find_field(fields, FIELDS, lines->word[i]);

        if (index < 0)
            return simx_lines_expected(lines, lines->word[i], "id, oneshot, barrier or count");
        if (index >= FIELD_ONESHOT) {
            seen |= 1u << index;
            continue;
        }
        int rc = read_field(p, i++, &fields[index], (unsigned)index, values, &seen);
        if (rc)
            return rc;
    }
    bool oneshot = seen & 1u << FIELD_ONESHOT, barrier = seen & 1u << FIELD_BARRIER;
    if (!(seen & 1u << FIELD_ID))
        return simx_lines_expected(lines, SIMX_END_OF_LINE, "id");
    if (oneshot == barrier)
        return simx_lines_expected(lines, oneshot ? "both" : SIMX_END_OF_LINE,
                                   "oneshot or barrier");
    if (oneshot && seen & 1u << FIELD_COUNT)
        return simx_lines_expected(lines, "count", "no count of a oneshot");
    trigger->id = (uint32_t)values[FIELD_ID];
    trigger->kind = barrier ? SIMX_BARRIER : SIMX_ONESHOT;
    trigger->count = barrier ? (uint32_t)values[FIELD_COUNT] : 1;
    return 0;
}

static int parse_trigger(struct parser *p)
{
    struct simx_trigger trigger = {.line = p->lines.line};
    uint32_t most = SIMX_TRIGGERS_MAX;

    if (p->header_line[TRIGGERS])
        most = (uint32_t)p->header[TRIGGERS];
    if (p->cm.num_triggers == most && p->header_line[TRIGGERS])
        return simx_lines_expected(&p->lines, "trigger", "%u triggers, as line %u says", most,
                                   p->header_line[TRIGGERS]);
    if (p->cm.num_triggers == most)
        return simx_lines_expected(&p->lines, "trigger", "at most %u triggers", most);
    int rc = parse_trigger_words(p, &trigger);
    if (rc)
        return rc;
    struct simx_trigger *triggers = grow(p->cm.triggers, p->cm.num_triggers, sizeof(trigger));
    if (!triggers)
        return simx_lines_failed(&p->lines, -ENOMEM);
    p->cm.triggers = triggers;
    p->cm.triggers[p->cm.num_triggers++] = trigger;
    return 0;
}

/* The headers come before the first connection. */
static int check_header(struct parser *p, const char *found)
{
    for (unsigned i = NODES; i <= CONNECTIONS; i++) {
        if (!p->header_line[i])
            return simx_lines_expected(&p->lines, found, "%s before the first connection",
                                       headers[i].name);
    }
    return 0;
}

static int parse_line(struct simx_lines *lines, void *arg)
{
    struct parser *p = arg;
    const char *word = lines->word[0];
    bool is_flow = strstr(word, "->"), is_trigger = strcmp(word, "trigger") == 0;
    bool in_body = p->cm.num_flows > 0 || p->cm.num_triggers > 0;

    if (is_flow || is_trigger) {
        int rc = check_header(p, word);
        if (rc)
            return rc;
        return is_flow ? parse_flow(p) : parse_trigger(p);
    }
    int index = find_field(headers, HEADERS, word);
    if (index >= 0 && !in_body)
        return parse_header(p, index);
    return simx_lines_expected(&p->lines, word, "%sSRC->DST or trigger",
                               in_body ? "" : "Nodes, Connections, Triggers, ");
}

static int check_count(struct parser *p, enum header header, uint32_t count)
{
    char text[24];

    if (!p->header_line[header] || p->header[header] == count)
        return 0;
    snprintf(text, sizeof(text), "%" PRIu64, p->header[header]);
    return simx_lines_expected_at(&p->lines, p->header_line[header], text,
                                  "%s %u, as many as follow", headers[header].name, count);
}

/* ------------------------------------------------------------------------------ several lines */

struct key {
    uint64_t id;
    uint32_t index;
    unsigned line;
};

static int expected_number(const struct parser *p, unsigned line, const char *what, uint64_t found)
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

static int sort_unique(const struct parser *p, struct key *keys, uint32_t count, const char *what)
{
    char sentence[64];

    qsort(keys, count, sizeof(*keys), compare_keys);
    for (uint32_t i = 1; i < count; i++) {
        if (keys[i].id != keys[i - 1].id)
            continue;
        snprintf(sentence, sizeof(sentence), "another %s id than that of line %u", what,
                 keys[i - 1].line);
        return expected_number(p, keys[i].line, sentence, keys[i].id);
    }
    return 0;
}

/* Leaves the keys of the triggers, by id. */
static int check_ids(const struct parser *p, struct key *keys)
{
    const struct simx_cm *cm = &p->cm;
    uint32_t count = 0;

    for (uint32_t i = 0; i < cm->num_flows; i++) {
        if (cm->flows[i].has_id)
            keys[count++] = (struct key){cm->flows[i].id, i, cm->flows[i].line};
    }
    int rc = sort_unique(p, keys, count, "connection");
    if (rc)
        return rc;
    for (uint32_t i = 0; i < cm->num_triggers; i++)
        keys[i] = (struct key){cm->triggers[i].id, i, cm->triggers[i].line};
    return sort_unique(p, keys, cm->num_triggers, "trigger");
}

/* Replaces the ids of triggers in a flow by their indices, and counts its events. */
static int resolve(const struct parser *p, const struct key *keys, struct simx_flow *flow,
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
static int check_count_of(const struct parser *p, struct simx_trigger *trigger, uint32_t fired)
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
static int check_all_start(const struct parser *p)
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
static int settle(struct parser *p)
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
    struct parser p = {0};
    int rc = simx_lines_read(&p.lines, path, parse_line, &p);

    if (rc == 0)
        rc = check_header(&p, SIMX_END_OF_FILE);
    if (rc == 0)
        rc = check_count(&p, CONNECTIONS, p.cm.num_flows);
    if (rc == 0)
        rc = check_count(&p, TRIGGERS, p.cm.num_triggers);
    if (rc == 0)
        rc = settle(&p);
    if (rc) {
        simx_cm_fini(&p.cm);
        return rc;
    }
    p.cm.nodes = (uint32_t)p.header[NODES];
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
