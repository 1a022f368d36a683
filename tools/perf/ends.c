/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/perf/message.h"
#include "tools/perf/report.h"
#include "tools/perf/threads.h"
#include "tools/perf/transport.h"

static int open_transport(struct perf_run *run)
{
    run->ops = perf_transport_find(run->params.transport);
    run->params.verify = run->params.verify && !run->ops->raw;
    run->state = calloc(1, run->ops->state_bytes);
    if (!run->state)
        return perf_run_fail(run, -ENOMEM, "out of memory");
    int rc = run->ops->open(run);
    return rc ? rc : perf_threads_open(run);
}

static int init_run(struct perf_run *run)
{
    run->verdict.verified = -1;
    perf_cpu_read(&run->cpu.at_begin);
    perf_meter_init(&run->meter, run->params.interval_ms);
    run->resent.due_ns = UINT64_MAX;
    if (run->server || !perf_test_is_lat(run->params.test))
        return 0;
    return perf_latency_init(&run->latency, run->params.iterations) ||
                   perf_latency_init(&run->last_second.latency, 0)
               ? perf_run_fail(run, -ENOMEM, "no memory for the latencies")
               : 0;
}

/* End a run. The other end is told of an error that it does not know yet. */
static void end_run(struct perf_run *run, int rc)
{
    if (rc && !run->peer.told) {
        struct json_object *message = perf_message("error");
        json_add_string(message, "text", run->error);
        (void)perf_control_send(run->control,
                                message); /* if that fails, too, the other end has closed */
    }
    perf_threads_close(run);
    if (run->state)
        run->ops->close(run);
    free(run->state);
    run->state = NULL;
    json_object_put(run->findings);
    run->findings = NULL;
    perf_meter_fini(&run->meter);
    perf_sampler_fini(&run->resent);
    perf_latency_fini(&run->latency);
    perf_latency_fini(&run->last_second.latency);
    perf_run_clear_live(run);
}

/* Tell the other end how this one is reached. */
static int tell_info(struct perf_run *run, const char *type)
{
    struct json_object *info = perf_message(type);

    run->ops->get_info(run, info);
    perf_threads_get_info(run, info);
    return perf_run_say(run, info);
}

/* Connect with the other end by what it tells. The client opens its transport after the server. */
static int hear_info(struct perf_run *run, const char *type)
{
    struct json_object *info = perf_run_expect(run, type);
    int rc = info ? 0 : -EPROTO;

    if (rc == 0 && !run->server)
        rc = open_transport(run);
    if (rc == 0)
        rc = run->ops->set_peer(run, info);
    if (rc == 0)
        rc = perf_threads_set_peer(run, info);
    json_object_put(info);
    return rc;
}

static int client_connect(struct perf_run *run)
{
    struct json_object *message = perf_message("run");

    perf_params_to_json(&run->params, message);
    int rc = perf_run_say(run, message);
    if (rc == 0)
        rc = hear_info(run, "ready");
    if (rc == 0)
        rc = tell_info(run, "connect");
    if (rc)
        return rc;
    json_object_put(message = perf_run_expect(run, "go"));
    if (!message)
        return -EPROTO;
    return run->ops->connect_qps ? run->ops->connect_qps(run) : 0;
}

static int client_wait_findings(struct perf_run *run)
{
    while (!run->findings) {
        uint64_t now_ns = clock_now_ns();
        int rc = run->ops->manual_progress ? perf_bw_progress(run)
                                           : perf_run_tick(run, now_ns, run->sent);
        if (rc)
            return rc;
        if (run->watch.next_ns > now_ns + PERF_MSEC_NS / 2)
            run->watch.next_ns = now_ns + PERF_MSEC_NS / 2;
        if (!run->ops->manual_progress)
            usleep(200);
    }
    return 0;
}

/*
 * Add what this end's meter counted. A client has counts if the server's host cannot see what
 * arrives.
 */
static void put_meter(const struct perf_run *run, struct json_object *result)
{
    struct json_object *samples = json_object_new_array();
    const struct perf_meter *m = &run->meter;

    json_add_u64(result, "first_ns", m->first_ns);
    json_add_u64(result, "last_ns", m->last_ns);
    json_add_u64(result, "first_bytes", m->first_bytes);
    json_add_u64(result, "total_bytes", m->total_bytes);
    json_add_u64(result, "received", run->received);
    for (size_t i = 0; i < m->sampler.count; i++) {
        struct json_object *pair = json_object_new_array();
        json_object_array_add(pair, json_object_new_uint64(m->sampler.samples[i].t_ns));
        json_object_array_add(pair, json_object_new_uint64(m->sampler.samples[i].total));
        json_object_array_add(samples, pair);
    }
    json_object_object_add(result, "samples", samples);
}

/*
 * The client's counts take the place of the server's, where that cannot count; with -b they stand
 * beside them.
 */
static void keep_meter(struct perf_run *run)
{
    if (run->params.bidirectional) {
        struct json_object *mine = json_object_new_object();
        put_meter(run, mine);
        json_object_object_add(run->findings, "mine", mine);
    } else if (run->meter.first_ns) {
        put_meter(run, run->findings);
    }
}

static int client_test(struct perf_run *run)
{
    run->start_ns = clock_now_ns();
    run->cpu.start_s = perf_cpu_s();
    int rc = 0;
    if (run->params.bidirectional)
        rc = perf_bw_both(run);
    else
        rc = perf_test_is_lat(run->params.test) ? perf_lat_client(run)
                                                : perf_threads_run(run, perf_bw_client);
    if (rc)
        return rc;
    run->end_ns = clock_now_ns();
    struct json_object *done = perf_message(run->params.bidirectional ? "whole" : "done");
    json_add_u64(done, "sent", run->sent);
    perf_threads_put_sent(run, done);
    rc = perf_run_say(run, done);
    if (rc == 0) {
        run->watch.next_ns = 0;
        rc = client_wait_findings(run);
    }
    run->cpu.used_s = perf_cpu_s() - run->cpu.start_s;
    if (rc == 0)
        keep_meter(run);
    const char *text = rc ? NULL : json_get_string(run->findings, "verify_error");
    if (text && run->verdict.error[0] == '\0')
        snprintf(run->verdict.error, sizeof(run->verdict.error), "%s", text);
    return rc;
}

static struct perf_cpu_load load_since_begin(const struct perf_run *run, double helper_user_s)
{
    struct perf_cpu_times now;

    perf_cpu_read(&now);
    return perf_cpu_load_between(&run->cpu.at_begin, &now, helper_user_s,
                                 (double)sysconf(_SC_CLK_TCK));
}

/* 0: the server does not tell. */
static double finding(const struct perf_run *run, const char *key)
{
    return json_object_get_double(json_object_object_get(run->findings, key));
}

/* On one machine the server's CPU time is mrd_perf's own and no disturbance. */
static void judge_load(struct perf_run *run)
{
    const char *there = json_get_string(run->findings, "machine");
    char here[PERF_MACHINE_BYTES];
    double server_user_s = 0;

    perf_cpu_machine(here, sizeof(here));
    bool together = there && strcmp(here, there) == 0;
    if (together)
        server_user_s = finding(run, "cpu_user_s");
    run->cpu.load = load_since_begin(run, server_user_s);
    if (together || run->cpu.load.busy || finding(run, "cpu_busy") == 0)
        return;
    run->cpu.load = (struct perf_cpu_load){
        .known = true,
        .busy = true,
        .stolen = finding(run, "cpu_stolen"),
        .others = finding(run, "cpu_others"),
    };
}

static void warn_of_load(struct perf_run *run)
{
    if (!run->cpu.load.busy)
        return;
    perf_run_clear_live(run);
    perf_complain(PERF_EXIT_OK,
                  "warning: %s: the machine was too busy for good figures: other processes "
                  "had %.0f%% of its CPU time, its host took %.0f%%",
                  run->label ? run->label : run->params.transport, 100 * run->cpu.load.others,
                  100 * run->cpu.load.stolen);
}

struct json_object *perf_run_client(struct perf_run *run)
{
    struct json_object *report = NULL;
    int rc = init_run(run);

    if (rc == 0)
        rc = client_connect(run);
    if (rc == 0)
        rc = client_test(run);
    if (rc == 0) {
        judge_load(run);
        warn_of_load(run);
        report = perf_report_make(run);
        struct json_object *message = perf_message("report");
        json_object_object_add(message, "report", json_object_get(report));
        rc = perf_run_say(run, message);
    }
    if (rc) {
        json_object_put(report);
        report = NULL;
    }
    end_run(run, rc);
    return report;
}

static void put_load(const struct perf_run *run, struct json_object *result)
{
    struct perf_cpu_load load = load_since_begin(run, 0);
    char machine[PERF_MACHINE_BYTES];

    perf_cpu_machine(machine, sizeof(machine));
    json_add_string(result, "machine", machine);
    json_add_rounded(result, "cpu_user_s", load.own_user_s);
    if (load.known) {
        json_add_u64(result, "cpu_busy", load.busy);
        json_add_rounded(result, "cpu_stolen", load.stolen);
        json_add_rounded(result, "cpu_others", load.others);
    }
}

static struct json_object *make_findings(const struct perf_run *run)
{
    struct json_object *result = perf_message("result");

    put_load(run, result);
    put_meter(run, result);
    json_add_rounded(result, "cpu_s", run->meter.cpu_s);
    if (run->verdict.verified >= 0)
        json_add_bool(result, "verified", run->verdict.verified);
    json_add_string(result, "verify_error", run->verdict.error);
    json_add_u64(result, "sent", run->sent);
    json_add_u64(result, "events", run->events);
    perf_threads_put_received(run, result);
    if (perf_test_is_request(run->params.test) || run->params.bidirectional) {
        struct json_object *stats = json_object_new_object();
        run->ops->stats(run, stats);
        json_object_object_add(result, "stats", stats);
    }
    return result;
}

static int server_connect(struct perf_run *run)
{
    int rc = tell_info(run, "ready");

    if (rc == 0)
        rc = hear_info(run, "connect");
    if (rc == 0)
        rc = perf_run_say(run, perf_message("go"));
    return rc == 0 && run->ops->connect_qps ? run->ops->connect_qps(run) : rc;
}

static int server_test(struct perf_run *run)
{
    if (run->params.bidirectional)
        return perf_bw_both(run);
    bool answers = perf_test_is_lat(run->params.test) && !perf_test_is_request(run->params.test);
    return answers ? perf_lat_server(run) : perf_threads_run(run, perf_bw_server);
}

int perf_run_server(struct perf_run *run, struct json_object *request)
{
    int rc = perf_params_from_json(&run->params, request);

    if (rc)
        rc = perf_run_fail(run, rc,
                           "the request lacks parameters: is the client of another version?");
    else
        rc = perf_params_check(&run->params, run->error);
    if (rc == 0) {
        perf_params_settle(&run->params);
        rc = init_run(run);
    }
    if (rc == 0)
        rc = open_transport(run);
    if (rc == 0)
        rc = server_connect(run);
    if (rc == 0)
        rc = server_test(run);
    if (rc == 0) {
        perf_meter_stop(&run->meter);
        rc = perf_run_say(run, make_findings(run));
    }
    /*
     * Wait: if this end closed now, the client's transport would drop the statistics of its paths.
     */
    if (rc == 0)
        run->report = perf_run_expect(run, "report");
    end_run(run, rc);
    return rc;
}
