/* SPDX-License-Identifier: BSD-2-Clause */
/* Thousands of damaged and forged packets, after which all that matters is as it was. */
#include <string.h>

#include "core/rng.h"
#include "tests/support/forge.h"

enum { BYTES = 100 };

/* ---------------------------------------------------------------------------------------- fuzz */

struct fuzz {
    struct forge_tape tape;
    struct mrd_rng rng;
    uint32_t injected;
};

/* A recorded packet with some bytes changed, cut short, made longer or grafted onto another. */
static uint32_t mutate(struct fuzz *f, const struct forge_packet *packet, uint8_t *buf)
{
    const struct forge_packet *other;
    uint32_t len = packet->len, at;

    do
        other = &f->tape.packets[mrd_rng_below(&f->rng, f->tape.num)];
    while (other->from != packet->from || other->to != packet->to);

    memcpy(buf, packet->data, len);
    switch (mrd_rng_below(&f->rng, 5)) {
    case 0:
        return mrd_rng_below(&f->rng, len);
    case 1:
        forge_garbage(&f->rng, buf + len, 40);
        return len + 1 + mrd_rng_below(&f->rng, 39);
    case 2:
        at = mrd_rng_below(&f->rng, len < other->len ? len : other->len);
        memcpy(buf + at, other->data + at, other->len - at);
        return other->len;
    default:
        for (uint32_t i = 0; i <= mrd_rng_below(&f->rng, 4); i++) {
            at = mrd_rng_below(&f->rng, len < 100 || i & 1 ? len : 100);
            buf[at] ^= (uint8_t)(1u << mrd_rng_below(&f->rng, 8));
        }
        return len;
    }
}

/* Beside each tenth packet of the traffic, damaged ones arrive at its target. */
static enum mrd_sim_verdict damage(void *arg, struct mrd_sim_datagram *d)
{
    struct fuzz *f = arg;
    uint8_t buf[2 * FORGE_BYTES_MAX];

    if (mrd_rng_below(&f->rng, 10))
        return MRD_SIM_PASS;
    for (uint32_t i = 0; i < 5; i++, f->injected++) {
        const struct forge_packet *packet = &f->tape.packets[mrd_rng_below(&f->rng, f->tape.num)];
        uint32_t len = mutate(f, packet, buf);

        assert_int_equal(
            mrd_sim_inject(f->tape.w->sim, packet->from, packet->to, buf, len,
                           mrd_sim_now(f->tape.w->sim) + mrd_rng_below(&f->rng, 20000)),
            0);
    }
    (void)d;
    return MRD_SIM_PASS;
}

static void traffic(struct sim_world *w, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < 40; i++) {
        uint32_t from = i & 1 ? a : b, to = i & 1 ? b : a;

        sim_post_on(w, from, to, 0, 64u << i % 14, (enum mrd_wr_opcode)(i / 2 % 4));
    }
}

static struct sim_world *fuzz_begin(struct fuzz *f, uint64_t round)
{
    struct sim_world *w = forge_begin(
        &f->tape, &(struct sim_options){.seed = test_seed() + round,
                                        .hosts = 3,
                                        .recv_bytes = 1 << 20,
                                        .rate_bps = 10000000000,
                                        .straight = round & 1,
                                        .order = round & 2 ? MRD_ORDER_MSG : MRD_ORDER_NONE});

    mrd_rng_init(&f->rng, test_seed() + round);
    f->injected = 0;
    return w;
}

/* Thousands of damaged copies of live traffic: what arrives is exact and the books balance. */
TEST(bad_packet__fuzz_damaged)
{
    uint32_t injected = 0;

    for (uint64_t round = 0; round < 8; round++) {
        struct fuzz f;
        struct sim_world *w = fuzz_begin(&f, round);

        traffic(w, HOST_0, HOST_1);
        sim_run(w, 20 * USEC_NS);
        f.tape.edit = damage;
        f.tape.arg = &f;
        traffic(w, HOST_0, HOST_1);
        traffic(w, HOST_0, HOST_1);
        sim_all_arrive(w, 500 * MSEC_NS);
        assert_int_equal(sim_counter(w, HOST_0, "tx_messages_failed"), 0);
        assert_int_equal(sim_counter(w, HOST_1, "tx_messages_failed"), 0);
        assert_true(forge_drops(w, HOST_0) + forge_drops(w, HOST_1) > f.injected / 2);
        injected += f.injected;
        forge_end(&f.tape);
    }
    assert_true(injected > 3000);
}

/* All checks of a mutated packet made to hold, and no key that opens anything. */
static void make_hold(struct fuzz *f, uint8_t *buf, uint32_t len)
{
    uint32_t head_len = len < MRD_WIRE_BASE_BYTES ? 0 : (uint32_t)(buf[2] << 8 | buf[3]);
    struct mrd_wire_head head;
    struct mrd_wire_part part;

    if (head_len < MRD_WIRE_BASE_BYTES || head_len > len || head_len > 2048)
        return;
    mrd_wire_set_payload_check(buf, mrd_wire_payload_check(buf + head_len, len - head_len));
    forge_reseal(buf);
    if (mrd_wire_get(buf, len, &head) != MRD_WIRE_OK || head.type != MRD_WIRE_DATA)
        return;
    for (uint32_t at = head.parts_at, part_at = at; at < head_len; part_at = at) {
        if (!mrd_wire_get_part(buf, &at, head_len, &part))
            break;
        if (part.op == MRD_OP_REFUSAL)
            continue;
        part.qkey = 0x80000000 | mrd_rng_below(&f->rng, 1u << 30);
        part.rkey = mrd_rng_below(&f->rng, UINT32_MAX);
        mrd_wire_put_part(buf + part_at, &part);
    }
    forge_reseal(buf);
}

/*
 * The same with checks that hold, in the name of host 2, which knows host 1: its own space may be
 * ruined by that, but memory, receives and what hosts 0 and 1 exchange are not.
 */
TEST(bad_packet__fuzz_forged)
{
    uint32_t injected = 0;

    for (uint64_t round = 0; round < 8; round++) {
        uint8_t buf[2 * FORGE_BYTES_MAX];
        struct fuzz f;
        struct sim_world *w = fuzz_begin(&f, round);

        traffic(w, HOST_1, HOST_2);
        sim_run_until_complete(w, 100 * MSEC_NS);
        sim_run(w, 1 * MSEC_NS);
        uint32_t num = f.tape.num;
        forge_exchange_both(w, HOST_0, HOST_1);
        traffic(w, HOST_0, HOST_1);
        for (uint32_t i = 0; i < 4000; i++) {
            const struct forge_packet *packet = &f.tape.packets[mrd_rng_below(&f.rng, num)];
            uint32_t len = mutate(&f, packet, buf);

            make_hold(&f, buf, len);
            if (packet->to != HOST_1)
                continue;
            forge_inject(w, HOST_2, HOST_1, buf, len);
            f.injected++;
            if (i % 8 == 0)
                sim_run(w, 2 * USEC_NS);
        }
        uint32_t failed = (uint32_t)sim_counter(w, HOST_1, "tx_messages_failed");
        traffic(w, HOST_0, HOST_1);
        sim_all_arrive(w, 500 * MSEC_NS);
        assert_int_equal(failed, 0);
        assert_int_equal(sim_counter(w, HOST_0, "tx_messages_failed"), 0);
        injected += f.injected;
        forge_end(&f.tape);
    }
    assert_true(injected > 10000);
}
