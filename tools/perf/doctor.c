/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/doctor.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/perf/doctor_advice.h"
#include "tools/perf/doctor_facts.h"
#include "tools/perf/doctor_probe.h"
#include "tools/perf/doctor_runs.h"
#include "tools/perf/message.h"

enum {
    ALL_MS = 28 * 1000,    /* the client: for all of it */
    RUNS_MS = 25 * 1000,   /* from its beginning to the end of the last run */
    ANSWER_MS = 10 * 1000, /* for one answer at most */
    PROBE_MS = 20 * 1000,  /* longer than a probe of ports and sizes takes */
    LATE_MS = 200,         /* for what is on the way when all is sent */
};

static struct json_object *ports_of(const struct perf_probe_sent *sent)
{
    struct json_object *ports = json_object_new_array();

    for (uint32_t i = 0; i < PERF_PROBE_PORTS; i++)
        json_object_array_add(ports, json_object_new_int(sent->ports[i]));
    return ports;
}

/* ------------------------------------------------------------------------------------- the server */

/* Receives on `fd` until the next message comes, or for `ms`. 0 with the message, or -errno. */
static int take_until(struct perf_control *c, int fd, int ms, struct json_object *arrivals,
                      struct json_object **message)
{
    uint64_t end_ns = clock_now_ns() + (uint64_t)ms * PERF_MSEC_NS;

    for (;;) {
        struct pollfd fds[] = {{.fd = c->fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
        int rc = perf_control_recv(c, 0, message);

        perf_probe_take(fd, arrivals);
        uint64_t now_ns = clock_now_ns();
        if (rc != -ETIMEDOUT || now_ns >= end_ns)
            return rc;
        poll(fds, 2, (int)((end_ns - now_ns) / PERF_MSEC_NS) + 1);
    }
}

/* What was on the way when the other end said that all is sent. */
static void take_late(struct perf_control *c, int fd, int ms, struct json_object *arrivals)
{
    struct json_object *message = NULL;

    if (take_until(c, fd, ms, arrivals, &message) == 0)
        json_object_put(message); /* nobody speaks now */
}

/* The other end is told why; the conversation goes on. 0, or -errno: it does not. */
static int answer_no_socket(struct perf_control *c, int rc)
{
    struct json_object *message = perf_message("error");
    char text[PERF_ERROR_BYTES];

    snprintf(text, sizeof(text), "it cannot open a UDP socket at %s: %s", c->local, strerror(-rc));
    json_add_string(message, "text", text);
    return perf_control_send(c, message);
}

/* Reports what came until the client says that all is sent. */
static int answer_probe(const struct perf_options *o, struct perf_control *c)
{
    int fd = perf_probe_open(c->local, o->port);

    if (fd < 0) /* its port is not free: another one will do, but may be closed */
        fd = perf_probe_open(c->local, 0);
    if (fd < 0)
        return answer_no_socket(c, fd);

    struct json_object *ready = perf_message("probe"), *done = NULL;
    struct json_object *answer = perf_message("arrived"), *arrivals = json_object_new_array();
    json_object_object_add(answer, "arrivals", arrivals);
    json_add_u64(ready, "port", perf_control_port(fd));
    int rc = perf_control_send(c, ready);
    if (rc == 0)
        rc = take_until(c, fd, PROBE_MS, arrivals, &done);
    json_object_put(done);
    if (rc == 0)
        take_late(c, fd, LATE_MS, arrivals);
    close(fd);
    if (rc == 0)
        return perf_control_send(c, answer);
    json_object_put(answer);
    return rc;
}

/* Sends to the port that the client tells; with the ports of an earlier answer from these, plain. */
static int answer_probe_back(struct perf_control *c, struct json_object *message)
{
    struct json_object *ports = json_get_array(message, "ports", PERF_PROBE_PORTS);
    struct perf_probe_sent sent = {0};
    uint64_t port = 0;
    int rc;

    (void)json_get_u64(message, "port", &port);
    for (uint32_t i = 0; ports && i < PERF_PROBE_PORTS; i++)
        sent.ports[i] = (uint16_t)json_u32_at(ports, i);
    if (ports)
        rc = perf_probe_plain(c->local, c->peer, (uint16_t)port, &sent);
    else
        rc = perf_probe_ports(c->local, c->peer, (uint16_t)port, &sent);
    if (rc)
        return answer_no_socket(c, rc);

    struct json_object *answer = perf_message("sent");
    json_object_object_add(answer, "ports", ports_of(&sent));
    return perf_control_send(c, answer);
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

/* A question, for which there is time until then. */
static struct json_object *ask_in_time(struct perf_control *c, struct json_object *question,
                                       const char *type, uint64_t end_ns, char *error)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t left_ms = now_ns < end_ns ? (end_ns - now_ns) / PERF_MSEC_NS : 0;

    return perf_control_ask_for(c, question, type, left_ms < ANSWER_MS ? (int)left_ms : ANSWER_MS,
                                error);
}

/* Both ends' facts into `report`, under that name. */
static int get_facts(struct perf_control *c, struct json_object *report, const char *name,
                     uint64_t end_ns, char *error)
{
    struct json_object *answer = ask_in_time(c, perf_message("facts"), "facts", end_ns, error),
                       *facts = NULL;

    if (!answer)
        return -EPROTO;
    struct json_object *both = json_object_new_object();
    (void)json_object_object_get_ex(answer, "facts", &facts);
    json_object_object_add(both, "client", perf_facts(c->local));
    json_object_object_add(both, "server", json_object_get(facts));
    json_object_object_add(report, name, both);
    json_object_put(answer);
    return 0;
}

static void add_sent(struct json_object *report, const struct perf_probe_sent *sent)
{
    json_object_object_add(report, "probe_ports", ports_of(sent));
    json_object_object_add(report, "probe_local_mtu",
                           sent->local_mtu ? json_object_new_int64(sent->local_mtu) : NULL);
    json_object_object_add(report, "probe_icmp_mtu",
                           sent->icmp_mtu ? json_object_new_int64(sent->icmp_mtu) : NULL);
}

/* Ports and sizes; or with `plain` without ECT, from the same ports. What arrives is added. */
static int send_there(struct perf_control *c, struct json_object *report, bool plain,
                      struct perf_probe_sent *sent, uint64_t end_ns, char *error)
{
    struct json_object *answer = ask_in_time(c, perf_message("probe"), "probe", end_ns, error),
                       *arrivals = NULL;
    uint64_t port = 0;
    int rc;

    if (!answer)
        return -EPROTO;
    (void)json_get_u64(answer, "port", &port);
    json_object_put(answer);
    if (plain)
        rc = perf_probe_plain(c->local, c->peer, (uint16_t)port, sent);
    else
        rc = perf_probe_ports(c->local, c->peer, (uint16_t)port, sent);
    if (rc == 0 && !plain)
        rc = perf_probe_sizes(c->local, c->peer, (uint16_t)port, sent);
    if (rc)
        return perf_fail(error, rc, "cannot send UDP to %s: %s", c->peer, strerror(-rc));
    answer = ask_in_time(c, perf_message("sent"), "arrived", end_ns, error);
    if (!answer)
        return -EPROTO;
    (void)json_object_object_get_ex(answer, "arrivals", &arrivals);
    if (json_object_is_type(arrivals, json_type_array))
        json_append(json_object_object_get(report, "probe_arrivals"), arrivals);
    json_object_put(answer);
    return 0;
}

/* Where ports are silent, does the network drop what has ECT, or all? */
static int probe_there(struct perf_control *c, struct json_object *report, uint64_t end_ns,
                       char *error)
{
    struct json_object *arrivals = json_object_new_array();
    struct perf_probe_sent sent = {0};

    json_object_object_add(report, "probe_arrivals", arrivals);
    int rc = send_there(c, report, false, &sent, end_ns, error);
    if (rc == 0 && perf_doctor_some_silent(arrivals))
        rc = send_there(c, report, true, &sent, end_ns, error);
    if (rc == 0)
        add_sent(report, &sent);
    return rc;
}

/* Where an mrd client of this environment receives: MRD_PORT, or an ephemeral port. */
static int open_for_back(const struct perf_control *c)
{
    const char *text = getenv("MRD_PORT");
    long port = text ? strtol(text, NULL, 10) : 0;
    int fd = port > 0 && port <= UINT16_MAX ? perf_probe_open(c->local, (uint16_t)port) : -1;

    return fd >= 0 ? fd : perf_probe_open(c->local, 0);
}

/*
 * What the server sends to that socket; `ports`, consumed: NULL, or from which to send plain. The
 * caller puts the answer, if there is one.
 */
static int take_back(struct perf_control *c, int fd, struct json_object *ports,
                     struct json_object *arrivals, struct json_object **answer, char *error)
{
    struct json_object *question = perf_message("probe_back");

    json_add_u64(question, "port", perf_control_port(fd));
    if (ports)
        json_object_object_add(question, "ports", ports);
    int rc = perf_control_send(c, question);
    if (rc == 0)
        rc = take_until(c, fd, ANSWER_MS, arrivals, answer);
    if (rc == 0)
        take_late(c, fd, LATE_MS, arrivals);
    if (rc)
        return perf_fail(error, rc, "the server %s does not answer: %s", c->peer, strerror(-rc));
    if (perf_message_is(*answer, "sent"))
        return 0;
    const char *text = json_get_string(*answer, "text");
    return perf_fail(error, -EPROTO, "the server %s says: %s", c->peer,
                     text ? text : "an unexpected message");
}

/* To where a client of mrd receives. A server that tells no ports cannot send plain. */
static int probe_back(struct perf_control *c, struct json_object *report, char *error)
{
    int fd = open_for_back(c);
    if (fd < 0)
        return perf_fail(error, fd, "cannot open a UDP socket at %s: %s", c->local, strerror(-fd));

    struct json_object *arrivals = json_object_new_array(), *answer = NULL, *again = NULL;
    json_object_object_add(report, "probe_back_arrivals", arrivals);
    int rc = take_back(c, fd, NULL, arrivals, &answer, error);
    if (rc == 0) {
        struct json_object *ports = json_get_array(answer, "ports", PERF_PROBE_PORTS);
        if (ports && perf_doctor_some_silent(arrivals))
            rc = take_back(c, fd, json_object_get(ports), arrivals, &again, error);
    }
    json_object_put(answer);
    json_object_put(again);
    close(fd);
    return rc;
}

struct json_object *perf_doctor(const struct perf_options *o, struct perf_control *c, FILE *table,
                                char *error)
{
    struct json_object *report = json_object_new_object();
    uint64_t begin_ns = clock_now_ns(), end_ns = begin_ns + ALL_MS * PERF_MSEC_NS;

    error[0] = '\0';
    json_add_string(report, "test", "doctor");
    json_add_string(report, "client", c->local);
    json_add_string(report, "server", c->peer);
    int rc = get_facts(c, report, "facts", end_ns, error);
    if (rc == 0)
        rc = probe_there(c, report, end_ns, error);
    if (rc == 0)
        rc = probe_back(c, report, error);
    if (rc) {
        json_object_put(report);
        return NULL;
    }
    perf_doctor_judge_probes(report);
    if (perf_doctor_may_run(report)) /* mrd cannot work where no datagram comes through */
        rc = perf_doctor_run(o, c, report, begin_ns + RUNS_MS * PERF_MSEC_NS, error);
    if (rc == 0 && get_facts(c, report, "facts_after", end_ns, error) && clock_now_ns() >= end_ns) {
        perf_doctor_find(report, "no_time", "measure again",
                         "whether allowances were exceeded could not be asked in half a minute");
        error[0] = '\0';
    }
    perf_doctor_judge_runs(report);
    perf_doctor_print(table, report);
    return report;
}
