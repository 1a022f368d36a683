/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end: one context, bound to no address, which takes messages sent to any; or one at each
 * address.
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

struct receivers {
    uint32_t count;
    struct receiver all[PERF_SCALE_CONTEXTS_MAX];
    struct scale_end *ends[PERF_SCALE_CONTEXTS_MAX];
};

static char memory[PERF_SCALE_SIZE_MAX]; /* what all messages write over: nobody reads it */

static int post_receives(struct receiver *r, uint32_t count)
{
    struct mrd_recv_wr *bad;

    if (count == 0)
        return 0;
    r->wrs[count - 1].next = NULL;
    int rc = mrd_post_recv(r->end.qp, r->wrs, &bad);
    r->wrs[count - 1].next = count < SCALE_BATCH ? &r->wrs[count] : NULL;
    return rc ? scale_fail(&r->end, rc, "mrd_post_recv") : 0;
}

/* At that address, if it is the context of one peer alone. */
static int open_receiver(struct receiver *r, const char *address)
{
    /* First contacts cost no round trip more: nobody else can be there. */
    struct mrd_context_attr attr = {.comp_mask = MRD_CONTEXT_ATTR_CHALLENGE};
    struct mrd_qp_cap cap = {.max_send_wr = 1, .max_recv_wr = r->recvs};

    if (address) {
        attr.address = address;
        attr.max_peers = 1;
    }
    int rc = scale_open(&r->end, &attr, &cap, memory, sizeof(memory));

    if (rc)
        return rc;
    for (unsigned i = 0; i < SCALE_BATCH; i++) {
        r->sges[i] = (struct mrd_sge){(uintptr_t)memory, r->bytes, r->end.mr->lkey};
        r->wrs[i] = (struct mrd_recv_wr){.sg_list = &r->sges[i], .num_sge = 1};
        r->wrs[i].next = i + 1 < SCALE_BATCH ? &r->wrs[i + 1] : NULL;
    }
    for (uint32_t posted = 0; posted < r->recvs && rc == 0; posted += SCALE_BATCH)
        rc = post_receives(r, r->recvs - posted < SCALE_BATCH ? r->recvs - posted : SCALE_BATCH);
    return rc;
}

/* 1: the client has spoken, or is gone. */
static int is_called(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

/* Take what has come to one of them: how many messages, or -errno with a sentence. */
static int take_messages(struct receiver *r)
{
    struct mrd_wc wcs[SCALE_BATCH];
    int n = mrd_poll_cq(r->end.cq, SCALE_BATCH, wcs);

    if (n < 0)
        return scale_fail(&r->end, n, "mrd_poll_cq");
    for (int i = 0; i < n; i++) {
        if (wcs[i].status != MRD_WC_SUCCESS)
            return perf_fail(r->end.error, -EIO, "a receive failed: %s",
                             mrd_wc_status_str(wcs[i].status));
    }
    int rc = post_receives(r, (uint32_t)n);
    return rc ? rc : n;
}

static int serve_client(struct receivers *receivers, int fd, uint64_t *messages)
{
    for (unsigned turn = 1; turn % LOOK_EVERY || !is_called(fd); turn++) {
        uint64_t before = *messages;
        for (uint32_t i = 0; i < receivers->count; i++) {
            int n = take_messages(&receivers->all[i]);
            if (n < 0)
                return n;
            *messages += (unsigned)n;
        }
        scale_wait(receivers->ends, receivers->count, *messages != before);
    }
    return 0;
}

static int learn_place(struct receiver *r, struct scale_place *place)
{
    struct mrd_context_info info;
    int rc = mrd_query_context(r->end.ctx, &info, sizeof(info));

    *place = (struct scale_place){
        .port = info.port,
        .qpn = r->end.qp->qp_num,
        .addr = (uintptr_t)memory,
        .rkey = r->end.mr->rkey,
    };
    return rc ? scale_fail(&r->end, rc, "mrd_query_context") : 0;
}

static bool say_word(int fd, const struct scale_word *word)
{
    return send(fd, word, sizeof(*word), 0) == (ssize_t)sizeof(*word);
}

/* Open all, and tell of each. What fails is told, too. */
static bool open_all(struct receivers *receivers, struct scale_run *run, int fd,
                     struct scale_word *word)
{
    char address[SCALE_ADDRESS_BYTES];

    receivers->count = scale_contexts(run);
    for (uint32_t i = 0; i < receivers->count; i++) {
        struct receiver *r = &receivers->all[i];
        *r = (struct receiver){
            .end = {.run = run, .error = word->error},
            .bytes = (uint32_t)run->options->params.size_bytes,
            .recvs = RECVS_SPARE * scale_depth(run->options),
        };
        receivers->ends[i] = &r->end;
        scale_address(address, i);
        word->rc = open_receiver(r, run->options->scale_contexts ? address : NULL);
        if (word->rc == 0)
            word->rc = learn_place(r, &word->place);
        if (!say_word(fd, word) || word->rc)
            return false;
    }
    return true;
}

void scale_server(struct scale_run *run, int fd)
{
    static struct receivers receivers;
    static struct scale_word word;
    struct perf_cpu_times times;

    memset(memory, 1, sizeof(memory));
    if (!open_all(&receivers, run, fd, &word))
        return;
    word.rc = serve_client(&receivers, fd, &word.messages);
    /* Since before the first was opened. */
    if (word.rc == 0)
        word.rc = scale_memory(&receivers.all[0].end, &word.bytes);
    perf_cpu_read(&times);
    word.user_s = times.own_user_s;
    say_word(fd, &word);
}
