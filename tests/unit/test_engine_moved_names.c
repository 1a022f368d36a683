/* SPDX-License-Identifier: BSD-2-Clause */
/* What a host is told that has the address where a peer was before. */
#include "core/engine/address.h"
#include "tests/unit/engine_hand.h"

enum { AT = 0, BYTES = 64 };

static struct pair pair; /* large, and begun anew by each test */

static struct mrd_peer *acquainted(struct pair *p)
{
    struct mrd_wc wc;

    pair_config(p);
    p->config.trusting = false;
    pair_open(p);
    for (unsigned i = 0; i < 2; i++) {
        pair_post(p, i, MRD_WR_RDMA_WRITE, 0, BYTES);
        pair_settle(p, p->now + MRD_MSEC);
        assert_int_equal(pair_poll(p, i, &wc), 1);
        assert_int_equal(wc.status, MRD_WC_SUCCESS);
    }
    return pair_peer(p, AT);
}

/*
 * A peer moved, and another host has its old address now. It is told nothing that the peer is told:
 * else 32 bits less were to be guessed to speak for that peer.
 */
static void moved_names__not_told_to_the_next_one(void **state)
{
    struct pair *p = &pair;
    struct mrd_peer *peer = acquainted(p);
    struct mrd_engine *e = p->end[AT].e;
    struct mrd_addr there = pair_addr_of(77);
    struct mrd_wire_head head = hand_head(p, AT, MRD_WIRE_DATA);
    struct mrd_rx_packet packet = {.from = p->end[1 - AT].addr, .to = p->end[AT].addr};
    const struct mrd_answer *answer;

    (void)state;
    mrd_peer_move(&e->peers, peer, &there);
    head.flags = MRD_WIRE_FIRST_CONTACT;
    head.src_inc = 4711;
    head.dst_inc = 0;
    assert_null(mrd_contact_identify(e, &head, &packet));
    answer = &e->answers.ring[e->answers.head % MRD_STATELESS_MAX];
    assert_int_equal(answer->head.type, MRD_WIRE_CHALLENGE);
    assert_int_not_equal(answer->head.src_inc, peer->pair.own_inc);
    pair_end(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moved_names__not_told_to_the_next_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
