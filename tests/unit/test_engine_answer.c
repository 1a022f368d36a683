/* SPDX-License-Identifier: BSD-2-Clause */
/* What a cookie is for, where answers leave from, and whose answers are counted together. */
#include "tests/unit/engine_hand.h"

enum { AT = 1, OURS = 3, INC = 4711, REPLACED = 5 };

static struct pair pair; /* large, and begun anew by each test */

static struct mrd_wire_head first_contact(const struct pair *p, uint32_t inc, uint32_t own_inc)
{
    struct mrd_wire_head head = hand_head(p, AT, MRD_WIRE_DATA);

    head.flags = MRD_WIRE_FIRST_CONTACT;
    head.src_inc = inc;
    head.dst_inc = own_inc;
    return head;
}

static struct mrd_rx_packet packet_to(const struct pair *p, uint8_t ours)
{
    struct mrd_rx_packet packet = {.from = p->end[1 - AT].addr, .to = p->end[AT].addr};

    packet.to.ip[15] = ours;
    return packet;
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
static void mrd_answer_is_proven__as_challenged(void **state)
{
    struct pair *p = &pair;
    struct mrd_engine *e;

    (void)state;
    pair_begin(p);
    e = p->end[AT].e;
    for (unsigned flaw = 0; flaw < 7; flaw++) {
        struct mrd_wire_head head = first_contact(p, INC, 0);
        struct mrd_rx_packet packet = packet_to(p, OURS);

        head.cookie = challenge(p, &head, &packet).head.cookie;
        head.flags |= MRD_WIRE_COOKIE;
        packet.from.port += 1000; /* of a path: it says nothing */
        if (flaw == 1)
            packet.from.ip[15]++;
        if (flaw == 2)
            head.reply++;
        if (flaw == 3)
            packet.to.ip[15]++;
        if (flaw == 4)
            head.src_inc++;
        if (flaw == 5)
            head.flags &= ~MRD_WIRE_COOKIE & 0xffu;
        assert_int_equal(mrd_answer_is_proven(e, REPLACED + (flaw == 6), &head, &packet),
                         flaw == 0);
    }
    pair_end(p);
}

/* From the address that was hit, to where the asker receives. */
static void mrd_answer_challenge__from_the_address_that_was_hit(void **state)
{
    struct pair *p = &pair;
    struct mrd_wire_head head;
    struct mrd_rx_packet packet;
    struct mrd_answer answer;

    (void)state;
    pair_begin(p);
    head = first_contact(p, INC, 0);
    packet = packet_to(p, OURS);
    packet.from.port = 7777;
    answer = challenge(p, &head, &packet);
    assert_int_equal(answer.head.type, MRD_WIRE_CHALLENGE);
    assert_int_equal(answer.from.ip[15], OURS);
    assert_int_equal(answer.to.port, head.reply);
    pair_end(p);
}

/* Strangers cannot use up the answers to those who call us by our name, nor these those to strangers. */
static void mrd_answer_challenge__names_are_counted_apart(void **state)
{
    struct pair *p = &pair;

    (void)state;
    for (unsigned named = 0; named < 2; named++) {
        struct mrd_wire_head many, one;
        struct mrd_rx_packet packet;

        pair_begin(p);
        packet = packet_to(p, OURS);
        many = first_contact(p, INC, named ? pair_inc(p, AT) : 0);
        one = first_contact(p, INC, named ? 0 : pair_inc(p, AT));
        while (challenge(p, &many, &packet).head.type)
            ;
        assert_int_equal(challenge(p, &one, &packet).head.type, MRD_WIRE_CHALLENGE);
        assert_int_equal(challenge(p, &many, &packet).head.type, 0);
        pair_end(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mrd_answer_is_proven__as_challenged),
        cmocka_unit_test(mrd_answer_challenge__from_the_address_that_was_hit),
        cmocka_unit_test(mrd_answer_challenge__names_are_counted_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
