/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/share.h"

#include <string.h>

#include "core/limits.h"

#define PERIOD_NS (20 * MRD_MSEC)

void mrd_share_init(struct mrd_share *share, uint32_t buffer_bytes, uint32_t packet_bytes,
                    uint32_t packets_max, uint64_t now_ns)
{
    memset(share, 0, sizeof(*share));
    if (buffer_bytes)
        share->room = buffer_bytes > packet_bytes ? buffer_bytes / packet_bytes : 1;
    share->packets_max = packets_max;
    share->period_at_ns = now_ns;
}

static void begin_period(struct mrd_share *share, uint64_t now_ns)
{
    share->senders_prev = now_ns - share->period_at_ns > 2 * PERIOD_NS ? 0 : share->senders;
    share->senders = 0;
    share->period++;
    share->period_at_ns = now_ns;
}

uint32_t mrd_share_grant(struct mrd_share *share, uint64_t *seen, uint32_t id, uint64_t now_ns)
{
    uint32_t active, packets = share->packets_max, turns;

    if (now_ns - share->period_at_ns > PERIOD_NS)
        begin_period(share, now_ns);
    if (*seen != share->period + 1) {
        *seen = share->period + 1;
        share->senders++;
    }
    if (!share->room)
        return 2 * packets;
    active = share->senders > share->senders_prev ? share->senders : share->senders_prev;
    if (share->room >= active) {
        packets = share->room / active < packets ? share->room / active : packets;
        return 2 * packets;
    }
    /* Not a packet for each: they take turns, another part of them each period. */
    turns = (active + share->room - 1) / share->room;
    return (id + share->period) % turns ? 1 : 2;
}
