/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/sim/sim_host.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "transport/movers/sim/sim_world.h"

#define PPB    1000000000
#define FAR_NS (UINT64_C(1) << 60) /* 36 years, which counts as never */

enum {
    /* A context that asks for so many turns within TURN_PLACE_NS is stuck. */
    TURNS_IN_PLACE_MAX = 1000000,
    TURN_PLACE_NS = 1000,
};

void mrd_sim_host_init(struct mrd_sim_host *host, struct mrd_sim *sim, uint32_t number,
                       int64_t skew_ppb)
{
    *host = (struct mrd_sim_host){.sim = sim, .number = number, .skew_ppb = skew_ppb};
    snprintf(host->device.name, sizeof(host->device.name), "sim:%u", number);
    snprintf(host->device.transport, sizeof(host->device.transport), "sim");
    mrd_sim_host_reset(host);
}

void mrd_sim_host_fini(struct mrd_sim_host *host)
{
    assert(!host->open);
    free(host->sent);
    free(host->addresses);
    host->sent = NULL;
    host->addresses = NULL;
}

static void release_list(struct mrd_sim_host *host, struct mrd_sim_packet *list)
{
    while (list) {
        struct mrd_sim_packet *next = (struct mrd_sim_packet *)list->event.next;

        mrd_sim_packet_release(&host->part->packets, list);
        list = next;
    }
}

void mrd_sim_host_reset(struct mrd_sim_host *host)
{
    release_list(host, host->rx_head);
    release_list(host, host->rx_lent);
    host->rx_head = host->rx_lent = NULL;
    host->rx_waiting = 0;
    host->rx_ready_ns = host->tx_retry_ns = MRD_SIM_NEVER;
    host->timer_at_ns = host->timer_after_ns = MRD_SIM_NEVER;
    host->sent_head = host->sent_tail = 0;
    host->num_too_big = 0;
    host->progress = NULL;
    host->deadline_ns = NULL;
}

/* ---------------------------------------------------------------------------------------- clock */

/* Seconds and nanoseconds are multiplied apart: their products fit in 64 bits. */
static uint64_t clock_at(const struct mrd_sim_host *host, uint64_t ns)
{
    int64_t drift_ns = (int64_t)(ns / PPB) * host->skew_ppb;

    drift_ns += (int64_t)(ns % PPB) * host->skew_ppb / PPB;
    return ns + (uint64_t)drift_ns + host->clock_offset_ns;
}

uint64_t mrd_sim_host_now_ns(const struct mrd_sim_host *host)
{
    return clock_at(host, host->stopped ? host->stopped_at_ns : host->part->now_ns);
}

/* The first virtual time at which the host's clock reads `clock_ns` or later. */
static uint64_t virtual_time(const struct mrd_sim_host *host, uint64_t clock_ns)
{
    if (clock_ns == MRD_SIM_NEVER)
        return MRD_SIM_NEVER;
    if (clock_ns <= clock_at(host, host->part->now_ns))
        return host->part->now_ns;

    double guess_ns =
        (double)(clock_ns - host->clock_offset_ns) * PPB / (PPB + (double)host->skew_ppb);

    if (guess_ns >= (double)FAR_NS)
        return MRD_SIM_NEVER;

    uint64_t ns = (uint64_t)guess_ns;

    while (ns > 0 && clock_at(host, ns - 1) >= clock_ns)
        ns--;
    while (clock_at(host, ns) < clock_ns)
        ns++;
    return ns;
}

/* ---------------------------------------------------------------------------------------- timer */

static uint64_t min_ns(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* When the next turn is due if no packet arrives. */
static uint64_t next_turn_ns(const struct mrd_sim_host *host)
{
    uint64_t at_ns = virtual_time(host, host->deadline_ns(host->arg));

    at_ns = min_ns(at_ns, host->rx_ready_ns);
    at_ns = min_ns(at_ns, host->tx_retry_ns);
    if (host->sent_head != host->sent_tail)
        at_ns = min_ns(at_ns, host->sent[host->sent_head & (host->sent_cap - 1)].at_ns);
    return at_ns;
}

/*
 * If the deadline moved later, the earlier event stays: when it fires, the deadline is looked at
 * again. That costs less than an event for each of many small postponements.
 *
 * If it moved earlier, as when a packet is due soon and a timeout far off, the later event stays
 * valid for afterwards. A new one after each packet would fill the heap with stale timeouts.
 */
void mrd_sim_host_set_timer(struct mrd_sim_host *host, uint64_t at_ns)
{
    if (at_ns >= host->timer_at_ns)
        return;

    struct mrd_sim_events *events = &host->part->events;
    struct mrd_sim_event *event = mrd_sim_events_alloc(events);

    if (!event)
        goto no_memory;
    event->kind = MRD_SIM_EVENT_TIMER;
    event->object = host;
    event->tag = ++host->timer_tag_last;
    if (mrd_sim_events_push(events, event, at_ns) != 0)
        goto release;
    if (host->timer_after_ns == MRD_SIM_NEVER) {
        host->timer_after_ns = host->timer_at_ns;
        host->timer_after_tag = host->timer_tag;
    }
    host->timer_at_ns = at_ns;
    host->timer_tag = host->timer_tag_last;
    return;

release:
    mrd_sim_events_release(events, event);
no_memory:
    mrd_log(MRD_LOG_ERROR, "sim: host %u lost its timer: no memory", host->number);
}

static bool is_live(const struct mrd_sim_host *host)
{
    return host->progress && !host->stopped;
}

/* Set the timer for the next turn, which comes at earliest_ns or later. */
static void arm(struct mrd_sim_host *host, uint64_t earliest_ns)
{
    uint64_t at_ns = next_turn_ns(host);

    if (at_ns != MRD_SIM_NEVER)
        mrd_sim_host_set_timer(host, at_ns < earliest_ns ? earliest_ns : at_ns);
}

/* Set the timers of all touched hosts of a part. */
static void settle(struct mrd_sim_part *part)
{
    while (part->touched) {
        struct mrd_sim_host *host = part->touched;

        part->touched = host->touched_next;
        host->touched = false;
        if (is_live(host))
            arm(host, part->now_ns);
    }
}

static void take_turn(struct mrd_sim_host *host)
{
    uint64_t now_ns = host->part->now_ns;

    if (now_ns - host->turn_at_ns > TURN_PLACE_NS) {
        host->turn_at_ns = now_ns;
        host->turns_in_place = 0;
    }
    assert(host->turns_in_place++ < TURNS_IN_PLACE_MAX && "the context never lets time pass");

    if (host->tx_retry_ns <= now_ns)
        host->tx_retry_ns = MRD_SIM_NEVER;
    host->in_progress = true;
    host->progress(host->arg);
    host->in_progress = false;
    arm(host, now_ns + 1); /* so that time moves on even if the context always has work */
    if (host->sim->options.turn_hook) {
        host->sim->options.turn_hook(host->sim->options.turn_hook_arg, host->number);
        settle(host->part);
    }
}

uint64_t mrd_sim_host_idle_ns(const struct mrd_sim_host *host)
{
    const struct mrd_sim_wire *wire = mrd_sim_fabric_uplink(&host->sim->fabric, host->number);
    uint64_t now_ns = host->part->now_ns;

    return wire && wire->idle_at_ns > now_ns ? wire->idle_at_ns : now_ns;
}

/* Call the timer of the stack if its time has come, or set ours for it. */
static void call_stack_timer(struct mrd_sim_host *host)
{
    uint64_t at_ns = host->wake_ns;

    if (at_ns == MRD_SIM_NEVER)
        return;
    if (at_ns > host->part->now_ns) {
        mrd_sim_host_set_timer(host, at_ns);
        return;
    }
    host->wake_ns = MRD_SIM_NEVER;
    host->stack->timer(host->stack_arg);
}

/* --------------------------------------------------------------------------------------- events */

void mrd_sim_host_fire(struct mrd_sim_host *host, uint32_t tag)
{
    if (tag != host->timer_tag || host->timer_at_ns == MRD_SIM_NEVER) {
        /* Both valid events are due now: the later one was pushed first and fires first. */
        if (tag == host->timer_after_tag)
            host->timer_after_ns = MRD_SIM_NEVER;
        return;
    }
    host->timer_at_ns = host->timer_after_ns;
    host->timer_tag = host->timer_after_tag;
    host->timer_after_ns = MRD_SIM_NEVER;
    if (host->stack) {
        call_stack_timer(host);
        return;
    }
    if (!is_live(host))
        return;

    uint64_t at_ns = next_turn_ns(host);

    if (at_ns <= host->part->now_ns)
        take_turn(host);
    else if (at_ns != MRD_SIM_NEVER)
        mrd_sim_host_set_timer(host, at_ns);
}

void mrd_sim_host_receive(struct mrd_sim_host *host, struct mrd_sim_packet *packet)
{
    uint64_t now_ns = host->part->now_ns;

    if (mrd_sim_fabric_draw_loss(&host->sim->fabric, host->part) ||
        ((host->addresses || packet->to_id) && !mrd_sim_takes(host, packet->to_id))) {
        mrd_sim_packet_release(&host->part->packets, packet);
        return;
    }
    if (host->stack) {
        host->stack->receive(host->stack_arg, packet);
        return;
    }
    if (!host->open) {
        host->stats.dead_drops++;
        mrd_sim_packet_release(&host->part->packets, packet);
        return;
    }
    if (host->sim->options.rx_packets_max &&
        host->rx_waiting >= host->sim->options.rx_packets_max) {
        host->stats.overflows++;
        mrd_sim_packet_release(&host->part->packets, packet);
        return;
    }
    /* The engine's plan and the placement read all bytes at data[]. */
    if (host->sim->options.gro)
        packet = mrd_sim_packet_join(&host->part->packets, packet);
    if (!packet)
        return;
    packet->event.next = NULL;
    if (!host->rx_head)
        host->rx_ready_ns = now_ns + host->sim->options.rx_delay_ns;
    if (host->rx_head)
        host->rx_last->event.next = &packet->event;
    else
        host->rx_head = packet;
    host->rx_last = packet;
    host->rx_waiting++;
    if (!is_live(host))
        return;
    if (host->rx_ready_ns <= now_ns)
        take_turn(host);
    else
        mrd_sim_host_set_timer(host, host->rx_ready_ns);
}

void mrd_sim_host_stop(struct mrd_sim_host *host, bool stopped)
{
    if (host->stopped == stopped)
        return;
    if (stopped)
        host->stopped_at_ns = host->part->now_ns;
    host->stopped = stopped;
    if (!stopped && host->progress)
        mrd_sim_host_set_timer(host, host->part->now_ns);
}

void mrd_sim_host_touch(struct mrd_sim_host *host)
{
    if (host->touched || host->in_progress)
        return;
    host->touched = true;
    host->touched_next = host->part->touched;
    host->part->touched = host;
}

void mrd_sim_hosts_settle(struct mrd_sim *sim)
{
    for (uint32_t i = 0; i < sim->num_parts; i++)
        settle(&sim->parts[i]);
}

void mrd_sim_attach(struct mrd_backend *b, void (*progress)(void *arg),
                    uint64_t (*deadline_ns)(void *arg), void *arg)
{
    struct mrd_sim_host *host = (struct mrd_sim_host *)b;

    assert(host->open && !host->progress);
    host->progress = progress;
    host->deadline_ns = deadline_ns;
    host->arg = arg;
    mrd_sim_host_touch(host);
}
