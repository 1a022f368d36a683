/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What somebody who sees no packet must guess: each bit of what only the two ends know counts, and no
 * other one is asked. WIRE.md has the table.
 */
#include <errno.h>

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

/* The values that are looked at, and how many of their bits. */
struct known {
    uint32_t *value[3];
    unsigned num;
};

/* Does what `send` sends have an effect only if all bits are right? Returns how many there are. */
static unsigned count_bits(struct pair *p, struct mrd_wire_head *head, struct known known,
                           bool (*acts)(struct pair *p, const struct mrd_wire_head *head))
{
    unsigned bits = 0;

    for (unsigned i = 0; i < known.num; i++)
        for (unsigned bit = 0; bit < 32; bit++) {
            *known.value[i] ^= 1u << bit;
            bits += !acts(p, head);
            *known.value[i] ^= 1u << bit;
        }
    assert_true(acts(p, head));
    return bits;
}

static struct mrd_rx_packet from_peer(const struct pair *p)
{
    return (struct mrd_rx_packet){.from = p->end[1 - AT].addr, .to = p->end[AT].addr};
}

static bool data_acts(struct pair *p, const struct mrd_wire_head *head)
{
    struct mrd_rx_packet packet = from_peer(p);
    struct mrd_peer *peer = mrd_contact_identify(p->end[AT].e, head, &packet);

    p->end[AT].e->answers.head = p->end[AT].e->answers.tail;
    return peer != NULL;
}

TEST_F(pair, guess__of_data)
{
    struct mrd_peer *peer = acquainted(self);
    struct mrd_wire_head head = hand_head(self, AT, MRD_WIRE_DATA);

    head.epoch = peer->space.epoch;
    assert_int_equal(
        count_bits(self, &head, (struct known){{&head.src_inc, &head.dst_inc}, 2}, data_acts), 64);
}

/* With any higher epoch; and a new life needs the cookie, too. */
TEST_F(pair, guess__of_a_space)
{
    struct mrd_peer *peer = acquainted(self);
    struct mrd_wire_head head = hand_head(self, AT, MRD_WIRE_DATA);

    head.epoch = peer->space.epoch + 1000;
    head.flags = MRD_WIRE_FIRST_CONTACT;
    assert_int_equal(
        count_bits(self, &head, (struct known){{&head.src_inc, &head.dst_inc}, 2}, data_acts), 64);
}

/* Who leaves our name out has not heard it: nothing is taken, in a space that is held or a new one. */
TEST_F(pair, guess__without_our_name)
{
    struct mrd_peer *peer = acquainted(self);
    struct mrd_wire_head head = hand_head(self, AT, MRD_WIRE_DATA);
    struct mrd_answers *answers = &self->end[AT].e->answers;
    struct mrd_rx_packet packet = from_peer(self);

    head.dst_inc = 0;
    for (unsigned later = 0; later < 2; later++)
        for (unsigned fc = 0; fc < 2; fc++) {
            head.epoch = peer->space.epoch + later;
            head.flags = fc ? MRD_WIRE_FIRST_CONTACT : 0;
            assert_null(mrd_contact_identify(self->end[AT].e, &head, &packet));
            assert_int_equal(answers->tail - answers->head, 1);
            assert_int_equal(answers->ring[answers->head++ % MRD_STATELESS_MAX].head.type,
                             fc ? MRD_WIRE_CHALLENGE : MRD_WIRE_RESET);
        }
}

TEST_F(pair, guess__of_a_new_peer)
{
    acquainted(self);
    struct mrd_wire_head head = hand_head(self, AT, MRD_WIRE_DATA);
    head.flags = MRD_WIRE_FIRST_CONTACT;
    head.src_inc = 4711;
    head.reply = 9;
    struct mrd_rx_packet packet = from_peer(self);
    head.dst_inc = 0;
    assert_null(mrd_contact_identify(self->end[AT].e, &head, &packet));
    head.dst_inc = self->end[AT]
                       .e->answers.ring[self->end[AT].e->answers.head % MRD_STATELESS_MAX]
                       .head.src_inc;
    uint64_t cookie = self->end[AT]
                          .e->answers.ring[self->end[AT].e->answers.head % MRD_STATELESS_MAX]
                          .head.cookie;
    self->end[AT].e->answers.head = self->end[AT].e->answers.tail;
    head.flags |= MRD_WIRE_COOKIE;
    for (unsigned bit = 0; bit < 64; bit++) {
        head.cookie = cookie ^ 1ull << bit;
        assert_false(data_acts(self, &head));
    }
    head.cookie = cookie;
    assert_int_equal(count_bits(self, &head, (struct known){{&head.dst_inc}, 1}, data_acts), 32);
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
    assert_int_equal(count_bits(self, &head,
                                (struct known){{&head.src_inc, &head.dst_inc, &head.epoch}, 3},
                                reset_acts),
                     96);
}

static bool ack_acts(struct pair *p, const struct mrd_wire_head *head)
{
    uint64_t acks = p->end[AT].e->stats.rx_acks;
    struct mrd_wire_ack ack = {.serial = 1000, .cum = head->psn, .psn_limit = head->psn + 256};
    uint8_t data[256], *end = mrd_wire_put_ack(mrd_wire_put_head(data, head), &ack);
    struct mrd_rx_packet packet = from_peer(p);

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
    assert_int_equal(count_bits(self, &head,
                                (struct known){{&head.src_inc, &head.dst_inc, &head.epoch}, 3},
                                ack_acts),
                     96);
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
    assert_int_equal(
        count_bits(self, &head, (struct known){{&head.dst_inc, &head.epoch}, 2}, challenge_acts),
        64);
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
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_addr there = pair_addr_of(77);
    struct mrd_wire_head head = hand_head(self, AT, MRD_WIRE_DATA);
    struct mrd_rx_packet packet = {.from = self->end[1 - AT].addr, .to = self->end[AT].addr};

    mrd_peer_move(&e->peers, peer, &there);
    head.flags = MRD_WIRE_FIRST_CONTACT;
    head.src_inc = 4711;
    head.dst_inc = 0;
    assert_null(mrd_contact_identify(e, &head, &packet));
    const struct mrd_answer *answer = &e->answers.ring[e->answers.head % MRD_STATELESS_MAX];
    assert_int_equal(answer->head.type, MRD_WIRE_CHALLENGE);
    assert_int_not_equal(answer->head.src_inc, peer->pair.own_inc);
}

/* -------------------------------------------------------------------------------- memory keys */

/*
 * A thousand wrong keys at once are refused, and as many a second; beyond that all that names memory is
 * dropped, so that no key can be found faster, and the user is told who it is.
 */
TEST_F(pair, guess__of_memory_keys)
{
    enum { AT_ONCE = (int)(MRD_KEY_GUESSES_NS / MRD_KEY_GUESS_NS) };
    struct mrd_engine_event event;
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    struct mrd_wire_part part = hand_write(self, AT, BYTES);
    part.rkey ^= 1;
    for (uint32_t i = 0; i < AT_ONCE; i++)
        assert_int_equal(hand_place(self, AT, peer, 0, &part, 1).code, MRD_REFUSE_ACCESS);
    assert_int_equal(mrd_engine_get_event(e, &event), -EAGAIN);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(hand_place(self, AT, peer, 0, &part, 1).verdict, MRD_PLACE_GUESS);
    assert_int_equal(e->stats.rx_drop_guesses, 3);
    assert_int_equal(mrd_engine_get_event(e, &event), 0);
    assert_int_equal(event.type, MRD_EVENT_PEER_WRONG_KEYS);
    assert_int_equal(event.peer_id, peer->id);
    assert_int_equal(mrd_engine_get_event(e, &event), -EAGAIN);
    part.rkey ^= 1;
    assert_int_equal(hand_place(self, AT, peer, 0, &part, 1).verdict, MRD_PLACE_GUESS);
    part.rkey ^= 1;
    pair_pass(self, AT, MRD_KEY_GUESS_NS);
    assert_int_equal(hand_place(self, AT, peer, 0, &part, 1).verdict, MRD_PLACE_REFUSED);
    assert_int_equal(hand_place(self, AT, peer, 0, &part, 1).verdict, MRD_PLACE_GUESS);
    pair_pass(self, AT, MRD_KEY_GUESS_NS);
    part.rkey ^= 1;
    assert_int_equal(hand_place(self, AT, peer, 0, &part, 1).verdict, MRD_PLACED);
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
    enum { MANY = 4 * (int)(MRD_KEY_GUESSES_NS / MRD_KEY_GUESS_NS) };
    int error;

    struct mrd_engine *e = self->end[AT].e;
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    struct mrd_wire_part part = hand_write(self, AT, BYTES);
    part.addr--; /* out of its range */
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(hand_place(self, AT, peer, 0, &part, 1).code, MRD_REFUSE_ACCESS);
    struct mrd_mr *mr = mrd_engine_reg_mr(e, self->end[AT].pd, self->end[AT].memory, BYTES,
                                          MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE,
                                          &(struct mrd_mover_mr){0}, &error);
    assert_non_null(mr);
    part.rkey = mr->rkey;
    assert_int_equal(mrd_engine_dereg_mr(e, mr, self->now), 0);
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(hand_place(self, AT, peer, 0, &part, 1).code, MRD_REFUSE_ACCESS);
    assert_int_equal(e->stats.rx_drop_guesses, 0);
}

/* What names no memory goes on, and what names the wrong queue pair has guessed no key. */
TEST_F(pair, guess__only_what_names_memory)
{
    enum { MANY = 2 * (int)(MRD_KEY_GUESSES_NS / MRD_KEY_GUESS_NS) };
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    struct mrd_wire_part part = hand_write(self, AT, BYTES);

    part.rkey ^= 1;
    part.dst_qpn++;
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(hand_place(self, AT, peer, 0, &part, 1).code, MRD_REFUSE_QPN);
    part.dst_qpn--;
    for (uint32_t i = 0; i < MANY; i++)
        (void)hand_place(self, AT, peer, 0, &part, 1);
    assert_int_equal(hand_place(self, AT, peer, 0, &part, 1).verdict, MRD_PLACE_GUESS);
    part = hand_send(self, AT, BYTES);
    assert_int_equal(hand_place(self, AT, peer, 0, &part, 1).code, MRD_REFUSE_RNR);
}

/* While it goes on the user is told once in a while. */
TEST_F(pair, guess__told_once_in_a_while)
{
    struct mrd_engine_event event;
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    struct mrd_wire_part part = hand_write(self, AT, BYTES);
    part.rkey ^= 1;
    for (unsigned round = 0; round < 3; round++) {
        pair_pass(self, AT, MRD_KEY_EVENT_NS);
        peer->guesses_ns = self->now + MRD_KEY_GUESSES_NS;
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(hand_place(self, AT, peer, 0, &part, 1).verdict, MRD_PLACE_GUESS);
            assert_int_equal(mrd_engine_get_event(e, &event), i ? -EAGAIN : 0);
        }
    }
}
