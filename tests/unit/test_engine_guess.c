/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What somebody who sees no packet must guess: each bit of what only the two ends know counts, and no
 * other one is asked. WIRE.md has the table.
 */
#include "core/engine/contact.h"
#include "tests/unit/engine_hand.h"

enum { AT = 0, BYTES = 64, ROOM = 4 };

/* A message each way: both ends hold a space of the other. */
static struct mrd_peer *acquainted(struct pair *p)
{
    pair_begin_wary(p);
    for (unsigned i = 0; i < 2; i++) {
        pair_write(p, i, 0, BYTES);
    }
    return pair_peer(p, AT);
}

/* Does a packet have an effect only if all bits of these values are right? They are `bits`. */
static void expect_bits(struct pair *p, struct mrd_wire_head *head, unsigned bits,
                        uint32_t *const *values,
                        bool (*acts)(struct pair *p, const struct mrd_wire_head *head))
{
    for (unsigned bit = 0; bit < bits; bit++) {
        *values[bit / 32] ^= 1u << bit % 32;
        assert_false(acts(p, head));
        *values[bit / 32] ^= 1u << bit % 32;
    }
    assert_true(acts(p, head));
}

static struct mrd_peer *identify(struct pair *p, const struct mrd_wire_head *head)
{
    struct mrd_rx_packet packet = hand_packet(p, AT, 0, 0);

    return mrd_contact_identify(p->end[AT].e, head, &packet);
}

static bool data_acts(struct pair *p, const struct mrd_wire_head *head)
{
    struct mrd_peer *peer = identify(p, head);

    p->end[AT].e->answers.head = p->end[AT].e->answers.tail;
    return peer != NULL;
}

/* In the space that is held, or a later one. */
static void guess_of_data(struct pair *p, uint32_t later, uint8_t flags)
{
    struct mrd_peer *peer = acquainted(p);
    struct mrd_wire_head head = hand_head(p, AT, MRD_WIRE_DATA);

    head.epoch = peer->space.epoch + later;
    head.flags = flags;
    expect_bits(p, &head, 64, (uint32_t *[]){&head.src_inc, &head.dst_inc}, data_acts);
}

TEST_F(pair, guess__of_data)
{
    guess_of_data(self, 0, 0);
}

/* With any higher epoch; and a new life needs the cookie, too. */
TEST_F(pair, guess__of_a_space)
{
    guess_of_data(self, 1000, MRD_WIRE_FIRST_CONTACT);
}

/* Who leaves our name out has not heard it: nothing is taken, in a space that is held or a new one. */
TEST_F(pair, guess__without_our_name)
{
    struct mrd_peer *peer = acquainted(self);
    struct mrd_wire_head head = hand_head(self, AT, MRD_WIRE_DATA);

    head.dst_inc = 0;
    for (unsigned later = 0; later < 2; later++)
        for (unsigned fc = 0; fc < 2; fc++) {
            head.epoch = peer->space.epoch + later;
            head.flags = fc ? MRD_WIRE_FIRST_CONTACT : 0;
            assert_null(identify(self, &head));
            hand_answer(self, AT, fc ? MRD_WIRE_CHALLENGE : MRD_WIRE_RESET);
        }
}

TEST_F(pair, guess__of_a_new_peer)
{
    acquainted(self);
    struct mrd_wire_head head = hand_first_contact(self, AT, 4711);
    head.reply = 9;
    assert_null(identify(self, &head));
    struct mrd_wire_head answer = hand_answer(self, AT, MRD_WIRE_CHALLENGE).head;
    head.dst_inc = answer.src_inc;
    for (unsigned bit = 0; bit < 64; bit++) {
        head = hand_with_cookie(head, answer.cookie ^ 1ull << bit);
        assert_false(data_acts(self, &head));
    }
    head.cookie = answer.cookie;
    expect_bits(self, &head, 32, (uint32_t *[]){&head.dst_inc}, data_acts);
}

static bool reset_acts(struct pair *p, const struct mrd_wire_head *head)
{
    uint64_t resets = p->end[AT].e->stats.rx_resets;

    mrd_contact_reset(p->end[AT].e, head, &p->end[1 - AT].addr);
    return p->end[AT].e->stats.rx_resets != resets;
}

TEST_F(pair, guess__of_a_reset)
{
    struct mrd_peer *peer = acquainted(self);
    struct mrd_wire_head head = hand_head(self, AT, MRD_WIRE_RESET);

    head.epoch = peer->tx->contact.epoch;
    head.live_epoch = peer->space.epoch;
    expect_bits(self, &head, 96, (uint32_t *[]){&head.src_inc, &head.dst_inc, &head.epoch},
                reset_acts);
}

static bool ack_acts(struct pair *p, const struct mrd_wire_head *head)
{
    uint64_t acks = p->end[AT].e->stats.rx_acks;
    struct mrd_wire_ack ack = {.serial = 1000, .cum = head->psn, .psn_limit = head->psn + 256};
    uint8_t data[256], *end = mrd_wire_put_ack(mrd_wire_put_head(data, head), &ack);
    struct mrd_rx_packet packet = hand_packet(p, AT, 0, 0);

    mrd_wire_seal(data, end);
    packet.data = data;
    packet.len = (uint32_t)(end - data);
    mrd_engine_rx(p->end[AT].e, &packet, 1, p->now);
    return p->end[AT].e->stats.rx_acks != acks;
}

TEST_F(pair, guess__of_an_ack)
{
    struct mrd_peer *peer = acquainted(self);
    struct mrd_wire_head head = hand_head(self, AT, MRD_WIRE_ACK);

    head.epoch = peer->tx->contact.epoch;
    head.psn = peer->tx->sent.next;
    expect_bits(self, &head, 96, (uint32_t *[]){&head.src_inc, &head.dst_inc, &head.epoch},
                ack_acts);
}

static bool challenge_acts(struct pair *p, const struct mrd_wire_head *head)
{
    uint64_t taken = p->end[AT].e->stats.rx_challenges;

    mrd_contact_challenge(p->end[AT].e, head, &(struct mrd_rx_packet){.from = p->end[1 - AT].addr});
    return p->end[AT].e->stats.rx_challenges != taken;
}

/* Before anybody answered the challenger's name is not known yet. */
TEST_F(wary_pair, guess__of_the_first_answer)
{
    pair_post(self, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
    pair_tx(self, AT);
    struct mrd_wire_head head = hand_head(self, AT, MRD_WIRE_CHALLENGE);
    head.epoch = pair_peer(self, AT)->tx->contact.epoch;
    head.up_usec = UINT32_MAX;
    expect_bits(self, &head, 64, (uint32_t *[]){&head.dst_inc, &head.epoch}, challenge_acts);
    self->end[1].num_inbox = 0;
}

/* What one is told is of no use to speak for us, or to us, elsewhere. */
TEST_F(pair, guess__told_each_another)
{
    struct mrd_pair names[ROOM];

    for (uint32_t i = 0; i < ROOM; i++) {
        struct mrd_addr addr = pair_addr_of(i);

        names[i] = mrd_answer_pair(self->end[AT].e, &addr);
        for (uint32_t k = 0; k < i; k++) {
            assert_int_not_equal(names[i].own_inc, names[k].own_inc);
            assert_int_not_equal(names[i].epoch_base, names[k].epoch_base);
        }
    }
}

/*
 * A peer moved, and another host has its old address now. It is told nothing that the peer is told:
 * else 32 bits less were to be guessed to speak for that peer.
 */
TEST_F(pair, guess__names_of_who_moved)
{
    struct mrd_peer *peer = acquainted(self);
    struct mrd_wire_head head = hand_first_contact(self, AT, 4711);

    pair_move_peer(self, AT, peer, 77);
    assert_null(identify(self, &head));
    assert_int_not_equal(hand_answer(self, AT, MRD_WIRE_CHALLENGE).head.src_inc,
                         peer->pair.own_inc);
}

/* -------------------------------------------------------------------------------- memory keys */

enum { AT_ONCE = (int)(MRD_KEY_GUESSES_NS / MRD_KEY_GUESS_NS) };

/* So many packets of that part come: each is refused with that code. */
static void expect_refused(struct pair *p, struct mrd_peer *peer, const struct mrd_wire_part *part,
                           uint32_t num, uint8_t code)
{
    for (uint32_t i = 0; i < num; i++)
        assert_int_equal(hand_place(p, AT, peer, 0, part, 1).code, code);
}

static void expect_verdict(struct pair *p, struct mrd_peer *peer, const struct mrd_wire_part *part,
                           enum mrd_place_verdict verdict)
{
    assert_int_equal(hand_place(p, AT, peer, 0, part, 1).verdict, verdict);
}

/*
 * A thousand wrong keys at once are refused, and as many a second; beyond that all that names memory is
 * dropped, so that no key can be found faster, and the user is told who it is.
 */
TEST_F(pair, guess__of_memory_keys)
{
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    struct mrd_wire_part right = hand_write(self, AT, BYTES), wrong = right;

    wrong.rkey ^= 1;
    expect_refused(self, peer, &wrong, AT_ONCE, MRD_REFUSE_ACCESS);
    pair_expect_no_event(self, AT);
    for (uint32_t i = 0; i < 3; i++)
        expect_verdict(self, peer, &wrong, MRD_PLACE_GUESS);
    assert_int_equal(self->end[AT].e->stats.rx_drop_guesses, 3);
    assert_int_equal(pair_expect_event(self, AT, MRD_EVENT_PEER_WRONG_KEYS).peer_id, peer->id);
    pair_expect_no_event(self, AT);
    expect_verdict(self, peer, &right, MRD_PLACE_GUESS);
    pair_pass(self, AT, MRD_KEY_GUESS_NS);
    expect_verdict(self, peer, &wrong, MRD_PLACE_REFUSED);
    expect_verdict(self, peer, &wrong, MRD_PLACE_GUESS);
    pair_pass(self, AT, MRD_KEY_GUESS_NS);
    expect_verdict(self, peer, &right, MRD_PLACED);
}

/*
 * All in one moment. Those beyond the limit come under one PSN, which is never received: a key that is
 * right is taken as little as one that is wrong, or silence would say which is which.
 */
TEST_F(pair, guess__rate_holds_for_right_keys)
{
    enum { TRIES = 100000 };
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    struct mrd_wire_part part = hand_write(self, AT, BYTES);
    uint32_t right = part.rkey;

    for (uint32_t i = TRIES; i; i--) {
        part.rkey = right ^ i;
        (void)hand_place(self, AT, peer, 0, &part, 1);
    }
    part.rkey = right;
    assert_int_not_equal(hand_place(self, AT, peer, 0, &part, 1).verdict, MRD_PLACED);
}

/* Whoever names a region that is there, or was lately, by its key does not guess. */
TEST_F(pair, guess__not_of_keys_that_were_told)
{
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    struct mrd_wire_part part = hand_write(self, AT, BYTES);

    part.addr--; /* out of its range */
    expect_refused(self, peer, &part, 4 * AT_ONCE, MRD_REFUSE_ACCESS);
    struct mrd_mr *mr = pair_register(self, AT, MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE);
    part.rkey = mr->rkey;
    assert_int_equal(mrd_engine_dereg_mr(e, mr, self->now), 0);
    expect_refused(self, peer, &part, 4 * AT_ONCE, MRD_REFUSE_ACCESS);
    assert_int_equal(e->stats.rx_drop_guesses, 0);
}

/* What names no memory goes on, and what names the wrong queue pair has guessed no key. */
TEST_F(pair, guess__only_what_names_memory)
{
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    struct mrd_wire_part part = hand_write(self, AT, BYTES);

    part.rkey ^= 1;
    part.dst_qpn++;
    expect_refused(self, peer, &part, 2 * AT_ONCE, MRD_REFUSE_QPN);
    part.dst_qpn--;
    for (uint32_t i = 0; i < 2 * AT_ONCE; i++)
        (void)hand_place(self, AT, peer, 0, &part, 1);
    expect_verdict(self, peer, &part, MRD_PLACE_GUESS);
    part = hand_send(self, AT, BYTES);
    expect_refused(self, peer, &part, 1, MRD_REFUSE_RNR);
}

/* While it goes on the user is told once in a while. */
TEST_F(pair, guess__told_once_in_a_while)
{
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    struct mrd_wire_part part = hand_write(self, AT, BYTES);

    part.rkey ^= 1;
    for (unsigned round = 0; round < 3; round++) {
        pair_pass(self, AT, MRD_KEY_EVENT_NS);
        peer->guesses_ns = self->now + MRD_KEY_GUESSES_NS;
        expect_verdict(self, peer, &part, MRD_PLACE_GUESS);
        pair_expect_event(self, AT, MRD_EVENT_PEER_WRONG_KEYS);
        expect_verdict(self, peer, &part, MRD_PLACE_GUESS);
        pair_expect_no_event(self, AT);
    }
}
