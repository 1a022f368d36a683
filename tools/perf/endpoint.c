/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tools/perf/transport.h"

enum {
    LINE_BYTES = 64,
    PAGE_BYTES = 4096,
    FILL_BYTE = 0x5a,
    REPLY_SEED = 1, /* answers are other bytes than questions */
};

static size_t round_up(size_t value, size_t to)
{
    return (value + to - 1) / to * to;
}

/* `verify_slots` 0: nothing is verified. */
static struct perf_layout lay_out(const struct perf_params *p, uint32_t verify_slots)
{
    struct perf_layout l = {.slots = verify_slots ? verify_slots : 1,
                            .slot_bytes = round_up(p->size_bytes ? p->size_bytes : 1, LINE_BYTES)};

    /* Latency tests poll one place. */
    if (!verify_slots && !perf_test_is_lat(p->test) && l.slot_bytes < PAGE_BYTES)
        l.slots = (uint32_t)(PAGE_BYTES / l.slot_bytes);
    l.total_bytes = round_up(l.slots * l.slot_bytes, PAGE_BYTES);
    if (!verify_slots) {
        l.region_bytes = l.total_bytes;
        l.total_bytes *= p->qps;
    }
    return l;
}

/* Raw sockets send the kernel's zero page, which stays in the cache: they are a ceiling. */
static int map(struct perf_run *run, size_t bytes, uint8_t **buf)
{
    bool zero_page = run->ops->raw && !run->ops->rdma;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (zero_page ? 0 : MAP_POPULATE);
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);

    if (p == MAP_FAILED)
        return perf_run_fail(run, -errno, "no memory for %zu bytes of messages: %s", bytes,
                             strerror(errno));
    if (!zero_page)
        memset(p, FILL_BYTE, bytes);
    *buf = p;
    return 0;
}

int perf_endpoint_map(struct perf_run *run, size_t tx_bytes, size_t rx_bytes)
{
    struct perf_endpoint *e = run->state;

    e->qps = calloc(run->params.qps, sizeof(e->qps[0]));
    if (!e->qps)
        return perf_run_fail(run, -ENOMEM, "no memory for %u QPs", run->params.qps);
    e->num_qps = run->params.qps;
    e->takes_recvs = true;
    e->tx_bytes = tx_bytes;
    e->rx_bytes = rx_bytes;
    int rc = map(run, tx_bytes, &e->tx_buf);
    return rc ? rc : map(run, rx_bytes, &e->rx_buf);
}

/* Returns the number of receives that the server posts on each queue pair. */
static uint32_t server_recvs(const struct perf_params *p)
{
    /* The sender never has more messages than slots in flight, spread over the queue pairs. */
    return p->verify ? (p->slots + p->qps - 1) / p->qps : p->rx_depth;
}

/* Queue pair 0 of a verifying client takes the credits. */
static uint32_t recvs_of(const struct perf_run *run, uint32_t qp)
{
    const struct perf_params *p = &run->params;

    if (!run->server && !perf_test_is_lat(p->test))
        return p->verify && qp == 0 ? PERF_CREDITS : 0;
    return server_recvs(p);
}

static int open_verifier(struct perf_run *run)
{
    struct perf_endpoint *e = run->state;
    const struct perf_params *p = &run->params;
    uint64_t seed = p->seed + (perf_test_is_lat(p->test) && !run->server ? REPLY_SEED : 0);
    bool ordered = p->ordered || run->ops->ordered;

    if (!p->verify)
        return 0;
    if (perf_verifier_init(&e->verifier, seed, p->size_bytes, p->slots, ordered ? p->qps : 0))
        return perf_run_fail(run, -ENOMEM, "out of memory");
    return 0;
}

int perf_endpoint_open(struct perf_run *run)
{
    struct perf_endpoint *e = run->state;
    const struct perf_params *p = &run->params;
    bool lat = perf_test_is_lat(p->test);
    /* In bandwidth tests one direction carries at most credits. */
    const struct perf_layout credits = {PERF_CREDITS, PERF_CREDIT_BYTES, 0, PAGE_BYTES};
    /* A target of writes has the sender's layout; of sends, a slot for each receive. */
    uint32_t rx_slots = perf_test_is_write(p->test) ? p->slots : server_recvs(p) * p->qps;

    e->tx = !lat && run->server ? credits : lay_out(p, p->verify ? p->slots : 0);
    e->rx = !lat && !run->server ? credits : lay_out(p, p->verify ? rx_slots : 0);
    e->batch = PERF_BATCH;
    e->signal_every = lat ? 0 : p->cq_mod;
    /* Writes carry their own address: the receive behind an immediate is empty. */
    e->recv_bytes = perf_test_is_write(p->test) ? 0 : (uint32_t)p->size_bytes;
    if (!lat && !run->server)
        e->recv_bytes = PERF_CREDIT_BYTES;
    int rc = perf_endpoint_map(run, e->tx.total_bytes, e->rx.total_bytes);
    if (rc)
        return rc;
    for (uint32_t qp = 0; qp < e->num_qps; qp++)
        e->qps[qp].num_recvs = recvs_of(run, qp);
    if (lat)
        memset(e->rx_buf, 0, e->rx_bytes); /* what a polled last byte starts from */
    return open_verifier(run);
}

void perf_endpoint_close(struct perf_run *run)
{
    struct perf_endpoint *e = run->state;

    if (e->tx_buf)
        munmap(e->tx_buf, e->tx_bytes);
    if (e->rx_buf)
        munmap(e->rx_buf, e->rx_bytes);
    free(e->qps);
    perf_verifier_fini(&e->verifier);
}

struct perf_place perf_endpoint_recv(const struct perf_run *run, uint32_t qp, uint32_t index)
{
    const struct perf_endpoint *e = run->state;
    uint32_t slot = run->params.verify ? qp * e->qps[qp].num_recvs + index : index;

    return (struct perf_place){
        e->rx_buf + qp * e->rx.region_bytes + slot % e->rx.slots * e->rx.slot_bytes, e->recv_bytes};
}

int perf_endpoint_post_recvs(struct perf_run *run)
{
    const struct perf_endpoint *e = run->state;
    int rc = 0;

    for (uint32_t qp = 0; qp < e->num_qps && rc == 0; qp++) {
        if (e->qps[qp].num_recvs)
            rc = run->ops->post_recv(run, qp, 0, e->qps[qp].num_recvs);
    }
    return rc;
}

int perf_endpoint_repost_rest(struct perf_run *run, uint32_t qp)
{
    struct perf_endpoint *e = run->state;
    struct perf_qp *q = &e->qps[qp];
    int rc = 0;

    while (q->num_repost && rc == 0) {
        uint32_t left = q->num_recvs - q->next_repost;
        uint32_t count = q->num_repost < left ? q->num_repost : left;
        rc = run->ops->post_recv(run, qp, q->next_repost, count);
        q->next_repost = (q->next_repost + count) % q->num_recvs;
        q->num_repost -= count;
    }
    return rc;
}

/* Unverified receives are alike but for the address: any that are free may be posted. */
int perf_endpoint_repost(struct perf_run *run, const struct perf_wc *wc)
{
    struct perf_endpoint *e = run->state;
    struct perf_qp *q = &e->qps[wc->qp];

    if (run->params.verify)
        return run->ops->post_recv(run, wc->qp, wc->index, 1);
    q->num_repost++;
    if (q->num_repost >= PERF_BATCH || 2 * q->num_repost >= q->num_recvs)
        return perf_endpoint_repost_rest(run, wc->qp);
    return 0;
}

void perf_endpoint_fill(struct perf_run *run, uint32_t qp, uint64_t n)
{
    struct perf_endpoint *e = run->state;
    const struct perf_params *p = &run->params;

    if (p->verify)
        perf_verify_fill(p->seed + (run->server ? REPLY_SEED : 0), n,
                         e->tx_buf + perf_endpoint_place(e, qp, n), p->size_bytes);
}

void perf_endpoint_check(struct perf_run *run, const struct perf_wc *wc)
{
    struct perf_endpoint *e = run->state;
    uint64_t n = perf_verifier_number(&e->verifier, wc->imm);
    const uint8_t *message = perf_test_is_write(run->params.test)
                                 ? e->rx_buf + n % e->rx.slots * e->rx.slot_bytes
                                 : perf_endpoint_recv(run, wc->qp, wc->index).at;

    perf_verifier_check(&e->verifier, n, wc->qp, message, wc->bytes);
}

void perf_endpoint_conclude(struct perf_run *run, uint64_t sent)
{
    struct perf_endpoint *e = run->state;

    if (!run->params.verify)
        return;
    run->verified = perf_verifier_ok(&e->verifier, sent);
    snprintf(run->verify_error, sizeof(run->verify_error), "%s", e->verifier.error);
}
