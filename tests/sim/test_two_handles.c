/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client that knows two addresses of a server: at each it goes by another name. To the server these
 * are two peers at one address, none of which takes the other's place.
 *
 * Host 0 is the client, host 1 the server.
 */
#include "core/engine/state.h"
#include "tests/support/forge.h"
#include "transport/context.h"
#include "transport/movers/sim/sim_fault.h"
#include "transport/movers/sim/sim_host.h"

enum { BYTES = 100, LONG_BYTES = 1 << 20, MOVED = 5 };

#define TIMEOUT_NS (300 * MSEC_NS)
#define BUDGET_NS  (2 * TIMEOUT_NS)

static struct sim_world *ordered_world(struct forge_tape *tape, enum mrd_order order)
{
    struct sim_world *w = forge_begin(tape, &(struct sim_options){.order = order,
                                                                  .recv_bytes = LONG_BYTES,
                                                                  .peer_timeout_ns = TIMEOUT_NS});

    mrd_sim_set_addresses(w->sim, HOST_1, 2, MRD_SIM_SOURCE_FIRST);
    return w;
}

static struct sim_world *world(struct forge_tape *tape)
{
    return ordered_world(tape, MRD_ORDER_NONE);
}

/* From now on, until it restarts, the client sends to that address of the server. */
static void call_at(struct sim_world *w, uint32_t id)
{
    struct sim_node *node = &w->node[HOST_0];

    assert_int_equal(mrd_destroy_ah(node->ah[HOST_1]), 0);
    node->ah[HOST_1] = mrd_create_ah(node->pd, id ? "sim:1/1" : "sim:1");
    assert_non_null(node->ah[HOST_1]);
}

static void expect_talk(struct sim_world *w, uint32_t from, uint32_t to)
{
    uint32_t i = sim_send(w, from, to, BYTES);

    sim_run_until_complete(w, BUDGET_NS);
    assert_int_equal(w->messages[i].status, MRD_WC_SUCCESS);
}

/* Host 0 first. */
static void expect_talks(struct sim_world *w)
{
    expect_talk(w, HOST_0, HOST_1);
    expect_talk(w, HOST_1, HOST_0);
}

static uint32_t peers_of(const struct sim_world *w, uint32_t host)
{
    return sim_engine(w, host)->peers.entries.used;
}

/* ----------------------------------------------------------------------------------- two at once */

/* Both ways go on, by turns, and neither name ends what the other one sent. */
TEST_F(forge_tape, sim_two_handles__both_go_on)
{
    struct sim_world *w = world(self);

    for (uint32_t turn = 0; turn < 6; turn++) {
        call_at(w, turn % 2);
        expect_talks(w);
    }
    sim_expect_no_losses(w);
    assert_int_equal(peers_of(w, HOST_0), 2);
    assert_int_equal(peers_of(w, HOST_1), 2);
    assert_true(sim_payload_equal(w, HOST_1));
}

/* From now on the server sends to whom it heard last, as one that answers does. */
static void answer_it(struct sim_world *w)
{
    struct sim_node *node = &w->node[HOST_1];
    const struct mrd_engine *e = mrd_context_engine(node->context);
    const struct mrd_peer *last = NULL;
    struct mrd_wc wc = {0};

    for (const struct mrd_node *n = e->peers.active.next; n != &e->peers.active; n = n->next) {
        const struct mrd_peer *peer = mrd_container_of(n, const struct mrd_peer, node);

        if (!last || peer->heard_ns > last->heard_ns)
            last = peer;
    }
    wc.peer_id = last->id;
    assert_int_equal(mrd_destroy_ah(node->ah[HOST_0]), 0);
    node->ah[HOST_0] = mrd_create_ah_from_wc(node->pd, &wc);
    assert_non_null(node->ah[HOST_0]);
}

/*
 * The same in order, from one queue pair to one. What the server sends comes to the client by one name, in
 * two epochs that go on beside each other.
 */
TEST_F(forge_tape, sim_two_handles__answers_in_order)
{
    struct sim_world *w = ordered_world(self, MRD_ORDER_MSG);

    for (uint32_t turn = 0; turn < 8; turn++) {
        call_at(w, turn % 2);
        expect_talk(w, HOST_0, HOST_1);
        answer_it(w);
        expect_talk(w, HOST_1, HOST_0);
    }
    sim_expect_no_losses(w);
    assert_int_equal(peers_of(w, HOST_0), 2);
    assert_int_equal(peers_of(w, HOST_1), 2);
    assert_true(sim_payload_equal(w, HOST_0));
    assert_true(sim_payload_equal(w, HOST_1));
}

/* The server hears the client call at that address of its own, and answers from now on. */
static void meet_at(struct sim_world *w, uint32_t id)
{
    call_at(w, id);
    expect_talk(w, HOST_0, HOST_1);
    answer_it(w);
}

/*
 * What the server sent by one of the two failed. What it posts next, by the same handle or by a new one, goes
 * by the other: but not before a copy of what failed can have come, which would be delivered after it.
 */
TEST(sim_two_handles__what_failed_comes_first)
{
    for (uint32_t renewed = 0; renewed < 2; renewed++) {
        struct forge_tape tape;
        struct sim_world *w = ordered_world(&tape, MRD_ORDER_MSG);
        struct sim_node *node = &w->node[HOST_1];

        for (uint32_t turn = 0; turn < 3; turn++) {
            meet_at(w, turn % 2);
            expect_talk(w, HOST_1, HOST_0);
        }
        tape.cut[HOST_1][HOST_0] = true;
        uint32_t failed = sim_post(w, &(struct sim_post){.from = HOST_1,
                                                         .to = HOST_0,
                                                         .len = BYTES,
                                                         .opcode = MRD_WR_SEND,
                                                         .no_receive = true});
        sim_run_until_complete(w, 3 * TIMEOUT_NS);
        uint64_t failed_ns = mrd_sim_now(w->sim);
        forge_expect_failed(w, failed);
        struct forge_packet copy = *forge_find(&tape, HOST_1, HOST_0, MRD_WIRE_DATA, -1);
        tape.cut[HOST_1][HOST_0] = false;
        if (renewed) {
            assert_int_equal(mrd_destroy_ah(node->ah[HOST_0]), 0);
            node->ah[HOST_0] = mrd_create_ah(node->pd, "sim:0");
            assert_non_null(node->ah[HOST_0]);
        }
        uint32_t bait = forge_bait(w, HOST_0);
        uint32_t later = sim_send(w, HOST_1, HOST_0, BYTES);
        sim_run(w, 20 * MSEC_NS);
        forge_replay(w, &copy);
        sim_run(w, MSEC_NS);
        assert_true(w->receives[bait].done); /* by the copy */
        assert_false(w->messages[later].received);
        sim_run_until_complete(w, MRD_PACKET_LIFE_NS + BUDGET_NS);
        assert_int_equal(w->messages[later].status, MRD_WC_SUCCESS);
        assert_in_range(mrd_sim_now(w->sim), failed_ns + MRD_PACKET_LIFE_NS - MSEC_NS,
                        failed_ns + MRD_PACKET_LIFE_NS + 20 * MSEC_NS);
        forge_end(&tape);
    }
}

/* The server knows the client only from the answers to what it sent; then it is called elsewhere. */
TEST_F(forge_tape, sim_two_handles__after_the_server_spoke)
{
    struct sim_world *w = world(self);

    expect_talk(w, HOST_1, HOST_0);
    call_at(w, 1);
    expect_talks(w);
    sim_expect_no_losses(w);
}

/* ---------------------------------------------------------------------------------------- restart */

/* Of what the server sends only challenges come through. */
static enum mrd_sim_verdict only_challenges(void *arg, struct mrd_sim_datagram *datagram)
{
    (void)arg;
    return datagram->from == HOST_1 && (datagram->data[0] & 15) != MRD_WIRE_CHALLENGE
               ? MRD_SIM_DROP
               : MRD_SIM_PASS;
}

/*
 * The client restarts in the middle of a message, and calls the same address again: the new life takes
 * the place of the one that called there, not that of the one that was heard since at the other address.
 */
TEST_F(forge_tape, sim_two_handles__restarted_client)
{
    struct sim_world *w = world(self);

    expect_talks(w);
    call_at(w, 1);
    expect_talk(w, HOST_0, HOST_1);
    call_at(w, 0);
    sim_send(w, HOST_0, HOST_1, LONG_BYTES);
    uint32_t half = w->num_receives - 1;
    sim_run(w, 20 * USEC_NS);
    forge_cut(self, HOST_0, HOST_1, true);
    uint32_t sent = sim_send(w, HOST_1, HOST_0, BYTES);
    sim_run(w, 20 * USEC_NS);
    sim_restart(w, HOST_0); /* nobody is told */
    assert_false(w->receives[half].done);
    self->cut[HOST_0][HOST_1] = false;
    self->edit = only_challenges;
    self->cut[HOST_1][HOST_0] = false;
    uint32_t received = sim_send(w, HOST_0, HOST_1, BYTES);
    sim_run(w, 5 * MSEC_NS);
    assert_true(w->messages[received].received);
    sim_expect_received(w, half, MRD_WC_REM_ABORT_ERR);
    forge_expect_failed(w, sent);
    assert_int_equal(w->node[HOST_1].restarted, 1);
    assert_int_equal(peers_of(w, HOST_1), 2);
}

/*
 * The client knows the server by two names, as it moved to the address with one of them. It restarts:
 * its next life is told one of the names, and is known by it from then on.
 */
TEST_F(forge_tape, sim_two_handles__restarted_after_it_moved)
{
    struct sim_world *w = world(self);

    expect_talk(w, HOST_0, HOST_1);
    mrd_sim_move_address(w->sim, 0, HOST_0, 0, MOVED);
    sim_run(w, 200 * MSEC_NS);
    call_at(w, 1);
    expect_talk(w, HOST_0, HOST_1);
    mrd_sim_move_address(w->sim, 0, HOST_0, MOVED, 0);
    sim_run(w, 200 * MSEC_NS);
    expect_talk(w, HOST_0, HOST_1);
    assert_int_equal(sim_counter(w, HOST_1, "peers_moved"), 1);
    sim_restart(w, HOST_0);
    expect_talk(w, HOST_0, HOST_1);
    expect_talks(w);
}

/* --------------------------------------------------------------------------------------- tombstones */

/*
 * The client's message was executed at the server's first address. Then the server gives the client up,
 * and keeps a tombstone. Returns the packet of that message.
 */
static const struct forge_packet *make_tombstone(struct forge_tape *tape)
{
    struct sim_world *w = tape->w;

    expect_talk(w, HOST_0, HOST_1);
    tape->cut[HOST_1][HOST_0] = true;
    uint32_t lost = sim_send(w, HOST_1, HOST_0, BYTES);
    sim_run_until_complete(w, 2 * BUDGET_NS);
    forge_expect_failed(w, lost);
    assert_int_equal(w->node[HOST_1].unreachable, 1);
    tape->cut[HOST_1][HOST_0] = false;
    for (int i = 0;; i++) {
        const struct forge_packet *packet = forge_find(tape, HOST_0, HOST_1, MRD_WIRE_DATA, i);
        struct mrd_wire_part part;

        if (forge_part(packet, &part))
            return packet;
    }
}

/* A late copy of it comes, to where it went. It is not executed again. */
static void expect_not_executed(struct forge_tape *tape, const struct forge_packet *copy)
{
    struct sim_world *w = tape->w;
    uint64_t resets = sim_counter(w, HOST_1, "tx_resets");
    struct mrd_wire_head head = forge_head(copy);

    assert_true(head.flags & MRD_WIRE_FIRST_CONTACT && head.flags & MRD_WIRE_COOKIE);
    assert_in_range(mrd_sim_now(w->sim) - copy->at_ns, 1, MRD_PACKET_LIFE_NS);
    uint32_t bait = forge_bait(w, HOST_1);
    forge_replay(w, copy);
    sim_run(w, 100 * USEC_NS);
    assert_false(w->receives[bait].done);
    assert_int_equal(sim_counter(w, HOST_1, "tx_resets"), resets + 1);
}

/* The client calls the other address: what is remembered of the first one stays. */
TEST_F(forge_tape, sim_tombstone__called_at_another_address)
{
    struct sim_world *w = world(self);
    const struct forge_packet *copy = make_tombstone(self);

    call_at(w, 1);
    expect_talk(w, HOST_0, HOST_1);
    expect_not_executed(self, copy);
}

/*
 * The server's first address fails, it calls the client from the second, and the client answers by the
 * name that it has there: what is remembered of the first one stays.
 */
TEST_F(forge_tape, sim_tombstone__calls_from_another_address)
{
    struct sim_world *w = world(self);
    const struct forge_packet *copy = make_tombstone(self);

    mrd_sim_change_address(w->sim, 0, HOST_1, 0, MRD_SIM_ADDRESS_FAIL);
    expect_talk(w, HOST_1, HOST_0);
    call_at(w, 1);
    expect_talk(w, HOST_0, HOST_1);
    mrd_sim_change_address(w->sim, 0, HOST_1, 0, MRD_SIM_ADDRESS_MEND);
    sim_run(w, MSEC_NS);
    expect_not_executed(self, copy);
}
