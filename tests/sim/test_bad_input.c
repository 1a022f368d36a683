/* SPDX-License-Identifier: BSD-2-Clause */
/* Bad packets are counted and change nothing; bad requests end with their status, alone. */
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "tests/support/forge.h"

enum { BYTES = 100 };

/* -------------------------------------------------------------------------------------- packets */

/* Random bytes of any length, half with a believable first byte: dropped and counted once each. */
TEST_F(forge_tape, bad_packet__garbage)
{
    enum { ROUNDS = 2000 };
    static const char *const names[] = {"rx_drop_truncated", "rx_drop_version",  "rx_drop_type",
                                        "rx_drop_length",    "rx_drop_checksum", "rx_drop_sealed"};
    struct sim_world *w = forge_acquainted(self);
    struct mrd_rng rng;
    uint8_t buf[512];
    unsigned counts[6];

    mrd_rng_init(&rng, test_seed());
    forge_look(self, HOST_1);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t len = mrd_rng_below(&rng, sizeof(buf));

        forge_garbage(&rng, buf, len);
        if (len && i & 1)
            buf[0] = (uint8_t)(MRD_WIRE_VERSION << 4 | mrd_rng_below(&rng, 5));
        if (len > 3 && i & 2) {
            buf[2] = 0;
            buf[3] = (uint8_t)mrd_rng_below(&rng, 128);
        }
        forge_inject(w, HOST_0, HOST_1, buf, len);
    }
    sim_run(w, 1 * MSEC_NS);

    for (uint32_t i = 0; i < 6; i++) {
        counts[i] = (unsigned)sim_counter(w, HOST_1, names[i]);
        assert_true(counts[i] > 0);
    }
    assert_int_equal(forge_drops(w, HOST_1), ROUNDS);
    forge_expect(self, HOST_1, "%s %u, %s %u, %s %u, %s %u, %s %u, %s %u, tx_resets %u", names[0],
                 counts[0], names[1], counts[1], names[2], counts[2], names[3], counts[3], names[4],
                 counts[4], names[5], counts[5], (unsigned)sim_counter(w, HOST_1, "tx_resets"));
    forge_exchange(w, HOST_0, HOST_1);
}

/* Every prefix of a valid packet with a new PSN. */
TEST_F(forge_tape, bad_packet__truncated)
{
    struct sim_world *w = forge_acquainted(self);
    struct mrd_wire_head head = forge_as(self, HOST_0, HOST_1);
    struct mrd_wire_part part = forge_send_part(w, HOST_1, BYTES);
    uint8_t buf[FORGE_BYTES_MAX], payload[BYTES];

    memset(payload, 0x5a, BYTES);
    uint32_t len = forge_data(buf, &head, &part, payload);
    uint32_t head_len = len - BYTES;
    forge_look(self, HOST_1);
    for (uint32_t i = 0; i < len; i++)
        forge_inject(w, HOST_0, HOST_1, buf, i);
    sim_run(w, 1 * MSEC_NS);

    forge_expect(self, HOST_1, "rx_drop_truncated %u, rx_drop_checksum %u", (unsigned)head_len,
                 (unsigned)BYTES);
    forge_exchange(w, HOST_0, HOST_1);
    assert_true(sim_payload_equal(w, HOST_1));
}

/* Parts that claim more bytes, or fewer, than came with them, under checks that hold. */
TEST_F(forge_tape, bad_packet__payload_of_another_length)
{
    static const int32_t add[] = {-1, 1, -BYTES, 1000};
    struct sim_world *w = forge_acquainted(self);
    struct mrd_wire_head head = forge_as(self, HOST_0, HOST_1);
    struct mrd_wire_part part = forge_send_part(w, HOST_1, BYTES);
    uint8_t buf[FORGE_BYTES_MAX] = {0}, payload[BYTES] = {1};

    forge_look(self, HOST_1);
    for (unsigned i = 0; i < 4; i++) {
        uint32_t len = forge_data(buf, &head, &part, payload);
        uint32_t carried = (uint32_t)(BYTES + add[i]);

        mrd_wire_set_payload_check(buf, mrd_wire_payload_check(buf + len - BYTES, carried));
        forge_reseal(buf);
        forge_inject(w, HOST_0, HOST_1, buf, len - BYTES + carried);
    }
    sim_run(w, 1 * MSEC_NS);

    forge_expect(self, HOST_1, "rx_drop_malformed 4");
    forge_exchange(w, HOST_0, HOST_1);
    assert_true(sim_payload_equal(w, HOST_1));
}

/* Every single bit of a packet flipped: header, parts and payload. */
TEST_F(forge_tape, bad_packet__each_bit_flipped)
{
    struct sim_world *w = forge_acquainted(self);
    struct mrd_wire_head head = forge_as(self, HOST_0, HOST_1);
    struct mrd_wire_part part = forge_send_part(w, HOST_1, BYTES);
    uint8_t buf[FORGE_BYTES_MAX], payload[BYTES] = {1};
    uint64_t before = forge_drops(w, HOST_1);
    uint32_t len = forge_data(buf, &head, &part, payload);

    for (uint32_t bit = 0; bit < 8 * len; bit++) {
        buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
        forge_inject(w, HOST_0, HOST_1, buf, len);
        buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    sim_run(w, 1 * MSEC_NS);

    assert_int_equal(forge_drops(w, HOST_1) - before, 8 * len);
    assert_false(w->receives[w->num_receives - 1].done);
    forge_exchange(w, HOST_0, HOST_1);
    assert_true(sim_payload_equal(w, HOST_1));
}

/* Replay of all that was exchanged, within the peer entry's life. */
TEST_F(forge_tape, bad_packet__replayed)
{
    struct sim_world *w = forge_acquainted(self);
    uint32_t data[2], acks[2], num;

    sim_write(w, HOST_0, HOST_1, 50000);
    sim_write_imm(w, HOST_1, HOST_0, 50000);
    sim_run_until_complete(w, 1 * MSEC_NS);
    sim_run(w, 1 * MSEC_NS);
    forge_look(self, HOST_0);
    forge_look(self, HOST_1);
    num = self->num;
    for (uint32_t host = HOST_0; host <= HOST_1; host++) {
        data[host] = forge_count(self, host ^ 1, host, MRD_WIRE_DATA);
        acks[host] = forge_count(self, host ^ 1, host, MRD_WIRE_ACK);
    }
    for (uint32_t i = 0; i < num; i++)
        forge_replay(w, &self->packets[i]);
    sim_run(w, 5 * MSEC_NS);

    for (uint32_t host = HOST_0; host <= HOST_1; host++) {
        uint64_t rx = sim_counter(w, host, "rx_acks"), stale, total;
        struct forge_state now = forge_state(w, host), *before = &self->before[host];

        /* Acks of acks do not exist: the duplicates' acks are new, all others are old. */
        stale = sim_counter(w, host, "rx_drop_stale_ack");
        total = forge_count(self, host ^ 1, host, MRD_WIRE_ACK) + acks[host];
        assert_int_equal(rx, total);
        assert_true(stale >= acks[host]);
        assert_int_equal(now.memory, before->memory);
        assert_int_equal(now.completions, before->completions);
        assert_int_equal(now.events, before->events);
        assert_int_equal(sim_counter(w, host, "rx_duplicates"), data[host]);
    }
    forge_exchange_both(w, HOST_0, HOST_1);
}

/* Our own first contact comes back to us: it was not sent to ourselves, so it is not executed. */
TEST_F(forge_tape, bad_packet__reflected)
{
    struct sim_world *w = forge_acquainted(self);

    sim_post_recvs(w, HOST_0, 0, 1, 1 << 20);
    forge_look(self, HOST_0);
    const struct forge_packet *own = forge_find(self, HOST_0, HOST_1, MRD_WIRE_DATA, 0);
    assert_int_equal(forge_head(own).dst_inc, 0);
    forge_inject(w, HOST_1, HOST_0, own->data, own->len);
    sim_run(w, 1 * MSEC_NS);

    forge_expect(self, HOST_0, "rx_drop_incarnation 1");
    forge_exchange(w, HOST_0, HOST_0); /* what is sent to ourselves is taken */
    forge_exchange(w, HOST_0, HOST_0);
    assert_true(sim_payload_equal(w, HOST_0));
}

/* A forged packet of host 0 to host 1, differing in this, and what it counts as. */
struct forgery {
    const char *rises;
    uint32_t dst_inc, src_inc; /* bits that are flipped */
    uint32_t epoch, psn;       /* added */
    uint8_t flags, key_id, op;
};

static uint32_t num_answers(const struct forge_tape *tape)
{
    return forge_count(tape, HOST_1, HOST_0, MRD_WIRE_RESET) +
           forge_count(tape, HOST_1, HOST_0, MRD_WIRE_CHALLENGE);
}

TEST_F(forge_tape, bad_packet__wrong_identity)
{
    static const struct forgery forgeries[] = {
        {"rx_drop_space 1, tx_resets 1", .dst_inc = 1},
        {"rx_drop_space 1, tx_resets 1", .src_inc = 1},
        {"rx_drop_challenged 1, tx_challenges 1", .src_inc = 1, .flags = MRD_WIRE_FIRST_CONTACT},
        {"rx_drop_epoch 1", .epoch = UINT32_MAX},
        {"rx_drop_space 1, tx_resets 1", .epoch = 1},
        {"rx_drop_malformed 1", .key_id = 1},
        {"rx_drop_window 1", .psn = 5000}, /* beyond the limit */
        {"rx_drop_malformed 1", .op = 5},  /* there is none */
    };
    struct sim_world *w = forge_acquainted(self);

    for (unsigned i = 0; i < sizeof(forgeries) / sizeof(forgeries[0]); i++) {
        const struct forgery *f = &forgeries[i];
        struct mrd_wire_head head = forge_as(self, HOST_0, HOST_1);
        struct mrd_wire_part part = forge_send_part(w, HOST_1, BYTES);
        uint32_t answers = num_answers(self);

        head.dst_inc ^= f->dst_inc;
        head.src_inc ^= f->src_inc;
        head.epoch += f->epoch;
        head.psn += f->psn;
        head.flags = f->flags;
        head.key_id = f->key_id;
        part.op = f->op ? f->op : part.op;
        forge_look(self, HOST_0);
        forge_look(self, HOST_1);
        forge_send(w, HOST_0, HOST_1, &head, &part);
        sim_run(w, 1 * MSEC_NS);
        forge_expect(self, HOST_1, "%s", f->rises);
        /* The answer, if there was one, fits nothing of host 0's. */
        forge_expect(self, HOST_0, "rx_drop_reset %u", (unsigned)(num_answers(self) - answers));
    }
    forge_exchange(w, HOST_0, HOST_1);
    assert_true(sim_payload_equal(w, HOST_1));
}

/* ---------------------------------------------------------------------------- changed in flight */

typedef void change_part(struct mrd_wire_part *part);

/* One packet of host 0 is changed on its way, its checks made to hold; its PSN is spent on that. */
struct change {
    change_part *change;
    bool done;
};

static enum mrd_sim_verdict change_one(void *arg, struct mrd_sim_datagram *d)
{
    struct change *c = arg;
    struct forge_packet packet = {.len = d->len, .data = d->data};
    struct mrd_wire_part part;

    if (c->done || d->from != HOST_0 || !forge_part(&packet, &part))
        return MRD_SIM_PASS;
    c->done = true;
    struct mrd_wire_head head = forge_head(&packet);
    c->change(&part);
    mrd_wire_put_part(d->data + head.parts_at, &part);
    forge_reseal(d->data);
    return MRD_SIM_PASS;
}

static void rkey(struct mrd_wire_part *part)
{
    part->rkey ^= 1;
}

static void below_the_region(struct mrd_wire_part *part)
{
    part->addr -= 1ull << 40;
}

static void around_the_end_of_memory(struct mrd_wire_part *part)
{
    part->addr = UINT64_MAX - 10;
}

static void huge_total(struct mrd_wire_part *part)
{
    part->total = UINT32_MAX;
}

static void offset_beyond_total(struct mrd_wire_part *part)
{
    part->offset = part->total;
}

static void offset_wraps(struct mrd_wire_part *part)
{
    part->offset = UINT32_MAX - 10;
}

static void longer_than_its_message(struct mrd_wire_part *part)
{
    part->total = part->len - 1u;
}

/*
 * Whatever a part claims: it is refused and counted, its own message fails, memory outside of the
 * targets stays as it was, and the messages beside it on the same peer arrive.
 */
static void changed_in_flight(enum mrd_wr_opcode opcode, change_part *change,
                              enum mrd_wc_status status, const char *counter)
{
    struct change c = {change, false};
    struct forge_tape tape;
    struct sim_world *w =
        forge_begin(&tape, &(struct sim_options){.paths = 1, .qps = 2, .recv_bytes = 1 << 20});
    uint32_t victim, beside[2];

    forge_exchange(w, HOST_0, HOST_1);
    tape.edit = change_one;
    tape.arg = &c;
    victim = sim_post_on(w, HOST_0, HOST_1, 0, 20000, opcode);
    for (uint32_t i = 0; i < 2; i++)
        beside[i] = sim_post_on(w, HOST_0, HOST_1, 1, 30000, MRD_WR_SEND_WITH_IMM);
    sim_run(w, 100 * MSEC_NS);

    assert_true(c.done);
    sim_expect_sent(w, victim, status);
    assert_true(sim_counter(w, HOST_1, counter) >= 1);
    for (uint32_t i = 0; i < 2; i++)
        assert_true(w->messages[beside[i]].equal);
    uint8_t *free_memory = w->node[HOST_1].arena + w->node[HOST_1].arena_used;
    for (uint32_t i = 0; i < 1 << 20; i++)
        assert_int_equal(free_memory[i], 0);
    forge_exchange(w, HOST_0, HOST_1);
    assert_int_equal(w->node[HOST_0].unreachable + w->node[HOST_0].restarted, 0);
    forge_end(&tape);
}

TEST(bad_part__key_and_range)
{
    changed_in_flight(MRD_WR_RDMA_WRITE, rkey, MRD_WC_REM_ACCESS_ERR, "rx_refuse_access");
    changed_in_flight(MRD_WR_RDMA_WRITE, below_the_region, MRD_WC_REM_ACCESS_ERR,
                      "rx_refuse_access");
    changed_in_flight(MRD_WR_RDMA_WRITE, around_the_end_of_memory, MRD_WC_REM_ACCESS_ERR,
                      "rx_refuse_access");
}

TEST(bad_part__lengths)
{
    changed_in_flight(MRD_WR_RDMA_WRITE, huge_total, MRD_WC_REM_ACCESS_ERR, "rx_refuse_access");
    changed_in_flight(MRD_WR_SEND, huge_total, MRD_WC_REM_INV_REQ_ERR, "rx_refuse_too_long");
    for (enum mrd_wr_opcode op = MRD_WR_RDMA_WRITE; op <= MRD_WR_SEND; op += MRD_WR_SEND) {
        changed_in_flight(op, offset_beyond_total, MRD_WC_REM_INV_REQ_ERR, "rx_refuse_invalid");
        changed_in_flight(op, offset_wraps, MRD_WC_REM_INV_REQ_ERR, "rx_refuse_invalid");
        changed_in_flight(op, longer_than_its_message, MRD_WC_REM_INV_REQ_ERR, "rx_refuse_invalid");
    }
}
