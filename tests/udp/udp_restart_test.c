/* SPDX-License-Identifier: BSD-2-Clause */
/* A receiver that is killed, and another that starts at its address, while the sender goes on. */
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/support/ports.h"
#include "udp_process.h"

enum {
    QPS = 4,
    RECEIVES = 8,          /* of each queue pair */
    MESSAGE_BYTES = 10000, /* 3 packets of the loopback */
    BEFORE = 100,          /* messages of each queue pair before the receiver is killed */
    AFTER_MS = 100,        /* the sender goes on at least so long after that */
    LIVES_MAX = 8,
    GREETING = QPS * RECEIVES, /* its number; those of messages are less */
    GREETING_BYTES = 64,
};

/* Where to be; the answer tells where it is. */
struct order {
    uint16_t port;
};

struct server {
    struct node node;
    struct mrd_ah *client; /* NULL before its first message */
    uint64_t received;
};

static void post(struct node *n, uint64_t wr_id)
{
    node_receive(n, (unsigned)(wr_id / RECEIVES), wr_id, wr_id * MESSAGE_BYTES, MESSAGE_BYTES);
}

/* A message of our own, so that both sides hold something of each other. */
static void greet(struct server *s, const struct mrd_wc *wc)
{
    s->client = mrd_create_ah_from_wc(s->node.pd, wc);
    must(s->client);
    node_send(&s->node, 0, s->client, wc->src_qp, GREETING, 0, GREETING_BYTES);
}

/* Handle the next completion, if one comes until `until_ns`: false if none does. */
static bool serve_one(struct server *s, uint64_t until_ns)
{
    struct node *n = &s->node;
    struct mrd_wc wc;

    if (!node_poll(n, &wc, until_ns))
        return false;
    must(wc.status == MRD_WC_SUCCESS);
    if (wc.opcode == MRD_WC_SEND)
        return true;
    must(wc.byte_len == MESSAGE_BYTES);
    must(node_is_filled(n, wc.wr_id * MESSAGE_BYTES, MESSAGE_BYTES, 1));
    s->received++;
    post(n, wc.wr_id);
    if (!s->client && wc.wr_id < RECEIVES) /* by the queue pair where the greeting is expected */
        greet(s, &wc);
    return true;
}

/*
 * Serves until it is told to end. Nothing is answered before all is ready: the calls make progress
 * only later.
 */
static void serve(int channel)
{
    uint64_t until_ns = clock_now_ns() + PATIENCE_S * SEC_NS;
    struct mrd_context_attr attr = {.progress = MRD_PROGRESS_MANUAL};
    struct server s = {0};
    struct order order;

    must(process_hear(channel, &order, sizeof(order), until_ns));
    attr.port = order.port;
    node_open(&s.node, &attr, QPS, RECEIVES, (size_t)QPS * RECEIVES * MESSAGE_BYTES);
    for (uint64_t i = 0; i < (uint64_t)QPS * RECEIVES; i++)
        post(&s.node, i);
    struct node_name name = node_name(&s.node);
    process_tell(channel, &name, sizeof(name));
    while (!process_hear(channel, &order, sizeof(order), 0)) {
        must(clock_now_ns() < until_ns);
        serve_one(&s, clock_now_ns() + MSEC_NS);
    }
    while (serve_one(&s, 0)) /* what the client was told of already */
        continue;
    process_tell(channel, &s.received, sizeof(s.received));
    must(mrd_destroy_ah(s.client) == 0);
    node_close(&s.node);
}

/* One message of each queue pair is under way at any time. */
struct sender {
    struct node node;
    struct mrd_ah *to;
    struct node_name name;
    unsigned successes[QPS], errors[QPS]; /* since the process that serves appeared */
    unsigned greetings;                   /* which each process sends once */
};

static void expect_greeting(struct sender *s)
{
    node_receive(&s->node, 0, GREETING, MESSAGE_BYTES, GREETING_BYTES);
}

static void send_next(struct sender *s, unsigned qp)
{
    node_send(&s->node, qp, s->to, s->name.qpn[qp], qp, 0, MESSAGE_BYTES);
}

/* Is it a send that completed? */
static bool count(struct sender *s, const struct mrd_wc *wc)
{
    if (wc->opcode == MRD_WC_RECV) {
        must(wc->status == MRD_WC_SUCCESS && wc->byte_len == GREETING_BYTES);
        s->greetings++;
        expect_greeting(s);
        return false;
    }
    must(wc->status == MRD_WC_SUCCESS || wc->status == MRD_WC_RETRY_EXC_ERR);
    (wc->status == MRD_WC_SUCCESS ? s->successes : s->errors)[wc->wr_id]++;
    return true;
}

/*
 * Take what completes and post anew, until `until_ns` or until there was a greeting and each queue
 * pair has had `enough` successes.
 */
static void go_on(struct sender *s, unsigned enough, uint64_t until_ns)
{
    unsigned lag = QPS;
    struct mrd_wc wc;

    while (lag && clock_now_ns() < until_ns && node_poll(&s->node, &wc, until_ns)) {
        if (count(s, &wc))
            send_next(s, (unsigned)wc.wr_id);
        lag = !s->greetings;
        for (unsigned i = 0; i < QPS; i++)
            lag += s->successes[i] < enough;
    }
}

static void check_each(const struct sender *s, unsigned least, unsigned errors_max)
{
    for (unsigned i = 0; i < QPS; i++)
        if (!s->greetings || s->successes[i] < least || s->errors[i] > errors_max)
            fail_msg("queue pair %u: %u sends arrived, %u failed; %u greetings", i, s->successes[i],
                     s->errors[i], s->greetings);
}

/* Take the last completions, and post no more. */
static void finish(struct sender *s, uint64_t until_ns)
{
    for (unsigned left = QPS; left;) {
        struct mrd_wc wc;

        must(node_poll(&s->node, &wc, until_ns));
        left -= count(s, &wc);
    }
}

/* A process takes its place, at the port of those before it. */
static void appear(struct sender *s, const struct process *life, uint16_t port, uint64_t until_ns)
{
    struct order order = {port};
    struct node_name name;

    process_tell(life->channel, &order, sizeof(order));
    must(process_hear(life->channel, &name, sizeof(name), until_ns));
    must(!s->name.address[0] || memcmp(&name, &s->name, sizeof(name)) == 0);
    s->name = name;
    memset(s->successes, 0, sizeof(s->successes));
    memset(s->errors, 0, sizeof(s->errors));
    s->greetings = 0;
}

/* The last process has received what its sender counted since it is there. */
static void compare(const struct sender *s, const struct process *life, uint64_t until_ns)
{
    struct order end = {0};
    uint64_t received, sent = 0;

    for (unsigned i = 0; i < QPS; i++)
        sent += s->successes[i];
    process_tell(life->channel, &end, sizeof(end));
    must(process_hear(life->channel, &received, sizeof(received), until_ns));
    must(received == sent);
}

/*
 * Each process serves and is killed, and the next starts at its address `dead_ms` later. What was
 * under way fails, because the next cannot know whether the one before did it: one message of each
 * queue pair, as one is under way at any time. All later ones arrive at the next, and none twice.
 */
static void restart(const struct mrd_context_attr *attr, unsigned num_lives, unsigned dead_ms)
{
    struct process lives[LIVES_MAX];
    uint16_t port = test_port_apart();
    struct sender s = {0};

    must(port);
    for (unsigned i = 0; i < num_lives; i++)
        process_start(&lives[i], serve);

    uint64_t until_ns = clock_now_ns() + PATIENCE_S * SEC_NS;

    node_open(&s.node, attr, QPS, 1, MESSAGE_BYTES + GREETING_BYTES);
    node_fill(&s.node, 0, MESSAGE_BYTES, 1);
    expect_greeting(&s);
    appear(&s, &lives[0], port, until_ns);
    s.to = node_ah(&s.node, s.name.address);
    for (unsigned i = 0; i < QPS; i++)
        send_next(&s, i);
    go_on(&s, BEFORE, until_ns);
    check_each(&s, BEFORE, 0);

    for (unsigned i = 1; i < num_lives; i++) {
        process_kill(&lives[i - 1]);
        go_on(&s, UINT32_MAX, clock_now_ns() + dead_ms * MSEC_NS);
        appear(&s, &lives[i], port, until_ns);
        go_on(&s, 1, until_ns);
        check_each(&s, 1, 1);
        go_on(&s, UINT32_MAX, clock_now_ns() + AFTER_MS * MSEC_NS);
        go_on(&s, 2, until_ns);
        check_each(&s, 2, 1);
    }
    finish(&s, until_ns);
    compare(&s, &lives[num_lives - 1], until_ns);
    process_join(&lives[num_lives - 1]);
    must(mrd_destroy_ah(s.to) == 0);
    node_close(&s.node);
}

/* Before its end was noticed. */
TEST(udp_restart__soon)
{
    restart(&(struct mrd_context_attr){0}, 8, 50);
}

/* When it was given up already. */
TEST(udp_restart__later_than_the_peer_timeout)
{
    restart(&(struct mrd_context_attr){.peer_timeout_ns = 500 * MSEC_NS}, 3, 1000);
}
