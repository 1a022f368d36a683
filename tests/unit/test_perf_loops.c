/* SPDX-License-Identifier: BSD-2-Clause */
/* The loops of mrd_perf's bandwidth and latency tests, over a transport that is made up here. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <errno.h>

#include "tests/kit/kit.h"
#include "tools/perf/run.h"
#include "tools/perf/transport.h"

enum { SIZE = 64, DEPTH = 128, SLOW_US = 30 * 1000, LATE_MS = 100, GIVE_UP_MS = 20 * 1000 };

struct made_up {
    uint32_t acks;                       /* of sends, that wait for a poll */
    bool flush;                          /* its completion waits for a poll, too */
    enum { WELL, STALE, TWICE } answers; /* how it answers reads and atomics */
    uint64_t word;                       /* that atomics add to */
    struct perf_wc answered[DEPTH];      /* `acks` of them wait for a poll */
    uint32_t most;                       /* messages outstanding */
    unsigned polls, posts;
};

static struct perf_run run;
static struct made_up made_up;

static int post_send(struct perf_run *r, uint32_t qp, uint64_t n, uint32_t count)
{
    struct made_up *m = r->state;

    (void)n;
    m->posts++;
    m->acks += count;
    if (r->e.qps[qp].outstanding + count > m->most)
        m->most = r->e.qps[qp].outstanding + count;
    return (int)count;
}

static int post_flush(struct perf_run *r, uint32_t qp)
{
    struct made_up *m = r->state;

    (void)qp;
    m->flush = true;
    return 0;
}

/* All that waits, in one poll. */
static int poll_acks(struct perf_run *r, struct perf_wc *wcs, int max)
{
    struct made_up *m = r->state;
    int n = 0;

    m->polls++;
    for (; n < max && m->acks; m->acks--)
        wcs[n++] = (struct perf_wc){.kind = PERF_WC_SENT};
    if (n < max && m->flush) {
        wcs[n++] = (struct perf_wc){.kind = PERF_WC_FLUSHED};
        m->flush = false;
    }
    return n;
}

static int take_recvs(struct perf_run *r, uint32_t qp, uint32_t first, uint32_t count)
{
    (void)r;
    (void)qp;
    (void)first;
    (void)count;
    return 0;
}

static void begin(const struct perf_transport_ops *ops, enum perf_test test, bool server)
{
    memset(&run, 0, sizeof(run));
    memset(&made_up, 0, sizeof(made_up));
    perf_params_init(&run.params);
    run.params.test = test;
    run.params.size_bytes = SIZE;
    run.params.tx_depth = DEPTH;
    run.params.cq_mod = 1;
    run.params.iterations = 300;
    perf_params_settle(&run.params);
    run.ops = ops;
    run.state = &made_up;
    run.server = server;
    run.verdict.verified = -1;
    run.watch.next_ns = UINT64_MAX; /* there is no control connection */
    run.resent.due_ns = UINT64_MAX;
    perf_meter_init(&run.meter, run.params.interval_ms);
    assert_int_equal(ops->raw ? perf_endpoint_map(&run, SIZE, SIZE) : perf_endpoint_open(&run), 0);
}

static void end(void)
{
    perf_endpoint_close(&run);
    perf_meter_fini(&run.meter);
}

static const struct perf_transport_ops reliable = {
    .post_send = post_send,
    .post_recv = take_recvs,
    .poll_cq = poll_acks,
    .post_flush = post_flush,
};

/* Writes that the receiver does not see: what was acknowledged counts, and none is forgotten. */
TEST(perf_bw_client__flush_with_acks_in_one_poll)
{
    begin(&reliable, PERF_WRITE_BW, false);
    run.e.takes_recvs = false;
    run.e.signal_every = 1;
    assert_int_equal(perf_bw_client(&run), 0);
    assert_int_equal(run.sent, 300);
    assert_int_equal(run.received, 300);
    assert_int_equal(run.e.qps[0].outstanding, 0);
    assert_int_equal(run.meter.total_bytes, 300 * SIZE);
    end();
}

TEST(perf_bw_client__keeps_to_its_depth)
{
    begin(&reliable, PERF_SEND_BW, false);
    run.e.signal_every = 1;
    assert_int_equal(perf_bw_client(&run), 0);
    assert_int_equal(made_up.most, DEPTH);
    end();
}

/* A poll that finds nothing takes long, as if the scheduler had stopped us; then a packet comes. */
static int poll_late(struct perf_run *r, struct perf_wc *wcs, int max)
{
    struct made_up *m = r->state;

    (void)max;
    if (m->polls++ == 0)
        usleep(SLOW_US);
    wcs[0] = (struct perf_wc){.bytes = SIZE};
    return m->polls == 2;
}

TEST(perf_bw_server__lossy_ends_after_silence_only)
{
    static const struct perf_transport_ops ops = {.raw = true, .lossy = true, .poll_cq = poll_late};

    begin(&ops, PERF_SEND_BW, true);
    run.peer.done = true;
    assert_int_equal(perf_bw_server(&run), 0);
    assert_int_equal(run.received, 1);
    end();
}

static int client_fd;
static uint64_t begin_ns;

static void say(const char *text)
{
    assert_int_equal(write(client_fd, text, strlen(text)), strlen(text));
}

/* One message of two comes, and much later, after the silence of losses, the client's last word. */
static int poll_half(struct perf_run *r, struct perf_wc *wcs, int max)
{
    struct made_up *m = r->state;
    uint64_t now_ns = clock_now_ns();

    (void)max;
    if (now_ns > begin_ns + GIVE_UP_MS * PERF_MSEC_NS)
        return -EIO;
    if (!m->flush && now_ns > begin_ns + LATE_MS * PERF_MSEC_NS) {
        say("{\"type\":\"whole\"}\n");
        m->flush = true;
    }
    wcs[0] = (struct perf_wc){.bytes = SIZE};
    return m->polls++ == 0;
}

/* -b: the server tells what it sent, and goes on until the client has all, or all that will come. */
TEST(perf_bw_both__hears_the_client_after_losses)
{
    static const struct perf_transport_ops ops = {
        .raw = true, .lossy = true, .mutual = true, .post_send = post_send, .poll_cq = poll_half};
    char told[64] = "";
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    struct perf_control control = {.fd = fds[0], .tokener = json_tokener_new()};
    client_fd = fds[1];
    begin(&ops, PERF_SEND_BW, true);
    run.control = &control;
    run.watch.next_ns = 0;
    run.params.bidirectional = true;
    run.e.batch = 4;
    begin_ns = clock_now_ns();
    say("{\"type\":\"done\",\"sent\":2}\n");
    assert_int_equal(perf_bw_both(&run), 0);
    assert_true(run.peer.finished);
    assert_int_equal(run.peer.sent, 2);
    assert_int_equal(run.received, 1);
    assert_int_equal(run.sent, 300);
    assert_int_equal(made_up.posts, 300 / 4);
    assert_true(recv(client_fd, told, sizeof(told) - 1, MSG_DONTWAIT) > 0);
    assert_non_null(strstr(told, "done"));
    assert_non_null(strstr(told, "300"));
    end();
    perf_control_close(&control);
    close(client_fd);
}

/* Every answer is there at once, but for that of the first exchange, which is lost. */
static int poll_answers(struct perf_run *r, struct perf_wc *wcs, int max)
{
    struct made_up *m = r->state;

    (void)max;
    if (m->posts < 2 || !m->acks)
        return 0;
    m->acks = 0;
    wcs[0] = (struct perf_wc){.imm = m->posts - 1, .bytes = SIZE};
    return 1;
}

TEST(perf_lat_client__begins_a_lost_exchange_again)
{
    static const struct perf_transport_ops ops = {
        .raw = true, .lossy = true, .post_send = post_send, .poll_cq = poll_answers};

    begin(&ops, PERF_SEND_LAT, false);
    assert_int_equal(perf_latency_init(&run.latency, run.params.iterations), 0);
    assert_int_equal(perf_lat_client(&run), 0);
    assert_int_equal(run.sent, 300);
    assert_int_equal(run.latency.count, 300);
    assert_int_equal(made_up.posts, 1 + run.params.warmup + 300);
    perf_latency_fini(&run.latency);
    end();
}

/* Answers a batch in reverse. */
static int post_requests(struct perf_run *r, uint32_t qp, uint64_t n, uint32_t count)
{
    struct made_up *m = r->state;

    m->posts += count;
    for (uint64_t at = n + count; at-- > n;) {
        uint8_t *to = r->e.tx_buf + perf_endpoint_place(&r->e, qp, at);

        if (perf_test_is_atomic(r->params.test))
            memcpy(to, &m->word, sizeof(m->word));
        else if (m->answers != STALE || at < r->params.slots)
            perf_verify_fill(r->params.seed, at % r->params.slots, to, r->params.size_bytes);
        if (m->answers != TWICE || at != DEPTH)
            m->word++;
        perf_endpoint_count_signal(&r->e, &r->e.qps[qp]);
        m->answered[m->acks++] =
            (struct perf_wc){PERF_WC_SENT, qp, (uint32_t)at, 0, r->params.size_bytes};
    }
    return (int)count;
}

/* One at a time, the last one first. */
static int poll_answered(struct perf_run *r, struct perf_wc *wcs, int max)
{
    struct made_up *m = r->state;

    (void)max;
    if (!m->acks)
        return 0;
    wcs[0] = m->answered[--m->acks];
    return 1;
}

/* The client of a verified test: its verdict. */
static int ask(enum perf_test test, int answers)
{
    static const struct perf_transport_ops ops = {
        .requests = true, .post_send = post_requests, .poll_cq = poll_answered};
    bool lat = perf_test_is_lat(test);

    begin(&ops, test, false);
    perf_endpoint_close(&run);
    memset(&run.e, 0, sizeof(run.e));
    run.params.verify = true;
    run.params.size_bytes = perf_test_is_atomic(test) ? PERF_ATOMIC_BYTES : SIZE;
    assert_int_equal(perf_endpoint_open(&run), 0);
    run.e.takes_recvs = false;
    made_up.answers = answers;
    if (lat)
        assert_int_equal(perf_latency_init(&run.latency, run.params.iterations), 0);
    assert_int_equal(lat ? perf_lat_client(&run) : perf_bw_client(&run), 0);
    assert_int_equal(run.sent, 300);
    assert_int_equal(made_up.posts, run.params.warmup + 300);
    assert_int_equal(run.e.acked, run.params.warmup + 300);
    int verdict = run.verdict.verified;
    if (verdict == 0)
        assert_true(run.verdict.error[0] != '\0');
    perf_latency_fini(&run.latency);
    end();
    return verdict;
}

/* What comes back is verified, in whatever order, and each answer must be a new one. */
TEST(perf_requests__client_verifies)
{
    assert_int_equal(ask(PERF_READ_BW, WELL), 1);
    assert_int_equal(ask(PERF_READ_LAT, WELL), 1);
    assert_int_equal(ask(PERF_ATOMIC_BW, WELL), 1);
    assert_int_equal(ask(PERF_ATOMIC_LAT, WELL), 1);
    assert_int_equal(ask(PERF_READ_BW, STALE), 0);
    assert_int_equal(ask(PERF_READ_LAT, STALE), 0);
    assert_int_equal(ask(PERF_ATOMIC_BW, TWICE), 0);
    assert_int_equal(ask(PERF_ATOMIC_LAT, TWICE), 0);
}

/* What a server offers for reading, and what its word says of adds. */
TEST(perf_requests__server_verifies)
{
    static const struct perf_transport_ops ops = {.requests = true};
    uint64_t adds = 300;

    begin(&ops, PERF_READ_BW, true);
    perf_endpoint_close(&run);
    memset(&run.e, 0, sizeof(run.e));
    run.params.verify = true;
    assert_int_equal(perf_endpoint_open(&run), 0);
    assert_int_equal(run.e.rx.slots, DEPTH);
    for (uint32_t i = 0; i < DEPTH; i++)
        assert_int_equal(
            perf_verify_diff(run.params.seed, i, run.e.rx_buf + i * run.e.rx.slot_bytes, SIZE),
            SIZE);
    run.params.test = PERF_ATOMIC_BW;
    memcpy(run.e.rx_buf, &adds, sizeof(adds));
    perf_endpoint_conclude_server(&run, 300);
    assert_int_equal(run.verdict.verified, 1);
    perf_endpoint_conclude_server(&run, 301);
    assert_int_equal(run.verdict.verified, 0);
    assert_string_equal(run.verdict.error, "301 adds of 1 succeeded, but they make 300");
    end();
}
