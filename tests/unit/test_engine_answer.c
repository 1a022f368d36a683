/* SPDX-License-Identifier: BSD-2-Clause */
/* What a cookie is for, where and when answers leave, and whose answers are counted together. */
#include "core/engine/answer.h"
#include "tests/unit/engine_hand.h"

enum { AT = 1, OURS = 3, INC = 4711, REPLACED = 5 };

static struct mrd_wire_head first_contact(const struct pair *p, uint32_t own_inc)
{
    struct mrd_wire_head head = hand_first_contact(p, AT, INC);

    head.dst_inc = own_inc;
    return head;
}

/* Challenges it; returns the answer, taken out of the ring; of type 0: none came. */
static struct mrd_answer challenge(struct pair *p, const struct mrd_wire_head *head,
                                   const struct mrd_rx_packet *packet)
{
    struct mrd_engine *e = p->end[AT].e;
    struct mrd_answers *a = &e->answers;
    uint32_t before = a->tail;

    mrd_answer_challenge(e, pair_inc(p, AT), REPLACED, head, packet);
    return a->tail == before ? (struct mrd_answer){0} : a->ring[a->head++ % MRD_STATELESS_MAX];
}

/* It is for one address of the asker's, one of ours, one name, and the name that it replaces. */
TEST_F(pair, mrd_answer_is_proven__as_challenged)
{
    struct mrd_engine *e = self->end[AT].e;

    for (unsigned flaw = 0; flaw < 7; flaw++) {
        struct mrd_wire_head head = first_contact(self, 0);
        struct mrd_rx_packet packet = hand_packet(self, AT, 0, OURS);

        head = hand_with_cookie(head, challenge(self, &head, &packet).head.cookie);
        packet.from.port += 1000; /* of a path: it says nothing */
        packet.from.ip[15] = flaw == 1;
        head.reply += flaw == 2;
        packet.to.ip[15] = flaw == 3 ? OURS + 1 : OURS;
        head.src_inc += flaw == 4;
        head.flags ^= flaw == 5 ? MRD_WIRE_COOKIE : 0;
        assert_int_equal(mrd_answer_is_proven(e, REPLACED + (flaw == 6), &head, &packet),
                         flaw == 0);
    }
}

/* From the address that was hit, to where the asker receives. */
TEST_F(pair, mrd_answer_challenge__from_the_address_that_was_hit)
{
    struct mrd_wire_head head = first_contact(self, 0);
    struct mrd_rx_packet packet = hand_packet(self, AT, 0, OURS);

    packet.from.port = 7777;
    struct mrd_answer answer = challenge(self, &head, &packet);
    assert_int_equal(answer.head.type, MRD_WIRE_CHALLENGE);
    assert_int_equal(answer.from.ip[15], OURS);
    assert_int_equal(answer.to.port, head.reply);
}

/* Strangers cannot use up the answers to those who call us by our name, nor these those to strangers. */
TEST_F(pair, mrd_answer_challenge__names_are_counted_apart)
{
    for (unsigned named = 0; named < 2; named++) {
        pair_begin(self);
        struct mrd_rx_packet packet = hand_packet(self, AT, 0, OURS);
        struct mrd_wire_head many = first_contact(self, named ? pair_inc(self, AT) : 0);
        struct mrd_wire_head one = first_contact(self, named ? 0 : pair_inc(self, AT));
        while (challenge(self, &many, &packet).head.type)
            ;
        assert_int_equal(challenge(self, &one, &packet).head.type, MRD_WIRE_CHALLENGE);
        assert_int_equal(challenge(self, &many, &packet).head.type, 0);
    }
}

/* The packets that leave of what waits, which have one path. */
static uint32_t leave(struct pair *p)
{
    struct pair_end *to = &p->end[1 - AT];

    to->num_inbox = 0;
    uint32_t n = pair_tx(p, AT);
    for (uint32_t i = 1; i < n; i++)
        assert_int_equal(to->inbox[i].path, to->inbox[0].path);
    return n;
}

/* Lets a stranger ask. */
static void ask(struct pair *p)
{
    struct mrd_wire_head head = first_contact(p, 0);
    struct mrd_rx_packet packet = hand_packet(p, AT, 0, OURS);

    mrd_engine_begin(p->end[AT].e, p->now);
    mrd_answer_challenge(p->end[AT].e, pair_inc(p, AT), REPLACED, &head, &packet);
}

/* Where many ask, answers wait for others, but not for long: then they leave by one path. */
TEST_F(pair, mrd_answer_due_ns__some_together)
{
    struct mrd_engine *e = self->end[AT].e;
    assert_int_equal(mrd_answer_due_ns(e), MRD_NEVER);
    for (unsigned i = 1; i < MRD_ANSWERS_BATCH; i++) { /* few ask: at once */
        ask(self);
        assert_int_equal(mrd_answer_due_ns(e), 0);
        assert_int_equal(mrd_engine_deadline(e), 0);
        assert_int_equal(leave(self), 1);
        self->now += MRD_ANSWERS_NS / 32;
    }
    ask(self); /* one more within the time */
    uint64_t since_ns = self->now;
    assert_int_equal(mrd_answer_due_ns(e), since_ns + MRD_ANSWERS_WAIT_NS);
    assert_int_equal(leave(self), 0);
    assert_true(mrd_engine_deadline(e) <= since_ns + MRD_ANSWERS_WAIT_NS);
    self->now++;
    ask(self);
    self->now = since_ns + MRD_ANSWERS_WAIT_NS;
    mrd_engine_begin(e, self->now);
    assert_int_equal(leave(self), 2); /* the time is over */
    for (unsigned i = 0; i < MRD_ANSWERS_BATCH; i++) {
        assert_int_equal(leave(self), 0);
        ask(self);
    }
    assert_int_equal(leave(self), MRD_ANSWERS_BATCH); /* there are enough */
    self->now += 2 * MRD_ANSWERS_NS;
    ask(self);
    assert_int_equal(leave(self), 1); /* nobody asked for a while */
}
