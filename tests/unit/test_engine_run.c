/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs: packets of one message that left as a burst arrive together, and are acked together. What
 * becomes of them is what would have become of each by itself: two pairs of engines do the same,
 * one packet by packet.
 */
#include "tests/unit/engine_hand.h"

enum { SEGMENTS = 16, BURST = SEGMENTS - 1, MESSAGE = SEGMENTS * PAIR_PAYLOAD };

static struct pair pairs[2]; /* together, one by one */
static struct pair_frame burst[SEGMENTS];
static unsigned head_len;

/* A message went before, so that the ends know each other. */
static void begin_pair(struct pair *p)
{
    pair_config(p);
    p->config.mover.quantum = SEGMENTS;
    p->config.mover.ack_every = SEGMENTS / 2;
    pair_open(p);
    pair_write(p, 0, MESSAGE, 4 * PAIR_PAYLOAD);
}

/* The same, and another message was sent of which nothing came. */
static void begin(struct pair *p)
{
    begin_pair(p);
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, MESSAGE);
    assert_int_equal(pair_tx(p, 0), SEGMENTS);
}

/* The first packet of the message arrives, the others are in `burst`. */
static void first_arrives(struct pair *p)
{
    memcpy(burst, &p->end[1].inbox[1], sizeof(burst));
    p->end[1].num_inbox = 1;
    pair_hop(p, 1);
    head_len = pair_head(&burst[0]).head_len;
}

static void begin_burst(struct pair *p)
{
    begin(p);
    first_arrives(p);
}

/* What is lost is sent again, and all of the message is there. */
static void finish(struct pair *p)
{
    pair_settle(p, p->now + MRD_SEC);
    assert_memory_equal(p->end[1].memory, p->end[0].memory, MESSAGE);
    pair_end(p);
}

/* ------------------------------------------------------------------------------------- received */

enum odd {
    NONE,
    BAD_PAYLOAD,
    OTHER_PSN,
    OTHER_PSEQ,
    OTHER_OFFSET,
    ASKS,
    BAD_HEADER,
    MARKED,
    ABSENT,
    CAME_BEFORE,
    FORGOTTEN,
    EXPIRED,
    UNCHECKED, /* all say that they have no check */
    UNCALLED_FOR,
    NUM_ODD
};

/* All say so, whether the receiver wants it or not, and one was changed on the way. */
static void leave_check_out(struct pair *p, enum odd odd, unsigned at)
{
    p->end[1].e->config.no_check = odd == UNCHECKED;
    for (unsigned i = 0; i < BURST; i++) {
        burst[i].data[1] |= MRD_WIRE_UNCHECKED;
        mrd_wire_seal(burst[i].data, burst[i].data + head_len);
    }
    burst[at].data[head_len + 7] ^= 1;
}

/* Changes packet `at`. Returns whether it comes at all. */
static bool change(struct pair *p, enum odd odd, unsigned at)
{
    struct pair_frame *f = &burst[at];

    if (odd == BAD_PAYLOAD)
        f->data[head_len + 7] ^= 1;
    else if (odd == OTHER_PSN)
        f->data[19]++;
    else if (odd == OTHER_PSEQ)
        f->data[27]++;
    else if (odd == OTHER_OFFSET)
        f->data[head_len - 13]++;
    else if (odd == ASKS)
        mrd_wire_add_flags(f->data, MRD_WIRE_ACK_REQUEST);
    else if (odd == BAD_HEADER)
        f->data[9] ^= 4;
    else if (odd == CAME_BEFORE)
        pair_rx_one(p, 1, f);
    else if (odd >= UNCHECKED)
        leave_check_out(p, odd, at);
    if (odd >= OTHER_PSN && odd <= ASKS)
        mrd_wire_seal(f->data, f->data + head_len);
    return odd != ABSENT;
}

/* Packet `i` of the burst comes as segment `at` of the plan: its payload is put there. */
static struct mrd_rx_packet place(const struct pair *p, const struct mrd_rx_plan *plan, unsigned i,
                                  unsigned at)
{
    struct mrd_rx_packet packet = pair_packet(p, 1, &burst[i]);

    memcpy(plan->iov[at].iov_base, burst[i].data + head_len, PAIR_PAYLOAD);
    packet.len = head_len;
    packet.placed = 1;
    packet.placed_len = PAIR_PAYLOAD;
    packet.plan_index = (uint16_t)at;
    return packet;
}

/* All packets of the burst come as the mover brings them: where they were planned. */
static void receive(struct pair *p, enum odd odd, unsigned at, bool together)
{
    struct mrd_rx_packet packets[BURST];
    struct mrd_rx_plan plan;
    unsigned planned, n = 0;

    begin_burst(p);
    struct mrd_engine *e = p->end[1].e;
    for (unsigned i = 0; i < BURST; i++)
        if (i != at || change(p, odd, at))
            packets[n++] = (struct mrd_rx_packet){.plan_index = (uint16_t)i};
    planned = mrd_engine_rx_plan(e, burst[0].data, head_len, BURST, burst[0].len,
                                 BURST * burst[0].len, &p->end[0].addr, &plan);
    for (unsigned k = 0; k < n; k++) {
        unsigned i = packets[k].plan_index;

        packets[k] = i < planned ? place(p, &plan, i, i) : pair_packet(p, 1, &burst[i]);
        packets[k].plan_index = (uint16_t)i;
        packets[k].ecn = odd == MARKED && i == at ? MRD_ECN_CE : MRD_ECN_ECT0;
    }
    if (odd == FORGOTTEN) {
        assert_int_equal(mrd_engine_dereg_mr(e, p->end[1].mr, p->now), 0);
        p->end[1].mr = NULL;
    } else if (odd == EXPIRED) {
        p->now += 100 * MRD_SEC;
        mrd_engine_drained(e, p->now);
    }
    if (together)
        mrd_engine_rx(e, packets, n, p->now);
    else
        for (unsigned k = 0; k < n; k++)
            mrd_engine_rx(e, &packets[k], 1, p->now);
}

/* What the receiver knows now. */
static void compare_receivers(enum odd odd, unsigned at)
{
    struct mrd_engine *a = pairs[0].end[1].e, *b = pairs[1].end[1].e;

    if (memcmp(&a->stats, &b->stats, sizeof(a->stats)))
        fail_msg("odd %d at %u: figures differ", odd, at);
    assert_int_equal(a->answers.tail - a->answers.head, b->answers.tail - b->answers.head);
    assert_int_equal(a->peers.entries.used, b->peers.entries.used);
    if (!a->peers.entries.used) /* it rests */
        return;
    struct mrd_recv_state *x = pair_peer(&pairs[0], 1)->rx;
    struct mrd_recv_state *y = pair_peer(&pairs[1], 1)->rx;
    assert_true(!x == !y);
    if (!x)
        return;
    struct mrd_rcv *r = &x->rcv;
    struct mrd_rcv *s = &y->rcv;
    assert_memory_equal(pairs[0].end[1].memory, pairs[1].end[1].memory, MESSAGE);
    for (uint32_t psn = r->cum; psn != r->highest; psn++)
        assert_int_equal(mrd_rcv_check(r, psn), mrd_rcv_check(s, psn));
    assert_int_equal(r->cum, s->cum);
    assert_int_equal(r->highest, s->highest);
    assert_int_equal(r->since_ack, s->since_ack);
    assert_int_equal(r->echo_psn, s->echo_psn);
    assert_int_equal(r->echo_ce, s->echo_ce);
    assert_int_equal(r->echo_stamp, s->echo_stamp);
    assert_int_equal(r->num_refused, s->num_refused);
    assert_int_equal(r->due_ns, s->due_ns);
    assert_true(r->now == s->now && r->twice == s->twice && r->ce_unsaid == s->ce_unsaid);
    assert_int_equal(x->slots.num_open, y->slots.num_open);
    assert_int_equal(pair_peer(&pairs[0], 1)->count.packets_received,
                     pair_peer(&pairs[1], 1)->count.packets_received);
    assert_int_equal(mrd_engine_deadline(a), mrd_engine_deadline(b));
}

TEST(mrd_engine_rx__a_run_as_one_by_one)
{
    for (enum odd odd = NONE; odd < NUM_ODD; odd++) {
        for (unsigned at = 0; at < BURST; at++) {
            for (unsigned i = 0; i < 2; i++)
                receive(&pairs[i], odd, at, i == 0);
            compare_receivers(odd, at);
            if (odd == NONE)
                assert_int_equal(pairs[0].end[1].e->stats.rx_straight, BURST);
            for (unsigned i = 0; i < 2; i++) {
                pair_settle(&pairs[i], pairs[i].now + MRD_SEC);
                if (odd != FORGOTTEN && odd != OTHER_OFFSET && odd != OTHER_PSN && odd != EXPIRED &&
                    odd != UNCHECKED)
                    assert_memory_equal(pairs[i].end[1].memory, pairs[i].end[0].memory, MESSAGE);
            }
            compare_receivers(odd, at);
            pair_end(&pairs[0]);
            pair_end(&pairs[1]);
        }
    }
}

/* The burst has no checks of payloads, as the receiver likes it. */
static void uncheck(struct pair *p)
{
    p->end[1].e->config.no_check = true;
    for (unsigned i = 0; i < BURST; i++) {
        burst[i].data[1] |= MRD_WIRE_UNCHECKED;
        mrd_wire_set_payload_check(burst[i].data, 0);
        mrd_wire_seal(burst[i].data, burst[i].data + head_len);
    }
}

/* Packet `lost` of the burst is missing, so each behind it lies where the one before it belongs. */
static void receive_moved_up(struct pair *p, unsigned lost, bool unchecked, bool no_memory)
{
    struct mrd_rx_packet packets[BURST];
    struct mrd_rx_plan plan;
    unsigned first = lost == 0, n = 0;

    begin_burst(p);
    struct mrd_engine *e = p->end[1].e;
    if (unchecked)
        uncheck(p);
    assert_int_equal(mrd_engine_rx_plan(e, burst[first].data, head_len, BURST - 1, burst[0].len,
                                        (BURST - 1) * burst[0].len, &p->end[0].addr, &plan),
                     BURST - 1);
    for (unsigned i = first; i < BURST; i++) {
        if (i == lost)
            continue;
        packets[n] = place(p, &plan, i, n);
        n++;
    }
    if (no_memory)
        p->alloc.fail_at = p->alloc.requests + 1;
    mrd_engine_rx(e, packets, n, p->now);
}

/* Of those behind a lost one none is lost, or taken for another: each is moved to its place. */
TEST(mrd_engine_rx__a_gap_in_a_burst)
{
    struct pair *p = &pairs[0];

    for (unsigned unchecked = 0; unchecked < 2; unchecked++) {
        for (unsigned lost = 0; lost < BURST; lost++) {
            receive_moved_up(p, lost, unchecked, false);
            const struct mrd_stats *stats = &p->end[1].e->stats;
            assert_int_equal(stats->rx_straight_moved, lost ? BURST - 1 - lost : 0);
            assert_int_equal(stats->rx_drop_checksum, 0);
            for (unsigned i = 0; i < BURST; i++) {
                uint32_t at = (1 + i) * PAIR_PAYLOAD;

                if (i != lost)
                    assert_memory_equal(p->end[1].memory + at, p->end[0].memory + at, PAIR_PAYLOAD);
            }
            finish(p);
        }
    }
}

/* The first one behind it is lost, too, if there is no memory to move it to; nothing is taken for it. */
TEST(mrd_engine_rx__a_gap_without_memory)
{
    struct pair *p = &pairs[0];

    receive_moved_up(p, BURST / 2, true, true);
    assert_int_equal(p->end[1].e->stats.rx_drop_resources, 1);
    assert_int_equal(p->end[1].e->stats.rx_straight_moved, BURST - 2 - BURST / 2);
    finish(p);
}

/*
 * Two packets change places on their way, and the mover leaves out the one that comes first. The
 * other one has the header that continues the run, but its payload lies one place further on. Only
 * that ends the run: where payloads have no check, nothing else tells.
 */
TEST(mrd_engine_rx__a_packet_left_out_of_a_burst)
{
    struct pair *p = &pairs[0];

    for (unsigned at = 1; at < BURST - 1; at++) {
        struct mrd_rx_packet packets[BURST];
        struct mrd_rx_plan plan;
        unsigned n = 0;

        begin_burst(p);
        uncheck(p);
        assert_int_equal(mrd_engine_rx_plan(p->end[1].e, burst[0].data, head_len, BURST,
                                            burst[0].len, BURST * burst[0].len, &p->end[0].addr,
                                            &plan),
                         BURST);
        for (unsigned i = 0; i < BURST; i++) {
            packets[n] = place(p, &plan, i == at ? at + 1 : i == at + 1 ? at : i, i);
            n += i != at;
        }
        mrd_engine_rx(p->end[1].e, packets, n, p->now);
        assert_int_equal(p->end[1].e->stats.rx_straight, BURST - 2);
        assert_int_equal(p->end[1].e->stats.rx_straight_moved, 1);
        for (unsigned i = 0; i < BURST; i++) {
            uint32_t where = (1 + i) * PAIR_PAYLOAD;

            if (i != at + 1)
                assert_memory_equal(p->end[1].memory + where, p->end[0].memory + where,
                                    PAIR_PAYLOAD);
        }
        finish(p);
    }
}

/* The first packet has a cookie; those behind it say nothing by themselves: no segments. */
TEST(mrd_engine_rx__no_run_behind_a_cookie)
{
    enum { PACKETS = 3, AT = MRD_WIRE_BASE_BYTES, COOKIE = MRD_WIRE_COOKIE_BYTES };
    struct mrd_rx_packet packets[PACKETS];
    struct pair *p = &pairs[0];
    struct mrd_rx_plan plan;

    begin_burst(p);
    struct mrd_wire_head head = pair_head(&burst[0]);
    memmove(burst[0].data + AT + COOKIE, burst[0].data + AT, burst[0].len - AT);
    memset(burst[0].data + AT, 0, COOKIE);
    mrd_wire_add_flags(burst[0].data, MRD_WIRE_COOKIE);
    head_len += COOKIE;
    for (uint32_t i = 0; i < PACKETS; i++) {
        uint8_t *data = burst[i].data;
        uint32_t check = mrd_wire_payload_check(burst[0].data + head_len, PAIR_PAYLOAD);

        if (i) {
            memcpy(data + head_len, burst[0].data + head_len, PAIR_PAYLOAD);
            mrd_wire_follow(data, burst[0].data, head_len, head.psn + i, head.pseq + i,
                            (1 + i) * PAIR_PAYLOAD, check);
        }
        mrd_wire_seal(data, data + head_len);
        burst[i].len = head_len + PAIR_PAYLOAD;
    }
    assert_int_equal(mrd_engine_rx_plan(p->end[1].e, burst[0].data, head_len, PACKETS, burst[0].len,
                                        PACKETS * burst[0].len, &p->end[0].addr, &plan),
                     PACKETS);
    for (uint32_t i = 0; i < PACKETS; i++)
        packets[i] = place(p, &plan, i, i);
    mrd_engine_rx(p->end[1].e, packets, PACKETS, p->now);
    assert_int_equal(p->end[1].e->stats.rx_straight, 1);
    assert_int_equal(p->end[1].e->stats.rx_drop_malformed, PACKETS - 1);
    finish(p);
}

/*
 * A message of 16 packets and a byte, of which one packet was made to carry all the rest, by an
 * attacker or a confused peer: with it come more bytes than the message has. That is refused, and
 * no run is taken for what is left of a message of which less than nothing is.
 */
TEST(mrd_engine_rx__more_than_the_message)
{
    enum { LONG = 8, LONG_BYTES = MESSAGE + 1 - LONG * PAIR_PAYLOAD, LATE = LONG - 1 };
    struct mrd_rx_packet packet[LATE];
    struct pair_frame *longer = &burst[LONG - 1];
    struct pair *p = &pairs[0];
    struct mrd_rx_plan plan;

    begin_pair(p);
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, MESSAGE + 1);
    assert_int_equal(pair_tx(p, 0), SEGMENTS + 1);
    first_arrives(p);
    longer->len = head_len + LONG_BYTES;
    memset(longer->data + head_len, 0x55, LONG_BYTES);
    longer->data[MRD_WIRE_BASE_BYTES + 2] = LONG_BYTES >> 8;
    longer->data[MRD_WIRE_BASE_BYTES + 3] = LONG_BYTES & 255;
    mrd_wire_set_payload_check(longer->data,
                               mrd_wire_payload_check(longer->data + head_len, LONG_BYTES));
    mrd_wire_seal(longer->data, longer->data + head_len);
    pair_rx_one(p, 1, longer);
    for (unsigned i = SEGMENTS - 1; i >= LONG; i--)
        pair_rx_one(p, 1, &burst[i]);
    assert_int_equal(p->end[1].e->stats.rx_refuse_invalid, 1);
    unsigned planned = mrd_engine_rx_plan(p->end[1].e, burst[0].data, head_len, LATE, burst[0].len,
                                          LATE * burst[0].len, &p->end[0].addr, &plan);
    for (unsigned i = 0; i < LATE; i++) {
        packet[i] = i < planned ? place(p, &plan, i, i) : pair_packet(p, 1, &burst[i]);
        packet[i].plan_index = (uint16_t)i;
    }
    mrd_engine_rx(p->end[1].e, packet, LATE, p->now);
    pair_settle(p, p->now + MRD_SEC);
    pair_expect(p, 0, MRD_WC_REM_INV_REQ_ERR);
    pair_end(p);
}

/* ---------------------------------------------------------------------------------------- acked */

enum before { NOTHING, LOSSES, TIMEOUT, GAPS, NUM_BEFORE };

/* The records of the message are not known to have left as a burst. */
static void take_apart(struct pair *p)
{
    struct mrd_sents *s = &pair_peer(p, 0)->tx->sent;

    for (uint32_t psn = s->una; psn != s->next; psn++)
        mrd_sent_get(s, psn)->in_run = false;
}

/* The whole message arrives, but for what `before` says; the acks come back. */
static void send_and_ack(struct pair *p, enum before before, bool together)
{
    begin(p);
    struct mrd_send_state *tx = pair_peer(p, 0)->tx;
    if (!together)
        take_apart(p);
    if (before == LOSSES) {
        tx->paths.loss_avg = 0.3f;
        for (uint32_t i = 0; i < tx->paths.num; i++)
            tx->paths.path[i].loss_ewma = 0.4f;
    } else if (before == TIMEOUT) {
        tx->probes.timeout_ns = p->now + 1;
        tx->probes.timeout_cwnd = 3 * tx->cc.cwnd_bytes;
    } else if (before == GAPS) {
        memmove(&p->end[1].inbox[3], &p->end[1].inbox[4],
                (p->end[1].num_inbox - 4) * sizeof(struct pair_frame));
        p->end[1].num_inbox--;
    }
    pair_hop(p, 1);
    pair_hop(p, 0);
}

static void compare_senders(void)
{
    struct mrd_engine *a = pairs[0].end[0].e, *b = pairs[1].end[0].e;
    struct mrd_send_state *x = pair_peer(&pairs[0], 0)->tx, *y = pair_peer(&pairs[1], 0)->tx;

    assert_memory_equal(&a->stats, &b->stats, sizeof(a->stats));
    assert_memory_equal(&pair_peer(&pairs[0], 0)->count, &pair_peer(&pairs[1], 0)->count,
                        sizeof(pair_peer(&pairs[0], 0)->count));
    assert_int_equal(x->sent.una, y->sent.una);
    assert_int_equal(x->sent.inflight.num, y->sent.inflight.num);
    assert_int_equal(x->sent.inflight_bytes, y->sent.inflight_bytes);
    assert_true(x->cc.cwnd_bytes == y->cc.cwnd_bytes);
    assert_true(x->paths.loss_avg == y->paths.loss_avg);
    assert_int_equal(x->paths.acks, y->paths.acks);
    assert_int_equal(x->loss.rack_tx_ns, y->loss.rack_tx_ns);
    assert_int_equal(x->loss.overtaken, y->loss.overtaken);
    assert_int_equal(x->loss.skew_ns, y->loss.skew_ns);
    assert_int_equal(x->probes.timeout_ns, y->probes.timeout_ns);
    for (uint32_t i = 0; i < x->paths.num; i++) {
        const struct mrd_path *v = &x->paths.path[i], *w = &y->paths.path[i];

        assert_memory_equal(v->pseq_acked, w->pseq_acked, sizeof(v->pseq_acked));
        assert_true(v->loss_ewma == w->loss_ewma);
        assert_int_equal(v->age_ns, w->age_ns);
        assert_memory_equal(&x->paths.load[i], &y->paths.load[i], sizeof(x->paths.load[i]));
    }
}

TEST(mrd_rx_ack__a_run_as_one_by_one)
{
    for (enum before before = NOTHING; before < NUM_BEFORE; before++) {
        for (unsigned i = 0; i < 2; i++)
            send_and_ack(&pairs[i], before, i == 0);
        compare_senders();
        for (unsigned i = 0; i < 2; i++)
            pair_settle(&pairs[i], pairs[i].now + MRD_SEC);
        compare_senders();
        for (unsigned i = 0; i < 2; i++) {
            pair_expect(&pairs[i], 0, MRD_WC_SUCCESS);
            pair_end(&pairs[i]);
        }
    }
}

/* A run is part of what a round trip carries, to spray slow fabrics finely; one way, a burst. */
TEST(mrd_tx_new_data__whole_bursts_on_one_way)
{
    struct mrd_tune tune = mrd_tune_default;
    struct pair *p = &pairs[0];

    tune.engine.quantum_rtts = 0.05; /* of 125,000 bytes: 5 packets */
    for (unsigned one_way = 0; one_way < 2; one_way++) {
        unsigned runs = 1;

        pair_config(p);
        p->config.mover.quantum = SEGMENTS;
        p->config.mover.tune = &tune;
        pair_open(p);
        if (one_way)
            mrd_engine_set_one_way(p->end[0].ah);
        pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, MESSAGE);
        assert_int_equal(pair_tx(p, 0), SEGMENTS);
        for (unsigned i = 1; i < SEGMENTS; i++)
            runs += p->end[1].inbox[i].path != p->end[1].inbox[i - 1].path;
        assert_int_equal(runs, one_way ? 1 : 4);
        pair_end(p);
    }
}

/* A burst has as many packets as its bytes allow, whatever they carry to this peer. */
TEST(mrd_tx_new_data__bursts_of_so_many_bytes)
{
    static const struct {
        uint32_t bytes, payload, run;
    } table[] = {{4 * (PAIR_PAYLOAD + 96), PAIR_PAYLOAD, 4},
                 {4 * (PAIR_PAYLOAD + 96) - 1, PAIR_PAYLOAD, 3},
                 {4 * (PAIR_PAYLOAD + 96), PAIR_PAYLOAD / 2, 7},
                 {64, PAIR_PAYLOAD, 1},
                 {1 << 20, PAIR_PAYLOAD, SEGMENTS}};
    struct pair *p = &pairs[0];

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        unsigned n, run = 1;

        pair_config(p);
        p->config.mover.quantum = SEGMENTS;
        p->config.mover.burst_bytes = table[i].bytes;
        pair_open(p);
        mrd_engine_set_one_way(p->end[0].ah);
        pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, MESSAGE);
        mrd_engine_tx_too_big(p->end[0].e, &p->end[1].addr, table[i].payload);
        n = pair_tx(p, 0);
        while (run < n && p->end[1].inbox[run].path == p->end[1].inbox[0].path)
            run++;
        assert_int_equal(run, table[i].run);
        assert_int_equal(pair_peer(p, 0)->tx->run.quantum, table[i].run);
        pair_end(p);
    }
}

/* The entries of a gather list lie apart, and one ends with a packet, or nearly. */
TEST(mrd_tx_new_data__a_run_ends_with_its_entry)
{
    enum { APART = 40 * PAIR_PAYLOAD };
    struct pair *p = &pairs[0];

    for (uint32_t i = 0; i < 9; i++) {
        const uint32_t first = (i / 3 + 1) * PAIR_PAYLOAD + i % 3 - 1;
        struct pair_end *a = &p->end[0], *b = &p->end[1];
        struct hand_wr w;

        begin_pair(p);
        hand_wr(p, 0, MRD_WR_RDMA_WRITE, first, &w);
        struct mrd_sge sge[] = {w.sge, w.sge};
        sge[1].addr += APART;
        sge[1].length = MESSAGE - first;
        w.wr.sg_list = sge;
        w.wr.num_sge = 2;
        assert_int_equal(hand_post(p, 0, &w.wr), 0);
        pair_settle(p, p->now + MRD_SEC);
        pair_expect(p, 0, MRD_WC_SUCCESS);
        assert_memory_equal(b->memory, a->memory, first);
        assert_memory_equal(b->memory + first, a->memory + APART, MESSAGE - first);
        pair_end(p);
    }
}

/* A caller whose last packets would split a burst is asked to come again, and says so. */
TEST(mrd_engine_tx__cut_short_before_a_burst)
{
    struct mrd_tx_packet packet[SEGMENTS];
    struct pair *p = &pairs[0];

    pair_config(p);
    p->config.mover.quantum = 5;
    pair_open(p);
    mrd_engine_set_one_way(p->end[0].ah);
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, MESSAGE);
    for (unsigned i = 0; i < SEGMENTS; i++)
        packet[i] = (struct mrd_tx_packet){.head = p->head[i], .head_cap = MRD_TX_HEAD_BYTES};
    assert_int_equal(mrd_engine_tx(p->end[0].e, packet, 12, p->now), 10);
    assert_true(mrd_engine_tx_cut_short(p->end[0].e));
    assert_int_equal(mrd_engine_deadline(p->end[0].e), 0);
    assert_int_equal(mrd_engine_tx(p->end[0].e, packet, 12, p->now), SEGMENTS - 10);
    assert_false(mrd_engine_tx_cut_short(p->end[0].e));
    pair_end(p);
}

/* Segments are acked by their bytes, other packets by their number. */
TEST(mrd_engine_rx__acks_by_bytes)
{
    struct pair *p = &pairs[0];

    pair_config(p);
    p->config.mover.quantum = SEGMENTS;
    p->config.mover.ack_every = 3;
    p->config.mover.ack_bytes = 6 * PAIR_PAYLOAD;
    pair_open(p);
    mrd_engine_set_one_way(p->end[0].ah);
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, MESSAGE);
    assert_int_equal(pair_tx(p, 0), SEGMENTS);
    for (unsigned i = 0; i < 6; i++) {
        pair_rx_one(p, 1, &p->end[1].inbox[i]);
        assert_int_equal(pair_peer(p, 1)->rx->rcv.now, i == 5);
    }
    pair_end(p);
}
