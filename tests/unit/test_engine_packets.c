/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/engine/peer_state.h"
#include "tests/unit/engine_pair.h"

static struct pair
    pair; /* The header in front of a payload: at most 96 bytes, whether an ack rides on it or a cookie. */
TEST_F(wary_pair, mrd_engine_tx__headers_fit_in_96_bytes)
{
    self->now += MRD_MSEC; /* an epoch must not be older than the challenger */
    pair_post(self, 0, MRD_WR_RDMA_WRITE_WITH_IMM, 0, 5 * PAIR_PAYLOAD);
    pair_post_recv(self, 0, 0, PAIR_MEMORY);
    pair_post_recv(self, 1, 0, PAIR_MEMORY);
    uint64_t end_ns = self->now + MRD_MSEC;
    for (int i = 0; self->now < end_ns; i++) {
        unsigned at = i & 1;

        if (i == 20 || i == 22) { /* at 22 an ack is owed: the challenged answer is repeated */
            pair_post(self, 0, MRD_WR_SEND_WITH_IMM, 0, 100);
            pair_post_recv(self, 1, 0, PAIR_MEMORY);
        }
        if (i == 21)
            pair_post(self, 1, MRD_WR_SEND_WITH_IMM, 0, 100);
        pair_turn(self, at);
        for (unsigned k = 0; k < self->end[1 - at].num_inbox; k++) {
            const struct pair_frame *f = &self->end[1 - at].inbox[k];
            struct mrd_wire_head head = pair_head(f);

            if (head.type == MRD_WIRE_DATA)
                assert_in_range(head.head_len, 40, 96);
            if (head.type > MRD_WIRE_ACK)
                assert_in_range(head.head_len, 40, 40);
        }
        self->now += PAIR_HOP_NS;
    }
    assert_int_equal(self->end[1].e->stats.tx_challenges > 0, 1);
    assert_int_equal(self->end[1].e->stats.tx_acks_ridden, 1);
}

static void send_pieces_twice(bool no_check)
{
    struct pair *p = &pair;
    struct pair_end *a = &p->end[0], *b = &p->end[1];
    uint8_t whole[2 * PAIR_PAYLOAD];
    unsigned pieces = 0;

    pair_begin(p);
    a->e->config.no_check = b->e->config.no_check = no_check;
    for (unsigned i = 0; i < 2; i++) { /* one by one: each is acked by a packet of its own */
        pair_post(p, i, MRD_WR_RDMA_WRITE, 0, 64);
        pair_settle(p, p->now + MRD_SEC);
    }
    assert_true(pair_peer(p, 0)->tx->told.unchecked == no_check);
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, 900);
    assert_int_equal(pair_tx(p, 0), 1);
    b->num_inbox = 0; /* lost */
    mrd_engine_tx_too_big(a->e, &b->addr, 256);
    pair_post(p, 1, MRD_WR_RDMA_WRITE, 0, 64);
    assert_int_equal(pair_tx(p, 1), 1);
    p->now += PAIR_HOP_NS;
    mrd_engine_begin(a->e, p->now);
    pair_rx_one(p, 0, &a->inbox[0]);
    a->num_inbox = 0;
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 2000, 64); /* the ack may ride: it does not go first */
    for (unsigned times = 0; times < 2; times++) {
        pair_peer(p, 0)->tx->probes.due = 1; /* a tail probe */
        pair_tx(p, 0);
        for (unsigned i = 0; i < b->num_inbox; i++) {
            const struct pair_frame *f = &b->inbox[i];
            struct mrd_wire_head head = pair_head(f);

            if (head.type != MRD_WIRE_FRAGMENT)
                continue;
            pieces++;
            uint8_t *at = &whole[head.whole_offset];
            if (times)
                assert_memory_equal(at, f->data + head.head_len, f->len - head.head_len);
            memcpy(at, f->data + head.head_len, f->len - head.head_len);
        }
        b->num_inbox = 0; /* lost */
        p->now += PAIR_HOP_NS;
        mrd_engine_begin(a->e, p->now);
    }
    assert_false(whole[1] & (MRD_WIRE_ACKBLOCK | MRD_WIRE_UNCHECKED));
    assert_int_equal(pieces, 8);
    pair_settle(p, p->now + MRD_SEC);
    assert_memory_equal(b->memory, a->memory, 900);
    pair_end(p);
}

/*
 * All transmissions of a packet that leaves in pieces are alike, so that their pieces go together:
 * none carries an ack, also where one could ride on it, and each has its check, also if the peer
 * says meanwhile that it wants none.
 */
TEST(mrd_tx_emit__pieces_are_alike_each_time)
{
    send_pieces_twice(false);
    send_pieces_twice(true);
}

/* A caller with too little room gets all pieces of a packet with its next call, or none. */
TEST_F(pair, mrd_tx_lacks_room__for_all_pieces)
{
    enum { ROOM = 4, PIECES = 4 };
    struct mrd_tx_packet packet[ROOM];
    struct pair_end *a = &self->end[0], *b = &self->end[1];
    struct mrd_wire_head head;

    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, 64);
    pair_post(self, 1, MRD_WR_RDMA_WRITE, 0, 64);
    pair_settle(self, self->now + MRD_SEC);
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, 900);
    assert_int_equal(pair_tx(self, 0), 1);
    b->num_inbox = 0; /* lost */
    mrd_engine_tx_too_big(a->e, &b->addr, 256);
    for (unsigned i = 0; i < ROOM; i++)
        packet[i] = (struct mrd_tx_packet){.head = self->head[i], .head_cap = MRD_TX_HEAD_BYTES};
    pair_peer(self, 0)->rx->rcv.now = true; /* an ack goes first */
    pair_peer(self, 0)->tx->probes.due = 1;
    mrd_tx_ready(a->e, pair_peer(self, 0));
    assert_int_equal(mrd_engine_tx(a->e, packet, ROOM, self->now), 1);
    assert_true(mrd_engine_tx_cut_short(a->e));
    assert_int_equal(mrd_engine_tx(a->e, packet, ROOM, self->now), PIECES);
    for (unsigned i = 0; i < PIECES; i++) {
        assert_int_equal(mrd_wire_get(packet[i].head, packet[i].head_len, &head), MRD_WIRE_OK);
        assert_int_equal(head.type, MRD_WIRE_FRAGMENT);
    }
    pair_settle(self, self->now + MRD_SEC);
    assert_memory_equal(b->memory, a->memory, 900);
}

/* A pair whose first message arrived; any network carries `base` bytes of payload. */
static struct mrd_send_state *begin_with_base(struct pair *p, uint32_t base, bool probes)
{
    pair_config(p);
    p->config.mover.payload_base = base;
    p->config.mover.probes = probes;
    pair_open(p);
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, 64);
    pair_settle(p, p->now + MRD_SEC);
    return pair_peer(p, 0)->tx;
}

/* To the end's next deadline. */
static void pass_time(struct pair *p, unsigned at)
{
    uint64_t at_ns = mrd_engine_deadline(p->end[at].e);

    p->now = at_ns > p->now ? at_ns : p->now;
}

/*
 * Two packets are in flight when the route takes less, and what lies behind it takes even less. Tail
 * probes send one of them in pieces again and again, and then the other one. That this was lost when
 * it was whole says nothing of the size of pieces; but those of the probe before were lost, too.
 */
TEST_F(pair, mrd_tx_probe__each_one_in_pieces_counts)
{
    enum { PIECE = PAIR_PAYLOAD / 2, PROBES = 12 };
    struct mrd_send_state *tx = begin_with_base(self, PIECE / 2, false);
    uint32_t turns = 0;

    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, 2 * PAIR_PAYLOAD);
    assert_int_equal(pair_tx(self, 0), 2);
    mrd_engine_tx_too_big(self->end[0].e, &self->end[1].addr, PIECE);
    while (tx->loss.probes < PROBES) {
        uint32_t probes = tx->loss.probes, psn = tx->probes.copy_psn;

        pass_time(self, 0);
        self->end[1].num_inbox = 0; /* lost */
        tx->pmtu.losses = 0;        /* as if one as large was acked */
        pair_turn(self, 0);
        if (tx->loss.probes == probes)
            continue;
        assert_int_equal(tx->pmtu.losses, probes > 0);
        turns += probes && tx->probes.copy_psn != psn;
    }
    assert_int_equal(turns, 1);
    pair_settle(self, self->now + MRD_SEC);
    assert_memory_equal(self->end[1].memory, self->end[0].memory, 2 * PAIR_PAYLOAD);
}

/* A packet of a refused message goes again without payload: it tells nothing of large packets. */
TEST_F(pair, mrd_rx_ack__of_a_packet_without_its_payload)
{
    enum { LOSSES = 2, LENGTH = PAIR_PAYLOAD * 3 / 2 };
    struct mrd_send_state *tx = begin_with_base(self, PAIR_PAYLOAD / 4, false);

    tx->pmtu.losses = LOSSES;
    tx->pmtu.most = PAIR_PAYLOAD * 3 / 4;
    pair_post(self, 0, MRD_WR_SEND, 0, LENGTH); /* there is no receive */
    assert_int_equal(pair_tx(self, 0), 2);
    struct mrd_sent *rec = mrd_sent_get(&tx->sent, tx->sent.una);
    self->end[1].inbox[0] = self->end[1].inbox[1]; /* the first is lost */
    self->end[1].num_inbox = 1;
    pair_turn(self, 1);
    pair_turn(self, 0);
    while (!rec->bare) {
        pass_time(self, 0);
        tx->pmtu.losses = LOSSES; /* that of the whole packet counts */
        pair_turn(self, 0);
    }
    tx->pmtu.losses = LOSSES;
    pair_turn(self, 1);
    pair_turn(self, 0);
    assert_false(mrd_sent_any(&tx->sent));
    assert_int_equal(tx->pmtu.losses, LOSSES);
    pair_post_recv(self, 1, 0, LENGTH);
    pair_settle(self, self->now + MRD_SEC);
    assert_int_equal(tx->pmtu.losses, 0); /* whole ones came */
}

/*
 * The memory of one of several small messages goes while their packet is lost. It goes again without
 * that one, and what is left is still more than any network carries: its losses tell.
 */
TEST_F(pair, mrd_rx_ack__of_a_packet_without_a_small_message)
{
    enum { LENGTH = PAIR_PAYLOAD / 4, LEFT = 2 };
    struct pair_end *a = &self->end[0];
    struct mrd_send_state *tx = begin_with_base(self, LENGTH, false);
    struct mrd_mr *mr = a->mr;

    for (uint32_t i = 0; i < LEFT; i++)
        pair_post(self, 0, MRD_WR_RDMA_WRITE, i * LENGTH, LENGTH);
    a->mr = pair_register(self, 0, 0);
    pair_post(self, 0, MRD_WR_RDMA_WRITE, LEFT * LENGTH, LENGTH);
    assert_int_equal(pair_tx(self, 0), 1);
    assert_int_equal(mrd_engine_dereg_mr(a->e, a->mr, self->now), 0);
    a->mr = mr;
    struct mrd_sent *rec = mrd_sent_get(&tx->sent, tx->sent.una);
    for (unsigned sent = 2; sent <= 3; sent++) {
        tx->pmtu.losses = 0;
        while (rec->tx_count < sent) {
            self->end[1].num_inbox = 0; /* lost */
            pass_time(self, 0);
            pair_turn(self, 0);
        }
    }
    assert_int_equal(tx->pmtu.losses, 1);
    pair_settle(self, self->now + MRD_SEC);
    assert_memory_equal(self->end[1].memory, a->memory, LEFT * LENGTH);
}

/* Neither its path nor the window paid for a probe that seemed lost: nothing is given back. */
TEST_F(pair, mrd_rx_ack__of_a_probe_that_seemed_lost)
{
    struct mrd_send_state *tx = begin_with_base(self, PAIR_PAYLOAD / 2, true);
    struct mrd_sent *probe = NULL;

    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, 8 * PAIR_PAYLOAD);
    pair_tx(self, 0);
    for (uint32_t psn = tx->sent.una; psn != tx->sent.next && !probe; psn++)
        if (mrd_sent_is_mtu_probe(mrd_sent_get(&tx->sent, psn)))
            probe = mrd_sent_get(&tx->sent, psn);
    assert_non_null(probe);
    mrd_path_forgot(&tx->paths, probe->path); /* as declare_lost() does */
    mrd_sent_lose(&tx->sent, probe, &tx->paths);
    tx->cc.undo.packets = 2; /* other losses cut the window */
    tx->cc.undo.rounds = UINT32_MAX;
    pair_hop(self, 1);
    pair_pass(self, 0, PAIR_HOP_NS);
    pair_rx_acks(self, 0);
    assert_int_equal(tx->pmtu.payload, PAIR_PAYLOAD);
    assert_int_equal(tx->cc.undo.packets, 2);
    pair_settle(self, self->now + MRD_SEC);
    assert_memory_equal(self->end[1].memory, self->end[0].memory, 8 * PAIR_PAYLOAD);
}

/* What a packet's header says of the port to answer to, and whether it is taken. */
static const struct {
    uint32_t reply_max, reply;
    bool taken;
} replies[] = {{65535, 1, true},       {65535, 65535, true},        {65535, 0, false},
               {65535, 65536, false},  {65535, 65536 + 100, false}, {65535, 0xffffff, false},
               {0, 65536 + 100, true}, {0, 0xffffff, true}};

/* Nobody is known by a port that no network has, and nobody is answered. */
TEST_F(pair, mrd_engine_rx__port_that_there_is_not)
{
    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
        pair_config(self);
        self->config.mover.reply_max = replies[i].reply_max;
        pair_open(self);
        const struct mrd_engine *e = self->end[1].e;
        self->end[0].e->config.self.port = replies[i].reply;
        pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, 100);
        assert_int_equal(pair_tx(self, 0), 1);
        pair_rx(self, 1, 0);
        bool taken = e->stats.rx_packets == 1;
        if (taken != replies[i].taken)
            fail_msg("port %u of at most %u", replies[i].reply, replies[i].reply_max);
        assert_int_equal(e->stats.rx_drop_malformed, !taken);
        assert_int_equal(e->peers.entries.used, taken);
        assert_int_equal(e->answers.tail, 0);
        assert_int_equal(self->end[1].memory[99], taken ? self->end[0].memory[99] : 0);
        self->end[0].e->config.self.port = self->end[0].addr.port;
        if (taken) /* it would be acked at that port */
            mrd_recv_state_end(self->end[1].e, pair_peer(self, 1), MRD_SPACE_NONE);
    }
}
