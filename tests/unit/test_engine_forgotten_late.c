/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that forgot us says so more than a turn of the stamps after its last ack. */
#include "core/engine/contact.h"
#include "core/engine/peer_state.h"
#include "tests/unit/engine_hand.h"

enum { AT = 0, BYTES = 64 };

/* A packet of the peer's next epoch, which says that it forgot us. */
static struct mrd_wire_head forgot(const struct pair *p, const struct mrd_peer *peer,
                                   uint32_t stamp)
{
    struct mrd_wire_head head = hand_head(p, AT, MRD_WIRE_DATA);

    head.flags = MRD_WIRE_FIRST_CONTACT | MRD_WIRE_FORGOTTEN;
    head.epoch = peer->space.epoch + 1;
    head.stamp = stamp;
    return head;
}

/* The last ack was so long ago; the peer gave us up meanwhile, and begins an epoch. Does our half end? */
static bool ends_after(struct pair *p, uint64_t outage_ns)
{
    struct mrd_wc wc;

    pair_config(p);
    p->config.peer_timeout_ns = 200 * MRD_SEC;
    pair_open(p);
    for (unsigned i = 0; i < 2; i++)
        pair_write(p, i, 0, BYTES);
    struct mrd_peer *peer = pair_peer(p, AT);
    pair_post(p, AT, MRD_WR_RDMA_WRITE, 0, BYTES); /* nobody answers it */
    pair_tx_lost(p, AT);
    uint32_t epoch = peer->tx->contact.epoch;
    pair_pass(p, AT, outage_ns);
    struct mrd_wire_head head = forgot(p, peer, mrd_wire_stamp(p->now));
    struct mrd_rx_packet packet = hand_packet(p, AT, 0, 0);
    assert_non_null(mrd_contact_identify(p->end[AT].e, &head, &packet));
    bool ended = !peer->tx || peer->tx->contact.epoch != epoch;
    if (!ended)
        mrd_peer_restarted(p->end[AT].e, peer, false);
    assert_int_equal(pair_poll(p, AT, &wc), 1);
    return ended;
}

TEST_F(pair, forgotten__whenever_it_is_said)
{
    for (uint64_t sec = 5; sec < 120; sec += 3)
        if (!ends_after(self, sec * MRD_SEC))
            fail_msg("not after %u s", (unsigned)sec);
}

/* A piece of that packet, of a transmission with that stamp, arrives. */
static void piece_arrives(struct pair *p, struct mrd_wire_head head, const uint8_t *whole,
                          uint32_t whole_len, uint32_t offset, uint32_t len, uint32_t stamp)
{
    struct pair_frame f = {.len = MRD_WIRE_FRAGMENT_BYTES + len};

    head.type = MRD_WIRE_FRAGMENT;
    head.flags = 0;
    head.stamp = stamp;
    head.whole_len = whole_len;
    head.whole_offset = offset;
    head.payload_check = mrd_wire_payload_check(whole + offset, len);
    uint8_t *at = mrd_wire_put_head(f.data, &head);
    mrd_wire_seal(f.data, at);
    memcpy(at, whole + offset, len);
    pair_rx_one(p, AT, &f);
}

/*
 * The first piece is of a transmission before the peer learned of our space, the second of one after
 * its ack: what the header says is as old as the first.
 */
TEST_F(pair, forgotten__in_a_piece_of_an_earlier_transmission)
{
    uint8_t whole[MRD_TX_HEAD_BYTES];

    for (unsigned i = 0; i < 2; i++)
        pair_write(self, i, 0, BYTES);
    struct mrd_peer *peer = pair_peer(self, AT);
    uint32_t epoch = peer->tx->contact.epoch;
    uint32_t stamp = peer->tx->told.stamp;
    mrd_engine_begin(self->end[AT].e, self->now);
    struct mrd_wire_head head = forgot(self, peer, stamp - 10);
    uint8_t *end = mrd_wire_put_head(whole, &head);

    for (unsigned i = 0; i < 4; i++) /* longer than a piece */
        end = mrd_wire_put_part(end, &(struct mrd_wire_part){.op = MRD_OP_VOID});
    mrd_wire_seal(whole, end);
    uint32_t len = (uint32_t)(end - whole);
    assert_true(len > MRD_FRAG_UNIT);
    piece_arrives(self, head, whole, len, 0, MRD_FRAG_UNIT, stamp - 10);
    piece_arrives(self, head, whole, len, MRD_FRAG_UNIT, len - MRD_FRAG_UNIT, stamp + 10);
    assert_int_equal(peer->space.epoch, head.epoch);
    assert_non_null(peer->tx);
    assert_int_equal(peer->tx->contact.epoch, epoch);
    assert_int_equal(self->end[AT].e->stats.peers_restarted, 0);
}
