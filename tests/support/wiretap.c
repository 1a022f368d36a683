/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/support/wiretap.h"

#include <stdlib.h>
#include <string.h>

static enum wire_kind kind_of_data(const uint8_t *data, struct wire_packet *p)
{
    enum wire_kind kind = WIRE_EMPTY;
    struct mrd_wire_part part;

    for (uint32_t at = p->head.parts_at; at < p->head.head_len; p->num_parts++) {
        assert_true(mrd_wire_get_part(data, &at, p->head.head_len, &part));
        if (part.op == MRD_OP_VOID)
            p->num_void++;
        else if (kind == WIRE_EMPTY) {
            p->part = part;
            kind = part.op == MRD_OP_REFUSAL ? WIRE_REFUSAL
                   : part.op == MRD_OP_ABORT ? WIRE_ABORT
                   : part.op == MRD_OP_READY ? WIRE_READY
                   : part.op == MRD_OP_CLOSE ? WIRE_CLOSE
                                             : WIRE_MESSAGE;
        }
    }
    return kind;
}

static void decode(const uint8_t *data, struct wire_packet *p)
{
    assert_int_equal(mrd_wire_get(data, p->len, &p->head), MRD_WIRE_OK);
    switch ((enum mrd_wire_type)p->head.type) {
    case MRD_WIRE_DATA:
        p->kind = kind_of_data(data, p);
        break;
    case MRD_WIRE_ACK:
        p->kind = WIRE_ACK;
        break;
    case MRD_WIRE_RESET:
        p->kind = WIRE_RESET;
        break;
    case MRD_WIRE_CHALLENGE:
        p->kind = WIRE_CHALLENGE;
        break;
    case MRD_WIRE_BUSY:
        p->kind = WIRE_BUSY;
        break;
    case MRD_WIRE_FRAGMENT:
        p->kind = WIRE_FRAGMENT;
        break;
    }
}

static bool decide_loss(struct wiretap *tap, const struct wire_packet *p)
{
    uint32_t *drop = &tap->drop[p->from][p->kind];

    if (*drop) {
        *drop -= *drop != WIRE_ALL;
        return true;
    }
    return tap->rule && tap->rule(tap->arg, p);
}

static enum mrd_sim_verdict tapped(void *arg, struct mrd_sim_datagram *datagram)
{
    struct wiretap *tap = arg;
    struct wire_packet p = {.at_ns = mrd_sim_now(tap->w->sim),
                            .from = datagram->from,
                            .to = datagram->to,
                            .path = datagram->path,
                            .len = datagram->len,
                            .alone = datagram->alone,
                            .data = malloc(datagram->len)};

    assert_non_null(p.data);
    memcpy(p.data, datagram->data, p.len);
    decode(p.data, &p);
    p.dropped = decide_loss(tap, &p);
    if (tap->num == tap->cap) {
        tap->cap = tap->cap ? tap->cap * 2 : 1024;
        tap->packets = realloc(tap->packets, tap->cap * sizeof(*tap->packets));
        assert_non_null(tap->packets);
    }
    tap->packets[tap->num++] = p;
    return p.dropped ? MRD_SIM_DROP : MRD_SIM_PASS;
}

static void destroy_tap(void *object)
{
    wiretap_close(object);
}

struct wiretap *wiretap_open(struct sim_world *w)
{
    struct wiretap *tap = calloc(1, sizeof(*tap));

    assert_non_null(tap);
    tap->w = w;
    mrd_sim_set_tap(w->sim, tapped, tap);
    kit_own(tap, destroy_tap);
    return tap;
}

void wiretap_close(struct wiretap *tap)
{
    kit_disown(tap);
    mrd_sim_set_tap(tap->w->sim, NULL, NULL);
    for (uint32_t i = 0; i < tap->num; i++)
        free(tap->packets[i].data);
    free(tap->packets);
    free(tap);
}

uint32_t wiretap_count(const struct wiretap *tap, uint32_t from, enum wire_kind kind)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < tap->num; i++)
        n += tap->packets[i].from == from && tap->packets[i].kind == kind;
    return n;
}

uint32_t wiretap_count_dropped(const struct wiretap *tap, uint32_t from, enum wire_kind kind)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < tap->num; i++)
        n +=
            tap->packets[i].from == from && tap->packets[i].kind == kind && tap->packets[i].dropped;
    return n;
}

const struct wire_packet *wiretap_find(const struct wiretap *tap, uint32_t start, uint32_t from,
                                       enum wire_kind kind)
{
    for (uint32_t i = start; i < tap->num; i++) {
        if (tap->packets[i].from == from && tap->packets[i].kind == kind)
            return &tap->packets[i];
    }
    test_fail(tap->w->options.seed, "host %u sent no packet of kind %d", from, (int)kind);
}

bool wire_packet_acks(const struct wire_packet *packet, uint32_t psn)
{
    struct mrd_wire_ack ack;

    if (packet->kind != WIRE_ACK)
        return packet->head.flags & MRD_WIRE_ACKBLOCK && (int32_t)(psn - packet->head.ack_cum) < 0;
    assert_true(mrd_wire_get_ack(packet->data, &packet->head, &ack));
    for (unsigned i = 0; i < ack.num_slices; i++) {
        uint32_t bit = psn - ack.slice[i].base;

        if (bit < MRD_WIRE_SLICE_BITS && ack.slice[i].bits[bit / 64] >> bit % 64 & 1)
            return true;
    }
    return (int32_t)(psn - ack.cum) < 0;
}

uint64_t wiretap_acked_ns(const struct wiretap *tap, uint32_t from, uint32_t psn)
{
    for (uint32_t i = 0; i < tap->num; i++) {
        const struct wire_packet *p = &tap->packets[i];

        if (p->from == from && !p->dropped && wire_packet_acks(p, psn))
            return p->at_ns;
    }
    return UINT64_MAX;
}

void wiretap_replay(struct wiretap *tap, const struct wire_packet *packet)
{
    assert_int_equal(mrd_sim_inject(tap->w->sim, packet->from, packet->to, packet->data,
                                    packet->len, mrd_sim_now(tap->w->sim) + USEC_NS),
                     0);
}

uint32_t wiretap_replay_messages(struct wiretap *tap, uint32_t from)
{
    uint32_t num = 0;

    for (uint32_t i = tap->num; i-- > 0;) {
        if (tap->packets[i].from != from || tap->packets[i].kind != WIRE_MESSAGE)
            continue;
        wiretap_replay(tap, &tap->packets[i]);
        num++;
    }
    return num;
}
