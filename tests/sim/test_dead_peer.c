/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that die, sleep, lose one direction or come back: every request ends, every receive that
 * was bound ends, and work posted to the next life of a peer gets there.
 */
#include "tests/support/wiretap.h"

enum { BIG = 4 << 20, TIMEOUT_MS = 500 };

/* So many of the host's receives are done by now. */
static uint32_t receives_done(const struct sim_world *w, uint32_t host)
{
    uint32_t done = 0;

    for (uint32_t i = 0; i < w->num_receives; i++)
        done += w->receives[i].host == host && w->receives[i].done;
    return done;
}

/* --------------------------------------------------------------------- what a dead sender holds */

static bool is_first(void *arg, const struct wire_packet *p)
{
    (void)arg;
    return p->kind == WIRE_MESSAGE && p->part.flags & MRD_PART_ORDERED && p->part.msn == 1;
}

/*
 * A sender of ordered messages dies while the target holds all but the first: what it reserved is
 * free again, and others get it. With `peers` such senders at once.
 */
static void dead_ordered(uint32_t peers)
{
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.hosts = peers + 2,
                                               .order = MRD_ORDER_MSG,
                                               .no_receives = true,
                                               .peer_timeout_ns = TIMEOUT_MS * MSEC_NS});
    struct wiretap *tap = wiretap_open(w);
    uint32_t good = peers + 1;

    for (uint32_t host = 1; host <= peers + 1; host++)
        sim_write(w, host, HOST_0, 8);
    sim_run_until_complete(w, 10 * MSEC_NS);
    sim_post_recvs(w, HOST_0, 0, 9 * peers, 100);
    tap->rule = is_first;
    for (uint32_t host = 1; host <= peers; host++) {
        sim_send(w, host, HOST_0, 100);
        sim_run(w, 3 * USEC_NS);
        for (unsigned i = 1; i < 9; i++)
            sim_send(w, host, HOST_0, 100);
    }
    sim_run(w, 200 * USEC_NS);
    for (uint32_t host = 1; host <= peers; host++)
        mrd_sim_stop_host(w->sim, host, 1);
    tap->rule = NULL;
    sim_run(w, 4 * TIMEOUT_MS * MSEC_NS);
    assert_int_equal(w->node[HOST_0].unreachable, peers);
    assert_int_equal(receives_done(w, HOST_0),
                     8 * peers); /* those that came; the ninth is free again */
    sim_send(w, good, HOST_0, 100);
    sim_run(w, 10 * MSEC_NS);
    assert_true(w->messages[w->num_messages - 1].received);
    assert_int_equal(receives_done(w, HOST_0), 8 * peers + 1);
}

TEST(sim_dead_peer__gives_back_what_it_reserved)
{
    dead_ordered(1);
    dead_ordered(9);
}

/* ---------------------------------------------------------- stopped for longer than the timeout */

/* The receiver sleeps in mid-message until its sender has given it up: its receive ends, too. */
static void stopped_receiver(enum mrd_order order, bool partition, bool spoke)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){
        .order = order, .rate_bps = 10000000000, .peer_timeout_ns = TIMEOUT_MS * MSEC_NS});

    if (spoke)
        sim_write(w, HOST_1, HOST_0, 64);
    sim_run_until_complete(w, 10 * MSEC_NS);
    uint32_t message = sim_send(w, HOST_0, HOST_1, BIG);
    sim_run(w, 300 * USEC_NS);
    if (partition)
        sim_links(w, "host0-host1*", "blackhole", "on");
    mrd_sim_stop_host(w->sim, HOST_1, 1);
    sim_run(w, 3 * TIMEOUT_MS * MSEC_NS);
    sim_expect_sent(w, message, MRD_WC_RETRY_EXC_ERR);
    assert_false(w->receives[0].done);
    sim_links(w, "host0-host1*", "blackhole", "off");
    mrd_sim_stop_host(w->sim, HOST_1, 0);
    sim_run(w, 100 * MSEC_NS);
    sim_expect_received(w, 0, MRD_WC_REM_ABORT_ERR);
    message = sim_send(w, HOST_0, HOST_1, BIG); /* and they get on with each other again */
    sim_send(w, HOST_1, HOST_0, BIG);
    sim_run_until_complete(w, 100 * MSEC_NS);
    assert_int_equal(w->messages[message].status, MRD_WC_SUCCESS);
    assert_true(sim_payload_equal(w, HOST_0));
}

TEST(sim_stopped__receive_ends)
{
    for (unsigned i = 0; i < 8; i++)
        stopped_receiver(i & 1 ? MRD_ORDER_MSG : MRD_ORDER_NONE, i & 2, i & 4);
}

/* ----------------------------------------------------------------------------------- restarts */

/*
 * One message at a time to host 1, which restarts after `down_ns`: how many fail, and until when.
 */
static void restart(uint64_t down_ns, enum mrd_order order, bool spoke)
{
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.order = order,
                                               .peer_timeout_ns = TIMEOUT_MS * MSEC_NS,
                                               .challenge_ns = 4 * SEC_NS,
                                               .no_receives = true});
    uint32_t failed = 0, current;
    uint64_t begun_ns = 0, end_ns;

    sim_run(w, 5 * SEC_NS); /* nobody is young */
    sim_post_recvs(w, HOST_0, 0, 4, 100);
    sim_post_recvs(w, HOST_1, 0, 4, 100);
    sim_send(w, HOST_0, HOST_1, 100);
    if (spoke)
        sim_send(w, HOST_1, HOST_0, 100);
    sim_run_until_complete(w, 10 * MSEC_NS);
    current = sim_send(w, HOST_0, HOST_1, 100);
    sim_close(w, HOST_1);
    end_ns = mrd_sim_now(w->sim) + down_ns;
    for (;;) {
        uint64_t now_ns = mrd_sim_now(w->sim);

        if (now_ns >= end_ns && !begun_ns) {
            begun_ns = now_ns;
            sim_open(w, HOST_1);
            sim_post_recvs(w, HOST_1, 0, 4, 100);
        }
        sim_run(w, 10 * USEC_NS);
        if (!w->messages[current].sent) {
            test_check(w->options.seed, !begun_ns || now_ns - begun_ns < SEC_NS,
                       "down for %llu ms: not well after a second",
                       (unsigned long long)(down_ns / MSEC_NS));
            continue;
        }
        if (w->messages[current].status == MRD_WC_SUCCESS && begun_ns)
            break;
        failed += begun_ns && w->messages[current].status != MRD_WC_SUCCESS;
        test_check(w->options.seed, failed <= 1, "down for %llu ms: a second message failed",
                   (unsigned long long)(down_ns / MSEC_NS));
        current = sim_send(w, HOST_0, HOST_1, 100);
    }
}

/* Whenever the new life comes, and whoever spoke: at most one error, and well within a second. */
TEST(sim_restart__next_life_is_reached)
{
    static const uint64_t down_ms[] = {0, 1, 50, 300, 700, 2500, 15000};

    for (unsigned i = 0; i < sizeof(down_ms) / sizeof(down_ms[0]); i++) {
        for (unsigned k = 0; k < 4; k++)
            restart(down_ms[i] * MSEC_NS, k & 1 ? MRD_ORDER_MSG : MRD_ORDER_NONE, k & 2);
    }
}

/*
 * The new life speaks: what was sent to the old one fails at that, though no packet of ours comes
 * through that is reset.
 */
TEST(sim_restart__news_of_it_fails_what_was_sent)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.no_challenge = true});
    struct wiretap *tap = wiretap_open(w);

    sim_send(w, HOST_0, HOST_1, 100);
    sim_send_complete(w, HOST_1, HOST_0, 100, 10 * MSEC_NS);
    tap->drop[HOST_0][WIRE_MESSAGE] = WIRE_ALL;
    uint32_t sent = sim_send(w, HOST_0, HOST_1, 100);
    sim_run(w, 20 * USEC_NS);
    tap->drop[HOST_1][WIRE_ACK] = WIRE_ALL; /* it cannot say that it closes */
    sim_restart(w, HOST_1);
    tap->drop[HOST_1][WIRE_ACK] = 0;
    uint32_t received = sim_send(w, HOST_1, HOST_0, 100);
    sim_run(w, 5 * MSEC_NS);
    assert_true(w->messages[received].received);
    sim_expect_sent(w, sent, MRD_WC_RETRY_EXC_ERR);
    tap->drop[HOST_0][WIRE_MESSAGE] = 0;
}

/* -------------------------------------------------------------------------------- one direction */

/* Nothing of ours arrives, but the peer's packets do: after the timeout it is out of reach. */
TEST(sim_reachable__means_that_our_packets_are_acked)
{
    for (unsigned busy = 0; busy < 3; busy++) {
        struct sim_world *w = sim_fabric_world(&(struct sim_options){
            .qps = 2, .peer_timeout_ns = TIMEOUT_MS * MSEC_NS, .send_wr = 4096});

        for (uint32_t host = HOST_0; host <= HOST_1; host++)
            sim_send(w, host, 1 - host, 100);
        sim_run_until_complete(w, 10 * MSEC_NS);
        if (busy == 2)
            sim_send(w, HOST_1, HOST_0, BIG); /* half here: it is probed */
        sim_run(w, 50 * USEC_NS);
        sim_links(w, "host0>host1*", "blackhole", "on");
        uint32_t message = sim_send(w, HOST_0, HOST_1, BIG);
        uint64_t begin_ns = mrd_sim_now(w->sim);
        while (!w->messages[message].sent) {
            if (busy == 1)
                sim_post_on(w, HOST_1, HOST_0, 1, 8, MRD_WR_RDMA_WRITE);
            sim_run(w, MSEC_NS);
            /* The peer gives us up meanwhile: until then its packets come. */
            test_check(w->options.seed,
                       mrd_sim_now(w->sim) - begin_ns < TIMEOUT_MS * MSEC_NS * 3 / 2,
                       "busy %u: still waiting", busy);
        }
        assert_int_equal(w->messages[message].status, MRD_WC_RETRY_EXC_ERR);
        sim_run(w, 5 * TIMEOUT_MS * MSEC_NS);
        assert_true(sim_is_complete(w));
    }
}

/* A sender that waits for a minute survives a cut of 25 s, though its target waits for 8 s only. */
static void patient(uint32_t len, enum mrd_order order, bool in_the_middle)
{
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.order = order, .rate_bps = 10000000000});

    sim_restart_with(w, HOST_0, 60 * SEC_NS);
    sim_write_complete(w, HOST_0, HOST_1, 64, 10 * MSEC_NS);
    if (!in_the_middle)
        sim_links(w, "host0-host1*", "blackhole", "on");
    uint32_t message = sim_send(w, HOST_0, HOST_1, len);
    sim_run(w, 300 * USEC_NS);
    sim_links(w, "host0-host1*", "blackhole", "on");
    sim_run(w, 25 * SEC_NS);
    assert_false(w->messages[message].sent);
    sim_links(w, "host0-host1*", "blackhole", "off");
    sim_all_arrive(w, 3 * SEC_NS);
    assert_int_equal(w->messages[message].status, MRD_WC_SUCCESS);
    assert_int_equal(w->node[HOST_0].unreachable + w->node[HOST_0].restarted, 0);
    assert_int_equal(w->node[HOST_1].unreachable + w->node[HOST_1].restarted, 0);
}

TEST(sim_patience__of_the_sender_counts)
{
    for (unsigned i = 0; i < 2; i++) {
        enum mrd_order order = i ? MRD_ORDER_MSG : MRD_ORDER_NONE;

        patient(BIG, order, true);
        patient(BIG, order, false);
        patient(100, order, false);
    }
}
