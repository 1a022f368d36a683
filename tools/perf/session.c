/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/session.h"

#include <errno.h>
#include <string.h>

#include "tools/perf/control.h"
#include "tools/perf/doctor.h"
#include "tools/perf/infinite.h"
#include "tools/perf/message.h"
#include "tools/perf/report.h"
#include "tools/perf/transport.h"

enum {
    LANGUAGE = 7, /* of the control connection; both ends must speak the same */
    HELLO_TIMEOUT_MS = 10 * 1000,
    CLOCK_ROUNDS = 8,
};

static FILE *table_of(const struct perf_options *o)
{
    return o->out_json ? stderr : stdout;
}

/* The fastest round trip tells best how far the clocks are apart. */
static int compare_clocks(struct perf_control *c, char *error)
{
    uint64_t best_ns = UINT64_MAX;

    for (int i = 0; i < CLOCK_ROUNDS; i++) {
        uint64_t asked_ns = clock_now_ns(), there_ns;
        struct json_object *answer = perf_control_ask(c, perf_message("clock"), "clock", error);
        uint64_t rtt_ns = clock_now_ns() - asked_ns;
        if (!answer)
            return -EPROTO;
        if (json_get_u64(answer, "now_ns", &there_ns) == 0 && rtt_ns < best_ns) {
            best_ns = c->rtt_ns = rtt_ns;
            c->clock_offset_ns = (int64_t)(there_ns - (asked_ns + rtt_ns / 2));
        }
        json_object_put(answer);
    }
    return 0;
}

static int greet_server(struct perf_control *c, char *error)
{
    struct json_object *hello = perf_message("hello");

    json_add_u64(hello, "language", LANGUAGE);
    struct json_object *answer = perf_control_ask(c, hello, "hello", error);
    if (!answer)
        return -EPROTO;
    json_object_put(answer);
    return compare_clocks(c, error);
}

/* Add a report to `all`. 0, or -EIO if it failed, and with it the control connection. */
static int run_one_size(const struct perf_options *o, struct perf_control *c, uint64_t size_bytes,
                        struct json_object *all)
{
    struct perf_run run = {.options = o, .params = o->params, .control = c};

    run.params.size_bytes = size_bytes;
    perf_params_settle(&run.params);
    struct json_object *report = perf_run_client(&run);
    if (!report) {
        perf_complain(PERF_EXIT_FAILED, "%s", run.error);
        return -EIO;
    }
    perf_table_row(table_of(o), report, o->gbits);
    json_object_array_add(all, report);
    if (!perf_report_passed(report))
        perf_complain(PERF_EXIT_FAILED, "not verified: %s", run.verdict.error);
    return 0;
}

static int run_sizes(const struct perf_options *o, struct perf_control *c, struct json_object *all)
{
    int rc = 0;

    perf_table_head(table_of(o), o->params.test, o->gbits);
    if (!o->all_sizes)
        return run_one_size(o, c, o->params.size_bytes, all);
    for (int bit = PERF_SWEEP_FIRST_BIT; bit <= PERF_SWEEP_LAST_BIT && rc == 0; bit++)
        rc = run_one_size(o, c, 1ull << bit, all);
    return rc;
}

static int run_doctor(const struct perf_options *o, struct perf_control *c)
{
    char error[PERF_ERROR_BYTES];
    struct json_object *all = json_object_new_array();
    struct json_object *report = perf_doctor(o, c, table_of(o), error);
    enum perf_exit code = PERF_EXIT_OK;

    if (error[0])
        code = perf_complain(PERF_EXIT_FAILED, "%s", error);
    if (report) {
        json_object_array_add(all, report);
        if (perf_report_write(o, all, error))
            code = perf_complain(PERF_EXIT_FAILED, "%s", error);
    }
    json_object_put(all);
    return code;
}

static int run_all(const struct perf_options *o, struct perf_control *c)
{
    char error[PERF_ERROR_BYTES];
    struct json_object *all =
        o->compare ? perf_compare(o, c, table_of(o), error) : json_object_new_array();

    if (!all)
        return perf_complain(PERF_EXIT_FAILED, "%s", error);
    bool passed = o->compare || run_sizes(o, c, all) == 0;
    for (size_t i = 0; i < json_object_array_length(all); i++)
        passed = passed && perf_report_passed(json_object_array_get_idx(all, i));
    if (json_object_array_length(all) && perf_report_write(o, all, error))
        passed = perf_complain(PERF_EXIT_FAILED, "%s", error) == PERF_EXIT_OK;
    json_object_put(all);
    return passed ? PERF_EXIT_OK : PERF_EXIT_FAILED;
}

int perf_client_session(const struct perf_options *o, const char *host, uint16_t port)
{
    char error[PERF_ERROR_BYTES] = "";
    struct perf_control control = {.fd = -1};
    int code = PERF_EXIT_FAILED;

    if (o->params.run_infinitely)
        perf_infinite_catch_signals();
    if (perf_control_connect(&control, host, port, o->local ? "" : o->bind_address, o->ipv6,
                             error) ||
        greet_server(&control, error))
        perf_complain(PERF_EXIT_FAILED, "%s", error);
    else
        code = o->doctor ? run_doctor(o, &control) : run_all(o, &control);
    if (control.fd >= 0)
        (void)perf_control_send(&control, perf_message("bye")); /* closing says the same */
    perf_control_close(&control);
    return code;
}

/* The server's view of one client. */
struct visit {
    const struct perf_options *options;
    struct perf_control control;
    struct json_object *reports;
    char test[PERF_NAME_BYTES]; /* of the table's last head */
    bool greeted;
    int code;
};

/* Show the client's report here, too. */
static void show_report(struct visit *v, struct json_object *message)
{
    const struct perf_options *o = v->options;
    struct json_object *report;
    enum perf_test test;

    if (o->local || !json_object_object_get_ex(message, "report", &report) ||
        !json_object_is_type(report, json_type_object))
        return;
    const char *name = json_get_string(report, "test");
    if (!name || perf_test_find(name, &test))
        return;
    if (strcmp(name, v->test) != 0) {
        snprintf(v->test, sizeof(v->test), "%s", name);
        perf_table_head(table_of(o), test, o->gbits);
    }
    perf_table_row(table_of(o), report, o->gbits);
    if (!perf_report_passed(report))
        v->code = PERF_EXIT_FAILED;
    json_object_array_add(v->reports, json_object_get(report));
}

static int answer_hello(struct visit *v, struct json_object *message)
{
    uint64_t language = 0;
    struct json_object *answer = perf_message("hello");

    (void)json_get_u64(message, "language", &language); /* 0 is no language */
    if (language == LANGUAGE) {
        v->greeted = true;
        return perf_control_send(&v->control, answer);
    }
    json_object_put(answer);
    answer = perf_message("error");
    json_add_string(answer, "text", "the versions of mrd_perf do not match");
    (void)perf_control_send(&v->control, answer); /* it is the last word in any case */
    return -EPROTO;
}

/* 0: go on; 1: the client said goodbye; -errno: it is no use. */
static int answer_message(struct visit *v, struct json_object *message)
{
    if (perf_message_is(message, "hello"))
        return answer_hello(v, message);
    if (!v->greeted)
        return -EPROTO;
    if (perf_message_is(message, "clock")) {
        struct json_object *reply = perf_message("clock");
        json_add_u64(reply, "now_ns", clock_now_ns());
        return perf_control_send(&v->control, reply);
    }
    if (perf_message_is(message, "alive"))
        return 0; /* the last one of a run that is over */
    if (perf_message_is(message, "bye"))
        return 1;
    int rc = perf_doctor_answer(v->options, &v->control, message);
    if (rc)
        return rc > 0 ? 0 : rc;
    if (!perf_message_is(message, "run"))
        return -EPROTO;
    struct perf_run run = {.options = v->options, .server = true, .control = &v->control};
    rc = perf_run_server(&run, message);
    /* With both ends in one command the client says it. */
    if (rc && !v->options->local)
        perf_complain(PERF_EXIT_FAILED, "%s", run.error);
    if (rc)
        v->code = PERF_EXIT_FAILED;
    if (run.report)
        show_report(v, run.report);
    json_object_put(run.report);
    return rc;
}

static int serve_one(struct visit *v)
{
    struct json_object *message;
    int rc;

    do {
        rc = perf_control_recv(&v->control, v->greeted ? -1 : HELLO_TIMEOUT_MS, &message);
        if (rc == 0) {
            rc = answer_message(v, message);
            json_object_put(message);
        }
    } while (rc == 0);
    return rc;
}

/* A stranger that does not speak the protocol (a port scan) is not the expected client. */
int perf_server_session(const struct perf_options *o, int listener)
{
    char error[PERF_ERROR_BYTES];
    int code = PERF_EXIT_OK;
    bool served = false;

    while (!served || o->forever) {
        struct visit v = {.options = o, .reports = json_object_new_array()};
        if (perf_control_accept(&v.control, listener, error)) {
            json_object_put(v.reports);
            return perf_complain(PERF_EXIT_FAILED, "%s", error);
        }
        int rc = serve_one(&v);
        served = v.greeted;
        if (rc < 0 && !v.greeted)
            perf_complain(PERF_EXIT_OK, "%s is no client of mrd_perf; still waiting",
                          v.control.peer);
        if (!o->local && json_object_array_length(v.reports) &&
            perf_report_write(o, v.reports, error))
            v.code = perf_complain(PERF_EXIT_FAILED, "%s", error);
        code = v.code;
        perf_control_close(&v.control);
        json_object_put(v.reports);
    }
    return code;
}
