/* SPDX-License-Identifier: BSD-2-Clause */
/* What an entry keeps of an earlier life at its address, or of another question, says nothing of where a peer is now. */
#include "core/engine/address.h"
#include "core/engine/contact.h"
#include "tests/unit/engine_hand.h"

enum { AT = 1, FIRST = 1, SECOND = 2, ELSEWHERE = 9, NEXT_LIFE = 4711, STAMP = 900000000 };

static void pass(struct pair *p, uint64_t ns)
{
    pair_pass(p, AT, ns);
    mrd_engine_drained(p->end[AT].e, p->now);
}

static struct mrd_peer *identify_from(struct pair *p, const struct mrd_wire_head *head,
                                      uint8_t host, uint8_t ours)
{
    struct mrd_rx_packet packet = hand_packet(p, AT, host, ours);

    return mrd_contact_identify(p->end[AT].e, head, &packet);
}

/* By what the peer's entry calls us; `inc`: the peer's life. */
static struct mrd_wire_head head_of(struct pair *p, uint32_t inc, uint32_t epoch, uint32_t stamp)
{
    struct mrd_wire_head head = hand_head(p, AT, MRD_WIRE_DATA);

    head.src_inc = inc;
    head.epoch = epoch;
    head.stamp = stamp;
    return head;
}

static uint64_t cookie(struct pair *p)
{
    struct mrd_answers *a = &p->end[AT].e->answers;

    assert_int_not_equal(a->head, a->tail);
    a->head = a->tail;
    return a->ring[(a->tail - 1) % MRD_STATELESS_MAX].head.cookie;
}

/* First contact by name with the cookie that is asked for. */
static struct mrd_peer *contact(struct pair *p, uint32_t inc, uint32_t epoch, uint32_t stamp)
{
    struct mrd_wire_head head = head_of(p, inc, epoch, stamp);

    head.flags = MRD_WIRE_FIRST_CONTACT;
    head.dst_inc = 0;
    assert_null(identify_from(p, &head, 0, FIRST));
    head.dst_inc = pair_inc(p, AT);
    head.flags |= MRD_WIRE_COOKIE;
    head.cookie = cookie(p);
    return identify_from(p, &head, 0, FIRST);
}

/*
 * One life, then another one at its address within 10 s whose clock is behind: another host that takes
 * the address over, or a clock that began anew. Returns the entry.
 */
static struct mrd_peer *two_lives(struct pair *p, uint32_t second_stamp)
{
    pair_begin_wary(p);
    pass(p, MRD_SEC);
    struct mrd_peer *peer = contact(p, 1234, 5, STAMP);
    assert_non_null(peer);
    assert_int_equal(peer->local.ip[15], FIRST);
    pass(p, 2 * MRD_SEC);
    struct mrd_peer *next = contact(p, NEXT_LIFE, 9, second_stamp);
    assert_ptr_equal(next, peer);
    assert_int_equal(peer->space.inc, NEXT_LIFE);
    return peer;
}

/* The next life, whose clock is behind, reaches us at another address of ours. */
TEST_F(pair, mrd_address_came__own_follows_the_next_life)
{
    uint32_t stamp = STAMP - 800000000; /* 12.8 s behind */
    struct mrd_peer *peer = two_lives(self, stamp);

    for (unsigned i = 1; i <= 80; i++) {
        struct mrd_wire_head head;

        pass(self, 100 * MRD_MSEC);
        head =
            head_of(self, NEXT_LIFE, 9, stamp + i * (uint32_t)(100 * MRD_MSEC / MRD_WIRE_STAMP_NS));
        assert_ptr_equal(identify_from(self, &head, 0, SECOND), peer);
    }
    assert_int_equal(peer->local.ip[15], SECOND);
}

/* The next life moves, and proves it. */
TEST_F(pair, mrd_address_came__the_next_life_moves)
{
    uint32_t stamp = STAMP - 800000000;
    struct mrd_peer *peer = two_lives(self, stamp);

    for (unsigned i = 1; i <= 80 && peer->addr.ip[15] != ELSEWHERE; i++) {
        struct mrd_wire_head head;

        pass(self, 101 * MRD_MSEC);
        head =
            head_of(self, NEXT_LIFE, 9, stamp + i * (uint32_t)(101 * MRD_MSEC / MRD_WIRE_STAMP_NS));
        (void)identify_from(self, &head, ELSEWHERE, FIRST);
        head.cookie = cookie(self);
        head.flags |= MRD_WIRE_COOKIE;
        head.stamp += 1000;
        (void)identify_from(self, &head, ELSEWHERE, FIRST);
        self->end[AT].e->answers.head = self->end[AT].e->answers.tail;
    }
    assert_int_equal(peer->addr.ip[15], ELSEWHERE);
}

/* Both ends' addresses change: the proof of the one comes to the other. */
TEST_F(wary_pair, mrd_address_came__own_follows_the_proof)
{
    pass(self, MRD_SEC);
    struct mrd_peer *peer = contact(self, 1234, 5, STAMP);
    pass(self, 200 * MRD_MSEC);
    struct mrd_wire_head head = head_of(self, 1234, 5, STAMP + 1000);
    assert_ptr_equal(identify_from(self, &head, ELSEWHERE, SECOND), peer);
    head.cookie = cookie(self);
    head.flags |= MRD_WIRE_COOKIE;
    for (unsigned i = 0; i < 9; i++) { /* 0.9 s of packets that all hit the new one */
        head.stamp += 1000;
        assert_ptr_equal(identify_from(self, &head, ELSEWHERE, SECOND), peer);
        assert_int_equal(peer->addr.ip[15], ELSEWHERE);
        pass(self, 100 * MRD_MSEC);
    }
    assert_int_equal(peer->local.ip[15], SECOND);
}

/* Two peers at one address who say no name of ours: the next packets of their first contacts are of the same spaces. */
TEST_F(pair, mrd_contact_identify__two_that_are_trusted)
{
    pass(self, MRD_SEC);
    struct mrd_wire_head a = head_of(self, 1234, 5, STAMP);
    a.flags = MRD_WIRE_FIRST_CONTACT;
    a.dst_inc = 0;
    struct mrd_wire_head b = a;
    b.src_inc = NEXT_LIFE;
    struct mrd_peer *pa = identify_from(self, &a, 0, FIRST);
    struct mrd_peer *pb = identify_from(self, &b, 0, SECOND);
    assert_non_null(pa);
    assert_non_null(pb);
    assert_ptr_not_equal(pa, pb);
    uint32_t life = pa->space.life + pb->space.life;
    a.psn = b.psn = 1;
    struct mrd_peer *again = identify_from(self, &a, 0, FIRST);
    assert_ptr_equal(again, pa);
    again = identify_from(self, &b, 0, SECOND);
    assert_ptr_equal(again, pb);
    assert_int_equal(pa->space.life + pb->space.life, life); /* no space began again */
}
