/* SPDX-License-Identifier: BSD-2-Clause */
/* The stranger's addresses, ears and memory. What it sends is in stranger_acts.c. */
#include "tests/support/stranger.h"

#include <stdlib.h>
#include <string.h>

#define FLIGHT_NS USEC_NS

/* Numbers of hosts that no simulation has, and ports that no host has: below 24 bits. */
enum { OWN_FIRST = 0x100000, NOBODY_FIRST = 0x200000, BESIDE_PORT = 0x700000, SEEN_OTHERS = 8 };

/* -------------------------------------------------------------------------------------- addresses */

struct mrd_addr stranger_address(uint32_t own)
{
    return mrd_sim_address(OWN_FIRST + own, 0);
}

struct mrd_addr stranger_beside(uint32_t host)
{
    struct mrd_addr addr = mrd_sim_address(host, 0);

    addr.port = BESIDE_PORT + host;
    return addr;
}

struct mrd_addr stranger_nobody(uint32_t number)
{
    return mrd_sim_address(NOBODY_FIRST + number, 0);
}

/* The number of the own address, or -1. */
static int own_of(const struct stranger *st, const struct mrd_addr *addr)
{
    for (int i = 0; i < STRANGER_OWN; i++) {
        if (memcmp(&st->own[i].addr, addr, sizeof(*addr)) == 0)
            return i;
    }
    return -1;
}

/* ------------------------------------------------------------------------------------------- ears */

static void hear(void *arg, const struct mrd_sim_stray *stray)
{
    struct stranger *st = arg;
    int own = own_of(st, &stray->to);
    struct stranger_told told = {.at_ns = mrd_sim_now(st->sim)};
    struct mrd_wire_ack ack;

    if (own < 0) {
        st->nobody_packets++;
        st->nobody_bytes += stray->len;
        return;
    }
    st->told_packets++;
    st->told_bytes += stray->len;
    if (mrd_wire_get(stray->data, stray->len, &told.head) != MRD_WIRE_OK)
        return;
    told.own = (uint32_t)own;
    told.live_epoch = told.head.type == MRD_WIRE_RESET ? told.head.live_epoch : 0;
    if (told.head.type == MRD_WIRE_ACK && mrd_wire_get_ack(stray->data, &told.head, &ack))
        told.live_epoch = ack.live_epoch;
    st->told[stray->from][st->num_told[stray->from]++ % STRANGER_TOLD_MAX] = told;
}

const struct stranger_told *stranger_told(const struct stranger *st, uint32_t host, uint32_t back)
{
    uint32_t num = st->num_told[host];

    if (back >= num || back >= STRANGER_TOLD_MAX)
        return NULL;
    return &st->told[host][(num - 1 - back) % STRANGER_TOLD_MAX];
}

/* ------------------------------------------------------------------------------------------- eyes */

static void keep(const struct mrd_sim *sim, struct stranger_kept *kept,
                 const struct mrd_sim_datagram *d, uint32_t head_len)
{
    uint8_t *data = realloc(kept->data, d->len ? d->len : 1);

    assert_non_null(data);
    memcpy(data, d->data, d->len);
    *kept = (struct stranger_kept){.len = d->len, .head_len = head_len, .data = data};
    mrd_sim_tapped(sim, &kept->from, &kept->to);
}

void stranger_watch(struct stranger *st, const struct mrd_sim_datagram *d)
{
    struct mrd_wire_head head;

    if (mrd_wire_get(d->data, d->len, &head) != MRD_WIRE_OK)
        return;
    if (head.flags & MRD_WIRE_FIRST_CONTACT)
        keep(st->sim, &st->first[st->num_first++ % STRANGER_KEPT_MAX], d, head.head_len);
    else if (mrd_rng_below(&st->rng, SEEN_OTHERS) == 0)
        keep(st->sim, &st->other[st->num_other++ % STRANGER_KEPT_MAX], d, head.head_len);
}

static enum mrd_sim_verdict watch(void *arg, struct mrd_sim_datagram *d)
{
    stranger_watch(arg, d);
    return MRD_SIM_PASS;
}

void stranger_watch_all(struct stranger *st)
{
    st->taps = true;
    mrd_sim_set_tap(st->sim, watch, st);
}

/* ------------------------------------------------------------------------------------------- life */

struct stranger *stranger_create(struct mrd_sim *sim, uint32_t hosts, uint64_t seed)
{
    struct stranger *st = calloc(1, sizeof(*st));

    assert_non_null(st);
    assert_in_range(hosts, 1, SIM_HOSTS_MAX);
    st->sim = sim;
    st->hosts = hosts;
    st->next_ns = UINT64_MAX;
    mrd_rng_init(&st->rng, seed);
    for (uint32_t i = 0; i < STRANGER_OWN; i++) {
        struct stranger_own *own = &st->own[i];

        /* Some are on machines of hosts. */
        own->addr = i % 2 && i / 2 < hosts ? stranger_beside(i / 2) : stranger_address(i);
        own->head.reply = own->addr.port;
        forge_garbage(&st->rng, (uint8_t *)&own->head.src_inc, sizeof(own->head.src_inc));
        forge_garbage(&st->rng, (uint8_t *)&own->head.epoch, sizeof(own->head.epoch));
    }
    mrd_sim_set_stray_hook(sim, hear, st);
    return st;
}

void stranger_destroy(struct stranger *st)
{
    mrd_sim_set_stray_hook(st->sim, NULL, NULL);
    if (st->taps)
        mrd_sim_set_tap(st->sim, NULL, NULL);
    for (uint32_t i = 0; i < STRANGER_KEPT_MAX; i++) {
        free(st->first[i].data);
        free(st->other[i].data);
    }
    free(st);
}

void stranger_send(struct stranger *st, const struct mrd_addr *from, uint32_t to, const void *data,
                   uint32_t len)
{
    struct mrd_addr addr = mrd_sim_address(to, 0);

    assert_int_equal(stranger_send_to(st, from, &addr, data, len), 0);
}

int stranger_send_to(struct stranger *st, const struct mrd_addr *from, const struct mrd_addr *to,
                     const void *data, uint32_t len)
{
    st->sent_packets++;
    st->sent_bytes += len;
    return mrd_sim_inject_from(st->sim, from, to, data, len, mrd_sim_now(st->sim) + FLIGHT_NS);
}
