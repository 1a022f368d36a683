/* SPDX-License-Identifier: BSD-2-Clause */
/* Acks and refusals of what was never sent, or of other spaces, end nothing. */
#include "tests/support/forge.h"

enum { BYTES = 100 };

/* ---------------------------------------------------------------------------------------- acks */

/* An ack as host 1 would send it to host 0, whose last message is lost. */
struct lost_message {
    struct forge_tape tape;
    struct sim_world *w;
    struct mrd_wire_head head; /* of the ack */
    uint32_t message, psn;
};

static void lose_message(struct lost_message *l)
{
    l->w = forge_acquainted(&l->tape);
    forge_cut(&l->tape, HOST_0, HOST_1, true);
    l->message = sim_send(l->w, HOST_0, HOST_1, BYTES);
    sim_run(l->w, 10 * USEC_NS);
    struct mrd_wire_head sent = forge_head(forge_find(&l->tape, HOST_0, HOST_1, MRD_WIRE_DATA, -1));
    l->psn = sent.psn;
    l->head = forge_as(&l->tape, HOST_1, HOST_0);
    l->head.epoch = sent.epoch;
}

static void assert_still_lost(struct lost_message *l)
{
    sim_run(l->w, 10 * USEC_NS);
    assert_false(l->w->messages[l->message].sent);
}

static void recover(struct lost_message *l)
{
    forge_cut(&l->tape, HOST_0, HOST_1, false);
    sim_all_arrive(l->w, 100 * MSEC_NS);
    forge_end(&l->tape);
}

/* Acks of PSNs never sent, in each of the three forms, say nothing of those that were. */
TEST(bad_ack__of_psns_never_sent)
{
    struct lost_message l;
    struct mrd_wire_ack ack = {.serial = 1000, .psn_limit = 256, .num_slices = 2};
    uint8_t buf[FORGE_BYTES_MAX];

    lose_message(&l);
    ack.cum = l.psn + 2;
    ack.num_slices = 0;
    forge_inject(l.w, HOST_1, HOST_0, buf, forge_ack(buf, &l.head, &ack));
    assert_still_lost(&l);
    ack.cum = UINT32_MAX / 2;
    forge_inject(l.w, HOST_1, HOST_0, buf, forge_ack(buf, &l.head, &ack));
    assert_still_lost(&l);
    assert_int_equal(sim_counter(l.w, HOST_0, "rx_drop_ack"), 2);

    ack.cum = l.psn;
    ack.num_slices = 3;
    ack.slice[0] = (struct mrd_wire_slice){.bits = {~0ull << (l.psn + 1), ~0ull, ~0ull, ~0ull}};
    ack.slice[1] = (struct mrd_wire_slice){.base = 256, .bits = {~0ull, ~0ull, ~0ull, ~0ull}};
    ack.slice[2] = (struct mrd_wire_slice){.base = 0u - 256, .bits = {~0ull, ~0ull, ~0ull, ~0ull}};
    forge_inject(l.w, HOST_1, HOST_0, buf, forge_ack(buf, &l.head, &ack));
    assert_still_lost(&l);
    recover(&l);
}

/* The block that rides on data is judged by itself: the data is taken, the ack dropped. */
TEST(bad_ack__riding)
{
    struct lost_message l;

    lose_message(&l);
    struct mrd_wire_head data = forge_as(&l.tape, HOST_1, HOST_0);
    data.psn--; /* a copy: host 1 goes on using this space */
    data.flags = MRD_WIRE_ACKBLOCK;
    data.ack_epoch = l.head.epoch;
    data.ack_cum = l.psn + 2;
    forge_send(l.w, HOST_1, HOST_0, &data, NULL);
    data.ack_epoch++;
    data.ack_cum = l.psn + 1;
    forge_send(l.w, HOST_1, HOST_0, &data, NULL);
    assert_still_lost(&l);
    assert_int_equal(sim_counter(l.w, HOST_0, "rx_drop_ack"), 2);
    recover(&l);
}

/* Acks of another life or space; and with counts that contradict their length. */
TEST(bad_ack__of_another_space)
{
    struct lost_message l;
    struct mrd_wire_ack ack = {.serial = 1000, .psn_limit = 256};
    uint8_t buf[FORGE_BYTES_MAX];

    lose_message(&l);
    ack.cum = l.psn + 1;
    for (uint32_t i = 0; i < 3; i++) {
        struct mrd_wire_head head = l.head;

        head.src_inc ^= i == 0;
        head.dst_inc ^= i == 1;
        head.epoch += i == 2;
        forge_inject(l.w, HOST_1, HOST_0, buf, forge_ack(buf, &head, &ack));
        assert_still_lost(&l);
    }
    assert_int_equal(sim_counter(l.w, HOST_0, "rx_drop_ack"), 3);
    uint32_t len = forge_ack(buf, &l.head, &ack);
    for (uint32_t i = 0; i < 3; i++) { /* slices, paths, duplicates: announced, not there */
        buf[MRD_WIRE_ACK_BYTES - 5 + i]++;
        forge_reseal(buf);
        forge_inject(l.w, HOST_1, HOST_0, buf, len);
        assert_still_lost(&l);
        buf[MRD_WIRE_ACK_BYTES - 5 + i]--;
    }
    assert_int_equal(sim_counter(l.w, HOST_0, "rx_drop_malformed"), 3);
    recover(&l);
}

/* Refusals of what was never sent, or of parts that a packet does not have, end nothing. */
TEST(bad_refusal__of_unknown_psns)
{
    struct lost_message l;
    uint8_t buf[FORGE_BYTES_MAX];
    uint32_t epochs[] = {0, 1, 0}, psns[] = {1000, 0, 0};

    lose_message(&l);
    struct mrd_wire_head head = forge_as(&l.tape, HOST_1, HOST_0);
    for (uint32_t i = 0; i < 3; i++, head.psn++) {
        struct mrd_wire_refusal_entry entry = {.index = i == 2 ? 7 : 0, .code = MRD_REFUSE_ACCESS};
        uint8_t *end = mrd_wire_put_refusal(mrd_wire_put_head(buf, &head), l.head.epoch + epochs[i],
                                            l.psn + psns[i], 0, 1);

        end = mrd_wire_put_refusal_entry(end, &entry);
        mrd_wire_seal(buf, end);
        forge_inject(l.w, HOST_1, HOST_0, buf, (uint32_t)(end - buf));
        assert_still_lost(&l);
    }
    /* And one that promises more entries than it has. */
    buf[MRD_WIRE_BASE_BYTES + 1] = 2;
    forge_reseal(buf);
    buf[19]++; /* the next PSN */
    forge_reseal(buf);
    forge_inject(l.w, HOST_1, HOST_0, buf, MRD_WIRE_BASE_BYTES + 24);
    assert_still_lost(&l);
    assert_int_equal(sim_counter(l.w, HOST_0, "rx_drop_malformed"), 1);
    assert_int_equal(sim_counter(l.w, HOST_0, "tx_messages_failed"), 0);
    recover(&l);
}
