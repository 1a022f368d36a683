/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/flow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------- the sender */

void flow_tx_init(struct flow_tx *tx, uint32_t credit)
{
    *tx = (struct flow_tx){.allowed = credit};
}

uint32_t flow_may_send(const struct flow_tx *tx)
{
    return tx->allowed - tx->sent;
}

uint32_t flow_sent(struct flow_tx *tx)
{
    assert(tx->allowed != tx->sent);
    return tx->sent++;
}

bool flow_credited(struct flow_tx *tx, uint32_t round, uint32_t allowed)
{
    if (round != tx->round || allowed - tx->allowed > FLOW_WINDOW_MAX ||
        allowed - tx->sent > FLOW_WINDOW_MAX)
        return false;
    tx->allowed = allowed;
    return true;
}

bool flow_recalled(struct flow_tx *tx, uint32_t round, uint32_t allowed)
{
    if (round != tx->round + 1)
        return false;
    tx->round = round;
    tx->allowed = allowed - tx->sent <= FLOW_WINDOW_MAX ? allowed : tx->sent;
    return true;
}

/* ----------------------------------------------------------------------------------- the receiver */

static struct flow_slot *slot_of(struct flow_rx *rx, uint32_t seq)
{
    return &(rx->more ? rx->more : rx->few)[seq % rx->slots];
}

void flow_rx_init(struct flow_rx *rx, uint32_t window)
{
    assert(window >= 1 && window <= FLOW_FEW);
    memset(rx, 0, sizeof(*rx));
    rx->window = rx->told = window;
    rx->slots = FLOW_FEW;
}

void flow_rx_fini(struct flow_rx *rx)
{
    free(rx->more);
    rx->more = NULL;
    rx->slots = FLOW_FEW;
    memset(rx->few, 0, sizeof(rx->few)); /* what moved from there is `more`'s */
}

uint8_t *flow_take(struct flow_rx *rx)
{
    for (uint32_t i = 0; i < rx->slots; i++) {
        struct flow_slot *slot = slot_of(rx, i);
        uint8_t *buffer = slot->buffer;

        slot->buffer = NULL;
        if (buffer)
            return buffer;
    }
    return NULL;
}

bool flow_came(struct flow_rx *rx, uint32_t seq, uint8_t *buffer, uint32_t len, bool last)
{
    struct flow_slot *slot = slot_of(rx, seq);

    if (seq - rx->drained >= rx->told - rx->drained || slot->buffer)
        return false;
    if (rx->has_end && seq - rx->drained >= rx->end - rx->drained)
        return false;
    *slot = (struct flow_slot){buffer, len};
    rx->starved |= last;
    if (seq + 1 - rx->drained > rx->came - rx->drained)
        rx->came = seq + 1;
    return true;
}

bool flow_end(struct flow_rx *rx, uint32_t end)
{
    if (rx->has_end || end - rx->drained > rx->told - rx->drained ||
        end - rx->drained < rx->came - rx->drained)
        return false;
    rx->has_end = true;
    rx->end = end;
    return true;
}

bool flow_cut(struct flow_rx *rx, uint32_t end)
{
    return rx->has_end ? rx->end == end : flow_end(rx, end);
}

struct flow_slot *flow_next(struct flow_rx *rx, uint32_t ahead)
{
    struct flow_slot *slot = slot_of(rx, rx->drained + ahead);

    return ahead < rx->slots && slot->buffer ? slot : NULL;
}

void flow_drained(struct flow_rx *rx)
{
    assert(flow_next(rx, 0));
    *slot_of(rx, rx->drained) = (struct flow_slot){0};
    rx->drained++;
}

bool flow_is_over(const struct flow_rx *rx)
{
    return rx->has_end && rx->drained == rx->end;
}

uint32_t flow_wants(const struct flow_rx *rx, uint32_t most)
{
    uint32_t window = rx->window * 2 < most ? rx->window * 2 : most;

    if (rx->has_end || rx->recalled || rx->drained != rx->came || !rx->starved ||
        window <= rx->window)
        return 0;
    return window - rx->window;
}

/* Moves the slots to twice as many, until there is one for each message of a window. */
static bool make_slots(struct flow_rx *rx, uint32_t window)
{
    struct flow_rx wider = *rx;

    while (wider.slots < window)
        wider.slots *= 2;
    if (wider.slots == rx->slots)
        return true;
    wider.more = calloc(wider.slots, sizeof(*wider.more));
    if (!wider.more)
        return false;
    for (uint32_t seq = rx->drained; seq != rx->told; seq++)
        *slot_of(&wider, seq) = *slot_of(rx, seq);
    free(rx->more);
    *rx = wider;
    return true;
}

bool flow_grow(struct flow_rx *rx, uint32_t messages)
{
    assert(rx->window + messages <= FLOW_WINDOW_MAX);
    if (!make_slots(rx, rx->window + messages))
        return false;
    rx->window += messages;
    rx->starved = false;
    return true;
}

bool flow_tell(struct flow_rx *rx, uint32_t *credit)
{
    uint32_t now = rx->drained + rx->window, more = now - rx->told;

    if (rx->has_end || rx->recalled || more == 0 || more * 2 < rx->window)
        return false;
    rx->told = *credit = now;
    return true;
}

bool flow_answer(struct flow_rx *rx, uint32_t *credit)
{
    if (rx->has_end || rx->recalled)
        return false;
    rx->told = *credit = rx->drained + rx->window;
    return true;
}

bool flow_recall(struct flow_rx *rx, uint32_t keep, uint32_t *credit)
{
    uint32_t ahead = rx->told - rx->drained;

    if (rx->has_end || rx->recalled || rx->drained != rx->came || rx->window <= keep)
        return false;
    rx->recalled = true;
    rx->round++;
    rx->keep = keep;
    *credit = rx->drained + (ahead < keep ? ahead : keep);
    return true;
}

uint32_t flow_yielded(struct flow_rx *rx, uint32_t round, uint32_t allowed)
{
    uint32_t ahead = allowed - rx->drained, was = rx->window;

    if (!rx->recalled || round != rx->round || ahead > rx->told - rx->drained ||
        ahead < rx->came - rx->drained)
        return 0;
    rx->recalled = rx->starved = false;
    rx->told = allowed;
    rx->window = ahead > rx->keep ? ahead : rx->keep;
    return was - rx->window;
}
