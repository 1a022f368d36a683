/* SPDX-License-Identifier: BSD-2-Clause */
/* What arrived of the bare datagrams, and what that says. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tools/perf/doctor_advice.h"
#include "tools/perf/doctor_probe.h"
#include "tools/perf/message.h"

enum {
    LOST_STANDS_OUT = 3, /* of a port's datagrams, from which on it may share a bad link */
    MTU_COMMON = 1500,
};

#define LOST_SHARE    0.01 /* of all datagrams, from which on it is told where no port stands out */
#define REORDER_SHARE 0.02
#define BLEACH_SHARE  0.02

struct counts {
    bool seen[PERF_PROBE_MAX]; /* a datagram counts once */
    uint32_t by_port[PERF_PROBE_PORTS], by_size[PERF_PROBE_SIZES];
    uint32_t total, late;             /* of the ports' datagrams; of these, overtaken */
    uint32_t ecn[4];                  /* by codepoint: Not-ECT, ECT(1), ECT(0), CE */
    uint32_t alive;                   /* ports of which some arrived */
    uint32_t lossy;                   /* of these, ports that lost several */
    uint32_t plain[PERF_PROBE_PORTS]; /* without ECT */
    uint32_t ect_dead;                /* ports of which most of these arrived, and none with ECT */
    uint32_t through;                 /* ports of which some arrived, of either kind */
};

static uint32_t lost_of(const struct counts *n, uint32_t port)
{
    return PERF_PROBE_ROUNDS - n->by_port[port];
}

/* A bad link may take all of many with ECT, and leave some of few without, but not most of these. */
static bool ect_dead(const struct counts *n, uint32_t port)
{
    return !n->by_port[port] && n->plain[port] > PERF_PROBE_PLAIN_ROUNDS / 2;
}

static bool port_works(const struct counts *n, uint32_t port)
{
    return n->by_port[port] || (n->plain[port] && !ect_dead(n, port));
}

static void count_arrivals(struct json_object *arrivals, struct counts *n)
{
    size_t length = arrivals ? json_object_array_length(arrivals) : 0;
    int64_t highest = -1;

    memset(n, 0, sizeof(*n));
    for (size_t i = 0; i + 1 < length; i += 2) {
        int64_t number = json_object_get_int64(json_object_array_get_idx(arrivals, i));
        int ecn = json_object_get_int(json_object_array_get_idx(arrivals, i + 1)) & 3;

        if (number < 0 || number >= PERF_PROBE_MAX || n->seen[number])
            continue;
        n->seen[number] = true;
        if (number >= PERF_PROBE_PLAIN_BASE) {
            n->plain[(number - PERF_PROBE_PLAIN_BASE) % PERF_PROBE_PORTS]++;
            continue;
        }
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
    for (uint32_t i = 0; i < PERF_PROBE_PORTS; i++) {
        n->alive += port_works(n, i);
        n->ect_dead += ect_dead(n, i);
        n->lossy += port_works(n, i) && lost_of(n, i) >= LOST_STANDS_OUT;
    }
    n->through = n->alive + n->ect_dead;
}

static void judge_ports(struct json_object *report, const struct counts *n)
{
    struct json_object *ports = json_object_object_get(report, "probe_ports"),
                       *lost = json_object_new_array();
    struct json_object *through = json_object_new_array();
    char names[200] = "";

    for (uint32_t i = 0; i < PERF_PROBE_PORTS; i++) {
        uint32_t port = json_u32_at(ports, i);

        json_object_array_add(lost, json_rounded((double)lost_of(n, i) / PERF_PROBE_ROUNDS));
        if (port_works(n, i) || ect_dead(n, i))
            json_object_array_add(through, json_object_new_int64(port));
        else if (strlen(names) < sizeof(names) - 16)
            snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%u",
                     names[0] ? ", " : "", port);
    }
    json_object_object_add(report, "probe_lost", lost);
    json_object_object_add(report, "ports_through", through);
    if (n->through == 0)
        perf_doctor_find(
            report, "no_udp_there", "let UDP to the server's receive port in, from any source port",
            "no UDP datagram reaches the server from any of %u source ports", PERF_PROBE_PORTS);
    else if (n->through < PERF_PROBE_PORTS)
        perf_doctor_find(report, "ports_blocked",
                         "let UDP from all source ports in, or name those that pass in "
                         "MRD_SOURCE_PORTS; a path that a dead link takes looks alike",
                         "from %u of %u source ports nothing arrives: %s",
                         PERF_PROBE_PORTS - n->through, PERF_PROBE_PORTS, names);
}

/* Where nothing with ECT arrives, and most without. */
static void judge_ect(struct json_object *report, const struct counts *n, const char *way)
{
    if (n->ect_dead)
        perf_doctor_find(
            report, "ecn_dropped",
            "nothing to do for mrd, which leaves ECT off after two packets that nobody "
            "answers, and MRD_ECN=off at both ends spares it these; without marks "
            "queues fill until they drop: find the firewall or router that drops them",
            "%s the network drops packets that are ECN-capable: from %u of %u source "
            "ports none of %u with ECT arrives, but most of %u without",
            way, n->ect_dead, PERF_PROBE_PORTS, PERF_PROBE_ROUNDS, PERF_PROBE_PLAIN_ROUNDS);
}

/*
 * Do some ports lose more than chance makes of what all lose? Where all are alike, the sum of the
 * squared deviations by the variance is a chi-squared: its mean is one less than the number of ports
 * k, its variance 2 (k - 1). Four standard deviations are no chance.
 */
static bool stands_out(const struct counts *n, double share)
{
    double mean = share * PERF_PROBE_ROUNDS, sum = 0, degrees = n->alive - 1.0;

    for (uint32_t i = 0; i < PERF_PROBE_PORTS; i++) {
        double off = lost_of(n, i) - mean;
        sum += port_works(n, i) ? off * off : 0;
    }
    return n->alive > 1 && sum > mean * (1 - share) * (degrees + 4 * sqrt(2 * degrees));
}

static void judge_loss(struct json_object *report, const struct counts *n, const char *way)
{
    double sent = (double)n->alive * PERF_PROBE_ROUNDS, share = 1 - n->total / sent;

    if (n->alive == 0)
        return;
    if (n->lossy && stands_out(n, share))
        perf_doctor_find(report, "loss_on_some",
                         "look for a bad link or a switch port that drops: these flows share it",
                         "%s %u of %u source ports lose %u or more of %u datagrams, in all %.1f%% "
                         "are lost",
                         way, n->lossy, n->alive, LOST_STANDS_OUT, PERF_PROBE_ROUNDS, 100 * share);
    else if (n->total <= (1 - LOST_SHARE) * sent)
        perf_doctor_find(
            report, "loss_on_all",
            "look at what all paths share: the hosts' own links and receive buffers, a "
            "rate that the provider caps, a tunnel",
            "%s %.1f%% of the datagrams are lost, on all paths alike", way, 100 * share);
}

static void judge_order_and_marks(struct json_object *report, const struct counts *n,
                                  const char *way)
{
    if (n->total == 0)
        return;
    if (n->late > REORDER_SHARE * n->total)
        perf_doctor_find(report, "reordering", "nothing to do: mrd puts them back in order",
                         "%s %.1f%% of the datagrams were overtaken: the paths differ in length",
                         way, 100.0 * n->late / n->total);
    if (n->ecn[0] > BLEACH_SHARE * n->total)
        perf_doctor_find(report, "ecn_bleached",
                         "find the router that clears the ECN bits: without marks queues fill "
                         "until they drop",
                         "%s ECN marks are bleached: %u of %u datagrams arrive without ECT", way,
                         n->ecn[0], n->total);
    if (n->ecn[3])
        perf_doctor_find(report, "ecn_marks", "somebody else fills a queue on the way",
                         "%s %.1f%% of slow datagrams are marked CE", way,
                         100.0 * n->ecn[3] / n->total);
}

/* The largest MTU of which all sizes up to it came through. */
static uint32_t largest_mtu(const struct counts *n)
{
    uint32_t mtu = 0;

    for (uint32_t i = 0; i < PERF_PROBE_SIZES && n->by_size[i]; i++)
        mtu = perf_probe_mtus[i];
    return mtu;
}

/* Did any of the ports from which sizes were sent get through? */
static bool sizes_tell(const struct counts *n)
{
    bool tell = false;

    for (uint32_t i = 0; i < PERF_PROBE_REPEATS; i++)
        tell = tell || n->by_port[perf_probe_size_port(i)] || n->plain[perf_probe_size_port(i)];
    return tell;
}

static void judge_sizes(struct json_object *report, const struct counts *n)
{
    uint32_t mtu = largest_mtu(n);
    int64_t local = json_object_get_int64(json_object_object_get(report, "probe_local_mtu"));
    int64_t icmp = json_object_get_int64(json_object_object_get(report, "probe_icmp_mtu"));
    uint32_t next = 0;

    for (uint32_t i = PERF_PROBE_SIZES; i-- > 0;)
        next = perf_probe_mtus[i] > mtu ? perf_probe_mtus[i] : next;
    json_object_object_add(report, "mtu_through", json_object_new_int64(mtu));
    if (mtu == 0 && !sizes_tell(n))
        return; /* not even small ones came through */
    /* Unless its own interface bounds it, or nothing does. */
    if (next && local != next && icmp)
        perf_doctor_find(report, "mtu_path", "nothing to do: mrd finds it; TCP finds it, too",
                         "packets of %u bytes do not come through; ICMP says %lld", next,
                         (long long)icmp);
    else if (next && local != next)
        perf_doctor_find(report, "mtu_silent",
                         "nothing to do for mrd, which probes; TCP may hang: let ICMP "
                         "'fragmentation needed' through, or set the interface's MTU",
                         "packets of %u bytes vanish, and no ICMP tells", next);
    if (mtu < MTU_COMMON)
        perf_doctor_find(report, "mtu_small",
                         "small packets cost processor time: use larger ones "
                         "if the network can",
                         "the path takes less than an Ethernet MTU: of the sizes that were tried "
                         "%u bytes do not come through",
                         next);
}

/* Of the way back the ports are the server's, which nobody chooses. */
static void judge_back(struct json_object *report, const struct counts *n)
{
    if (n->through > 0 && n->through < PERF_PROBE_PORTS)
        perf_doctor_find(report, "ports_blocked",
                         "let UDP from all source ports in; a path that a dead link takes looks "
                         "alike",
                         "from %u of %u source ports of the server nothing arrives here",
                         PERF_PROBE_PORTS - n->through, PERF_PROBE_PORTS);
    judge_ect(report, n, "from the server");
    judge_loss(report, n, "from the server");
    judge_order_and_marks(report, n, "from the server");
    if (n->through == 0)
        perf_doctor_find(report, "no_udp_back",
                         "open a UDP port here for the server, and name it in MRD_PORT: to a "
                         "firewall the way back is no reply",
                         "no UDP datagram from the server reaches this host's receive port");
}

bool perf_doctor_some_silent(struct json_object *arrivals)
{
    struct counts n;

    count_arrivals(arrivals, &n);
    return n.alive < PERF_PROBE_PORTS;
}

void perf_doctor_judge_probes(struct json_object *report)
{
    struct counts there, back;

    count_arrivals(json_object_object_get(report, "probe_arrivals"), &there);
    count_arrivals(json_object_object_get(report, "probe_back_arrivals"), &back);
    judge_ports(report, &there);
    judge_ect(report, &there, "to the server");
    judge_loss(report, &there, "to the server");
    judge_order_and_marks(report, &there, "to the server");
    judge_sizes(report, &there);
    judge_back(report, &back);
    /* Long, and told of by then. */
    json_object_object_del(report, "probe_arrivals");
    json_object_object_del(report, "probe_back_arrivals");
    json_add_bool(report, "udp_there", there.through > 0);
    json_add_bool(report, "udp_back", back.through > 0);
}

bool perf_doctor_may_run(struct json_object *report)
{
    return json_object_get_boolean(json_object_object_get(report, "udp_there")) &&
           json_object_get_boolean(json_object_object_get(report, "udp_back"));
}
