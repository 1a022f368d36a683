/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/doctor.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tools/perf/doctor_advice.h"
#include "tools/perf/doctor_facts.h"
#include "tools/perf/doctor_probe.h"
#include "tools/perf/json.h"
#include "tools/perf/report.h"
#include "tools/perf/run.h"
#include "tools/perf/transport.h"

enum {
    ANSWER_MS = 20 * 1000,
    PROBE_MS = 20 * 1000, /* longer than a probe of ports and sizes takes */
    LOOK_MS = 5,
    LATE_MS = 200, /* for what is on the way when all is sent */
    BW_S = 1,
    BW_BYTES = 256 << 10,
    LAT_ITERATIONS = 2000,
};

static const uint32_t rate_paths[] = {1, 2, 4, 8, 32};

/* ------------------------------------------------------------------------------------- the server */

/* Receives on `fd` until the next message comes, or for `ms`. 0 with the message, or -errno. */
static int take_until(struct perf_control *c, int fd, int ms, struct json_object *arrivals,
                      struct json_object **message)
{
    int rc = -ETIMEDOUT;

    for (int waited = 0; rc == -ETIMEDOUT && waited < ms; waited += LOOK_MS) {
        rc = perf_control_recv(c, LOOK_MS, message);
        perf_probe_take(fd, arrivals);
    }
    return rc;
}

/* Reports what came until the client says that all is sent. */
static int answer_probe(const struct perf_options *o, struct perf_control *c)
{
    struct json_object *ready = perf_message("probe"), *done = NULL, *late = NULL;
    struct json_object *answer = perf_message("arrived"), *arrivals = json_object_new_array();
    int fd = perf_probe_open(c->local, o->port);

    if (fd < 0) /* its port is not free: another one will do, but may be closed */
        fd = perf_probe_open(c->local, 0);
    json_object_object_add(answer, "arrivals", arrivals);
    perf_json_add_u64(ready, "port", fd >= 0 ? perf_control_port(fd) : 0);
    int rc = perf_control_send(c, ready);
    if (rc == 0 && fd >= 0)
        rc = take_until(c, fd, PROBE_MS, arrivals, &done);
    json_object_put(done);
    if (rc == 0 && take_until(c, fd, LATE_MS, arrivals, &late) == 0)
        json_object_put(late);
    if (fd >= 0)
        close(fd);
    if (rc == 0)
        return perf_control_send(c, answer);
    json_object_put(answer);
    return rc;
}

/* Sends to the client's ephemeral port. */
static int answer_probe_back(struct perf_control *c, struct json_object *message)
{
    struct perf_probe_sent sent = {0};
    uint64_t port = 0;

    (void)perf_json_get_u64(message, "port", &port);
    (void)perf_probe_ports(c->local, c->peer, (uint16_t)port, &sent);
    return perf_control_send(c, perf_message("sent"));
}

int perf_doctor_answer(const struct perf_options *o, struct perf_control *c,
                       struct json_object *message)
{
    struct json_object *answer;
    int rc;

    if (perf_message_is(message, "facts")) {
        answer = perf_message("facts");
        json_object_object_add(answer, "facts", perf_facts(c->local));
        rc = perf_control_send(c, answer);
    } else if (perf_message_is(message, "probe")) {
        rc = answer_probe(o, c);
    } else if (perf_message_is(message, "probe_back")) {
        rc = answer_probe_back(c, message);
    } else {
        return 0;
    }
    return rc ? rc : 1;
}

/* ------------------------------------------------------------------------------------- the client */

/* Both ends' facts into `report`, under that name. */
static int get_facts(struct perf_control *c, struct json_object *report, const char *name,
                     char *error)
{
    struct json_object *answer = perf_control_ask(c, perf_message("facts"), "facts", error),
                       *facts = NULL;
    struct json_object *both = json_object_new_object();

    if (!answer) {
        json_object_put(both);
        return -EPROTO;
    }
    (void)json_object_object_get_ex(answer, "facts", &facts);
    json_object_object_add(both, "client", perf_facts(c->local));
    json_object_object_add(both, "server", json_object_get(facts));
    json_object_object_add(report, name, both);
    json_object_put(answer);
    return 0;
}

static void add_sent(struct json_object *report, const struct perf_probe_sent *sent)
{
    struct json_object *ports = json_object_new_array();

    for (uint32_t i = 0; i < PERF_PROBE_PORTS; i++)
        json_object_array_add(ports, json_object_new_int(sent->ports[i]));
    json_object_object_add(report, "probe_ports", ports);
    json_object_object_add(report, "probe_local_mtu",
                           sent->local_mtu ? json_object_new_int64(sent->local_mtu) : NULL);
    json_object_object_add(report, "probe_icmp_mtu",
                           sent->icmp_mtu ? json_object_new_int64(sent->icmp_mtu) : NULL);
}

static int probe_there(struct perf_control *c, struct json_object *report, char *error)
{
    struct perf_probe_sent sent = {0};
    struct json_object *answer = perf_control_ask(c, perf_message("probe"), "probe", error),
                       *arrivals = NULL;
    uint64_t port = 0;

    if (!answer)
        return -EPROTO;
    (void)perf_json_get_u64(answer, "port", &port);
    json_object_put(answer);
    int rc = perf_probe_ports(c->local, c->peer, (uint16_t)port, &sent);
    if (rc == 0)
        rc = perf_probe_sizes(c->local, c->peer, (uint16_t)port, &sent);
    if (rc)
        return perf_fail(error, rc, "cannot send UDP to %s: %s", c->peer, strerror(-rc));
    answer = perf_control_ask(c, perf_message("sent"), "arrived", error);
    if (!answer)
        return -EPROTO;
    (void)json_object_object_get_ex(answer, "arrivals", &arrivals);
    json_object_object_add(report, "probe_arrivals", json_object_get(arrivals));
    json_object_put(answer);
    add_sent(report, &sent);
    return 0;
}

/* What the server sends to an ephemeral port here, as it does to a client of mrd. */
static int probe_back(struct perf_control *c, struct json_object *report, char *error)
{
    struct json_object *arrivals = json_object_new_array(), *question = perf_message("probe_back");
    struct json_object *answer = NULL;
    int fd = perf_probe_open(c->local, 0);

    json_object_object_add(report, "probe_back_arrivals", arrivals);
    perf_json_add_u64(question, "port", fd >= 0 ? perf_control_port(fd) : 0);
    int rc = perf_control_send(c, question);
    if (rc == 0 && fd >= 0)
        rc = take_until(c, fd, ANSWER_MS, arrivals, &answer);
    json_object_put(answer);
    if (fd >= 0)
        close(fd);
    return rc ? perf_fail(error, rc, "the server %s does not answer: %s", c->peer, strerror(-rc))
              : 0;
}

/* Where a firewall lets only some source ports pass: from these, at most `most`, 0: all. */
static void use_ports(struct perf_options *o, struct json_object *report, uint32_t most)
{
    struct json_object *through = NULL;

    (void)json_object_object_get_ex(report, "ports_through", &through);
    o->num_source_ports = (unsigned)json_object_array_length(through);
    if (o->num_source_ports == PERF_PROBE_PORTS) {
        o->num_source_ports = 0; /* any will do */
        return;
    }
    if (most && most < o->num_source_ports)
        o->num_source_ports = most;
    for (unsigned i = 0; i < o->num_source_ports; i++)
        o->source_ports[i] = (uint16_t)perf_json_u32_at(through, i);
}

/* One run; its report, or NULL with a sentence. */
static struct json_object *run_test(const struct perf_options *options, struct perf_control *c,
                                    struct json_object *doctors, const char *transport,
                                    enum perf_test test, uint32_t paths, char *error)
{
    static struct perf_options own; /* large */
    const struct perf_options *o = &own;

    own = *options;
    use_ports(&own, doctors, paths);
    if (own.num_source_ports && strcmp(transport, "tcp") != 0)
        paths = own.num_source_ports;

    struct perf_run run = {.options = o, .params = o->params, .control = c};
    char label[32];

    snprintf(label, sizeof(label), "doctor: %s", perf_test_name(test));
    run.label = label;
    run.params.test = test;
    snprintf(run.params.transport, sizeof(run.params.transport), "%s", transport);
    run.params.paths = paths;
    if (perf_test_is_lat(test)) {
        run.params.size_bytes = 64;
        run.params.iterations = LAT_ITERATIONS;
    } else {
        run.params.size_bytes = BW_BYTES;
        run.params.duration_s = BW_S;
        snprintf(run.params.wait, sizeof(run.params.wait), "sleep"); /* CPU time tells then */
    }
    perf_params_settle(&run.params);
    struct json_object *report = perf_run_client(&run);
    if (!report)
        perf_fail(error, -EIO, "%s: %.400s", transport, run.error);
    return report;
}

static int run_tests(const struct perf_options *o, struct perf_control *c,
                     struct json_object *report, char *error)
{
    struct json_object *rates = json_object_new_array(), *one;

    json_object_object_add(report, "rates", rates);
    one = run_test(o, c, report, "mrd-udp", PERF_WRITE_LAT, 0, error);
    if (!one)
        return -EIO;
    json_object_object_add(report, "latency", one);
    for (size_t i = 0; i < sizeof(rate_paths) / sizeof(rate_paths[0]); i++) {
        one = run_test(o, c, report, "mrd-udp", PERF_WRITE_BW, rate_paths[i], error);
        if (!one)
            return -EIO;
        perf_json_add_u64(one, "source_ports", rate_paths[i]);
        json_object_array_add(rates, one);
    }
    one = run_test(o, c, report, "tcp", PERF_WRITE_BW, 0, error);
    if (!one)
        return -EIO;
    json_object_object_add(report, "tcp", one);
    return 0;
}

struct json_object *perf_doctor(const struct perf_options *o, struct perf_control *c, FILE *table,
                                char *error)
{
    struct json_object *report = json_object_new_object();

    perf_json_add_text(report, "test", "doctor");
    perf_json_add_text(report, "client", c->local);
    perf_json_add_text(report, "server", c->peer);
    int rc = get_facts(c, report, "facts", error);
    if (rc == 0)
        rc = probe_there(c, report, error);
    if (rc == 0)
        rc = probe_back(c, report, error);
    if (rc == 0) { /* mrd cannot work where no datagram comes through */
        perf_doctor_judge_probes(report);
        rc = perf_doctor_may_run(report) ? run_tests(o, c, report, error) : 0;
    }
    if (rc == 0)
        rc = get_facts(c, report, "facts_after", error);
    if (rc) {
        json_object_put(report);
        return NULL;
    }
    perf_doctor_judge_runs(report);
    perf_doctor_print(table, report);
    return report;
}
