/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection matrices: what is read, what is refused and how. */
#include "tests/unit/exp_file.h"
#include "tools/sim/cm.h"

static struct simx_cm cm;

static int read_back(void)
{
    return simx_cm_read(&cm, exp_path);
}

static void good(const char *text)
{
    exp_file_read(text, read_back);
}

/* Refused at the line, with exactly this sentence, and nothing is left in `cm`. */
static void bad_bytes(const char *text, size_t len, unsigned line, const char *sentence)
{
    exp_file_put(text, len);
    cm = (struct simx_cm){.nodes = 77};
    exp_file_assert_refused(read_back(), text, line, sentence);
    assert_int_equal(cm.nodes, 77);
}

/* But for the line. */
static void expect_flow(const struct simx_flow *flow, const struct simx_flow *want)
{
    assert_int_equal(flow->src, want->src);
    assert_int_equal(flow->dst, want->dst);
    assert_int_equal(flow->has_id, want->has_id);
    assert_int_equal(flow->id, want->id);
    assert_int_equal(flow->triggered, want->triggered);
    assert_int_equal(flow->start_ps, want->start_ps);
    assert_int_equal(flow->trigger, want->trigger);
    assert_int_equal(flow->send_done, want->send_done);
    assert_int_equal(flow->recv_done, want->recv_done);
    assert_int_equal(flow->bytes, want->bytes);
}

static void expect_trigger(const struct simx_trigger *trigger, uint32_t id,
                           enum simx_trigger_kind kind, uint32_t count, unsigned line)
{
    assert_int_equal(trigger->id, id);
    assert_int_equal(trigger->kind, kind);
    assert_int_equal(trigger->count, count);
    assert_int_equal(trigger->line, line);
}

#define HEAD      "Nodes 4\nConnections 1\n"
#define FLOW      "0->1 start 0 size 1"
#define HOSTS     "SRC->DST with hosts of 0 .. 3, found "
#define KEYS      "id, start, trigger, size, msg, prio, send_done_trigger or recv_done_trigger, found "
#define PICO      "start in picoseconds without a fraction, found "
#define TEN_WORDS "start 0 start 0 start 0 start 0 start 0 "
#define TRIGGERS                                                                                   \
    "Nodes 4\nConnections 2\n0->1 start 0 size 1 send_done_trigger 7\n1->2 trigger 7 size 1\n"

static void bad(const struct exp_file_refusal *table, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bad_bytes(table[i].text, strlen(table[i].text), table[i].line, table[i].sentence);
}

TEST(simx_cm_read__all_words)
{
    good("# a comment\n\nNodes 4 # hosts\nConnections 5\r\nTriggers 2\n"
         "0->1 start 18446744073709551615 size 18446744073709551615\n"
         "\t1->2  id 9 trigger 7 size 5 send_done_trigger 3\n"
         "2->3 id 8 start 1000 size 6 recv_done_trigger 7 send_done_trigger 3\n"
         "trigger id 3 barrier count 3\n"
         "3->0 size 7 trigger 7 id 18446744073709551615 recv_done_trigger 3\n"
         "3->1 trigger 3 size 1\n"
         "trigger oneshot id 7"); /* no newline */
    assert_int_equal(cm.nodes, 4);
    assert_int_equal(cm.num_flows, 5);
    assert_int_equal(cm.num_triggers, 2);

    const struct simx_flow expected[] = {
        {0, 1, 0, false, false, UINT64_MAX, 0, -1, -1, UINT64_MAX, 6, false},
        {1, 2, 9, true, true, 0, 1, 0, -1, 5, 7, false},
        {2, 3, 8, true, false, 1000, 0, 0, 1, 6, 8, false},
        {3, 0, UINT64_MAX, true, true, 0, 1, -1, 0, 7, 10, false},
        {3, 1, 0, false, true, 0, 0, -1, -1, 1, 11, false},
    };
    for (unsigned i = 0; i < 5; i++) {
        expect_flow(&cm.flows[i], &expected[i]);
        assert_int_equal(cm.flows[i].line, expected[i].line);
    }
    expect_trigger(&cm.triggers[0], 3, SIMX_BARRIER, 3, 9);
    expect_trigger(&cm.triggers[1], 7, SIMX_ONESHOT, 1, 12);
    simx_cm_fini(&cm);
    assert_null(cm.flows);
}

/*
 * A barrier without a count waits for all that name it, and a flow that names it twice counts
 * twice.
 */
TEST(simx_cm_read__barrier_without_count)
{
    good("Nodes 4\nConnections 3\n0->1 start 0 size 1 send_done_trigger 1 recv_done_trigger 1\n"
         "1->2 start 0 size 1 recv_done_trigger 1\n2->3 trigger 1 size 1\ntrigger id 1 barrier\n");
    assert_int_equal(cm.triggers[0].count, 3);
    simx_cm_fini(&cm);
}

/* How other programs write what means the same. */
TEST(simx_cm_read__variants)
{
    const struct simx_flow expected = {0, 1, 7, true, false, 0, 0, -1, -1, 100, 0, false};
    static const char *const same[] = {
        "0->1 id 7 start 0 size 100",          "0 -> 1 id 7 start 0 size 100",
        "0-> 1 id 7 start 0 size 100",         "0 ->1 id 7 start 0 size 100",
        "0->1 id 7 start 0.000000 size 100.0", "0->1 id 7 prio 3 start 0 size 100",
        "0->1\tid 7\tstart 0\tsize 100 \r",
    };
    char text[256];

    for (unsigned i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        snprintf(text, sizeof(text),
                 "\xef\xbb\xbfNodes 4\nConnections 1\nTriggers 0\nFailures 0\n%s\n", same[i]);
        good(text);
        expect_flow(&cm.flows[0], &expected);
        assert_false(cm.flows[0].is_message);
        simx_cm_fini(&cm);
    }
}

/* Messages of one flow have its id, and each is a flow here. */
TEST(simx_cm_read__messages)
{
    good("Nodes 4\nConnections 3\n0->1 id 7 msg start 0 size 5 send_done_trigger 2\n"
         "0 -> 1 id 7 msg 2 trigger 2 size 6\n0->1 id 7 msg 3 start 0.0 size 8\n"
         "trigger id 2 oneshot\n");
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(cm.flows[i].is_message);
        assert_int_equal(cm.flows[i].id, 7);
    }
    assert_true(cm.flows[1].triggered);
    assert_int_equal(cm.flows[2].bytes, 8);
    simx_cm_fini(&cm);
}

TEST(simx_cm_read__bad_headers)
{
    static const struct exp_file_refusal table[] = {
        {"", 1, "Nodes before the first connection, found 'end of file'"},
        {"# nothing\n\n", 3, "Nodes before the first connection, found 'end of file'"},
        {"Nodes 4\n", 2, "Connections before the first connection, found 'end of file'"},
        {FLOW "\n", 1, "Nodes before the first connection, found '0->1'"},
        {"Nodes 4\n" FLOW "\n", 2, "Connections before the first connection, found '0->1'"},
        {"Connections 1\ntrigger id 1 oneshot\n", 2,
         "Nodes before the first connection, found 'trigger'"},
        {"Nodes\n", 1, "Nodes of 2 .. 65536, found 'end of line'"},
        {"Nodes 1\n", 1, "Nodes of 2 .. 65536, found '1'"},
        {"Nodes 65537\n", 1, "Nodes of 2 .. 65536, found '65537'"},
        {"Nodes 18446744073709551618\n", 1, "Nodes of 2 .. 65536, found '18446744073709551618'"},
        {"Nodes -4\n", 1, "Nodes of 2 .. 65536, found '-4'"},
        {"Nodes 4x\n", 1, "Nodes of 2 .. 65536, found '4x'"},
        {"Nodes 4 5\n", 1, "the end of the line, found '5'"},
        {"\nNodes 4\nNodes 4\n", 3, "Nodes only once, found 'Nodes'"},
        {"Connections 0\n", 1, "Connections of 1 .. 1048576, found '0'"},
        {"Connections 1048577\n", 1, "Connections of 1 .. 1048576, found '1048577'"},
        {"Triggers 1048577\n", 1, "Triggers of 0 .. 1048576, found '1048577'"},
        {"nodes 4\n", 1, "Nodes, Connections, Triggers, SRC->DST or trigger, found 'nodes'"},
        {"Failures 1\n", 1, "Failures 0, as failures are for --faults, found '1'"},
        {"\n\xef\xbb\xbfNodes 4\n", 2,
         "Nodes, Connections, Triggers, SRC->DST or trigger, found '???Nodes'"},
        {HEAD FLOW "\nTriggers 0\n", 4, "SRC->DST or trigger, found 'Triggers'"},
        {HEAD FLOW "\nfailure switch_type TOR\n", 4,
         "no failures, which are for --faults, found 'failure'"},
    };
    bad(table, sizeof(table) / sizeof(table[0]));
}

TEST(simx_cm_read__bad_flows)
{
    static const struct exp_file_refusal table[] = {
        {HEAD "0->4 start 0 size 1\n", 3, HOSTS "'0->4'"},
        {HEAD "4->0 start 0 size 1\n", 3, HOSTS "'4->0'"},
        {HEAD "4294967296->1 start 0 size 1\n", 3, HOSTS "'4294967296->1'"},
        {HEAD "0->18446744073709551617 start 0 size 1\n", 3, HOSTS "'0->18446744073709551617'"},
        {HEAD "0-> start 0 size 1\n", 3, HOSTS "'0->start'"},
        {HEAD "->1 start 0 size 1\n", 3, HOSTS "'->1'"},
        {HEAD "0->1->2 start 0 size 1\n", 3, HOSTS "'0->1->2'"},
        {HEAD "0->1, start 0 size 1\n", 3, HOSTS "'0->1,'"},
        {HEAD "2->2 start 0 size 1\n", 3, "two different hosts, found '2->2'"},
        {HEAD "0 -> 4 start 0 size 1\n", 3, HOSTS "'0->4'"},
        {HEAD "0 ->\n", 3, HOSTS "'0->'"},
        {HEAD "0 - > 1 start 0 size 1\n", 3,
         "Nodes, Connections, Triggers, SRC->DST or trigger, found '0'"},
        {HEAD "0->-> 1 start 0 size 1\n", 3, HOSTS "'0->->1'"},
        {HEAD "0->1 start 0 size 0\n", 3, "size of 1 .. 18446744073709551615, found '0'"},
        {HEAD "0->1 start 0 size 18446744073709551616\n", 3,
         "size of 1 .. 18446744073709551615, found '18446744073709551616'"},
        {HEAD "0->1 start 0 size\n", 3, "size of 1 .. 18446744073709551615, found 'end of line'"},
        {HEAD "0->1 start 0\n", 3, "size, found 'end of line'"},
        {HEAD "0->1 start 1.5 size 1\n", 3, PICO "'1.5'"},
        {HEAD "0->1 start 5.000000 size 1\n", 3, PICO "'5.000000'"},
        {HEAD "0->1 start 0. size 1\n", 3, "start of 0 .. 18446744073709551615, found '0.'"},
        {HEAD "0->1 start 1e6 size 1\n", 3, "start of 0 .. 18446744073709551615, found '1e6'"},
        {HEAD "0->1 start 0 size 1.5\n", 3, "size of 1 .. 18446744073709551615, found '1.5'"},
        {HEAD "0->1 start 0 size 0.0\n", 3, "size of 1 .. 18446744073709551615, found '0'"},
        {HEAD "0->1 start 0 size .0\n", 3, "size of 1 .. 18446744073709551615, found '.0'"},
        {HEAD "0->1 start -1 size 1\n", 3, "start of 0 .. 18446744073709551615, found '-1'"},
        {HEAD "0->1 size 1\n", 3, "start or trigger, found 'end of line'"},
        {HEAD "0->1 start 0 trigger 1 size 1\n", 3,
         "either start or trigger, not both, found 'trigger'"},
        {HEAD "0->1 id 0 start 0 size 1\n", 3, "id of 1 .. 18446744073709551615, found '0'"},
        {HEAD "0->1 id 1 id 2 start 0 size 1\n", 3, "id only once, found 'id'"},
        {HEAD "0->1 start 0 size 1 size 1\n", 3, "size only once, found 'size'"},
        {HEAD "0->1 start 0 size 1 prio\n", 3,
         "prio of 0 .. 18446744073709551615, found 'end of line'"},
        {HEAD "0->1 start 0 size 1 addon\n", 3, KEYS "'addon'"},
        {HEAD "0->1 id 1 msg 0 start 0 size 1\n", 3, "msg of 1 .. 18446744073709551615, found '0'"},
        {HEAD "0->1 msg msg start 0 size 1\n", 3, "msg only once, found 'msg'"},
        {HEAD "0->1 id 1 msg 1 start 5 size 1\n", 3,
         "no msg with a start other than 0, found 'msg'"},
        {HEAD "0->1 start 0 size 1 \x1b[31m\n", 3, KEYS "'?[31m'"},
        {HEAD "0->1 trigger 2147483648 size 1\n", 3,
         "trigger of 1 .. 2147483647, found '2147483648'"},
        {HEAD "0->1 start 0 size 1 send_done_trigger 0\n", 3,
         "send_done_trigger of 1 .. 2147483647, found '0'"},
        {HEAD FLOW "\n" FLOW "\n", 4, "1 connections, as line 2 says, found '0->1'"},
        {"Nodes 4\n\nConnections 2\n" FLOW "\n", 3, "Connections 1, as many as follow, found '2'"},
        {"Nodes 4\nConnections 3\n0->1 id 5 start 0 size 1\n1->2 id 6 start 0 size 1\n"
         "2->3 id 5 start 0 size 1\n",
         5, "another connection id than that of line 3, found '5'"},
        {"Nodes 4\nConnections 2\n0->1 id 5 msg start 0 size 1\n0->2 id 5 msg start 0 size 1\n", 4,
         "another connection id than that of line 3, found '5'"},
        {"Nodes 4\nConnections 2\n0->1 id 5 start 0 size 1\n0->1 id 5 msg start 0 size 1\n", 4,
         "another connection id than that of line 3, found '5'"},
        {HEAD "0->1 " TEN_WORDS TEN_WORDS "size 1\n", 3, "at most 20 words, found '0 size 1'"},
    };
    bad(table, sizeof(table) / sizeof(table[0]));
}

TEST(simx_cm_read__bad_triggers)
{
    static const struct exp_file_refusal table[] = {
        {TRIGGERS, 3, "a trigger that is defined, found '7'"},
        {TRIGGERS "trigger id 8 oneshot\n", 3, "a trigger that is defined, found '7'"},
        {HEAD "0->1 trigger 7 size 1\n", 3, "a trigger that is defined, found '7'"},
        {HEAD "0->1 start 0 size 1 recv_done_trigger 2\n", 3,
         "a trigger that is defined, found '2'"},
        {HEAD "0->1 trigger 7 size 1\ntrigger id 7 oneshot\n", 4,
         "a trigger that a connection fires, found '7'"},
        {TRIGGERS "trigger id 7 oneshot\ntrigger id 9 oneshot\n", 6,
         "a trigger that a connection fires, found '9'"},
        {TRIGGERS "trigger id 7 oneshot\ntrigger id 7 oneshot\n", 6,
         "another trigger id than that of line 5, found '7'"},
        {TRIGGERS "trigger id 7\n", 5, "oneshot or barrier, found 'end of line'"},
        {TRIGGERS "trigger id 7 oneshot barrier\n", 5, "oneshot or barrier, found 'both'"},
        {TRIGGERS "trigger id 7 multishot\n", 5,
         "id, oneshot, barrier or count, found 'multishot'"},
        {TRIGGERS "trigger id 7 barrier 1\n", 5, "id, oneshot, barrier or count, found '1'"},
        {TRIGGERS "trigger oneshot\n", 5, "id, found 'end of line'"},
        {TRIGGERS "trigger id 0 oneshot\n", 5, "id of 1 .. 2147483647, found '0'"},
        {TRIGGERS "trigger id 7 id 7 oneshot\n", 5, "id only once, found 'id'"},
        {TRIGGERS "trigger id 7 oneshot count 1\n", 5, "no count of a oneshot, found 'count'"},
        {TRIGGERS "trigger id 7 barrier count 0\n", 5, "count of 1 .. 2097152, found '0'"},
        {TRIGGERS "trigger id 7 barrier count 2\n", 5,
         "count 1, as often as trigger 7 is fired, found '2'"},
        {"Nodes 4\nConnections 3\n0->1 start 0 size 1 send_done_trigger 7\n"
         "0->1 start 0 size 1 recv_done_trigger 7\n1->2 trigger 7 size 1\ntrigger id 7 oneshot\n",
         6, "barrier with count 2, as often as trigger 7 is fired, found 'oneshot'"},
        {"Nodes 4\nConnections 1\nTriggers 1\n" FLOW "\n", 3,
         "Triggers 0, as many as follow, found '1'"},
        {"Nodes 4\nConnections 1\nTriggers 0\n" FLOW "\ntrigger id 7 oneshot\n", 5,
         "0 triggers, as line 3 says, found 'trigger'"},
        /* It waits for itself. */
        {HEAD "0->1 trigger 7 size 1 send_done_trigger 7\ntrigger id 7 oneshot\n", 3,
         "a trigger that fires before what waits for it has started, found '7'"},
        /* Two that wait for each other, one of them for the start as well. */
        {"Nodes 4\nConnections 3\n0->1 start 0 size 1 recv_done_trigger 1\n"
         "1->2 trigger 1 size 1 recv_done_trigger 2\n2->1 trigger 2 size 1 recv_done_trigger 1\n"
         "trigger id 1 barrier\ntrigger id 2 oneshot\n",
         4, "a trigger that fires before what waits for it has started, found '1'"},
    };
    bad(table, sizeof(table) / sizeof(table[0]));
}

TEST(simx_cm_read__not_text)
{
    char line[2000];

    /* The longest line that is one. */
    FILE *out = exp_file_open();
    fprintf(out, "#%01022d\n" HEAD FLOW "\n", 0);
    exp_file_close(out);
    assert_int_equal(read_back(), 0);
    simx_cm_fini(&cm);

    bad_bytes("Nodes 4\nCon\0nections", 19, 2, "text without zero bytes, found 'Con'");
    memset(line, 'n', sizeof(line));
    bad_bytes(
        line, sizeof(line), 1,
        "a line below 1024 characters, found 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn...'");
    assert_int_equal(simx_cm_read(&cm, "/nonexistent/file"), -ENOENT);
    assert_string_equal(mrd_last_error(), "/nonexistent/file: No such file or directory");
    assert_int_equal(simx_cm_read(&cm, "/tmp"), -EISDIR);
    assert_string_equal(mrd_last_error(), "/tmp: Is a directory");
}

/* A line that never ends is refused as soon as it is too long, and not first kept as a whole. */
TEST(simx_cm_read__endless_line)
{
    char line[2000], path[32];
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    memset(line, 'n', sizeof(line));
    assert_int_equal(write(ends[1], line, sizeof(line)), sizeof(line));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
    alarm(20); /* as long as the other end is open, more of the line may come */
    assert_int_equal(simx_cm_read(&cm, path), -EINVAL);
    alarm(0);
    assert_non_null(strstr(mrd_last_error(), ":1: expected a line below 1024 characters"));
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(simx_cm_read(&cm, "/dev/zero"), -EINVAL);
    assert_string_equal(mrd_last_error(),
                        "/dev/zero:1: expected text without zero bytes, found ''");
}
