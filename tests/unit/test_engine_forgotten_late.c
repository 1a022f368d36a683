/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that forgot us says so more than a turn of the stamps after its last ack. */
#include "tests/unit/engine_hand.h"

enum { AT = 0, BYTES = 64 };

static struct pair pair; /* large, and begun anew by each test */

/* The last ack was so long ago; the peer gave us up meanwhile, and begins an epoch. Does our half end? */
static bool ends_after(uint64_t outage_ns)
{
    struct pair *p = &pair;
    struct mrd_wire_head head;
    struct mrd_rx_packet packet;
    struct mrd_peer *peer;
    struct mrd_wc wc;
    uint32_t epoch;
    bool ended;

    pair_config(p);
    p->config.peer_timeout_ns = 200 * MRD_SEC;
    pair_open(p);
    for (unsigned i = 0; i < 2; i++) {
        pair_post(p, i, MRD_WR_RDMA_WRITE, 0, BYTES);
        pair_settle(p, p->now + MRD_MSEC);
        assert_int_equal(pair_poll(p, i, &wc), 1);
    }
    peer = pair_peer(p, AT);
    pair_post(p, AT, MRD_WR_RDMA_WRITE, 0, BYTES); /* nobody answers it */
    pair_turn(p, AT);
    p->end[1 - AT].num_inbox = 0;
    epoch = peer->tx->contact.epoch;
    p->now += outage_ns;
    mrd_engine_begin(p->end[AT].e, p->now);
    head = hand_head(p, AT, MRD_WIRE_DATA);
    head.flags = MRD_WIRE_FIRST_CONTACT | MRD_WIRE_FORGOTTEN;
    head.epoch = peer->space.epoch + 1;
    head.stamp = mrd_wire_stamp(p->now);
    packet = (struct mrd_rx_packet){.from = p->end[1 - AT].addr, .to = p->end[AT].addr};
    assert_non_null(mrd_contact_identify(p->end[AT].e, &head, &packet));
    ended = !peer->tx || peer->tx->contact.epoch != epoch;
    if (!ended)
        mrd_half_peer_restarted(p->end[AT].e, peer, false);
    assert_int_equal(pair_poll(p, AT, &wc), 1);
    pair_settle(p, p->now + 300 * MRD_SEC);
    pair_end(p);
    return ended;
}

static void forgotten__whenever_it_is_said(void **state)
{
    (void)state;
    for (uint64_t sec = 5; sec < 120; sec += 3)
        if (!ends_after(sec * MRD_SEC))
            fail_msg("not after %u s", (unsigned)sec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forgotten__whenever_it_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
