/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/cm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/sim/cm_settle.h"
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
        return simx_lines_expected(&p->lines, p->lines.line, field->name, "%s only once",
                                   field->name);
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
    unsigned seen = 0;

    for (unsigned i = 0; i < HEADERS; i++)
        seen |= p->header_line[i] ? 1u << i : 0;
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
        return simx_lines_expected(&p->lines, p->lines.line, word,
                                   "SRC->DST with hosts of 0 .. %" PRIu64, p->header[NODES] - 1);
    if (src == dst)
        return simx_lines_expected(&p->lines, p->lines.line, word, "two different hosts");
    flow->src = (uint32_t)src;
    flow->dst = (uint32_t)dst;
    return 0;
}

static int check_attributes(struct parser *p, unsigned seen)
{
    const char *const nothing = simx_lines_word(&p->lines, SIMX_WORDS_MAX);

    if (!(seen & 1u << SIZE))
        return simx_lines_expected(&p->lines, p->lines.line, nothing, "size");
    if (!(seen & (1u << START | 1u << TRIGGER)))
        return simx_lines_expected(&p->lines, p->lines.line, nothing, "start or trigger");
    if ((seen & 1u << START) && (seen & 1u << TRIGGER))
        return simx_lines_expected(&p->lines, p->lines.line, "trigger",
                                   "either start or trigger, not both");
    return 0;
}

static int parse_flow(struct parser *p)
{
    struct simx_flow flow = {.line = p->lines.line};
    uint64_t values[ATTRIBUTES] = {0};
    unsigned seen = 0;

    if (p->cm.num_flows == p->header[CONNECTIONS])
        return simx_lines_expected(&p->lines, p->lines.line, p->lines.word[0],
                                   "%u connections, as line %u says", p->cm.num_flows,
                                   p->header_line[CONNECTIONS]);
    int rc = parse_hosts(p, &flow);
    for (unsigned i = 1; rc == 0 && i < p->lines.num_words; i += 2) {
        int index = find_field(attributes, ATTRIBUTES, p->lines.word[i]);

        if (index < 0)
            return simx_lines_expected(&p->lines, p->lines.line, p->lines.word[i],
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
    /* Trigger ids; simx_cm_settle() makes indices of them. */
    flow.trigger = (uint32_t)values[TRIGGER];
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
            return simx_lines_expected(lines, lines->line, lines->word[i],
                                       "id, oneshot, barrier or count");
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
        return simx_lines_expected(lines, lines->line, simx_lines_word(lines, SIMX_WORDS_MAX),
                                   "id");
    if (oneshot == barrier)
        return simx_lines_expected(lines, lines->line,
                                   oneshot ? "both" : simx_lines_word(lines, SIMX_WORDS_MAX),
                                   "oneshot or barrier");
    if (oneshot && seen & 1u << FIELD_COUNT)
        return simx_lines_expected(lines, lines->line, "count", "no count of a oneshot");
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
        return simx_lines_expected(&p->lines, p->lines.line, "trigger",
                                   "%u triggers, as line %u says", most, p->header_line[TRIGGERS]);
    if (p->cm.num_triggers == most)
        return simx_lines_expected(&p->lines, p->lines.line, "trigger", "at most %u triggers",
                                   most);
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
            return simx_lines_expected(&p->lines, p->lines.line, found,
                                       "%s before the first connection", headers[i].name);
    }
    return 0;
}

static int parse_line(struct parser *p)
{
    const char *word = p->lines.word[0];
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
    return simx_lines_expected(&p->lines, p->lines.line, word, "%sSRC->DST or trigger",
                               in_body ? "" : "Nodes, Connections, Triggers, ");
}

static int check_count(struct parser *p, enum header header, uint32_t count)
{
    char text[24];

    if (!p->header_line[header] || p->header[header] == count)
        return 0;
    snprintf(text, sizeof(text), "%" PRIu64, p->header[header]);
    return simx_lines_expected(&p->lines, p->header_line[header], text, "%s %u, as many as follow",
                               headers[header].name, count);
}

static int parse(struct parser *p)
{
    int rc;

    while ((rc = simx_lines_next(&p->lines)) > 0) {
        rc = parse_line(p);
        if (rc)
            return rc;
    }
    if (rc == 0)
        rc = check_header(p, SIMX_END_OF_FILE);
    if (rc == 0)
        rc = check_count(p, CONNECTIONS, p->cm.num_flows);
    if (rc == 0)
        rc = check_count(p, TRIGGERS, p->cm.num_triggers);
    return rc ? rc : simx_cm_settle(&p->cm, &p->lines);
}

int simx_cm_read(struct simx_cm *cm, const char *path)
{
    struct parser parser = {0};
    int rc = simx_lines_open(&parser.lines, path);

    if (rc)
        return rc;
    rc = parse(&parser);
    simx_lines_close(&parser.lines);
    if (rc) {
        simx_cm_fini(&parser.cm);
        return rc;
    }
    parser.cm.nodes = (uint32_t)parser.header[NODES];
    *cm = parser.cm;
    return 0;
}

void simx_cm_fini(struct simx_cm *cm)
{
    free(cm->flows);
    free(cm->triggers);
    *cm = (struct simx_cm){0};
}

bool simx_waiting_init(struct simx_waiting *w, const struct simx_cm *cm)
{
    *w = (struct simx_waiting){calloc(cm->num_flows + 1, sizeof(*w->flows)),
                               calloc(cm->num_triggers + 2, sizeof(*w->first))};
    if (!w->flows || !w->first) {
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
    return true;
}

void simx_waiting_fini(struct simx_waiting *w)
{
    free(w->flows);
    free(w->first);
    *w = (struct simx_waiting){0};
}
