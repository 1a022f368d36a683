/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/share.h"

#include <string.h>

#include "core/limits.h"

#define PERIOD_NS (20 * MRD_MSEC)

enum { LOW_PART = 4 };

static void count_room(struct mrd_share *share)
{
    uint32_t most = share->largest > share->largest_before ? share->largest : share->largest_before;
    uint64_t packets = (uint64_t)share->buffer_bytes * share->usual / share->cost / most;

    if (share->buffer_bytes)
        share->room = packets > 1 ? (uint32_t)packets : 1;
}

void mrd_share_init(struct mrd_share *share, uint32_t buffer_bytes, uint32_t usual_bytes,
                    uint32_t overhead_bytes, uint32_t packets_max, uint64_t now_ns)
{
    memset(share, 0, sizeof(*share));
    share->buffer_bytes = buffer_bytes;
    share->usual = share->largest = share->largest_before = usual_bytes;
    share->cost = usual_bytes + overhead_bytes;
    count_room(share);
    share->packets_max = packets_max;
    share->period_at_ns = now_ns;
    share->turns = 1;
}

void mrd_share_grow(struct mrd_share *share, uint32_t payload_bytes)
{
    share->largest = payload_bytes;
    count_room(share);
}

void mrd_share_read(struct mrd_share *share, uint32_t packets)
{
    uint32_t all;

    share->since_empty += packets;
    if (share->since_empty > share->room)
        share->since_empty = share->room;
    /* One packet at a time is one at a time, whoever has a turn. */
    all = share->since_empty ? (share->since_empty - 1) * share->turns + 1 : 0;
    if (all > share->most)
        share->most = all;
}

static void begin_period(struct mrd_share *share, uint64_t now_ns)
{
    bool idle = now_ns - share->period_at_ns > 2 * PERIOD_NS;

    share->senders_prev = idle ? 0 : share->senders;
    share->most_prev = idle ? 0 : share->most;
    share->senders = share->most = 0;
    share->largest_before = idle ? share->usual : share->largest;
    share->largest = share->usual;
    count_room(share);
    share->period++;
    share->period_at_ns = now_ns;
}

static uint32_t most(const struct mrd_share *share)
{
    return share->most > share->most_prev ? share->most : share->most_prev;
}

bool mrd_share_is_low(const struct mrd_share *share)
{
    return !share->room || most(share) <= share->room / LOW_PART;
}

bool mrd_share_is_full(const struct mrd_share *share)
{
    return share->room && most(share) > share->room / 2;
}

uint32_t mrd_share_grant(struct mrd_share *share, uint32_t *seen, uint32_t id, uint64_t now_ns)
{
    uint32_t active, packets = share->packets_max;

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
        share->turns = 1;
        packets = share->room / active < packets ? share->room / active : packets;
        return 2 * packets;
    }
    /* Not a packet for each: if the buffer fills, another part of them has a turn each period. */
    share->turns = mrd_share_is_full(share) ? (active + share->room - 1) / share->room : 1;
    return (id + share->period) % share->turns ? 1 : 2;
}
