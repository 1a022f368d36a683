/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/cm_line.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum attribute { ID, START, TRIGGER, SIZE, SEND_DONE, RECV_DONE, MSG, PRIO, ATTRIBUTES };

/* A word and the number after it. */
struct field {
    const char *name;
    uint64_t low, high;
};

static const struct field headers[SIMX_CM_HEADERS] = {
    [SIMX_CM_NODES] = {"Nodes", 2, SIMX_NODES_MAX},
    [SIMX_CM_CONNECTIONS] = {"Connections", 1, SIMX_FLOWS_MAX},
    [SIMX_CM_TRIGGERS] = {"Triggers", 0, SIMX_TRIGGERS_MAX},
    [SIMX_CM_FAILURES] = {"Failures", 0, 0},
};

/* 0 is no id: htsim takes it for "none". */
static const struct field attributes[ATTRIBUTES] = {
    [ID] = {"id", 1, UINT64_MAX},
    [START] = {"start", 0, UINT64_MAX},
    [TRIGGER] = {"trigger", 1, INT32_MAX},
    [SIZE] = {"size", 1, UINT64_MAX},
    [SEND_DONE] = {"send_done_trigger", 1, INT32_MAX},
    [RECV_DONE] = {"recv_done_trigger", 1, INT32_MAX},
    [MSG] = {"msg", 1, UINT64_MAX},
    [PRIO] = {"prio", 0, UINT64_MAX},
};

/* The array with room for one more, or NULL: it doubles whenever its count is a power of two. */
static void *grow(void *array, uint32_t count, size_t size)
{
    if (count & (count - 1))
        return array;
    return realloc(array, (count ? 2 * (size_t)count : 1) * size);
}

/* The number after word `at`, which names field `index`; the line may have it once. */
static int read_field(struct simx_cm_parser *p, unsigned at, const struct field *field,
                      unsigned index, uint64_t *values, unsigned *seen)
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

static int parse_header(struct simx_cm_parser *p, int index)
{
    const char *number = simx_lines_word(&p->lines, 1);

    if (index == SIMX_CM_FAILURES && strcmp(number, "0") != 0)
        return simx_lines_expected(&p->lines, number, "Failures 0, as failures are for --faults");

    unsigned seen = p->header_line[index] ? 1u << index : 0;
    int rc = read_field(p, 0, &headers[index], (unsigned)index, p->header, &seen);
    if (rc)
        return rc;
    p->header_line[index] = p->lines.line;
    return simx_lines_end(&p->lines, 2);
}

/* Makes one word, SRC->DST, of hosts with blanks beside the arrow. False: the line has no arrow. */
static bool find_arrow(struct simx_cm_parser *p)
{
    struct simx_lines *lines = &p->lines;
    unsigned words = 1;
    size_t used = strlen(lines->word[0]);

    /* "0->" takes the next word, "0" one that begins with an arrow, and that the one behind it. */
    if (used > 2 && !strcmp(lines->word[0] + used - 2, "->"))
        words = 2;
    else if (!strstr(lines->word[0], "->") && lines->num_words > 1 &&
             !strncmp(lines->word[1], "->", 2))
        words = lines->word[1][2] ? 2 : 3;
    if (words > lines->num_words)
        words = lines->num_words;
    if (words == 1)
        return strstr(lines->word[0], "->") != NULL;
    for (unsigned i = 0, at = 0; i < words; i++)
        at += (unsigned)snprintf(p->hosts + at, sizeof(p->hosts) - at, "%s", lines->word[i]);
    lines->word[0] = p->hosts;
    lines->num_words -= words - 1;
    memmove(&lines->word[1], &lines->word[words], (lines->num_words - 1) * sizeof(lines->word[0]));
    return true;
}

static int parse_hosts(struct simx_cm_parser *p, struct simx_flow *flow)
{
    const char *word = p->lines.word[0];
    const char *arrow = strstr(word, "->");
    uint64_t src, dst;

    if (!simx_parse_u64(word, arrow, &src) ||
        !simx_parse_u64(arrow + 2, word + strlen(word), &dst) || src >= p->header[SIMX_CM_NODES] ||
        dst >= p->header[SIMX_CM_NODES])
        return simx_lines_expected(&p->lines, word, "SRC->DST with hosts of 0 .. %" PRIu64,
                                   p->header[SIMX_CM_NODES] - 1);
    if (src == dst)
        return simx_lines_expected(&p->lines, word, "two different hosts");
    flow->src = (uint32_t)src;
    flow->dst = (uint32_t)dst;
    return 0;
}

static int check_attributes(struct simx_cm_parser *p, unsigned seen, const uint64_t *values)
{
    if (!(seen & 1u << SIZE))
        return simx_lines_expected(&p->lines, SIMX_END_OF_LINE, "size");
    if (!(seen & (1u << START | 1u << TRIGGER)))
        return simx_lines_expected(&p->lines, SIMX_END_OF_LINE, "start or trigger");
    if ((seen & 1u << START) && (seen & 1u << TRIGGER))
        return simx_lines_expected(&p->lines, "trigger", "either start or trigger, not both");
    /* uet-htsim takes picoseconds of a flow and microseconds of a message. */
    if ((seen & 1u << MSG) && values[START])
        return simx_lines_expected(&p->lines, "msg", "no msg with a start other than 0");
    return 0;
}

/* The number after `msg` may be left out. Moves *at to the last word that was read. */
static int parse_attribute(struct simx_cm_parser *p, unsigned *at, uint64_t *values, unsigned *seen)
{
    struct simx_lines *lines = &p->lines;
    const char *name = lines->word[*at], *next = simx_lines_word(lines, *at + 1);
    int index = find_field(attributes, ATTRIBUTES, name);

    if (index < 0)
        return simx_lines_expected(lines, name,
                                   "id, start, trigger, size, msg, prio, send_done_trigger or "
                                   "recv_done_trigger");
    if (index == MSG && !(*seen & 1u << MSG) && !(*next >= '0' && *next <= '9')) {
        *seen |= 1u << MSG;
        return 0;
    }
    /* uet-htsim reads picoseconds, and writes microseconds with a fraction: only 0 is the same. */
    if (index == START && strchr(next, '.') && strspn(next, "0.") < strlen(next))
        return simx_lines_expected(lines, next, "start in picoseconds without a fraction");
    if (index == START || index == SIZE)
        simx_lines_cut_fraction(lines, *at + 1);
    return read_field(p, (*at)++, &attributes[index], (unsigned)index, values, seen);
}

static int parse_flow(struct simx_cm_parser *p)
{
    struct simx_flow flow = {.line = p->lines.line};
    uint64_t values[ATTRIBUTES] = {0};
    unsigned seen = 0;

    if (p->cm.num_flows == p->header[SIMX_CM_CONNECTIONS])
        return simx_lines_expected(&p->lines, p->lines.word[0], "%u connections, as line %u says",
                                   p->cm.num_flows, p->header_line[SIMX_CM_CONNECTIONS]);
    int rc = parse_hosts(p, &flow);
    for (unsigned i = 1; rc == 0 && i < p->lines.num_words; i++)
        rc = parse_attribute(p, &i, values, &seen);
    if (rc == 0)
        rc = check_attributes(p, seen, values);
    if (rc)
        return rc;
    struct simx_flow *flows = grow(p->cm.flows, p->cm.num_flows, sizeof(flow));
    if (!flows)
        return simx_lines_failed(&p->lines, -ENOMEM);
    p->cm.flows = flows;

    flow.has_id = seen & 1u << ID;
    flow.id = values[ID];
    flow.is_message = seen & 1u << MSG;
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
static int parse_trigger_words(struct simx_cm_parser *p, struct simx_trigger *trigger)
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

static int parse_trigger(struct simx_cm_parser *p)
{
    struct simx_trigger trigger = {.line = p->lines.line};
    uint32_t most = SIMX_TRIGGERS_MAX;

    if (p->header_line[SIMX_CM_TRIGGERS])
        most = (uint32_t)p->header[SIMX_CM_TRIGGERS];
    if (p->cm.num_triggers == most && p->header_line[SIMX_CM_TRIGGERS])
        return simx_lines_expected(&p->lines, "trigger", "%u triggers, as line %u says", most,
                                   p->header_line[SIMX_CM_TRIGGERS]);
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
static int check_header(struct simx_cm_parser *p, const char *found)
{
    for (unsigned i = SIMX_CM_NODES; i <= SIMX_CM_CONNECTIONS; i++) {
        if (!p->header_line[i])
            return simx_lines_expected(&p->lines, found, "%s before the first connection",
                                       headers[i].name);
    }
    return 0;
}

int simx_cm_line(struct simx_lines *lines, void *arg)
{
    struct simx_cm_parser *p = arg;
    bool is_flow = find_arrow(p), is_trigger = strcmp(lines->word[0], "trigger") == 0;
    bool in_body = p->cm.num_flows > 0 || p->cm.num_triggers > 0;
    const char *word = lines->word[0];

    if (is_flow || is_trigger) {
        int rc = check_header(p, word);
        if (rc)
            return rc;
        return is_flow ? parse_flow(p) : parse_trigger(p);
    }
    int index = find_field(headers, SIMX_CM_HEADERS, word);
    if (index >= 0 && !in_body)
        return parse_header(p, index);
    if (strcmp(word, "failure") == 0)
        return simx_lines_expected(lines, word, "no failures, which are for --faults");
    return simx_lines_expected(lines, word, "%sSRC->DST or trigger",
                               in_body ? "" : "Nodes, Connections, Triggers, ");
}

static int check_count(struct simx_cm_parser *p, enum simx_cm_header header, uint32_t count)
{
    char text[24];

    if (!p->header_line[header] || p->header[header] == count)
        return 0;
    snprintf(text, sizeof(text), "%" PRIu64, p->header[header]);
    return simx_lines_expected_at(&p->lines, p->header_line[header], text,
                                  "%s %u, as many as follow", headers[header].name, count);
}

int simx_cm_line_end(struct simx_cm_parser *p)
{
    int rc = check_header(p, SIMX_END_OF_FILE);

    if (rc == 0)
        rc = check_count(p, SIMX_CM_CONNECTIONS, p->cm.num_flows);
    if (rc == 0)
        rc = check_count(p, SIMX_CM_TRIGGERS, p->cm.num_triggers);
    return rc;
}
