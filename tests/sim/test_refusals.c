/* SPDX-License-Identifier: BSD-2-Clause */
/* Refusals and ABORTs wait for no window: a packet that keeps it shut may wait for them. */
#include <string.h>

#include "core/engine/state.h"
#include "tests/support/wiretap.h"

/* The window of the only peer that the host sends to, in packets. */
static void set_window(struct sim_world *w, uint32_t host, double packets)
{
    struct mrd_engine *e = sim_engine(w, host);

    for (struct mrd_node *n = e->peers.active.next; n != &e->peers.active; n = n->next) {
        struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, node);

        peer->tx->cc.cwnd_bytes = packets * peer->tx->cc.packet_bytes;
    }
}

/* A while with windows below one packet. */
static void squeeze(struct sim_world *w, unsigned steps)
{
    for (unsigned step = 0; step < steps; step++) {
        set_window(w, HOST_0, 0.2);
        set_window(w, HOST_1, 0.2);
        sim_run(w, 50 * USEC_NS);
    }
}

/* What is in flight turns lost: a write that leaves later is acked. Then the windows close. */
static void lose_both(struct sim_world *w)
{
    sim_run(w, 10 * USEC_NS);
    set_window(w, HOST_0, 0.2); /* which puts tail probes off */
    set_window(w, HOST_1, 0.2);
    sim_run(w, 20 * USEC_NS);
    set_window(w, HOST_0, 100);
    set_window(w, HOST_1, 100);
    for (uint32_t host = HOST_0; host <= HOST_1; host++)
        sim_write(w, host, 1 - host, 4096);
    squeeze(w, 1);
}

/*
 * Each host has a packet that the other refused, and the first refusals are lost, while both
 * windows are below one packet: each packet is acked only once its refusal got there.
 */
TEST(sim_refusal__two_that_were_lost)
{
    static const char *const cc[] = {"nscc", "dctcp", "swift"};

    for (unsigned i = 0; i < 3; i++) {
        struct sim_world *w = sim_warm_world(&(struct sim_options){.cc = cc[i]});
        uint32_t bad[2];

        struct wiretap *tap = wiretap_open(w);
        tap->drop[HOST_0][WIRE_REFUSAL] = tap->drop[HOST_1][WIRE_REFUSAL] = WIRE_ALL;
        for (uint32_t host = HOST_0; host <= HOST_1; host++)
            bad[host] = sim_post(
                w, &(struct sim_post){.from = host, .to = 1 - host, .len = 64, .qpn_add = 1000});
        lose_both(w);
        tap->drop[HOST_0][WIRE_REFUSAL] = tap->drop[HOST_1][WIRE_REFUSAL] = 0;
        squeeze(w, 200);
        for (uint32_t host = HOST_0; host <= HOST_1; host++) {
            test_check(w->options.seed, w->messages[bad[host]].sent, "%s: host %u waits", cc[i],
                       host);
            assert_int_equal(w->messages[bad[host]].status, MRD_WC_REM_INV_REQ_ERR);
        }
    }
}

/*
 * A lost refusal leaves at once, though the window is below one packet and a packet is in flight.
 */
TEST(sim_refusal__lost_while_the_window_is_shut)
{
    struct sim_world *w = sim_warm_world(&(struct sim_options){0});
    struct mrd_sent *refusal = NULL;

    struct wiretap *tap = wiretap_open(w);
    tap->drop[HOST_0][WIRE_ACK] = WIRE_ALL;
    tap->drop[HOST_1][WIRE_REFUSAL] = tap->drop[HOST_1][WIRE_MESSAGE] = WIRE_ALL;
    uint32_t bad =
        sim_post(w, &(struct sim_post){.from = HOST_0, .to = HOST_1, .len = 64, .qpn_add = 1000});
    sim_run(w, 8 * USEC_NS);
    sim_write(w, HOST_1, HOST_0, 64);
    sim_run(w, 2 * USEC_NS);
    struct mrd_peer *peer = sim_peer(w, HOST_1);
    for (uint32_t psn = peer->tx->sent.una; psn != peer->tx->sent.next; psn++) {
        struct mrd_sent *rec = mrd_sent_get(&peer->tx->sent, psn);

        if (rec && rec->kind == MRD_SENT_REFUSAL && rec->state == MRD_SENT_INFLIGHT)
            refusal = rec;
    }
    assert_non_null(refusal);
    assert_true(peer->tx->sent.inflight.num >= 2);
    mrd_path_forgot(&peer->tx->paths, refusal->path);
    mrd_sent_lose(&peer->tx->sent, refusal, &peer->tx->paths);
    set_window(w, HOST_1, 0.2);
    mrd_tx_ready(sim_engine(w, HOST_1), peer);

    uint32_t refusals = wiretap_count(tap, HOST_1, WIRE_REFUSAL);

    sim_run(w, 1 * USEC_NS);
    assert_int_equal(wiretap_count(tap, HOST_1, WIRE_REFUSAL), refusals + 1);
    memset(tap->drop, 0, sizeof(tap->drop));
    sim_run_until_complete(w, 100 * MSEC_NS);
    assert_int_equal(w->messages[bad].status, MRD_WC_REM_INV_REQ_ERR);
}

/* Data leaves PSNs to refusals: with all that it may use unacked, what comes is refused at once. */
TEST(sim_refusal__finds_a_psn)
{
    enum { WRITES = 3000, WRITE_BYTES = 2100 };
    struct sim_world *w =
        sim_warm_world(&(struct sim_options){.cc = "none", .send_wr = 4096, .cqe = 8192});

    struct wiretap *tap = wiretap_open(w);
    tap->drop[HOST_1][WIRE_ACK] = WIRE_ALL;
    for (uint32_t i = 0; i < WRITES; i++)
        sim_write(w, HOST_0, HOST_1, WRITE_BYTES);
    set_window(w, HOST_0, WRITES);
    sim_run(w, 400 * USEC_NS);
    const struct mrd_sents *sent = &sim_peer(w, HOST_0)->tx->sent;
    assert_int_equal(sent->next - sent->una, sim_engine(w, HOST_0)->config.mover.tracker / 16 * 5);
    uint32_t bad =
        sim_post(w, &(struct sim_post){.from = HOST_1, .to = HOST_0, .len = 64, .qpn_add = 1000});
    sim_run(w, 50 * USEC_NS);
    assert_true(wiretap_count(tap, HOST_0, WIRE_REFUSAL) > 0);
    memset(tap->drop, 0, sizeof(tap->drop));
    sim_run_until_complete(w, 100 * MSEC_NS);
    assert_int_equal(w->messages[bad].status, MRD_WC_REM_INV_REQ_ERR);
}

/* The same with ABORTs: flushed messages end though lost refusals keep the windows shut. */
TEST(sim_abort__lost_while_the_window_is_shut)
{
    struct sim_world *w = sim_warm_world(&(struct sim_options){.qps = 3, .order = MRD_ORDER_MSG});
    uint32_t flushed[2];

    struct wiretap *tap = wiretap_open(w);
    tap->drop[HOST_0][WIRE_ABORT] = tap->drop[HOST_1][WIRE_ABORT] = WIRE_ALL;
    for (uint32_t host = HOST_0; host <= HOST_1; host++)
        flushed[host] = sim_post(w, &(struct sim_post){.from = host,
                                                       .to = 1 - host,
                                                       .qp = 1 + host,
                                                       .len = 64,
                                                       .opcode = MRD_WR_SEND,
                                                       .no_receive = true});
    sim_run(w, 50 * USEC_NS); /* refused: they wait for receives */
    tap->drop[HOST_0][WIRE_REFUSAL] = tap->drop[HOST_1][WIRE_REFUSAL] = WIRE_ALL;
    for (uint32_t host = HOST_0; host <= HOST_1; host++) {
        sim_post(w, &(struct sim_post){.from = host, .to = 1 - host, .len = 64, .qpn_add = 1000});
        sim_fail_qp(w, host, 1 + host);
    }
    lose_both(w);
    tap->drop[HOST_0][WIRE_ABORT] = tap->drop[HOST_1][WIRE_ABORT] = 0;
    squeeze(w, 200);
    assert_true(w->messages[flushed[0]].sent && w->messages[flushed[1]].sent);
    tap->drop[HOST_0][WIRE_REFUSAL] = tap->drop[HOST_1][WIRE_REFUSAL] = 0;
    sim_run_until_complete(w, 100 * MSEC_NS);
}

/*
 * Record pages are few, and pinned at all hosts by packets that wait for the others' refusals: each
 * refusal finds one all the same.
 */
TEST(sim_refusal__finds_a_record)
{
    enum { HOSTS = 6, EACH = 400 };
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.hosts = HOSTS,
                                                                 .loss_ppm = 20000,
                                                                 .max_peers = HOSTS,
                                                                 .send_wr = HOSTS * EACH,
                                                                 .cqe = 2 * HOSTS * EACH});

    for (uint32_t host = 0; host < HOSTS; host++)
        sim_engine(w, host)->peers.pages.num = 2 * HOSTS + 1;
    for (uint32_t i = 0; i < EACH; i++) {
        for (uint32_t pair = 0; pair < HOSTS * (HOSTS - 1); pair++) {
            uint32_t from = pair / (HOSTS - 1);

            sim_post(w, &(struct sim_post){.from = from,
                                           .to = (from + 1 + pair % (HOSTS - 1)) % HOSTS,
                                           .len = 4096,
                                           .qpn_add = 1000});
        }
    }
    sim_run_until_complete(w, SEC_NS);
    for (uint32_t i = 0; i < w->num_messages; i++)
        assert_int_equal(w->messages[i].status, MRD_WC_REM_INV_REQ_ERR);
}
