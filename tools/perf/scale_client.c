/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The context that is measured, while all its peers are active: each gets a message in turn.
 *
 * First all get one, which makes the contact. Then the clock runs. Peers are active all the time,
 * because a turn takes far less than what they may be silent for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/perf/mrd.h"
#include "tools/perf/scale.h"

enum {
    SECONDS_DEFAULT = 2,
    PATIENCE_S = 60, /* for a contact with all peers, and for the last messages */
};

struct sender {
    struct scale_end end;
    int fd;
    clockid_t server_clock; /* CPU time of the server */
    struct scale_word server;
    struct scale_place places[PERF_SCALE_CONTEXTS_MAX];
    uint32_t num_places;
    uint32_t bytes, depth;
    uint32_t turn;        /* the peer that gets the next message */
    uint32_t outstanding; /* messages */
    uint64_t done;
    struct mrd_sge sge;
    struct mrd_send_wr wrs[SCALE_BATCH];
};

static char memory[PERF_SCALE_SIZE_MAX];

static int hear_word(struct sender *s)
{
    ssize_t n = recv(s->fd, &s->server, sizeof(s->server), 0);

    if (n != (ssize_t)sizeof(s->server))
        return perf_fail(s->end.error, -ECHILD, "the process at the other end died");
    return s->server.rc ? perf_fail(s->end.error, s->server.rc, "%s", s->server.error) : 0;
}

/* All contexts at the other end are ready. */
static int hear_places(struct sender *s)
{
    int rc = 0;

    for (uint32_t i = 0; i < s->num_places && rc == 0; i++) {
        rc = hear_word(s);
        s->places[i] = s->server.place;
    }
    return rc;
}

static int open_sender(struct sender *s)
{
    struct mrd_context_attr attr = {.comp_mask = MRD_CONTEXT_ATTR_CHALLENGE};
    struct mrd_qp_cap cap = {.max_send_wr = s->depth, .max_recv_wr = 1};
    bool writes = s->end.run->options->params.write_with_imm;
    struct mrd_context_info info;
    int rc = scale_open(&s->end, &attr, &cap, memory, sizeof(memory));

    if (rc == 0)
        rc = scale_memory(&s->end, &s->end.run->empty_bytes);
    if (rc)
        return rc;
    rc = mrd_query_context(s->end.ctx, &info, sizeof(info));
    if (rc)
        return scale_fail(&s->end, rc, "mrd_query_context");
    s->end.run->paths_used = info.paths;
    strcpy(s->end.run->cipher, info.cipher);
    s->sge = (struct mrd_sge){(uintptr_t)memory, s->bytes, s->end.mr->lkey};
    for (unsigned i = 0; i < SCALE_BATCH; i++)
        s->wrs[i] = (struct mrd_send_wr){
            .sg_list = &s->sge,
            .num_sge = 1,
            .opcode = writes ? MRD_WR_RDMA_WRITE_WITH_IMM : MRD_WR_SEND,
            .ud = {.remote_qkey = PERF_MRD_QKEY},
        };
    return 0;
}

static const struct scale_place *place_of(const struct sender *s, uint32_t peer)
{
    return &s->places[peer % s->num_places];
}

/* As many messages as may be outstanding, but at most `most`. */
static int post_messages(struct sender *s, uint64_t most)
{
    uint32_t count = s->depth - s->outstanding;
    struct mrd_send_wr *bad;

    count = count < SCALE_BATCH ? count : SCALE_BATCH;
    count = count < most ? count : (uint32_t)most;
    if (count == 0)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct scale_place *place = place_of(s, s->turn);
        s->wrs[i].ud.ah = s->end.ahs[s->turn];
        s->wrs[i].ud.remote_qpn = place->qpn;
        s->wrs[i].wr.rdma.remote_addr = place->addr;
        s->wrs[i].wr.rdma.rkey = place->rkey;
        s->wrs[i].next = i + 1 < count ? &s->wrs[i + 1] : NULL;
        s->turn = s->turn + 1 == s->end.run->peers ? 0 : s->turn + 1;
    }
    int rc = mrd_post_send(s->end.qp, s->wrs, &bad);
    s->outstanding += count;
    return rc ? scale_fail(&s->end, rc, "mrd_post_send") : 0;
}

static int poll_some(struct sender *s)
{
    struct mrd_wc wcs[SCALE_BATCH];
    int n = mrd_poll_cq(s->end.cq, SCALE_BATCH, wcs);

    if (n < 0)
        return scale_fail(&s->end, n, "mrd_poll_cq");
    scale_wait(&(struct scale_end *){&s->end}, 1, n > 0);
    for (int i = 0; i < n; i++) {
        if (wcs[i].status != MRD_WC_SUCCESS)
            return perf_fail(s->end.error, -EIO, "a message failed: %s",
                             mrd_wc_status_str(wcs[i].status));
    }
    s->outstanding -= (uint32_t)n;
    s->done += (unsigned)n;
    return 0;
}

/* Send `count` messages more, and wait until they and all earlier ones are complete. */
static int send_all(struct sender *s, uint64_t count)
{
    uint64_t until_ns = clock_now_ns() + PATIENCE_S * PERF_SEC_NS, last = s->done;
    int rc = 0;

    while (rc == 0 && (count || s->outstanding)) {
        uint32_t before = s->outstanding;
        rc = post_messages(s, count);
        count -= s->outstanding - before;
        if (rc == 0)
            rc = poll_some(s);
        if (s->done != last)
            until_ns = clock_now_ns() + PATIENCE_S * PERF_SEC_NS;
        else if (clock_now_ns() > until_ns)
            return perf_fail(s->end.error, -ETIMEDOUT, "no message was complete within %d s",
                             PATIENCE_S);
        last = s->done;
    }
    return rc;
}

static double server_cpu_s(const struct sender *s)
{
    struct timespec ts = {0};

    clock_gettime(s->server_clock, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* Turn what was counted at the beginning into what was counted since. At the beginning all is 0. */
static void count_since(const struct sender *s, struct scale_rate *rate)
{
    rate->seconds = 1e-9 * (double)clock_now_ns() - rate->seconds;
    rate->cpu_s = perf_cpu_s() - rate->cpu_s;
    rate->server_cpu_s = server_cpu_s(s) - rate->server_cpu_s;
    rate->messages = s->done - rate->messages;
    rate->packets = scale_counter(&s->end, "tx_packets") - rate->packets;
    rate->again = scale_counter(&s->end, "retx_packets") - rate->again;
}

/* Send for the duration, so many messages outstanding. What is complete at its end counts. */
static int send_timed(struct sender *s, uint32_t depth, struct scale_rate *rate)
{
    uint32_t seconds = s->end.run->options->params.duration_s;
    uint64_t end_ns = clock_now_ns() + (seconds ? seconds : SECONDS_DEFAULT) * PERF_SEC_NS;
    int rc = 0;

    s->depth = depth;
    count_since(s, rate);
    while (rc == 0 && clock_now_ns() < end_ns) {
        rc = post_messages(s, UINT64_MAX);
        if (rc == 0)
            rc = poll_some(s);
    }
    count_since(s, rate);
    return rc;
}

/* Is each peer in the table, and did all that we sent arrive, once? */
static int check_counts(struct sender *s)
{
    int rc = scale_check_peers(&s->end);

    if (rc == 0 && s->server.messages != s->done)
        return perf_fail(s->end.error, -EPROTO, "%llu messages arrived, and not %llu",
                         (unsigned long long)s->server.messages, (unsigned long long)s->done);
    return rc;
}

/* From the contact to the last message. Memory is read while all that may be is under way. */
static int send_everything(struct sender *s)
{
    struct scale_run *run = s->end.run;
    uint32_t depth = s->depth;
    int rc = send_all(s, run->peers);

    if (rc == 0)
        rc = send_timed(s, depth, &run->rate);
    if (rc == 0)
        rc = scale_memory(&s->end, &run->bytes);
    if (rc == 0)
        rc = send_all(s, 0);
    if (rc == 0)
        rc = send_timed(s, run->even_depth, &run->even);
    if (rc == 0)
        rc = send_all(s, 0);
    if (rc == 0 && send(s->fd, "", 1, MSG_NOSIGNAL) != 1)
        rc = perf_fail(s->end.error, -ECHILD, "the process at the other end died");
    return rc ? rc : hear_word(s);
}

int scale_client(struct scale_run *run, int fd, pid_t server)
{
    static struct sender s;
    struct perf_cpu_times before, after;

    s = (struct sender){
        .end = {.run = run, .error = run->error},
        .fd = fd,
        .num_places = scale_contexts(run),
        .bytes = (uint32_t)run->options->params.size_bytes,
        .depth = scale_depth(run->options),
    };
    int rc = scale_alloc_handles(&s.end);
    if (rc)
        return rc;
    memset(memory, 1, sizeof(memory));
    perf_cpu_read(&before);
    rc = clock_getcpuclockid(server, &s.server_clock) ? -ECHILD : hear_places(&s);
    if (rc == 0)
        rc = open_sender(&s);
    if (rc == 0)
        rc = scale_make_handles(&s.end, s.places, s.num_places);
    if (rc == 0)
        rc = send_everything(&s);
    run->server_bytes = s.server.bytes;
    perf_cpu_read(&after);
    run->load =
        perf_cpu_load_between(&before, &after, s.server.user_s, (double)sysconf(_SC_CLK_TCK));
    return rc ? rc : check_counts(&s);
}
