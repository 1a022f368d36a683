/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Payloads without a check: only between two ends that both want it so, and never before that is
 * known. Headers keep theirs.
 */
#include "core/engine/peer_state.h"
#include "tests/unit/engine_pair.h"

enum { SEGMENTS = 6, MESSAGE = SEGMENTS * PAIR_PAYLOAD };

/*
 * The ends want no check; one message went, so that each knows of the other, and another one is on its
 * way.
 */
static struct pair_frame *begin(struct pair *p, bool sender, bool receiver)
{
    struct pair_frame *f = p->end[1].inbox;

    pair_config(p);
    p->config.mover.quantum = SEGMENTS;
    pair_open(p);
    p->end[0].e->config.no_check = sender;
    p->end[1].e->config.no_check = receiver;
    pair_post(p, 0, MRD_WR_RDMA_WRITE, MESSAGE, PAIR_PAYLOAD + 1);
    assert_int_equal(pair_tx(p, 0), 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_false(pair_head(&f[i]).flags & MRD_WIRE_UNCHECKED);
        assert_int_not_equal(pair_head(&f[i]).payload_check, 0);
    }
    pair_settle(p, p->now + MRD_SEC);
    pair_expect(p, 0, MRD_WC_SUCCESS);
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, MESSAGE);
    assert_int_equal(pair_tx(p, 0), SEGMENTS);
    return f;
}

TEST_F(pair, mrd_tx_emit__no_check_if_both_want_none)
{
    for (unsigned wants = 0; wants < 4; wants++) {
        const struct pair_frame *f = begin(self, wants & 1, wants & 2);

        for (unsigned i = 0; i < SEGMENTS; i++) {
            struct mrd_wire_head head = pair_head(&f[i]);

            assert_int_equal((head.flags & MRD_WIRE_UNCHECKED) != 0, wants == 3);
            assert_int_equal(head.payload_check == 0, wants == 3);
        }
        pair_settle(self, self->now + MRD_SEC);
        assert_memory_equal(self->end[1].memory, self->end[0].memory, MESSAGE);
        assert_int_equal(self->end[1].e->stats.rx_drop_checksum, 0);
    }
}

/* What was changed on the way is found out, unless both ends want no check; a header always. */
TEST_F(pair, mrd_engine_rx__changed_on_the_way)
{
    for (unsigned wants = 0; wants < 4; wants++) {
        struct pair_frame *f = begin(self, wants & 1, wants & 2);

        f[0].data[f[0].len - 1] ^= 1;
        f[1].data[16] ^= 1;
        uint64_t dropped = self->end[1].e->stats.rx_drop_checksum;
        pair_turn(self, 1);
        assert_int_equal(self->end[1].e->stats.rx_drop_checksum - dropped, wants == 3 ? 1 : 2);
        pair_settle(self, self->now + MRD_SEC);
        pair_expect(self, 0, MRD_WC_SUCCESS);
        assert_int_equal(memcmp(self->end[1].memory, self->end[0].memory, MESSAGE) != 0,
                         wants == 3);
    }
}

/* A packet that says that it has no check is dropped by who did not ask for that. */
TEST_F(pair, mrd_engine_rx__unchecked_uncalled_for)
{
    struct pair_frame *f = begin(self, false, false);

    for (unsigned i = 0; i < SEGMENTS; i++) {
        struct mrd_wire_head head = pair_head(&f[i]);

        f[i].data[1] |= MRD_WIRE_UNCHECKED;
        mrd_wire_seal(f[i].data, f[i].data + head.head_len);
    }
    pair_turn(self, 1);
    assert_int_equal(self->end[1].e->stats.rx_drop_checksum, SEGMENTS);
    pair_settle(self, self->now + MRD_SEC);
    assert_memory_equal(self->end[1].memory, self->end[0].memory, MESSAGE);
}

/* What was asked for holds for one epoch: who answers in the next one may be another. */
TEST_F(pair, mrd_send_state_begin_epoch__checks_again)
{
    begin(self, true, true);
    pair_settle(self, self->now + MRD_SEC);
    struct mrd_send_state *tx = pair_peer(self, 0)->tx;
    assert_true(tx->told.unchecked);
    mrd_send_state_begin_epoch(self->end[0].e, pair_peer(self, 0), tx->contact.inc);
    assert_false(tx->told.unchecked);
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, MESSAGE);
    pair_tx(self, 0);
    assert_false(pair_head(&self->end[1].inbox[0]).flags & MRD_WIRE_UNCHECKED);
    self->end[1].num_inbox = 0; /* its PSN is in no order that the peer could know */
    mrd_send_state_end(self->end[0].e, pair_peer(self, 0), MRD_WC_RETRY_EXC_ERR);
}
