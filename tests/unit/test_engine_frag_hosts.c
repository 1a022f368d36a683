/* SPDX-License-Identifier: BSD-2-Clause */
/* Pieces of packets: one host, however many addresses it has, leaves room to others. */
#include "tests/unit/engine_hand.h"

enum { AT = 0, PIECE = 64, WHOLE = 128 };

/* One half of a packet, from a host that heard what we are called by it. Was there room? */
static bool half_of(struct pair *p, const struct mrd_addr *from, uint32_t psn, uint32_t offset)
{
    struct mrd_engine *e = p->end[AT].e;
    uint8_t data[256];
    struct mrd_wire_head head = {.type = MRD_WIRE_FRAGMENT,
                                 .src_inc = 4711,
                                 .dst_inc = mrd_answer_pair(e, from).own_inc,
                                 .epoch = 1,
                                 .psn = psn,
                                 .reply = from->port,
                                 .whole_len = WHOLE,
                                 .whole_offset = offset};
    struct mrd_rx_packet packet = {.from = *from, .to = p->end[AT].addr};
    unsigned before = 0, after = 0;

    head.payload_check = mrd_wire_payload_check(p->end[AT].memory, PIECE);
    uint8_t *end = mrd_wire_put_head(data, &head);
    mrd_wire_seal(data, end);
    memcpy(end, p->end[AT].memory, PIECE);
    packet.data = data;
    packet.len = (uint32_t)(end - data) + PIECE;
    for (unsigned i = 0; i < MRD_FRAGS; i++)
        before += e->frags.frag[i] && e->frags.frag[i]->got;
    mrd_engine_rx(e, &packet, 1, p->now);
    for (unsigned i = 0; i < MRD_FRAGS; i++)
        after += e->frags.frag[i] && e->frags.frag[i]->got;
    return after > before;
}

/*
 * A stranger with an IPv6 prefix asks from each of many addresses what it is to call us, and sends the
 * first half of a packet from each. Another host's packet still finds room.
 */
TEST_F(wary_pair, fragments__one_prefix_is_one_host)
{
    struct mrd_addr honest = {.ip = {0x20, 1, 0xd, 0xb8, 9}, .port = 1000};

    for (unsigned i = 0; i < 4 * MRD_FRAGS; i++) {
        struct mrd_addr one = {.ip = {0x20, 1, 0xd, 0xb8, [15] = (uint8_t)i}, .port = 1000};

        half_of(self, &one, 0, 0);
    }
    assert_true(half_of(self, &honest, 0, 0));
}
