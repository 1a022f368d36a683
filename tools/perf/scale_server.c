/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end: one context, bound to no address, which takes messages sent to any.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/perf/mrd.h"
#include "tools/perf/scale.h"

enum {
    LOOK_EVERY = 256, /* polls, until it is looked whether the client has said something */
    RECVS_SPARE = 4,  /* receives for each message that the client may have outstanding */
};

struct receiver {
    struct scale_end end;
    uint32_t bytes, recvs;
    struct mrd_sge sges[SCALE_BATCH];
    struct mrd_recv_wr wrs[SCALE_BATCH];
};

static char memory[PERF_SCALE_SIZE_MAX]; /* what all messages write over: nobody reads it */

static int post(struct receiver *r, uint32_t count)
{
    struct mrd_recv_wr *bad;

    if (count == 0)
        return 0;
    r->wrs[count - 1].next = NULL;
    int rc = mrd_post_recv(r->end.qp, r->wrs, &bad);
    r->wrs[count - 1].next = count < SCALE_BATCH ? &r->wrs[count] : NULL;
    return rc ? scale_fail(&r->end, rc, "mrd_post_recv") : 0;
}

static int open_receiver(struct receiver *r)
{
    /* First contacts cost no round trip more: nobody else can be there. */
    struct mrd_context_attr attr = {.comp_mask = MRD_CONTEXT_ATTR_CHALLENGE};
    struct mrd_qp_cap cap = {.max_send_wr = 1, .max_recv_wr = r->recvs};
    int rc = scale_open(&r->end, &attr, &cap, memory, sizeof(memory));

    if (rc)
        return rc;
    for (unsigned i = 0; i < SCALE_BATCH; i++) {
        r->sges[i] = (struct mrd_sge){(uintptr_t)memory, r->bytes, r->end.mr->lkey};
        r->wrs[i] = (struct mrd_recv_wr){.sg_list = &r->sges[i], .num_sge = 1};
        r->wrs[i].next = i + 1 < SCALE_BATCH ? &r->wrs[i + 1] : NULL;
    }
    for (uint32_t posted = 0; posted < r->recvs && rc == 0; posted += SCALE_BATCH)
        rc = post(r, r->recvs - posted < SCALE_BATCH ? r->recvs - posted : SCALE_BATCH);
    return rc;
}

/* 1: the client has spoken, or is gone. */
static int is_called(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

static int serve(struct receiver *r, int fd, uint64_t *messages)
{
    struct mrd_wc wcs[SCALE_BATCH];

    for (unsigned turn = 1; turn % LOOK_EVERY || !is_called(fd); turn++) {
        int n = mrd_poll_cq(r->end.cq, SCALE_BATCH, wcs);
        if (n < 0)
            return scale_fail(&r->end, n, "mrd_poll_cq");
        scale_wait(&r->end, n > 0);
        for (int i = 0; i < n; i++) {
            if (wcs[i].status != MRD_WC_SUCCESS)
                return perf_fail(r->end.error, -EIO, "a receive failed: %s",
                                 mrd_wc_status_str(wcs[i].status));
        }
        *messages += (unsigned)n;
        int rc = post(r, (uint32_t)n);
        if (rc)
            return rc;
    }
    return 0;
}

static int learn_place(struct receiver *r, struct scale_word *word)
{
    struct mrd_context_info info;
    int rc = mrd_query_context(r->end.ctx, &info, sizeof(info));

    word->port = info.port;
    word->qpn = r->end.qp->qp_num;
    word->addr = (uintptr_t)memory;
    word->rkey = r->end.mr->rkey;
    return rc ? scale_fail(&r->end, rc, "mrd_query_context") : 0;
}

static bool say(int fd, const struct scale_word *word)
{
    return send(fd, word, sizeof(*word), 0) == (ssize_t)sizeof(*word);
}

void scale_server(struct scale_run *run, int fd)
{
    static struct receiver r;
    static struct scale_word word;
    struct perf_cpu_times times;

    r = (struct receiver){
        .end = {.run = run, .error = word.error},
        .bytes = (uint32_t)run->options->params.size_bytes,
        .recvs = RECVS_SPARE * scale_depth(run->options),
    };
    memset(memory, 1, sizeof(memory));
    word.rc = open_receiver(&r);
    if (word.rc == 0)
        word.rc = learn_place(&r, &word);
    if (!say(fd, &word) || word.rc)
        return;
    word.rc = serve(&r, fd, &word.messages);
    if (word.rc == 0)
        word.rc = scale_memory(&r.end, &word.bytes);
    perf_cpu_read(&times);
    word.user_s = times.own_user_s;
    say(fd, &word);
}
