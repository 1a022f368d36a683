/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a message of several packets: its ack leaves at once, of a very long one twice, so
 * that the loss of one costs nothing.
 */
#include "tests/support/wiretap.h"

enum { PACKET = 4096, VERY_LONG = 256 << 10, SEEDS = 8 };

/* Acks of host 1 that report all PSNs of the message. */
struct end_acks {
    uint32_t num;
    uint64_t first_ns, last_ns;
    uint32_t path[2];
};

static struct end_acks acks_of(const struct wiretap *tap, uint32_t end_psn)
{
    struct end_acks acks = {0};

    for (uint32_t i = 0; i < tap->num; i++) {
        const struct wire_packet *p = &tap->packets[i];

        if (p->from != HOST_1 || p->kind != WIRE_ACK || p->head.psn != end_psn)
            continue;
        acks.first_ns = acks.num ? acks.first_ns : p->at_ns;
        acks.last_ns = p->at_ns;
        if (acks.num < 2)
            acks.path[acks.num] = p->path;
        acks.num++;
    }
    return acks;
}

/* One past the highest PSN of the sender. */
static uint32_t end_psn(const struct wiretap *tap)
{
    uint32_t end = 0;

    for (uint32_t i = 0; i < tap->num; i++) {
        const struct wire_packet *p = &tap->packets[i];

        if (p->from == HOST_0 && p->head.type == MRD_WIRE_DATA && p->head.psn >= end)
            end = p->head.psn + 1;
    }
    return end;
}

/* Loses the first ack of all packets up to `end`. */
struct first_end_ack {
    uint32_t end, lost;
};

static bool loses_first_end_ack(void *arg, const struct wire_packet *p)
{
    struct first_end_ack *f = arg;

    if (p->from != HOST_1 || p->kind != WIRE_ACK || p->head.psn != f->end || f->lost)
        return false;
    f->lost++;
    return true;
}

/* One write between hosts that know each other; the tap holds it, and nothing from before. */
static struct wiretap *write_tapped(const struct sim_options *options, uint32_t len,
                                    wiretap_rule *rule, struct first_end_ack *first)
{
    struct sim_world *w = sim_fabric_world(options);

    for (uint32_t i = 0; i < 4; i++)
        sim_write_complete(w, HOST_0, HOST_1, 64, 50 * MSEC_NS);
    sim_run(w, 100 * USEC_NS);
    struct wiretap *tap = wiretap_open(w);
    tap->rule = rule;
    tap->arg = first;
    if (first)
        first->end = 4 + (len + PACKET - 1) / PACKET;
    sim_write_complete(w, HOST_0, HOST_1, len, 5 * MSEC_NS);
    sim_run(w, 100 * USEC_NS);
    return tap;
}

/* In both kinds of movers: those that take many packets at a time and those that take one. */
static const struct mrd_sim_topology leaf = {
    .hosts = 4,
    .tiers = 2,
    .tier = {{.radix_down = 2, .radix_up = 2, .rate_bps = 100000000000, .delay_ns = 1000},
             {.radix_down = 2, .rate_bps = 100000000000, .delay_ns = 1000}}};

TEST(sim_message_end__acked_twice_if_very_long)
{
    static const struct {
        uint32_t len, acks;
    } table[] = {
        {2 * PACKET, 1}, {VERY_LONG - 1, 1}, {VERY_LONG, 2}, {VERY_LONG + PACKET, 2}, {1 << 20, 2}};

    for (uint32_t i = 0; i < 2 * sizeof(table) / sizeof(table[0]); i++) {
        struct sim_options options = {.seed = test_seed(), .topology = i & 1 ? &leaf : NULL};
        struct wiretap *tap = write_tapped(&options, table[i / 2].len, NULL, NULL);
        struct end_acks acks = acks_of(tap, end_psn(tap));

        test_check(options.seed, acks.num == table[i / 2].acks, "%u bytes: %u acks of the end",
                   table[i / 2].len, acks.num);
        if (acks.num == 2) {
            test_check(options.seed, acks.path[0] != acks.path[1], "both on path %u", acks.path[0]);
            test_check(options.seed, acks.last_ns - acks.first_ns < USEC_NS, "the second is late");
        }
    }
}

/* So that the first may be lost: nothing is sent again, and the sender knows as early. */
TEST(sim_message_end__losing_the_first_ack_costs_nothing)
{
    for (uint32_t i = 0; i < 2 * SEEDS; i++) {
        struct sim_options options = {.seed = test_seed() + i / 2,
                                      .topology = i & 1 ? &leaf : NULL};
        struct first_end_ack first = {0};
        struct wiretap *tap = write_tapped(&options, 1 << 20, NULL, NULL);
        const struct sim_message *m = &tap->w->messages[4];
        uint64_t clean_ns = m->sent_ns - tap->packets[0].at_ns, lossy_ns;

        tap = write_tapped(&options, 1 << 20, loses_first_end_ack, &first);
        m = &tap->w->messages[4];
        lossy_ns = m->sent_ns - tap->packets[0].at_ns;
        test_check(options.seed, first.lost == 1, "no ack of the end");
        test_check(options.seed, sim_counter(tap->w, HOST_0, "retx_packets") == 0, "sent again");
        test_check(options.seed, lossy_ns <= clean_ns + USEC_NS, "%llu ns later",
                   (unsigned long long)(lossy_ns - clean_ns));
    }
}

/* It waits for no company and no answer: the sender knows a round trip after the last packet. */
TEST(sim_message_end__acked_without_delay)
{
    struct sim_options options = {.seed = test_seed()};
    struct wiretap *tap = write_tapped(&options, 2 * PACKET, NULL, NULL);
    const struct wire_packet *last = wiretap_find(tap, 1, HOST_0, WIRE_MESSAGE);
    struct end_acks acks = acks_of(tap, end_psn(tap));

    test_check(options.seed, acks.num == 1, "%u acks", acks.num);
    /* 5 us, and a packet's time at 100 Gb/s for each of the two if they share a link. */
    test_check(options.seed, acks.first_ns <= last->at_ns + 5800, "acked %llu ns after it left",
               (unsigned long long)(acks.first_ns - last->at_ns));
}
