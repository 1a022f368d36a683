/* SPDX-License-Identifier: BSD-2-Clause */
/* One-way delays of paths: what acks tell of them, and what the sender makes of that. */
#include "tests/unit/engine_pair.h"

enum { TRACKER = 1024 };

/* ---------------------------------------------------------------------------------------- told */

FIXTURE(rcv_fixture)
{
    struct unit_alloc alloc;
    struct mrd_rcv_maps maps;
    struct mrd_rcv r;
    struct mrd_wire_ack ack;
};

FIXTURE_SETUP(rcv_fixture)
{
    unit_alloc_init(&self->alloc);
    assert_true(mrd_rcv_maps_init(&self->maps, &self->alloc.ops, TRACKER, 1));
    mrd_rcv_init(&self->r, &self->maps, TRACKER, TRACKER);
}

FIXTURE_TEARDOWN(rcv_fixture)
{
    mrd_rcv_fini(&self->r);
    mrd_rcv_maps_fini(&self->maps);
}

/* A packet of a path, with these stamps; only a new one is echoed. */
static void came(struct rcv_fixture *f, uint16_t path, uint32_t stamp, uint32_t rx_stamp, bool new)
{
    struct mrd_wire_head head = {.path_id = path, .stamp = stamp};

    mrd_rcv_count(&f->r, &head, false);
    if (new)
        mrd_rcv_echo(&f->r, &head, false, rx_stamp, 0);
}

static void build(struct rcv_fixture *f)
{
    mrd_rcv_build(&f->r, &f->ack, TRACKER, UINT32_MAX, 0);
}

/* Every path's last packet, not only the one that is echoed; once. */
TEST_F(rcv_fixture, mrd_rcv_build__tells_a_delay_of_each_path_once)
{
    came(self, 3, 1000, 1100, true);
    came(self, 5, 1000, 1250, true);
    came(self, 3, 2000, 2120, true);
    build(self);
    assert_int_equal(self->ack.num_paths, 2);
    assert_int_equal(self->ack.path[0].id, 3);
    assert_int_equal(self->ack.path[0].delay, 120);
    assert_int_equal(self->ack.path[1].id, 5);
    assert_int_equal(self->ack.path[1].delay, 250);
    build(self);
    assert_int_equal(self->ack.num_paths, 0);
    came(self, 5, 3000, 3260, true);
    build(self);
    assert_int_equal(self->ack.num_paths, 1);
    assert_int_equal(self->ack.path[0].delay, 260);
}

/* A late or replayed copy counts as received, and would tell a delay that nobody had. */
TEST_F(rcv_fixture, mrd_rcv_build__duplicates_have_no_delay)
{
    came(self, 3, 1000, 1100, true);
    came(self, 3, 1000, 9000, false);
    build(self);
    assert_int_equal(self->ack.path[0].received, 2);
    assert_int_equal(self->ack.path[0].delay, 100);
    came(self, 3, 1000, 9000, false);
    build(self);
    assert_int_equal(self->ack.num_paths, 1);
    assert_int_equal(self->ack.path[0].received, 3);
    assert_int_equal(self->ack.path[0].delay, 0);
}

/* Counts wait for an ACK packet while acks ride, for as long as that may be; a delay does not. */
TEST_F(rcv_fixture, mrd_rcv_build__no_delay_from_before_a_ridden_ack)
{
    struct mrd_wire_head head = {0};

    came(self, 3, 1000, 1100, true);
    mrd_rcv_ride(&self->r, &head, TRACKER, 0);
    came(self, 5, 2000, 2200, true);
    build(self);
    assert_int_equal(self->ack.num_paths, 2);
    assert_int_equal(self->ack.path[0].received, 1);
    assert_int_equal(self->ack.path[0].delay, 0);
    assert_int_equal(self->ack.path[1].delay, 200);
}

/* A fresh entropy value takes the place: the old one's delay is not its own. */
TEST_F(rcv_fixture, mrd_rcv_build__fresh_path_has_no_delay_yet)
{
    came(self, 3, 1000, 1100, true);
    came(self, 3 + MRD_PATHS_MAX, 1000, 1200, false);
    build(self);
    assert_int_equal(self->ack.num_paths, 1);
    assert_int_equal(self->ack.path[0].id, 3 + MRD_PATHS_MAX);
    assert_int_equal(self->ack.path[0].delay, 0);
}

/* The low half of the difference, whatever the clocks say; 0 has a meaning of its own. */
TEST_F(rcv_fixture, mrd_rcv_build__delay_is_the_low_half_and_never_0)
{
    static const struct {
        uint32_t stamp, rx_stamp;
        uint16_t told;
    } table[] = {
        {1000, 1000, 1},     {0, 0x10000, 1},         {5, 0x7fff0005, 1},
        {1000, 1001, 1},     {1000, 999, 0xffff},     {0, 0x12345678, 0x5678},
        {UINT32_MAX, 9, 10}, {9, UINT32_MAX, 0xfff6}, {0x80000000, 0x7fff8000, 0x8000},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        came(self, 0, table[i].stamp, table[i].rx_stamp, true);
        build(self);
        assert_int_equal(self->ack.path[0].delay, table[i].told);
    }
}

/* ---------------------------------------------------------------------------------------- taken */

enum { ECHO_PATH = 0, OTHER_PATH = 1, RTT_STAMPS = 250, LATER_NS = 500 * 1000 };

/* Two engines that know each other; end 0 is told acks of the test's. A sample counts in full. */
struct taker {
    struct pair pair;
    struct mrd_tune tune;
    struct mrd_send_state *tx;
    uint32_t serial;
};

static struct taker taker; /* large */

static struct taker *taker_begin(void)
{
    struct taker *t = &taker;

    pair_config(&t->pair);
    t->tune = mrd_tune_default;
    t->tune.path.q_gain = t->tune.path.q_first_gain = 1;
    t->pair.config.mover.tune = &t->tune;
    pair_open(&t->pair);
    pair_post(&t->pair, 0, MRD_WR_RDMA_WRITE, 0, PAIR_PAYLOAD);
    pair_settle(&t->pair, t->pair.now + MRD_SEC);
    t->tx = mrd_peer_find(&t->pair.end[0].e->peers, &t->pair.end[1].addr)->tx;
    for (unsigned i = 0; i < t->tx->paths.num; i++)
        t->tx->paths.load[i].q_ns = MRD_PATH_NO_DELAY;
    t->serial = 1000;
    t->pair.now += LATER_NS; /* the least delay seen so far is out of its window */
    return t;
}

/* An ack echoes a packet of ECHO_PATH, `echoed` on its way, and tells `told` of the path `id`. */
static void ack(struct taker *t, uint8_t flags, uint32_t echoed, uint16_t id, uint16_t told)
{
    struct pair *p = &t->pair;
    uint32_t now = (uint32_t)(p->now / MRD_WIRE_STAMP_NS);
    struct mrd_wire_head head = {.type = MRD_WIRE_ACK,
                                 .src_inc = pair_inc(&t->pair, 1),
                                 .dst_inc = pair_inc(&t->pair, 0),
                                 .epoch = t->tx->contact.epoch,
                                 .psn = t->tx->sent.una,
                                 .reply = p->end[1].addr.port};
    struct mrd_wire_ack a = {.serial = t->serial++,
                             .cum = t->tx->sent.una,
                             .psn_limit = t->tx->told.psn_limit,
                             .flags = flags,
                             .echo_path = ECHO_PATH,
                             .echo_stamp = now - RTT_STAMPS,
                             .echo_rx_stamp = now - RTT_STAMPS + echoed,
                             .num_paths = 2};
    struct pair_frame f;

    a.path[0] =
        (struct mrd_wire_path){.id = ECHO_PATH, .delay = (uint16_t)(echoed + !(uint16_t)echoed)};
    a.path[1] = (struct mrd_wire_path){.id = id, .delay = told};
    for (unsigned i = 0; i < 2; i++)
        a.path[i].received = t->tx->paths.path[a.path[i].id % t->tx->paths.num].rx_count;
    uint8_t *end = mrd_wire_put_ack(mrd_wire_put_head(f.data, &head), &a);
    mrd_wire_seal(f.data, end);
    f.len = (uint32_t)(end - f.data);
    mrd_engine_begin(p->end[0].e, p->now);
    pair_rx_one(p, 0, &f);
    assert_int_equal(p->end[0].e->stats.rx_drop_stale_ack, 0);
    assert_int_equal(p->end[0].e->stats.rx_drop_malformed, 0);
}

static bool has_delay(const struct mrd_send_state *tx, unsigned path)
{
    return tx->paths.load[path].q_ns >= 0;
}

static void taker_end(struct taker *t)
{
    pair_settle(&t->pair, t->pair.now + MRD_SEC);
    pair_end(&t->pair);
}

/* Both halves may wrap: the signed 16-bit difference to the packet echoed in full counts. */
TEST(mrd_engine_rx__delay_of_another_path)
{
    static const struct {
        uint32_t echoed;
        uint16_t told;
        int later; /* than the echoed one, in stamps */
    } table[] = {
        {125, 225, 100},        {225, 125, -100},          {0x1fff0, 0x0010, 0x20},
        {0x20010, 0xfff0, -32}, {0xfffffff0, 0x0010, 32},  {0x10, 0xfff0, -32},
        {0x10000, 1, 1},        {0x20001, 0x8000, 0x7fff}, {0x20000, 0x8000, -0x8000},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct taker *t = taker_begin();
        const struct mrd_path_load *path = t->tx->paths.load;

        for (int k = 0; k < 2; k++) /* the first sample of all is the least by definition */
            ack(t, MRD_ACK_ECHO, table[i].echoed, OTHER_PATH, table[i].told);
        assert_true(has_delay(t->tx, ECHO_PATH) && has_delay(t->tx, OTHER_PATH));
        assert_int_equal((int64_t)path[OTHER_PATH].q_ns - (int64_t)path[ECHO_PATH].q_ns,
                         table[i].later * MRD_WIRE_STAMP_NS);
        taker_end(t);
    }
}

/* Nothing told, nothing to compare with, or another path than the one in that place now. */
TEST(mrd_engine_rx__no_delay_of_another_path)
{
    static const struct {
        uint8_t flags;
        uint16_t id, told;
    } table[] = {
        {MRD_ACK_ECHO, OTHER_PATH, 0}, {0, OTHER_PATH, 225}, {MRD_ACK_ECHO, OTHER_PATH + 8, 225}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct taker *t = taker_begin();

        ack(t, table[i].flags, 125, table[i].id, table[i].told);
        assert_false(has_delay(t->tx, OTHER_PATH));
        taker_end(t);
    }
}

/* The echoed packet's own entry is no second sample. */
TEST(mrd_engine_rx__delay_of_the_echoed_path_counts_once)
{
    struct taker *t = taker_begin();

    ack(t, MRD_ACK_ECHO, 125, OTHER_PATH, 0);
    float avg_ns = t->tx->paths.q_avg_ns;
    ack(t, MRD_ACK_ECHO, 225, OTHER_PATH, 0);
    assert_int_equal(t->tx->paths.load[ECHO_PATH].q_ns, 100 * MRD_WIRE_STAMP_NS);
    assert_true(t->tx->paths.q_avg_ns ==
                avg_ns + (100 * MRD_WIRE_STAMP_NS - avg_ns) * (float)t->tx->paths.tune->q_avg_gain);
    taker_end(t);
}

/* Where round trips are long, paths may be further apart than 16 bits tell. */
TEST(mrd_engine_rx__no_delay_of_another_path_on_long_ways)
{
    struct taker *t = taker_begin();

    t->tx->loss.srtt_ns = 400 * MRD_USEC;
    ack(t, MRD_ACK_ECHO, 125, OTHER_PATH, 225);
    assert_true(has_delay(t->tx, ECHO_PATH));
    assert_false(has_delay(t->tx, OTHER_PATH));
    t->tx->loss.srtt_ns = 200 * MRD_USEC;
    ack(t, MRD_ACK_ECHO, 125, OTHER_PATH, 225);
    assert_true(has_delay(t->tx, OTHER_PATH));
    taker_end(t);
}

/* Two engines: each path that a message took has a delay when it is acked, not one of four. */
TEST(mrd_engine_rx__all_paths_of_a_message_have_a_delay)
{
    struct pair *p = &taker.pair;

    pair_begin(p);
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, 8 * PAIR_PAYLOAD);
    pair_settle(p, p->now + MRD_SEC);
    struct mrd_send_state *tx = mrd_peer_find(&p->end[0].e->peers, &p->end[1].addr)->tx;
    for (unsigned i = 0; i < tx->paths.num; i++)
        assert_true(has_delay(tx, i) == (tx->paths.path[i].packets > 0));
    assert_true(tx->paths.num == 8 && tx->paths.path[0].packets == 1);
    pair_end(p);
}
