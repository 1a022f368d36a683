/* SPDX-License-Identifier: BSD-2-Clause */
/* Scenes of flows that share one queue: hosts, links, who sends when, and what came of it. */
#include "tests/support/bottleneck.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/sim/models/cubic.h"

enum {
    BULK_BYTES = 16 << 10, /* of a message of a flow that always has data */
    RPC_BYTES = 8 << 10,
    /* What a flow has posted at least: more than any window is at the start. */
    POSTED_BYTES = 512 << 10,
    SEND_WR = 4096,
    RECV_WR = 16,
    CQE = 8192,
    POLL_BURST = 256,
    SPARE_PEERS = 8,
    FAR_QUEUE_BYTES = 16 << 20, /* of links that are no bottleneck */
    START_NS = 1000,            /* the links are as they should be */
    STEPS_A_RTT = 20,           /* polls */
    STEP_NS_MIN = 500,
    STEP_NS_MAX = 100000,
    TIMEOUT_S = 60,
    NAME_BYTES = 64,
    MTU = 4096,
};

struct host {
    struct mrd_context *context; /* NULL: a TCP flow's */
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    struct mrd_mr *mr;
};

struct flow {
    struct mrd_ah *ah;
    uint32_t from, to; /* hosts */
    uint32_t len, depth;
    uint64_t start_ns, posted, done,
        done_before;    /* messages; `done` when the measured time began */
    uint64_t posted_ns; /* when the last one was */
};

struct stage {
    const struct bottleneck *scene;
    uint64_t seed, random;
    struct mrd_sim *sim;
    struct host *hosts;
    struct flow *flows; /* those with data, then the RPCs */
    struct model_cubic **cubics;
    uint64_t *cubic_before;
    uint8_t *memory; /* all sends are read from there, and all are written there */
    uint32_t num_hosts, num_flows, wire;
    uint64_t cubics_at_ns, measured_ns, end_ns, step_ns;
    bool is_measured;
    struct mrd_sim_stats before;
    double *waits_us; /* of the RPCs in the measured time */
    size_t num_waits, cap_waits;
};

static double or_default(double value, double fallback)
{
    return value > 0 ? value : fallback;
}

/* From 0 to 1: splitmix64. */
static double draw(struct stage *s)
{
    uint64_t z = s->random += 0x9e3779b97f4a7c15ull;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

double bottleneck_queue_bytes(const struct bottleneck *scene)
{
    return scene->queue_bdp > 0 ? scene->queue_bdp * scene->gbps * 125 * scene->rtt_us
                                : scene->queue_bytes;
}

/* ---------------------------------------------------------------------------------------- the links */

static bool is_incast(const struct stage *s)
{
    return s->scene->shape == BOTTLENECK_INCAST;
}

static void change(struct stage *s, const char *links, const char *action, const char *value)
{
    test_check(s->seed, mrd_sim_schedule(s->sim, 0, links, action, value) == 0, "%s %s %s", links,
               action, value);
}

static void change_to(struct stage *s, const char *links, const char *action, double value)
{
    char text[NAME_BYTES];

    snprintf(text, sizeof(text), "%.6f", value);
    change(s, links, action, text);
}

/*
 * A quarter of the RTT on each of an incast's links; in a dumbbell the hosts' links have what
 * those of the spine, an eighth each, leave of the greatest RTT: what hosts that know the fabric
 * are told is true of the longest way.
 */
static void create_sim(struct stage *s)
{
    const struct bottleneck *b = s->scene;
    double far_us = b->far_rtt_us > b->rtt_us ? b->far_rtt_us : b->rtt_us;
    double spine_us = is_incast(s) ? 0.001 : b->rtt_us / 8;
    uint64_t host_bps = (uint64_t)(b->gbps * or_default(b->speedup, 1) * 1e9);
    struct mrd_sim_topology topology = {.hosts = s->num_hosts, .tiers = 2};
    struct mrd_sim_attr attr = {.seed = s->seed,
                                .topology = &topology,
                                .link = {.queue_bytes = FAR_QUEUE_BYTES},
                                .knows = b->knows,
                                .payload_by_reference = 1};

    topology.tier[0] = (struct mrd_sim_tier){
        .radix_down = is_incast(s) ? s->num_hosts : s->num_hosts / 2,
        .radix_up = 1,
        .rate_bps = host_bps,
        .delay_ns = (uint64_t)((is_incast(s) ? far_us / 4 : far_us / 4 - spine_us) * 1000),
    };
    topology.tier[1] = (struct mrd_sim_tier){
        .radix_down = is_incast(s) ? 1 : 2,
        .rate_bps = is_incast(s) ? host_bps : (uint64_t)(b->gbps * 1e9),
        .delay_ns = (uint64_t)(spine_us * 1000),
    };
    s->sim = mrd_sim_create(&attr);
    assert_non_null(s->sim);
}

/* Those that are no far ones: the second half of the flows, the RPCs, TCP. */
static void bring_near(struct stage *s)
{
    const struct bottleneck *b = s->scene;
    char links[NAME_BYTES];

    assert_false(is_incast(s));
    for (uint32_t i = b->flows / 2; i < s->num_hosts / 2; i++) {
        snprintf(links, sizeof(links), "host%u-leaf0", i);
        change_to(s, links, "delay", b->rtt_us / 8);
        snprintf(links, sizeof(links), "host%u-leaf1", s->num_hosts / 2 + i);
        change_to(s, links, "delay", b->rtt_us / 8);
    }
}

static void make_links(struct stage *s)
{
    const struct bottleneck *b = s->scene;
    double queue_bytes = bottleneck_queue_bytes(b);
    char name[NAME_BYTES] = "leaf0>spine0", other[NAME_BYTES], marks[NAME_BYTES];

    create_sim(s);
    if (is_incast(s)) {
        snprintf(name, sizeof(name), "leaf0>host%u", s->num_hosts - 1);
        change_to(s, name, "rate", b->gbps);
    }
    assert_true(queue_bytes > 0);
    snprintf(marks, sizeof(marks), "%.0f", queue_bytes);
    change(s, name, "queue", marks);
    if (b->ecn) {
        snprintf(marks, sizeof(marks), "%.0f,%.0f", queue_bytes / 4, queue_bytes * 3 / 4);
        change(s, name, "ecn", marks);
    }
    if (b->far_rtt_us > 0)
        bring_near(s);
    if (b->loss > 0)
        change_to(s, "leaf*>host*", "loss", b->loss);
    if (b->jitter_us > 0)
        change_to(s, "leaf*>host*", "jitter", b->jitter_us);
    mrd_sim_run_until(s->sim, START_NS);
    for (s->wire = 0; s->wire < mrd_sim_num_links(s->sim); s->wire++) {
        assert_int_equal(mrd_sim_link_name(s->sim, s->wire, other, sizeof(other)), 0);
        if (strcmp(name, other) == 0)
            return;
    }
    test_fail(s->seed, "no link %s", name);
}

/* ------------------------------------------------------------------------------------ hosts and flows */

static size_t memory_bytes(void)
{
    return BULK_BYTES > RPC_BYTES ? BULK_BYTES : RPC_BYTES;
}

static void open_host(struct stage *s, uint32_t number)
{
    struct host *host = &s->hosts[number];
    struct mrd_qp_init_attr attr = {.cap = {.max_send_wr = SEND_WR, .max_recv_wr = RECV_WR}};

    host->context =
        mrd_open_device(mrd_sim_device(s->sim, number), &(struct mrd_context_attr){
                                                            .comp_mask = MRD_CONTEXT_ATTR_SEED,
                                                            .seed = s->seed * 1009 + number,
                                                            .mtu = s->scene->mtu,
                                                            .cc = s->scene->cc,
                                                            .check = MRD_CHECK_OFF,
                                                            .max_peers = s->num_flows + SPARE_PEERS,
                                                            .peer_timeout_ns = TIMEOUT_S * SEC_NS,
                                                        });
    test_check(s->seed, host->context, "open of host %u: %s", number, mrd_last_error());
    host->pd = mrd_alloc_pd(host->context);
    host->cq = mrd_create_cq(host->context, CQE, NULL);
    host->mr = mrd_reg_mr(host->pd, s->memory, memory_bytes(),
                          MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE);
    attr.send_cq = attr.recv_cq = host->cq;
    host->qp = mrd_create_qp(host->pd, &attr);
    assert_non_null(host->mr);
    assert_non_null(host->qp);
}

static void close_host(struct host *host)
{
    assert_int_equal(mrd_destroy_qp(host->qp), 0);
    assert_int_equal(mrd_dereg_mr(host->mr), 0);
    assert_int_equal(mrd_destroy_cq(host->cq), 0);
    assert_int_equal(mrd_dealloc_pd(host->pd), 0);
    assert_int_equal(mrd_close_device(host->context), 0);
}

/* Messages that keep a flow busy: some windows of the host's link, and what the queue holds. */
static uint32_t bulk_depth(const struct bottleneck *b)
{
    double rtt_us = b->far_rtt_us > b->rtt_us ? b->far_rtt_us : b->rtt_us;
    double window_bytes = b->gbps * or_default(b->speedup, 1) * 125 * rtt_us;
    double bytes = 4 * window_bytes + 2 * bottleneck_queue_bytes(b);
    double depth = fmax(bytes, POSTED_BYTES) / BULK_BYTES + 1;

    return (uint32_t)fmin(depth, SEND_WR - 1);
}

static void make_flow(struct stage *s, uint32_t i)
{
    const struct bottleneck *b = s->scene;
    struct flow *f = &s->flows[i];
    bool is_rpc = i >= b->flows;
    char address[MRD_ADDRESS_MAX];

    f->from = i;
    f->to = is_incast(s) ? s->num_hosts - 1 : s->num_hosts / 2 + i;
    f->len = is_rpc ? RPC_BYTES : BULK_BYTES;
    f->depth = is_rpc ? 1 : bulk_depth(b);
    /* Packets of flows that start in step would meet in the same way for ever. */
    f->start_ns = mrd_sim_now(s->sim) + (uint64_t)(draw(s) * b->rtt_us * 1000) +
                  (uint64_t)((is_rpc ? 0 : i) * b->stagger_ms * 1e6);
    open_host(s, f->from);
    if (!s->hosts[f->to].context)
        open_host(s, f->to);
    snprintf(address, sizeof(address), "sim:%u", f->to);
    f->ah = mrd_create_ah(s->hosts[f->from].pd, address);
    assert_non_null(f->ah);
}

static void make_stage(struct stage *s, const struct bottleneck *b, uint64_t seed)
{
    double last_ms = fmax((b->flows - 1) * b->stagger_ms, b->cubics ? b->cubics_at_ms : 0);
    double step_ns = b->rtt_us * 1000 / STEPS_A_RTT;

    *s = (struct stage){.scene = b, .seed = seed, .random = seed};
    s->num_flows = b->flows + b->rpcs;
    assert_in_range(b->flows, 1, BOTTLENECK_FLOWS_MAX);
    s->num_hosts = is_incast(s) ? s->num_flows + 1 : 2 * (s->num_flows + b->cubics);
    s->hosts = calloc(s->num_hosts, sizeof(*s->hosts));
    s->flows = calloc(s->num_flows, sizeof(*s->flows));
    s->cubics = calloc(b->cubics + 1, sizeof(struct model_cubic *));
    s->cubic_before = calloc(b->cubics + 1, sizeof(*s->cubic_before));
    s->memory = calloc(1, memory_bytes());
    assert_true(s->hosts && s->flows && s->cubics && s->cubic_before && s->memory);
    make_links(s);
    for (uint32_t i = 0; i < s->num_flows; i++)
        make_flow(s, i);
    s->step_ns = (uint64_t)fmin(fmax(step_ns, STEP_NS_MIN), STEP_NS_MAX);
    s->cubics_at_ns = mrd_sim_now(s->sim) + (uint64_t)(b->cubics_at_ms * 1e6);
    s->measured_ns = mrd_sim_now(s->sim) + (uint64_t)((last_ms + b->warm_ms) * 1e6);
    s->end_ns = s->measured_ns + (uint64_t)(b->span_ms * 1e6);
}

static void clear_stage(struct stage *s)
{
    for (uint32_t i = 0; i < s->scene->cubics; i++)
        model_cubic_stop(s->cubics[i]);
    for (uint32_t i = 0; i < s->num_flows; i++)
        assert_int_equal(mrd_destroy_ah(s->flows[i].ah), 0);
    for (uint32_t i = 0; i < s->num_hosts; i++)
        if (s->hosts[i].context)
            close_host(&s->hosts[i]);
    mrd_sim_destroy(s->sim);
    free(s->hosts);
    free(s->flows);
    free(s->cubics);
    free(s->cubic_before);
    free(s->memory);
    free(s->waits_us);
}

/* ------------------------------------------------------------------------------------------- the play */

static void post(struct stage *s, struct flow *f)
{
    struct host *from = &s->hosts[f->from], *to = &s->hosts[f->to];
    struct mrd_sge sge = {(uintptr_t)s->memory, f->len, from->mr->lkey};
    struct mrd_send_wr wr = {.opcode = MRD_WR_RDMA_WRITE,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = MRD_SEND_SIGNALED};
    struct mrd_send_wr *bad_wr;

    wr.wr.rdma.remote_addr = (uintptr_t)s->memory;
    wr.wr.rdma.rkey = to->mr->rkey;
    wr.ud.ah = f->ah;
    wr.ud.remote_qpn = to->qp->qp_num;
    test_check(s->seed, mrd_post_send(from->qp, &wr, &bad_wr) == 0, "post: %s", mrd_last_error());
    f->posted++;
    f->posted_ns = mrd_sim_now(s->sim);
}

static void keep_wait(struct stage *s, uint64_t ns)
{
    if (s->num_waits == s->cap_waits) {
        s->cap_waits = s->cap_waits ? 2 * s->cap_waits : 1024;
        s->waits_us = realloc(s->waits_us, s->cap_waits * sizeof(*s->waits_us));
        assert_non_null(s->waits_us);
    }
    s->waits_us[s->num_waits++] = (double)ns / 1000;
}

static void turn(struct stage *s, struct flow *f)
{
    struct mrd_wc wc[POLL_BURST];
    int n;

    if (mrd_sim_now(s->sim) < f->start_ns)
        return;
    while ((n = mrd_poll_cq(s->hosts[f->from].cq, POLL_BURST, wc)) > 0) {
        for (int i = 0; i < n; i++)
            test_check(s->seed, wc[i].status == MRD_WC_SUCCESS, "host %u: %s", f->from,
                       mrd_wc_status_str(wc[i].status));
        f->done += (uint64_t)n;
        if (f->depth == 1 && s->is_measured)
            keep_wait(s, mrd_sim_now(s->sim) - f->posted_ns);
    }
    assert_int_equal(n, 0);
    while (f->posted - f->done < f->depth)
        post(s, f);
}

static void begin_measuring(struct stage *s)
{
    s->is_measured = true;
    assert_int_equal(mrd_sim_query_link(s->sim, s->wire, NULL, &s->before), 0);
    for (uint32_t i = 0; i < s->num_flows; i++)
        s->flows[i].done_before = s->flows[i].done;
    for (uint32_t i = 0; i < s->scene->cubics; i++)
        s->cubic_before[i] = model_cubic_delivered_bytes(s->cubics[i]);
}

static void start_cubics(struct stage *s)
{
    uint32_t mss = s->scene->mss ? s->scene->mss : MTU;

    for (uint32_t i = 0; i < s->scene->cubics; i++) {
        uint32_t from = s->num_flows + i;

        s->cubics[i] = model_cubic_start(s->sim, from, s->num_hosts / 2 + from, mss);
    }
}

static void play(struct stage *s)
{
    while (mrd_sim_now(s->sim) < s->end_ns) {
        if (s->scene->cubics && !s->cubics[0] && mrd_sim_now(s->sim) >= s->cubics_at_ns)
            start_cubics(s);
        for (uint32_t i = 0; i < s->num_flows; i++)
            turn(s, &s->flows[i]);
        if (!s->is_measured && mrd_sim_now(s->sim) >= s->measured_ns)
            begin_measuring(s);
        mrd_sim_run_until(s->sim, mrd_sim_now(s->sim) + s->step_ns);
    }
    for (uint32_t i = 0; i < s->num_flows; i++)
        turn(s, &s->flows[i]);
}

/* ---------------------------------------------------------------------------------------- the figures */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Of our flows that always have data: bytes in the measured time. Returns their sum. */
static double share_out(const struct stage *s, struct bottleneck_figures *figures)
{
    const struct bottleneck *b = s->scene;
    double sum = 0, squares = 0, least = INFINITY, far = 0, bytes = 0;

    for (uint32_t i = 0; i < b->flows; i++) {
        const struct flow *f = &s->flows[i];

        bytes = (double)(f->done - f->done_before) * f->len;
        sum += bytes;
        squares += bytes * bytes;
        least = fmin(least, bytes);
        far += i < b->flows / 2 ? bytes : 0;
    }

    double fair = sum > 0 ? sum / b->flows : 1;
    uint32_t num_far = b->flows / 2;

    if (b->flows > 1) {
        figures->of[BOTTLENECK_JAIN] = squares > 0 ? sum * sum / (b->flows * squares) : 0;
        figures->of[BOTTLENECK_LEAST] = least / fair;
        figures->of[BOTTLENECK_LAST] = bytes / fair;
    }
    if (b->far_rtt_us > 0)
        figures->of[BOTTLENECK_FAR] = far / num_far / fair;
    return sum;
}

static double cubic_bytes(const struct stage *s)
{
    double sum = 0;

    for (uint32_t i = 0; i < s->scene->cubics; i++)
        sum += (double)(model_cubic_delivered_bytes(s->cubics[i]) - s->cubic_before[i]);
    return sum;
}

static void measure(struct stage *s, struct bottleneck_figures *figures)
{
    const struct bottleneck *b = s->scene;
    double could = (double)(mrd_sim_now(s->sim) - s->measured_ns) * b->gbps / 8; /* bytes */
    double ours = share_out(s, figures), cubic = cubic_bytes(s), rpcs = 0;
    struct mrd_sim_stats stats;

    assert_int_equal(mrd_sim_query_link(s->sim, s->wire, NULL, &stats), 0);

    double packets = (double)(stats.packets - s->before.packets);
    double drops = (double)(stats.queue_drops - s->before.queue_drops);

    for (uint32_t i = b->flows; i < s->num_flows; i++)
        rpcs += (double)(s->flows[i].done - s->flows[i].done_before) * s->flows[i].len;
    figures->of[BOTTLENECK_UTILISATION] = (double)(stats.bytes - s->before.bytes) / could;
    figures->of[BOTTLENECK_GOODPUT] = (ours + cubic + rpcs) / could;
    figures->of[BOTTLENECK_DROPS] = packets > 0 ? drops / packets : 0;
    if (b->cubics) {
        double fair = fmax(ours + cubic, 1) / (b->flows + b->cubics);

        figures->of[BOTTLENECK_OURS] = ours / b->flows / fair;
        figures->of[BOTTLENECK_CUBIC] = cubic / b->cubics / fair;
    }
    if (b->rpcs) {
        /* One that hangs is no better for not being done. */
        for (uint32_t i = b->flows; i < s->num_flows; i++)
            keep_wait(s, mrd_sim_now(s->sim) - s->flows[i].posted_ns);
        qsort(s->waits_us, s->num_waits, sizeof(*s->waits_us), compare);
        figures->of[BOTTLENECK_RPC_MEDIAN] = s->waits_us[s->num_waits / 2];
        figures->of[BOTTLENECK_RPC_P99] = s->waits_us[s->num_waits * 99 / 100];
    }
}

void bottleneck_run(const struct bottleneck *scene, uint64_t seed,
                    struct bottleneck_figures *figures)
{
    struct stage s;

    for (unsigned i = 0; i < BOTTLENECK_FIGURES; i++)
        figures->of[i] = NAN;
    make_stage(&s, scene, seed);
    play(&s);
    measure(&s, figures);
    clear_stage(&s);
}
