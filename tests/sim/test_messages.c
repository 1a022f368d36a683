/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules of messages: refusals, their room, the use of ids, sharing a peer, and speaking to oneself.
 */
#include <string.h>

#include "tests/support/wiretap.h"

enum { ONE_WAY_NS = 5500 }; /* delay and serialisation of one packet, rounded up */

/* ------------------------------------------------------------------------------------- refusals */

/*
 * The refusal's reliability, whatever it refuses: exactly the refusal is lost, thrice. An ack that
 * covered the refused PSN meanwhile would make a success of it.
 */
static void refusal_lost(struct sim_post post, enum mrd_wc_status status)
{
    struct sim_world *w = sim_warm_world(&(struct sim_options){0});
    struct wiretap *tap = wiretap_open(w);

    tap->drop[HOST_1][WIRE_REFUSAL] = 3;

    uint32_t i = sim_post(w, &post);

    sim_run_until_complete(w, 1 * MSEC_NS);
    sim_run(w, 50 * USEC_NS);
    assert_int_equal(w->messages[i].status, status);
    assert_int_equal(wiretap_count_dropped(tap, HOST_1, WIRE_REFUSAL), 3);

    const struct wire_packet *refusal = wiretap_find(tap, 0, HOST_1, WIRE_REFUSAL);
    assert_true(wiretap_acked_ns(tap, HOST_1, refusal->part.psn) >
                wiretap_acked_ns(tap, HOST_0, refusal->head.psn));
    assert_int_equal(sim_counter(w, HOST_1, "tx_refusals"), 1);
}

TEST(sim_refusal__lost_is_no_success)
{
    static const uint32_t lens[] = {0, 100, 4096, 20000};

    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        struct sim_post post = {.from = HOST_0, .to = HOST_1, .len = lens[i], .rkey_add = 1};

        if (lens[i]) /* else there is nothing to access */
            refusal_lost(post, MRD_WC_REM_ACCESS_ERR);
        post.opcode = MRD_WR_SEND;
        post.qpn_add = 1000;
        refusal_lost(post, MRD_WC_REM_INV_REQ_ERR);
        post.opcode = MRD_WR_SEND_WITH_IMM;
        post.qpn_add = 0;
        post.qkey_add = 1;
        refusal_lost(post, MRD_WC_REM_INV_REQ_ERR);
    }
}

/* Once the refusal was acked, the refused PSN is acked at once, not when a probe asks for it. */
TEST(sim_refusal__acked_psn_is_reported_at_once)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.no_challenge = true});
    struct wiretap *tap = wiretap_open(w);

    sim_post(
        w, &(struct sim_post){.from = HOST_0, .to = HOST_1, .opcode = MRD_WR_SEND, .qkey_add = 1});
    sim_run(w, 100 * USEC_NS);

    const struct wire_packet *refusal = wiretap_find(tap, 0, HOST_1, WIRE_REFUSAL);
    uint64_t acked_ns = wiretap_acked_ns(tap, HOST_0, refusal->head.psn);
    uint64_t reported_ns = wiretap_acked_ns(tap, HOST_1, refusal->part.psn);

    assert_true(acked_ns < refusal->at_ns + ONE_WAY_NS);
    assert_true(reported_ns > acked_ns && reported_ns < acked_ns + ONE_WAY_NS);
}

/* One of several messages in a packet is refused: the others are executed once, and only once. */
TEST(sim_refusal__names_one_message_of_a_packet)
{
    struct sim_world *w = sim_warm_world(&(struct sim_options){0});
    struct wiretap *tap = wiretap_open(w);
    uint32_t index[4];

    tap->drop[HOST_1][WIRE_REFUSAL] = 3;
    for (uint32_t i = 0; i < 4; i++) /* the first leaves alone, the others share a packet */
        index[i] = sim_post(w, &(struct sim_post){.from = HOST_0,
                                                  .to = HOST_1,
                                                  .len = i ? 100 + i : 500,
                                                  .opcode = MRD_WR_SEND,
                                                  .qkey_add = i == 2});
    sim_run_until_complete(w, 1 * MSEC_NS);

    assert_int_equal(tap->packets[1].num_parts, 3);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(w->messages[index[i]].status,
                         i == 2 ? MRD_WC_REM_INV_REQ_ERR : MRD_WC_SUCCESS);
        assert_int_equal(w->messages[index[i]].received, i != 2);
    }
    assert_false(w->receives[3].done); /* the refused one took none */
}

/* A refused PSN counts as received: its copies are not executed when a receive is there by then. */
TEST(sim_refusal__copies_of_the_refused_packet_are_duplicates)
{
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.no_receives = true, .rnr_timer_ns = 200 * USEC_NS});
    struct wiretap *tap = wiretap_open(w);

    tap->drop[HOST_1][WIRE_REFUSAL] = WIRE_ALL;
    sim_send(w, HOST_0, HOST_1, 500);
    sim_run(w, 20 * USEC_NS);
    sim_post_recvs(w, HOST_1, 0, 1, 500);
    wiretap_replay(tap, wiretap_find(tap, 0, HOST_0, WIRE_MESSAGE));
    sim_run(w, 500 * USEC_NS);
    assert_false(w->receives[0].done);
    assert_true(sim_counter(w, HOST_1, "rx_duplicates") > 1);

    tap->drop[HOST_1][WIRE_REFUSAL] = 0;
    sim_all_arrive(w, 2 * MSEC_NS);
    assert_int_equal(sim_counter(w, HOST_1, "rx_refuse_rnr"), 1);
}

/* rnr_retry retries and one attempt before them, each in full, then an error. */
TEST(sim_rnr__retries_are_counted)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){
        .no_challenge = true, .no_receives = true, .rnr_limited = true, .rnr_retry = 2});
    struct wiretap *tap = wiretap_open(w);
    uint32_t packets_of_attempt[4] = {0};

    uint32_t i = sim_send(w, HOST_0, HOST_1, 3 * 4096);

    sim_run_until_complete(w, 2 * MSEC_NS);
    assert_int_equal(w->messages[i].status, MRD_WC_RNR_RETRY_EXC_ERR);
    for (uint32_t n = 0; n < tap->num; n++) {
        if (tap->packets[n].kind == WIRE_MESSAGE)
            packets_of_attempt[tap->packets[n].part.attempt & 3]++;
    }
    for (uint32_t n = 0; n < 4; n++)
        assert_int_equal(packets_of_attempt[n], n < 3 ? 3 : 0);
}

/* A new attempt begins when every packet of the old one was acked: they never overlap. */
TEST(sim_rnr__attempts_do_not_overlap)
{
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.no_challenge = true, .no_receives = true});
    struct wiretap *tap = wiretap_open(w);

    mrd_sim_set_loss_mask(w->sim, HOST_0, HOST_1, 1 << 2); /* the third segment */
    sim_send(w, HOST_0, HOST_1, 3 * 4096);
    tap->drop[HOST_0][WIRE_EMPTY] = WIRE_ALL; /* what is resent of it */
    sim_run(w, 1 * MSEC_NS);                  /* the retry is due since long */
    assert_int_equal(wiretap_count(tap, HOST_0, WIRE_MESSAGE), 3);

    tap->drop[HOST_0][WIRE_EMPTY] = 0;
    sim_post_recvs(w, HOST_1, 0, 1, 3 * 4096);
    sim_all_arrive(w, 2 * MSEC_NS);
}

/* --------------------------------------------------------------------------------- their room */

enum { REFUSED_MESSAGES = 60 };

static uint32_t highest_psn(const struct wiretap *tap, uint32_t from)
{
    uint32_t highest = 0;

    for (uint32_t i = 0; i < tap->num; i++) {
        const struct wire_packet *p = &tap->packets[i];

        if (p->from == from && p->kind == WIRE_MESSAGE && p->head.psn > highest)
            highest = p->head.psn;
    }
    return highest;
}

/* Host 1 has sent all that it may and hears no ack; each message to it is refused at once. */
static void refusals_find_room(const char *cc)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.cc = cc, .qps = 2});
    struct wiretap *tap = wiretap_open(w);

    tap->drop[HOST_0][WIRE_ACK] = WIRE_ALL;
    sim_write(w, HOST_1, HOST_0, 4 << 20);
    sim_run(w, 60 * USEC_NS);

    uint32_t stopped_at = highest_psn(tap, HOST_1);

    /* Of two packets each: those carry no ack of host 1's data. */
    for (uint32_t i = 0; i < REFUSED_MESSAGES; i++)
        sim_post(w, &(struct sim_post){.from = HOST_0,
                                       .to = HOST_1,
                                       .len = 4100,
                                       .opcode = MRD_WR_SEND,
                                       .qpn_add = 1000,
                                       .no_receive = true});
    sim_run(w, 60 * USEC_NS);
    assert_int_equal(highest_psn(tap, HOST_1), stopped_at);
    assert_int_equal(sim_counter(w, HOST_1, "rx_refuse_qpn"), REFUSED_MESSAGES);

    uint64_t told = 0; /* which messages a refusal on the wire names */

    for (uint32_t i = 0; i < tap->num; i++) {
        struct mrd_wire_refusal_entry entry;

        if (tap->packets[i].kind != WIRE_REFUSAL)
            continue;
        mrd_wire_get_refusal_entry(&tap->packets[i].part, 0, &entry);
        told |= 1ull << entry.id;
    }
    assert_int_equal(__builtin_popcountll(told), REFUSED_MESSAGES);

    tap->drop[HOST_0][WIRE_ACK] = 0;
    sim_run_until_complete(w, 20 * MSEC_NS);
    assert_true(sim_payload_equal(w, HOST_0));
}

TEST(sim_refusal__ignores_the_congestion_window)
{
    refusals_find_room("nscc");
}

TEST(sim_refusal__has_psns_beyond_those_of_data)
{
    refusals_find_room("none"); /* data goes as far as its share of the PSNs */
}

/*
 * Two messages refused in both directions at once, the refusals lost: the oldest PSN of each side
 * stays unacked until the other's refusal arrives, so probes must not stop at the oldest.
 */
TEST(sim_refusal__in_both_directions_at_once)
{
    for (uint32_t lost = 0; lost <= 4; lost++) {
        struct sim_world *w = sim_fabric_world(&(struct sim_options){.seed = test_seed() + lost});
        struct wiretap *tap = wiretap_open(w);

        tap->drop[HOST_0][WIRE_REFUSAL] = tap->drop[HOST_1][WIRE_REFUSAL] = lost;
        for (uint32_t from = HOST_0; from <= HOST_1; from++)
            sim_post(
                w,
                &(struct sim_post){
                    .from = from, .to = from ^ 1, .len = 64, .opcode = MRD_WR_SEND, .qkey_add = 1});
        sim_run_until_complete(w, 1 * MSEC_NS);
        assert_int_equal(w->messages[0].status, MRD_WC_REM_INV_REQ_ERR);
        assert_int_equal(w->messages[1].status, MRD_WC_REM_INV_REQ_ERR);
        assert_int_equal(wiretap_count_dropped(tap, HOST_0, WIRE_REFUSAL), lost);
    }
}

/* ------------------------------------------------------------------------------ ids and sharing */

static bool is_of_first_id(void *arg, const struct wire_packet *p)
{
    const bool *held = arg;

    return *held && p->kind == WIRE_MESSAGE && p->part.id == 0 && p->part.offset == 0;
}

/* A message that does not come to an end keeps its id and holds up nobody. */
TEST(sim_id__one_that_lasts_holds_up_nobody)
{
    enum { MESSAGES = 150 }; /* more would fill the window of PSNs, at whose begin its packet is */
    struct sim_world *w = sim_fabric_world(&(struct sim_options){0});
    struct wiretap *tap = wiretap_open(w);
    bool held = true;
    uint32_t done = 0;

    tap->rule = is_of_first_id;
    tap->arg = &held;
    for (uint32_t i = 0; i < MESSAGES; i++)
        sim_write(w, HOST_0, HOST_1, 8192);
    sim_run(w, 1 * MSEC_NS);
    for (uint32_t i = 0; i < MESSAGES; i++)
        done += w->messages[i].sent;
    assert_false(w->messages[0].sent);
    assert_int_equal(done, MESSAGES - 1);

    held = false;
    sim_all_arrive(w, 1 * MSEC_NS);
}

/* Queue pairs take turns, packet by packet, where all would have something to send. */
TEST(sim_share__queue_pairs_take_turns)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.qps = 2});
    struct wiretap *tap = wiretap_open(w);
    uint32_t first = 0, last = 0, packets[2] = {0, 0}, psn_next = 0;

    for (uint32_t qp = 0; qp < 2; qp++)
        sim_post_on(w, HOST_0, HOST_1, qp, qp == 0 ? 4 << 20 : 1 << 20, MRD_WR_RDMA_WRITE);
    sim_run_until_complete(w, 1 * MSEC_NS);

    /* From the first to the last packet of QP 1: as many of QP 0 lie between. */
    for (uint32_t i = 0; i < tap->num; i++) {
        if (tap->packets[i].kind != WIRE_MESSAGE)
            continue;
        if (tap->packets[i].part.src_qpn == w->node[HOST_0].qp[1]->qp_num) {
            first = first ? first : i;
            last = i;
        }
    }
    for (uint32_t i = first; i <= last; i++) {
        const struct wire_packet *p = &tap->packets[i];

        if (p->kind != WIRE_MESSAGE || p->head.psn < psn_next)
            continue;
        psn_next = p->head.psn + 1;
        packets[p->part.src_qpn == w->node[HOST_0].qp[1]->qp_num]++;
    }
    assert_int_equal(packets[1], 256);
    assert_in_range(packets[0], 254, 256);
}

/* -------------------------------------------------------------------------- speaking to oneself */

/* A context is its own peer: each opcode, clean and with losses, both order modes. */
TEST(sim_self__every_opcode)
{
    static const uint32_t lens[] = {0, 64, 4096, 4097, 100000};

    for (uint32_t mode = 0; mode < 4; mode++) {
        struct sim_world *w = sim_fabric_world(
            &(struct sim_options){.seed = test_seed() + mode,
                                  .hosts = 1,
                                  .loss_ppm = mode & 1 ? 50000 : 0,
                                  .order = mode & 2 ? MRD_ORDER_MSG : MRD_ORDER_NONE});

        for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
            sim_send(w, HOST_0, HOST_0, lens[i]);
            sim_write(w, HOST_0, HOST_0, lens[i]);
            sim_write_imm(w, HOST_0, HOST_0, lens[i]);
        }
        sim_all_arrive(w, 5 * MSEC_NS);
    }
}

/* Refused by oneself, the refusals lost; and flushed with a half-received message of one's own. */
TEST(sim_self__refused_and_flushed)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.hosts = 1, .qps = 2});
    struct wiretap *tap = wiretap_open(w);

    tap->drop[HOST_0][WIRE_REFUSAL] = 3;

    uint32_t refused =
        sim_post(w, &(struct sim_post){.len = 10000, .opcode = MRD_WR_SEND, .qkey_add = 1});
    uint32_t denied = sim_post(w, &(struct sim_post){.len = 10, .rkey_add = 1});

    sim_run_until_complete(w, 1 * MSEC_NS);
    assert_int_equal(w->messages[refused].status, MRD_WC_REM_INV_REQ_ERR);
    assert_int_equal(w->messages[denied].status, MRD_WC_REM_ACCESS_ERR);

    uint32_t flushed = sim_post_on(w, HOST_0, HOST_0, 1, 4 << 20, MRD_WR_SEND);

    sim_run(w, 20 * USEC_NS);
    sim_fail_qp(w, HOST_0, 1);
    sim_run_until_complete(w, 1 * MSEC_NS);
    assert_int_equal(w->messages[flushed].status, MRD_WC_WR_FLUSH_ERR);
    assert_true(w->receives[w->num_receives - 1].done);

    uint32_t after = sim_send(w, HOST_0, HOST_0, 5000);

    sim_run_until_complete(w, 1 * MSEC_NS);
    assert_true(w->messages[after].equal);
}
