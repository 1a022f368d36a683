/* SPDX-License-Identifier: BSD-2-Clause */
/* What doctor says of runs and of hosts: each finding where its input is, and only there. */
#include "tests/unit/doctor_fixture.h"

enum { RATES = 5 };

static const uint32_t ports[RATES] = {1, 2, 4, 8, 32};

/* Runs of these rates with 1, 2, 4, 8 and 32 ports, of one TCP connection, at that cost. */
static void run_at(const double gbps[RATES], double cpu_s_per_gb)
{
    struct json_object *rates = json_object_new_array(), *tcp = json_object_new_object();

    examine(NULL, NULL);
    for (unsigned i = 0; i < RATES; i++) {
        struct json_object *one = json_object_new_object();
        json_add_rounded(one, "bw_gbps", gbps[i]);
        json_add_rounded(one, "cpu_s_per_gb", cpu_s_per_gb);
        json_add_u64(one, "packets_sent", 1000);
        json_add_u64(one, "packets_retransmitted", 1);
        json_add_u64(one, "source_ports", ports[i]);
        json_object_array_add(rates, one);
    }
    json_add_rounded(tcp, "bw_gbps", gbps[0]);
    json_object_object_add(report, "rates", rates);
    json_object_object_add(report, "tcp", tcp);
    perf_doctor_judge_probes(report);
}

static void judge(const double gbps[RATES], double cpu_s_per_gb)
{
    run_at(gbps, cpu_s_per_gb);
    perf_doctor_judge_runs(report);
}

#define rates_of(...) ((const double[RATES]){__VA_ARGS__})

/* What is found of them alone; NULL: nothing. */
static void judged(const double gbps[RATES], double cpu_s_per_gb, const char *name)
{
    judge(gbps, cpu_s_per_gb);
    expect_findings((const char *const[]){name, NULL});
}

TEST(judge_runs__nothing_in_the_way)
{
    struct json_object *findings = NULL;

    judged(rates_of(10, 10, 10, 10, 10), 0.1, NULL);
    assert_true(json_object_object_get_ex(report, "findings", &findings));
}

/* No runs at all, as behind a firewall. */
TEST(judge_runs__none)
{
    examine(NULL, NULL);
    perf_doctor_judge_runs(report);
    found_none();
}

TEST(judge_rates__capped)
{
    judge(rates_of(1, 2, 4, 8, 8), 0.1);
    found_saying("flow_cap", "about 1.00 Gb/s");
    /* What a policer drops is sent again, so that one port has less than the cap. */
    judge(rates_of(3, 9, 18, 36, 90), 0.01);
    found_saying("flow_cap", "about 4.50 Gb/s");
    /* Two ports may share one of several paths. */
    judged(rates_of(1, 1, 2, 3, 4), 0.1, "flow_cap");
}

/* More ports must have that much more than one, and than two. */
TEST(judge_rates__borders)
{
    judged(rates_of(1, 1.6, 2.5, 2.57, 2.57), 0.1, "flow_cap");
    judged(rates_of(1, 1.59, 2.5, 2.55, 2.55), 0.1, NULL);
    judged(rates_of(1, 2, 3, 3.19, 3.19), 0.1, NULL);
    judged(rates_of(1, 2, 3, 3.21, 3.21), 0.1, "flow_cap");
}

/* More ports are no slower anywhere, but not faster: one is enough. */
TEST(judge_rates__no_cap)
{
    judged(rates_of(10, 9, 8, 7, 6), 0.1, NULL);
    judged(rates_of(6, 7, 8, 9, 10), 0.1, NULL);
}

/* Noise goes up and down: that is no cap, however little one port had. */
TEST(judge_rates__noise)
{
    judged(rates_of(1, 9, 2, 6, 15), 0.01, NULL);
    judged(rates_of(1, 2, 4, 6, 4.81), 0.1, "flow_cap");
    judged(rates_of(1, 2, 4, 6, 4.79), 0.1, NULL);
}

static struct json_object *rate_of(size_t i)
{
    struct json_object *rates = NULL;

    assert_true(json_object_object_get_ex(report, "rates", &rates));
    return json_object_array_get_idx(rates, i);
}

/* Where a firewall leaves four ports, it is these whose rates are compared and told. */
TEST(judge_rates__few_ports)
{
    struct json_object *rates = NULL;

    run_at(rates_of(1, 2, 4, 4, 4), 0.1);
    assert_true(json_object_object_get_ex(report, "rates", &rates));
    json_object_array_del_idx(rates, 3, 2);
    perf_doctor_judge_runs(report);
    found_saying("flow_cap", "1 1.00, 2 2.00, 4 4.00 Gb/s");
    run_at(rates_of(1, 2, 4, 4, 4), 0.1);
    assert_true(json_object_object_get_ex(report, "rates", &rates));
    json_object_array_del_idx(rates, 2, 3); /* two tell nothing */
    perf_doctor_judge_runs(report);
    found_none();
}

/* 0.85 of a core at either end, with all ports: an end has one thread. */
TEST(judge_cores__border)
{
    run_at(rates_of(8, 8, 8, 8, 8), 0.1);
    json_add_rounded(rate_of(4), "cores_client", 0.2);
    json_add_rounded(rate_of(4), "cores_server", 0.85);
    perf_doctor_judge_runs(report);
    found_saying("core_bound", "the server");
    run_at(rates_of(8, 8, 8, 8, 8), 0.1);
    json_add_rounded(rate_of(4), "cores_client", 0.84);
    json_add_rounded(rate_of(4), "cores_server", 0.84);
    json_add_rounded(rate_of(0), "cores_client", 1);
    perf_doctor_judge_runs(report);
    found_none();
}

/* One run that was disturbed is told of, and which figures it may have spoilt. */
TEST(judge_disturbance__one)
{
    run_at(rates_of(8, 8, 8, 8, 8), 0.1);
    json_add_bool(rate_of(0), "disturbed", false);
    json_add_bool(rate_of(2), "disturbed", true);
    perf_doctor_judge_runs(report);
    found_saying("disturbed", "in 1 of 5 runs");
}

/* A server that told nothing of itself lacks nothing for that. */
TEST(judge_host__not_known)
{
    struct json_object *facts = NULL;

    examine(NULL, NULL);
    assert_true(json_object_object_get_ex(report, "facts", &facts));
    json_object_object_add(facts, "server", NULL);
    perf_doctor_judge_runs(report);
    found_none();
}

TEST(judge_host__rcvbuf)
{
    examine(NULL, NULL);
    json_add_u64(facts_of("facts", "server"), "rcvbuf_granted", WANTED - 1);
    perf_doctor_judge_runs(report);
    found_saying("rcvbuf", "the server grants 4194303");
    says("rcvbuf", "net.core.rmem_max=4194304");
}

TEST(judge_host__offloads)
{
    examine(NULL, NULL);
    json_add_bool(facts_of("facts", "client"), "gso", false);
    perf_doctor_judge_runs(report);
    found_saying("no_gso", "client");
    examine(NULL, NULL);
    json_add_bool(facts_of("facts", "server"), "gro", false);
    perf_doctor_judge_runs(report);
    found_saying("no_gro", "server");
}

static struct json_object *allowances(const char *facts, const char *end)
{
    struct json_object *all = NULL;

    assert_true(json_object_object_get_ex(facts_of(facts, end), "allowances", &all));
    return all;
}

/* Counters that stand still, or grew before, are no finding. */
TEST(judge_allowances__grown)
{
    static const char name[] = "bw_out_allowance_exceeded";

    examine(NULL, NULL);
    json_add_u64(allowances("facts", "client"), name, 7);
    json_add_u64(allowances("facts_after", "client"), name, 7);
    perf_doctor_judge_runs(report);
    found_none();
    examine(NULL, NULL);
    json_add_u64(allowances("facts", "client"), name, 7);
    json_add_u64(allowances("facts_after", "client"), name, 8);
    perf_doctor_judge_runs(report);
    found_saying("allowance", "client: bw_out_allowance_exceeded grew by 1");
}

/* What the end did not tell of is no fault of its. */
TEST(judge_allowances__none_after)
{
    examine(NULL, NULL);
    json_add_u64(allowances("facts", "server"), "bw_in_allowance_exceeded", 7);
    json_object_object_del(report, "facts_after");
    perf_doctor_judge_runs(report);
    found_none();
}

/* The table has a line for each figure, each finding and its advice. */
TEST(print__all)
{
    static const char *const words[] = {
        "latency",   " 1 source ports",    "32 source ports",
        "flow_cap",  "spray: mrd does so", "one TCP connection: 1.00 Gb/s",
        "9000 bytes"};
    char *text = NULL;
    size_t len = 0;
    FILE *table = open_memstream(&text, &len);
    struct json_object *latency = json_object_new_object(), *lat_us = json_object_new_object();

    assert_non_null(table);
    judge(rates_of(1, 2, 4, 8, 8), 0.1);
    json_add_rounded(lat_us, "p50", 12.5);
    json_add_rounded(lat_us, "p99", 20);
    json_object_object_add(latency, "lat_us", lat_us);
    json_object_object_add(report, "latency", latency);
    perf_doctor_print(table, report);
    fclose(table);
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        assert_non_null(strstr(text, words[i]));
    assert_null(strstr(text, "nothing is in the way"));
    free(text);
}
