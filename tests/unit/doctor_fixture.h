/* SPDX-License-Identifier: BSD-2-Clause */
/* What doctor measured, made by hand: probes with something wrong, rates, what hosts say. */
#ifndef MRD_UNIT_DOCTOR_FIXTURE_H
#define MRD_UNIT_DOCTOR_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/json_text.h"
#include "tools/perf/doctor_advice.h"
#include "tools/perf/doctor_probe.h"
#include "tools/perf/message.h"

enum { FIRST_PORT = 40000, NOT_ECT = 0, ECT1 = 1, ECT0 = 2, CE = 3, WANTED = 4 << 20 };

/* How datagrams of the ports and of sizes fare, by number and by port, or by MTU. */
struct ill {
    bool (*drops)(uint32_t number, uint32_t port);
    bool (*drops_plain)(uint32_t number, uint32_t port); /* NULL: as `drops` */
    bool (*drops_size)(uint32_t mtu, uint32_t repeat);
    int (*ecn)(uint32_t number, uint32_t port); /* NULL: as it was sent */
    uint32_t local_mtu, icmp_mtu;
};

static struct json_object *report;

static inline void arrive(struct json_object *arrivals, uint32_t number, int ecn)
{
    json_object_array_add(arrivals, json_object_new_int64(number));
    json_object_array_add(arrivals, json_object_new_int(ecn));
}

static inline struct json_object *arrivals_of(const struct ill *ill)
{
    struct json_object *arrivals = json_object_new_array();

    for (uint32_t i = 0; i < PERF_PROBE_SIZE_BASE; i++) {
        if (!ill->drops || !ill->drops(i, i % PERF_PROBE_PORTS))
            arrive(arrivals, i, ill->ecn ? ill->ecn(i, i % PERF_PROBE_PORTS) : ECT0);
    }
    for (uint32_t i = PERF_PROBE_PLAIN_BASE; i < PERF_PROBE_MAX; i++) {
        uint32_t port = (i - PERF_PROBE_PLAIN_BASE) % PERF_PROBE_PORTS;
        bool (*drops)(uint32_t, uint32_t) = ill->drops_plain ? ill->drops_plain : ill->drops;
        if (!drops || !drops(i, port))
            arrive(arrivals, i, NOT_ECT);
    }
    for (uint32_t i = 0; i < PERF_PROBE_SIZES * PERF_PROBE_REPEATS; i++) {
        uint32_t mtu = perf_probe_mtus[i / PERF_PROBE_REPEATS];
        if ((!ill->local_mtu || mtu < ill->local_mtu) &&
            (!ill->drops_size || !ill->drops_size(mtu, i % PERF_PROBE_REPEATS)))
            arrive(arrivals, PERF_PROBE_SIZE_BASE + i, NOT_ECT);
    }
    return arrivals;
}

static inline void add_facts(const char *name)
{
    struct json_object *both = json_object_new_object();
    static const char *const ends[] = {"client", "server"};

    for (unsigned i = 0; i < 2; i++) {
        struct json_object *facts = json_object_new_object();
        json_add_u64(facts, "cpus", 8);
        json_add_bool(facts, "gso", true);
        json_add_bool(facts, "gro", true);
        json_add_u64(facts, "rcvbuf_wanted", WANTED);
        json_add_u64(facts, "rcvbuf_granted", WANTED);
        json_object_object_add(facts, "allowances", json_object_new_object());
        json_object_object_add(both, ends[i], facts);
    }
    json_object_object_add(report, name, both);
}

/* "facts" or "facts_after" of "client" or "server". */
static inline struct json_object *facts_of(const char *name, const char *end)
{
    struct json_object *both = NULL, *facts = NULL;

    assert_true(json_object_object_get_ex(report, name, &both));
    assert_true(json_object_object_get_ex(both, end, &facts));
    return facts;
}

static inline void forget_report(void)
{
    json_object_put(report);
    report = NULL;
}

/* A report before anything is judged: `there` and `back` fare so, NULL: well. */
static inline void examine(const struct ill *there, const struct ill *back)
{
    static const struct ill well;
    struct json_object *ports = json_object_new_array();

    there = there ? there : &well;
    back = back ? back : &well;
    json_object_put(report);
    report = json_object_new_object();
    kit_after_test(forget_report);
    for (int i = 0; i < PERF_PROBE_PORTS; i++)
        json_object_array_add(ports, json_object_new_int(FIRST_PORT + i));
    json_object_object_add(report, "probe_ports", ports);
    json_object_object_add(report, "probe_arrivals", arrivals_of(there));
    json_object_object_add(report, "probe_back_arrivals", arrivals_of(back));
    json_object_object_add(report, "probe_local_mtu",
                           there->local_mtu ? json_object_new_int64(there->local_mtu) : NULL);
    json_object_object_add(report, "probe_icmp_mtu",
                           there->icmp_mtu ? json_object_new_int64(there->icmp_mtu) : NULL);
    add_facts("facts");
    add_facts("facts_after");
}

/* The finding of that name, or NULL. */
static inline struct json_object *finding(const char *name)
{
    struct json_object *findings = NULL;

    (void)json_object_object_get_ex(report, "findings", &findings);
    for (size_t i = 0; findings && i < json_object_array_length(findings); i++) {
        struct json_object *one = json_object_array_get_idx(findings, i);
        if (strcmp(json_get_string(one, "name"), name) == 0)
            return one;
    }
    return NULL;
}

/* Exactly these findings, in any order, each with a sentence and advice. `names` ends with NULL. */
static inline void expect_findings(const char *const *names)
{
    struct json_object *findings = NULL;
    size_t num = 0;

    (void)json_object_object_get_ex(report, "findings", &findings);
    for (; names[num]; num++) {
        struct json_object *one = finding(names[num]);
        if (!one)
            fail_msg("%s is not found, but %s", names[num], json_object_to_json_string(findings));
        assert_true(strlen(json_get_string(one, "text")) > 10);
        assert_true(strlen(json_get_string(one, "advice")) > 10);
    }
    if (findings && json_object_array_length(findings) != num)
        fail_msg("more is found: %s", json_object_to_json_string(findings));
}

#define found(...)   expect_findings((const char *const[]){__VA_ARGS__, NULL})
#define found_none() expect_findings((const char *const[]){NULL})

/* The finding's sentence, or its advice, has these words. */
static inline void says(const char *name, const char *words)
{
    struct json_object *one = finding(name);

    assert_non_null(one);
    if (!strstr(json_get_string(one, "text"), words) &&
        !strstr(json_get_string(one, "advice"), words))
        fail_msg("%s does not say '%s': %s", name, words, json_object_to_json_string(one));
}

/* This finding alone, with these words. */
static inline void found_saying(const char *name, const char *words)
{
    found(name);
    says(name, words);
}

#endif
