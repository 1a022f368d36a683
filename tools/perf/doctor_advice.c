/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/doctor_advice.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "tools/perf/doctor_probe.h"
#include "tools/perf/json.h"
#include "tools/perf/report.h"

enum { RATES = 5 };

#define LOSS_SHARE    0.04 /* of a port's datagrams, from which on it stands out: one of 25 */
#define REORDER_SHARE 0.02
#define CAP_GROWTH    1.6 /* times the rate with more ports: flows are what bounds it */
#define CORES_SHARE   0.85
#define MTU_COMMON    1500

void perf_doctor_find(struct json_object *report, const char *name, const char *advice,
                      const char *format, ...)
{
    struct json_object *findings = NULL, *one = json_object_new_object();
    char text[400];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (!json_object_object_get_ex(report, "findings", &findings)) {
        findings = json_object_new_array();
        json_object_object_add(report, "findings", findings);
    }
    perf_json_add_text(one, "name", name);
    perf_json_add_text(one, "text", text);
    perf_json_add_text(one, "advice", advice);
    json_object_array_add(findings, one);
}

/* ---------------------------------------------------------------------------------------- probes */

struct counts {
    uint32_t by_port[PERF_PROBE_PORTS], by_size[PERF_PROBE_SIZES];
    uint32_t total, late; /* of the ports' datagrams; of these, overtaken */
    uint32_t ecn[4];      /* by codepoint: Not-ECT, ECT(1), ECT(0), CE */
};

static void count(struct json_object *arrivals, struct counts *n)
{
    int64_t highest = -1;

    memset(n, 0, sizeof(*n));
    for (size_t i = 0; i + 1 < json_object_array_length(arrivals); i += 2) {
        int64_t number = json_object_get_int64(json_object_array_get_idx(arrivals, i));
        int ecn = json_object_get_int(json_object_array_get_idx(arrivals, i + 1)) & 3;

        if (number < 0 || number >= PERF_PROBE_MAX)
            continue;
        if (number >= PERF_PROBE_SIZE_BASE) {
            n->by_size[(number - PERF_PROBE_SIZE_BASE) / PERF_PROBE_REPEATS]++;
            continue;
        }
        n->by_port[number % PERF_PROBE_PORTS]++;
        n->total++;
        n->ecn[ecn]++;
        n->late += number < highest;
        highest = number > highest ? number : highest;
    }
}

static struct json_object *member(struct json_object *object, const char *name)
{
    struct json_object *m = NULL;

    (void)json_object_object_get_ex(object, name, &m);
    return m;
}

static void judge_ports(struct json_object *report, const struct counts *n)
{
    struct json_object *ports = member(report, "probe_ports"), *lost = json_object_new_array();
    struct json_object *through = json_object_new_array();
    uint32_t dead = 0, lossy = 0;
    char names[200] = "";

    for (uint32_t i = 0; i < PERF_PROBE_PORTS; i++) {
        double share = 1 - (double)n->by_port[i] / PERF_PROBE_ROUNDS;

        json_object_array_add(lost, perf_json_number(share > 0 ? share : 0));
        if (n->by_port[i] == 0 && strlen(names) < sizeof(names) - 16)
            snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%u", dead ? ", " : "",
                     perf_json_u32_at(ports, i));
        if (n->by_port[i])
            json_object_array_add(through, json_object_new_int64(perf_json_u32_at(ports, i)));
        dead += n->by_port[i] == 0;
        lossy += share >= 2 * LOSS_SHARE && n->by_port[i] > 0;
    }
    json_object_object_add(report, "probe_lost", lost);
    json_object_object_add(report, "ports_through", through);
    if (dead == PERF_PROBE_PORTS)
        perf_doctor_find(
            report, "no_udp_there", "let UDP to the server's receive port in, from any source port",
            "no UDP datagram reaches the server from any of %u source ports", PERF_PROBE_PORTS);
    else if (dead)
        perf_doctor_find(report, "ports_blocked",
                         "let UDP from all source ports in, or name those that pass in "
                         "MRD_SOURCE_PORTS; a path that a dead link takes looks alike",
                         "from %u of %u source ports nothing arrives: %s", dead, PERF_PROBE_PORTS,
                         names);
    if (lossy)
        perf_doctor_find(report, "loss_on_some",
                         "look for a bad link or a switch port that drops: these flows share it",
                         "%u of %u source ports lose more than %.0f%%, in all %.1f%% are lost",
                         lossy, PERF_PROBE_PORTS - dead, 200 * LOSS_SHARE,
                         100.0 - 100.0 * n->total /
                                     ((PERF_PROBE_PORTS - dead) * (double)PERF_PROBE_ROUNDS));
}

static void judge_order_and_marks(struct json_object *report, const struct counts *n)
{
    if (n->total == 0)
        return;
    if (n->late > REORDER_SHARE * n->total)
        perf_doctor_find(report, "reordering", "nothing to do: mrd puts them back in order",
                         "%.1f%% of the datagrams were overtaken: the paths differ in length",
                         100.0 * n->late / n->total);
    if (n->ecn[0] > n->total / 2)
        perf_doctor_find(report, "ecn_bleached",
                         "find the router that clears the ECN bits: without marks queues fill "
                         "until they drop",
                         "ECN marks are bleached: %u of %u datagrams arrive without ECT", n->ecn[0],
                         n->total);
    if (n->ecn[3])
        perf_doctor_find(report, "ecn_marks", "somebody else fills a queue on the way",
                         "%.1f%% of slow datagrams are marked CE", 100.0 * n->ecn[3] / n->total);
}

/* The largest MTU of which all sizes up to it came through. */
static uint32_t largest_mtu(const struct counts *n)
{
    uint32_t mtu = 0;

    for (uint32_t i = 0; i < PERF_PROBE_SIZES && n->by_size[i]; i++)
        mtu = perf_probe_mtus[i];
    return mtu;
}

static void judge_sizes(struct json_object *report, const struct counts *n)
{
    uint32_t mtu = largest_mtu(n);
    int64_t local = json_object_get_int64(member(report, "probe_local_mtu"));
    int64_t icmp = json_object_get_int64(member(report, "probe_icmp_mtu"));
    uint32_t next = 0;

    for (uint32_t i = PERF_PROBE_SIZES; i-- > 0;)
        next = perf_probe_mtus[i] > mtu ? perf_probe_mtus[i] : next;
    json_object_object_add(report, "mtu_through", json_object_new_int64(mtu));
    if (mtu == 0 || !next || local == next)
        return; /* its own interface bounds it, or nothing does */
    perf_doctor_find(report, icmp ? "mtu_path" : "mtu_silent",
                     icmp ? "nothing to do: mrd finds it; TCP finds it, too"
                          : "nothing to do for mrd, which probes; TCP may hang: let ICMP "
                            "'fragmentation needed' through, or set the interface's MTU",
                     icmp ? "packets of %u bytes come through, of %u do not; ICMP says %lld"
                          : "packets of %u bytes come through, of %u vanish, and no ICMP tells "
                            "(%lld)",
                     mtu, next, (long long)icmp);
    if (mtu < MTU_COMMON)
        perf_doctor_find(report, "mtu_small",
                         "small packets cost processor time: use larger ones "
                         "if the network can",
                         "the path takes less than an Ethernet MTU: %u bytes", mtu);
}

static void judge_back(struct json_object *report, const struct counts *n)
{
    if (n->total == 0)
        perf_doctor_find(report, "no_udp_back",
                         "open a UDP port here for the server, and name it in MRD_PORT: to a "
                         "firewall the way back is no reply",
                         "no UDP datagram from the server reaches an ephemeral port of this host");
}

void perf_doctor_judge_probes(struct json_object *report)
{
    struct counts there, back;

    count(member(report, "probe_arrivals"), &there);
    count(member(report, "probe_back_arrivals"), &back);
    judge_ports(report, &there);
    judge_order_and_marks(report, &there);
    judge_sizes(report, &there);
    judge_back(report, &back);
    /* Long, and told of by then. */
    json_object_object_del(report, "probe_arrivals");
    json_object_object_del(report, "probe_back_arrivals");
    perf_json_add_bool(report, "udp_there", there.total > 0);
    perf_json_add_bool(report, "udp_back", back.total > 0);
}

bool perf_doctor_may_run(struct json_object *report)
{
    return json_object_get_boolean(member(report, "udp_there")) &&
           json_object_get_boolean(member(report, "udp_back"));
}

/* ------------------------------------------------------------------------------------------ runs */

static double rate_at(struct json_object *report, size_t i)
{
    struct json_object *rates = member(report, "rates");

    return rates && i < json_object_array_length(rates)
               ? perf_report_number(json_object_array_get_idx(rates, i), "bw_gbps")
               : NAN;
}

/*
 * Is a flow slower than the network? Then more ports have more, again and again. One port's rate is
 * not the cap itself: of what a policer drops much is sent again.
 */
static void judge_rates(struct json_object *report)
{
    double one = rate_at(report, 0), two = rate_at(report, 1), eight = rate_at(report, 3);
    double all = rate_at(report, RATES - 1);
    double tcp = perf_report_number(member(report, "tcp"), "bw_gbps");
    double flow = fmax(fmax(one, two / 2), fmax(rate_at(report, 2) / 4, eight / 8));

    if (!(all >= CAP_GROWTH * CAP_GROWTH * one) || !(all >= CAP_GROWTH * two))
        return;
    perf_doctor_find(
        report, "flow_cap", "spray: mrd does so by itself; for TCP programs there is mrd_forward",
        "a flow is capped, or tied to one of several paths, at about %.2f Gb/s: 1 source "
        "port %.2f, 2 %.2f, 8 %.2f, 32 %.2f Gb/s; one TCP connection %.2f",
        flow, one, two, eight, all, tcp);
}

static void judge_cores(struct json_object *report)
{
    struct json_object *rates = member(report, "rates"), *last;
    uint64_t here = 0, there = 0;

    if (!rates || json_object_array_length(rates) < RATES)
        return;
    last = json_object_array_get_idx(rates, RATES - 1);
    (void)perf_json_get_u64(member(member(report, "facts"), "client"), "cpus", &here);
    (void)perf_json_get_u64(member(member(report, "facts"), "server"), "cpus", &there);
    double cores =
        perf_report_number(last, "cpu_s_per_gb") * perf_report_number(last, "bw_gbps") / 8;

    /* An end has one thread for its packets. */
    if (cores >= 2 * CORES_SHARE)
        perf_doctor_find(report, "core_bound",
                         "more threads or contexts, larger packets, or the link is not the limit",
                         "both ends together use %.2f cores at %.2f Gb/s, of one each: processors "
                         "are the limit (%llu here, %llu there)",
                         cores, perf_report_number(last, "bw_gbps"), (unsigned long long)here,
                         (unsigned long long)there);
}

static void judge_host(struct json_object *report, const char *end)
{
    struct json_object *facts = member(member(report, "facts"), end);
    uint64_t wanted = 0, granted = 0;

    (void)perf_json_get_u64(facts, "rcvbuf_wanted", &wanted);
    (void)perf_json_get_u64(facts, "rcvbuf_granted", &granted);
    if (granted < wanted)
        perf_doctor_find(report, "rcvbuf", "sysctl -w net.core.rmem_max=4194304",
                         "the %s grants %llu bytes of receive buffer, %llu are wanted", end,
                         (unsigned long long)granted, (unsigned long long)wanted);
    if (!json_object_get_boolean(member(facts, "gso")))
        perf_doctor_find(report, "no_gso", "a kernel from 4.18 on",
                         "the %s has no UDP segmentation (GSO): more system calls", end);
    if (!json_object_get_boolean(member(facts, "gro")))
        perf_doctor_find(report, "no_gro", "a kernel from 5.0 on",
                         "the %s has no UDP receive coalescing (GRO)", end);
}

/* Counters of the cloud's own that grew meanwhile. */
static void judge_allowances(struct json_object *report, const char *end)
{
    struct json_object *before = member(member(member(report, "facts"), end), "allowances");
    struct json_object *after = member(member(member(report, "facts_after"), end), "allowances");

    if (!before || !after)
        return;
    json_object_object_foreach(after, name, value)
    {
        int64_t grown = json_object_get_int64(value) - json_object_get_int64(member(before, name));

        if (grown > 0)
            perf_doctor_find(report, "allowance", "the instance's own limit: a larger one has more",
                             "%s: %s grew by %lld meanwhile", end, name, (long long)grown);
    }
}

void perf_doctor_judge_runs(struct json_object *report)
{
    judge_rates(report);
    judge_cores(report);
    judge_host(report, "client");
    judge_host(report, "server");
    judge_allowances(report, "client");
    judge_allowances(report, "server");
    if (!member(report, "findings"))
        json_object_object_add(report, "findings", json_object_new_array());
}

/* ----------------------------------------------------------------------------------------- print */

static void print_runs(FILE *table, struct json_object *report)
{
    static const unsigned ports[RATES] = {1, 2, 4, 8, 32};
    struct json_object *latency = member(report, "latency"), *rates = member(report, "rates");

    if (latency)
        fprintf(table, " latency, half a round trip of 64 bytes: %.1f us, 99%% %.1f us\n",
                perf_report_number(latency, "lat_us/p50"),
                perf_report_number(latency, "lat_us/p99"));
    for (size_t i = 0; rates && i < json_object_array_length(rates) && i < RATES; i++) {
        struct json_object *one = json_object_array_get_idx(rates, i);

        fprintf(table, " %2u source ports: %7.2f Gb/s, %.2f%% sent again, %.2f CPU s a GB\n",
                ports[i], perf_report_number(one, "bw_gbps"),
                100 * perf_report_number(one, "packets_retransmitted") /
                    perf_report_number(one, "packets_sent"),
                perf_report_number(one, "cpu_s_per_gb"));
    }
    if (member(report, "tcp"))
        fprintf(table, " one TCP connection: %.2f Gb/s\n",
                perf_report_number(member(report, "tcp"), "bw_gbps"));
}

void perf_doctor_print(FILE *table, struct json_object *report)
{
    struct json_object *findings = member(report, "findings");

    fprintf(table, "\n %s to %s\n", perf_json_get_string(report, "client"),
            perf_json_get_string(report, "server"));
    print_runs(table, report);
    fprintf(table, " largest MTU that came through: %lld bytes\n",
            (long long)json_object_get_int64(member(report, "mtu_through")));
    if (json_object_array_length(findings) == 0)
        fprintf(table, " nothing is in the way\n");
    for (size_t i = 0; i < json_object_array_length(findings); i++) {
        struct json_object *one = json_object_array_get_idx(findings, i);

        fprintf(table, " %s: %s\n   %s\n", perf_json_get_string(one, "name"),
                perf_json_get_string(one, "text"), perf_json_get_string(one, "advice"));
    }
}
