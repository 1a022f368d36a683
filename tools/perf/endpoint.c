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
    POISON_BYTE = 0xa5, /* of a place whose message was checked: the next one must come by itself */
    REPLY_SEED = 1,     /* what the server sends, or reads, are other bytes */
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
static int map_buffer(struct perf_run *run, size_t bytes, uint8_t **buf)
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

/* Do both ends send? */
static bool is_mutual(const struct perf_run *run)
{
    enum perf_test test = run->params.test;

    return run->params.bidirectional || (perf_test_is_lat(test) && !perf_test_is_request(test));
}

static bool sends_credits(const struct perf_run *run)
{
    enum perf_test test = run->params.test;

    return run->params.verify && !perf_test_is_lat(test) && !perf_test_is_request(test);
}

int perf_endpoint_map(struct perf_run *run, size_t tx_bytes, size_t rx_bytes)
{
    bool has_credits = sends_credits(run);

    run->e.num_qps = run->params.qps + has_credits;
    run->e.credit_qp = has_credits ? run->params.qps : UINT32_MAX;
    run->e.qps = calloc(run->e.num_qps, sizeof(run->e.qps[0]));
    if (!run->e.qps)
        return perf_run_fail(run, -ENOMEM, "no memory for %u QPs", run->e.num_qps);
    run->e.takes_recvs = true;
    run->e.tx_bytes = tx_bytes;
    run->e.rx_bytes = rx_bytes;
    int rc = map_buffer(run, tx_bytes, &run->e.tx_buf);
    return rc ? rc : map_buffer(run, rx_bytes, &run->e.rx_buf);
}

/* Returns the number of receives that who takes messages posts on each queue pair. */
static uint32_t message_recvs(const struct perf_params *p)
{
    /* The sender never has more messages than slots in flight, spread over the queue pairs. */
    return p->verify ? (p->slots + p->qps - 1) / p->qps : p->rx_depth;
}

static uint32_t recvs_of(const struct perf_run *run, uint32_t qp)
{
    const struct perf_params *p = &run->params;

    if (perf_test_is_request(p->test))
        return 0;
    if (qp == run->e.credit_qp)
        return run->server && !p->bidirectional ? 0 : PERF_CREDITS;
    return run->server || is_mutual(run) ? message_recvs(p) : 0;
}

static int open_verifier(struct perf_run *run)
{
    const struct perf_params *p = &run->params;
    bool request = perf_test_is_request(p->test);
    /* Of the server's messages, and of what the server reads. */
    bool reply = request ? run->server : is_mutual(run) && !run->server;
    uint64_t seed = p->seed + (reply ? REPLY_SEED : 0);
    bool ordered = p->ordered || run->ops->ordered;

    if (!p->verify)
        return 0;
    if (perf_verifier_init(&run->e.verifier, seed, p->size_bytes, p->slots, ordered ? p->qps : 0))
        return perf_run_fail(run, -ENOMEM, "out of memory");
    /* What a read finds is its place's, whichever read it is. */
    if (request)
        run->e.verifier.period = p->slots;
    /* An add may overtake those that were posted while it was under way, and be overtaken so. */
    if (perf_test_is_atomic(p->test) &&
        perf_verifier_init(&run->e.values, seed, p->size_bytes, 2 * p->slots, ordered ? p->qps : 0))
        return perf_run_fail(run, -ENOMEM, "out of memory");
    run->e.values.noun = "old value";
    return 0;
}

/* What the other end reads, or adds to. */
static void fill_source(struct perf_run *run)
{
    const struct perf_params *p = &run->params;

    uint64_t seed = p->seed + (run->server ? 0 : REPLY_SEED);

    if (perf_test_is_atomic(p->test))
        memset(run->e.rx_buf, 0, PERF_ATOMIC_BYTES);
    else
        for (uint32_t i = 0; p->verify && i < run->e.rx.slots; i++)
            perf_verify_fill(seed, i, run->e.rx_buf + i * run->e.rx.slot_bytes, p->size_bytes);
}

int perf_endpoint_open(struct perf_run *run)
{
    const struct perf_params *p = &run->params;
    bool request = perf_test_is_request(p->test), mutual = is_mutual(run);
    bool lat = perf_test_is_lat(p->test) && !request;
    /* In bandwidth tests one direction has no bytes. */
    const struct perf_layout none = {.slots = 1, .total_bytes = PAGE_BYTES};
    /* A target of writes has the sender's layout; of sends, a slot for each receive. */
    bool alike = perf_test_is_write(p->test) || request;
    uint32_t rx_slots = alike ? p->slots : message_recvs(p) * p->qps;

    run->e.tx = !mutual && run->server ? none : lay_out(p, p->verify ? p->slots : 0);
    run->e.rx = !mutual && !run->server ? none : lay_out(p, p->verify ? rx_slots : 0);
    run->e.batch = p->post_list ? p->post_list : PERF_BATCH;
    run->e.signal_every = lat ? 0 : p->cq_mod; /* of reads and atomics 1 */
    /* Writes carry their own address: the receive behind an immediate is empty. */
    run->e.recv_bytes = perf_test_is_write(p->test) ? 0 : (uint32_t)p->size_bytes;
    int rc = perf_endpoint_map(run, run->e.tx.total_bytes, run->e.rx.total_bytes);
    if (rc)
        return rc;
    for (uint32_t qp = 0; qp < run->e.num_qps; qp++)
        run->e.qps[qp].num_recvs = recvs_of(run, qp);
    if (lat)
        memset(run->e.rx_buf, 0, run->e.rx_bytes); /* what a polled last byte starts from */
    if (request && (run->server || mutual))
        fill_source(run);
    return open_verifier(run);
}

void perf_endpoint_choose_imm(struct perf_run *run, bool needs_imm)
{
    const struct perf_params *p = &run->params;
    bool is_write = perf_test_is_write(p->test);

    /* A message of no byte has no last byte to poll and no byte to count. */
    run->e.with_imm =
        is_write && (p->write_with_imm || p->verify || p->size_bytes == 0 || needs_imm);
    run->e.takes_recvs = run->e.with_imm || !(is_write || perf_test_is_request(p->test));
}

void perf_endpoint_close(struct perf_run *run)
{
    if (run->e.tx_buf)
        munmap(run->e.tx_buf, run->e.tx_bytes);
    if (run->e.rx_buf)
        munmap(run->e.rx_buf, run->e.rx_bytes);
    free(run->e.qps);
    perf_verifier_fini(&run->e.verifier);
    perf_verifier_fini(&run->e.values);
}

uint64_t perf_endpoint_cqes(const struct perf_run *run, uint32_t send_depth)
{
    uint64_t cqes = 0;

    for (uint32_t qp = 0; qp < run->e.num_qps; qp++)
        cqes += send_depth + run->e.qps[qp].num_recvs;
    return cqes;
}

struct perf_place perf_endpoint_recv(const struct perf_run *run, uint32_t qp, uint32_t index)
{
    if (qp == run->e.credit_qp)
        return (struct perf_place){run->e.rx_buf, 0};
    uint32_t slot = run->params.verify ? qp * run->e.qps[qp].num_recvs + index : index;

    return (struct perf_place){run->e.rx_buf + qp * run->e.rx.region_bytes +
                                   slot % run->e.rx.slots * run->e.rx.slot_bytes,
                               run->e.recv_bytes};
}

int perf_endpoint_post_recvs(struct perf_run *run)
{
    int rc = 0;

    for (uint32_t qp = 0; qp < run->e.num_qps && rc == 0; qp++) {
        if (run->e.qps[qp].num_recvs)
            rc = run->ops->post_recv(run, qp, 0, run->e.qps[qp].num_recvs);
    }
    return rc;
}

int perf_endpoint_repost_rest(struct perf_run *run, uint32_t qp)
{
    struct perf_qp *q = &run->e.qps[qp];
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
    struct perf_qp *q = &run->e.qps[wc->qp];

    if (run->params.verify)
        return run->ops->post_recv(run, wc->qp, wc->index, 1);
    q->num_repost++;
    if (q->num_repost >= PERF_BATCH || 2 * q->num_repost >= q->num_recvs)
        return perf_endpoint_repost_rest(run, wc->qp);
    return 0;
}

void perf_endpoint_fill(struct perf_run *run, uint32_t qp, uint64_t n)
{
    const struct perf_params *p = &run->params;

    if (p->verify && !perf_test_is_request(p->test))
        perf_verify_fill(p->seed + (run->server ? REPLY_SEED : 0), n,
                         run->e.tx_buf + perf_endpoint_place(&run->e, qp, n), p->size_bytes);
}

void perf_endpoint_check(struct perf_run *run, const struct perf_wc *wc)
{
    uint64_t n = perf_verifier_number(&run->e.verifier, wc->imm);
    const uint8_t *message = perf_test_is_write(run->params.test)
                                 ? run->e.rx_buf + n % run->e.rx.slots * run->e.rx.slot_bytes
                                 : perf_endpoint_recv(run, wc->qp, wc->index).at;

    perf_verifier_check(&run->e.verifier, n, wc->qp, message, wc->bytes);
}

void perf_endpoint_take_answer(struct perf_run *run, const struct perf_wc *wc)
{
    struct perf_verifier *v = &run->e.verifier;
    uint64_t n = perf_verifier_number(v, wc->index);
    uint8_t *at = run->e.tx_buf + perf_endpoint_place(&run->e, wc->qp, n);
    uint64_t value;

    if (!run->params.verify)
        return;
    if (perf_test_is_atomic(run->params.test)) {
        memcpy(&value, at, sizeof(value)); /* of adds of 1 each finds another */
        perf_verifier_count(&run->e.values, value, wc->qp);
        perf_verifier_count(v, n, wc->qp);
    } else {
        perf_verifier_check(v, n, wc->qp, at, wc->bytes);
    }
    memset(at, POISON_BYTE, run->params.size_bytes);
    run->e.credit = v->credit;
}

void perf_endpoint_conclude_server(struct perf_run *run, uint64_t sent)
{
    uint64_t sum;

    if (!run->params.verify || !perf_test_is_atomic(run->params.test) || run->verdict.verified == 0)
        return;
    memcpy(&sum, run->e.rx_buf, sizeof(sum));
    run->verdict.verified = sum == sent;
    if (!run->verdict.verified)
        snprintf(run->verdict.error, sizeof(run->verdict.error),
                 "%llu adds of 1 succeeded, but they make %llu", (unsigned long long)sent,
                 (unsigned long long)sum);
}

void perf_endpoint_conclude(struct perf_run *run, uint64_t sent)
{
    if (!run->params.verify)
        return;
    struct perf_verifier *v = &run->e.verifier;
    run->verdict.verified = perf_verifier_ok(v, sent);
    if (run->verdict.verified && perf_test_is_atomic(run->params.test)) {
        v = &run->e.values;
        run->verdict.verified = perf_verifier_ok(v, sent);
    }
    snprintf(run->verdict.error, sizeof(run->verdict.error), "%s", v->error);
}
