/* SPDX-License-Identifier: BSD-2-Clause */
/* The public calls that report: addresses, events, counters, attributes of peers and paths. */
#include <errno.h>
#include <string.h>

#include "core/limits.h"
#include "core/stats.h"
#include "transport/call.h"
#include "transport/context.h"
#include "transport/error.h"
#include "transport/progress.h"
#include "transport/sealing.h"
#include "transport/sized.h"

#define ONE_MORE(name, unit, what) +1
enum { ENGINE_COUNTERS = 0 MRD_COUNTERS(ONE_MORE) };

static int format(struct mrd_context_impl *c, const struct mrd_addr *addr, char *buf, size_t len)
{
    int error = c->ops->format_address(c->backend, addr, buf, len);

    if (error)
        mrd_error_set("%zu bytes are too few for an address; %d suffice", len, MRD_ADDRESS_MAX);
    return error;
}

int mrd_query_address(struct mrd_context *context, char *buf, size_t len)
{
    struct mrd_context_impl *c = mrd_context_impl(context);
    int error = mrd_call_enter(c);
    struct mrd_addr self;

    if (error)
        return error;
    error = c->ops->self_address(c->backend, &self);
    if (!error)
        error = format(c, &self, buf, len);
    mrd_call_leave(c);
    return error;
}

int mrd_query_ah(struct mrd_ah *ah, char *buf, size_t len)
{
    struct mrd_context_impl *c = mrd_context_impl(ah->context);
    int error = mrd_call_enter(c);

    if (error)
        return error;
    error = format(c, mrd_engine_ah_addr(ah), buf, len);
    mrd_call_leave(c);
    return error;
}

/* --------------------------------------------------------------------------------------- events */

static void set_element(struct mrd_async_event *event, const struct mrd_engine_event *found)
{
    if (found->type == MRD_EVENT_QP_FATAL || found->type == MRD_EVENT_QP_REFUSED)
        event->element.qp = found->object;
    else if (found->type == MRD_EVENT_SRQ_LIMIT_REACHED)
        event->element.srq = found->object;
}

int mrd_get_async_event(struct mrd_context *context, struct mrd_async_event *event)
{
    struct mrd_context_impl *c = mrd_context_impl(context);
    int error = mrd_call_enter(c);
    struct mrd_engine_event found;

    if (error)
        return error;
    error = mrd_progress_take_event(c, &found);
    if (!error) {
        *event = (struct mrd_async_event){.event_type = found.type, .peer_id = found.peer_id};
        set_element(event, &found);
        mrd_engine_hand_event(&found);
        /*
         * Formatting cannot fail: address[] holds MRD_ADDRESS_MAX bytes, which always suffice. Not
         * to know one's own address is no reason to keep an event back.
         */
        if (!found.object || found.addr.port || !c->ops->self_address(c->backend, &found.addr))
            (void)format(c, &found.addr, event->address, sizeof(event->address));
    }
    mrd_call_leave(c);
    return error;
}

void mrd_ack_async_event(struct mrd_async_event *event)
{
    bool of_qp =
        event->event_type == MRD_EVENT_QP_FATAL || event->event_type == MRD_EVENT_QP_REFUSED;
    struct mrd_context_impl *c;

    if (!of_qp && event->event_type != MRD_EVENT_SRQ_LIMIT_REACHED)
        return; /* to take it held nothing */
    c = mrd_context_impl(of_qp ? event->element.qp->context : event->element.srq->context);
    if (mrd_call_enter(c))
        return;
    mrd_engine_ack_event(event->event_type,
                         of_qp ? (void *)event->element.qp : (void *)event->element.srq);
    mrd_call_leave(c);
}

/* -------------------------------------------------------------------------------------- figures */

int mrd_query_counters_sized(struct mrd_context *context, struct mrd_counter *counters, int max,
                             size_t size)
{
    struct mrd_context_impl *c = mrd_context_impl(context);
    struct mrd_counter found[ENGINE_COUNTERS];
    int error = mrd_sized_check(&mrd_sized_counter, size);

    if (!error)
        error = mrd_call_enter(c);
    if (error)
        return error;

    const struct mrd_seal_stats none = {0};
    const struct mrd_seal_stats *seal =
        mrd_sealing_is_on(c) ? mrd_seal_stats(c->sealing.seal) : &none;
    const struct mrd_counter own[] = {
        {.name = "rx_opened", .unit = "packets", .value = seal->verdicts[MRD_SEAL_OPENED]},
        {.name = "rx_drop_clear", .unit = "packets", .value = seal->verdicts[MRD_SEAL_CLEAR]},
        {.name = "rx_drop_key", .unit = "packets", .value = seal->verdicts[MRD_SEAL_NO_KEY]},
        {.name = "rx_drop_tag", .unit = "packets", .value = seal->verdicts[MRD_SEAL_BAD_TAG]},
        {.name = "rx_drop_replay", .unit = "packets", .value = seal->verdicts[MRD_SEAL_REPLAY]},
        {.name = "rx_drop_stranger", .unit = "packets", .value = seal->verdicts[MRD_SEAL_BUSY]},
        {.name = "seal_failed", .unit = "packets", .value = seal->failed},
        {.name = "seal_keys_derived", .unit = "keys", .value = seal->derived},
        {.name = "tx_burst_partial", .unit = "events", .value = c->outbox.partial},
        {.name = "tx_drop_old", .unit = "packets", .value = c->outbox.old},
        {.name = "progress_thread_wakeups",
         .unit = "events",
         .value = atomic_load_explicit(&c->thread.wakeups, memory_order_relaxed)},
    };
    const int num_own = (int)(sizeof(own) / sizeof(own[0]));
    mrd_engine_query_counters(c->engine, found, ENGINE_COUNTERS);
    mrd_call_leave(c);
    for (int i = 0; i < ENGINE_COUNTERS + num_own && i < max; i++)
        mrd_sized_write(&mrd_sized_counter, (char *)counters + (size_t)i * size, size,
                        i < ENGINE_COUNTERS ? &found[i] : &own[i - ENGINE_COUNTERS]);
    return ENGINE_COUNTERS + num_own;
}

int(mrd_query_counters)(struct mrd_context *context, struct mrd_counter *counters, int max)
{
    return mrd_query_counters_sized(context, counters, max, mrd_sized_counter.first_bytes);
}

/* Call with the lock held: releases it. 0 or -errno with mrd_error_set(). */
static int query_peer(struct mrd_context_impl *c, const struct mrd_addr *addr,
                      struct mrd_peer_attr *attr, size_t size)
{
    struct mrd_peer_attr found;
    int error = mrd_engine_query_peer(c->engine, addr, &found);

    if (error)
        return mrd_call_fail(c, error);
    error = format(c, addr, found.address, sizeof(found.address));
    mrd_call_leave(c);
    if (!error)
        mrd_sized_write(&mrd_sized_peer_attr, attr, size, &found);
    return error;
}

int mrd_query_peer(struct mrd_ah *ah, struct mrd_peer_attr *attr, size_t size)
{
    struct mrd_context_impl *c = mrd_context_impl(ah->context);
    int error = mrd_sized_check(&mrd_sized_peer_attr, size);

    if (!error)
        error = mrd_call_enter(c);
    return error ? error : query_peer(c, mrd_engine_ah_now(c->engine, ah), attr, size);
}

int mrd_query_peer_id(struct mrd_context *context, uint32_t peer_id, struct mrd_peer_attr *attr,
                      size_t size)
{
    struct mrd_context_impl *c = mrd_context_impl(context);
    int error = mrd_sized_check(&mrd_sized_peer_attr, size);
    struct mrd_addr addr;

    if (!error)
        error = mrd_call_enter(c);
    if (error)
        return error;
    error = mrd_engine_peer_addr(c->engine, peer_id, &addr);
    if (error) {
        mrd_error_set("no peer %u", peer_id);
        mrd_call_leave(c);
        return error;
    }
    return query_peer(c, &addr, attr, size);
}

int mrd_query_path(struct mrd_ah *ah, uint32_t index, struct mrd_path_attr *attr, size_t size)
{
    struct mrd_context_impl *c = mrd_context_impl(ah->context);
    int error = mrd_sized_check(&mrd_sized_path_attr, size);
    struct mrd_path_attr found;

    if (!error)
        error = mrd_call_enter(c);
    if (error)
        return error;
    error = mrd_engine_query_path(c->engine, mrd_engine_ah_now(c->engine, ah), index, &found);
    if (error)
        return mrd_call_fail(c, error);
    found.port = c->ops->path_port(c->backend, found.port);
    mrd_call_leave(c);
    mrd_sized_write(&mrd_sized_path_attr, attr, size, &found);
    return 0;
}

int mrd_query_device(struct mrd_context *context, struct mrd_device_attr *attr, size_t size)
{
    struct mrd_context_impl *c = mrd_context_impl(context);
    int error = mrd_sized_check(&mrd_sized_device_attr, size);

    if (!error)
        error = mrd_call_enter(c);
    if (error)
        return error;

    const struct mrd_engine_config *config = mrd_engine_config(c->engine);
    const struct mrd_device_attr found = {
        .max_message_bytes = MRD_MESSAGE_BYTES_MAX,
        .max_mr_bytes = SIZE_MAX,
        .max_mr = MRD_MRS_MAX,
        .max_qp_wr = MRD_WR_MAX,
        .max_sge = MRD_SGE_MAX,
        .max_inline_data = MRD_INLINE_BYTES_MAX,
        .max_cqe = MRD_CQE_MAX,
        .max_rd_atomic = UINT32_MAX,
        .max_res_rd_atomic = MRD_RESPONSES,
        .max_peers = config->max_peers,
        .max_flows = config->max_flows,
        .max_paths = c->backend->mover.paths,
    };

    mrd_call_leave(c);
    mrd_sized_write(&mrd_sized_device_attr, attr, size, &found);
    return 0;
}

int mrd_query_context(struct mrd_context *context, struct mrd_context_info *info, size_t size)
{
    struct mrd_context_impl *c = mrd_context_impl(context);
    int error = mrd_sized_check(&mrd_sized_context_info, size);
    struct mrd_addr self;

    if (!error)
        error = mrd_call_enter(c);
    if (error)
        return error;
    error = c->ops->self_address(c->backend, &self);
    if (error) {
        mrd_call_leave(c);
        return error;
    }

    struct mrd_context_info found = {
        .paths = c->paths,
        .mtu = mrd_sealing_payload(c, c->backend->mover.payload_bytes),
        .link_bps = c->link_bps,
        .receive_buffer_bytes = c->backend->mover.rx_buffer_bytes,
        .port = c->ops->has_port ? (uint16_t)self.port : 0,
        .check = (uint16_t)mrd_engine_check(c->engine),
    };

    struct mrd_port_facts facts = {0};

    if (c->ops->port_facts)
        c->ops->port_facts(c->backend, &facts);
    found.port_state = facts.state;
    found.port_mtu = facts.mtu;
    found.port_bps = facts.bps;
    memcpy(found.interface, facts.interface, sizeof(found.interface));
    if (mrd_sealing_is_on(c))
        strncpy(found.cipher, c->sealing.cipher->name, sizeof(found.cipher) - 1);
    strncpy(found.spray, mrd_engine_spray_name(c->engine), sizeof(found.spray) - 1);
    strncpy(found.cc, mrd_engine_cc_name(c->engine), sizeof(found.cc) - 1);
    mrd_call_leave(c);
    mrd_sized_write(&mrd_sized_context_info, info, size, &found);
    return 0;
}

int mrd_query_doubt(struct mrd_ah *ah, char *buf, size_t len)
{
    struct mrd_context_impl *c = mrd_context_impl(ah->context);
    int error = mrd_call_enter(c);
    char text[MRD_SEALING_DOUBT_BYTES];
    const char *doubt;

    if (error)
        return error;
    doubt = mrd_sealing_doubt(c, mrd_engine_ah_addr(ah), text, sizeof(text));
    mrd_call_leave(c);
    if (!doubt) {
        mrd_error_set("no sign of why nothing comes from there");
        return -ENOENT;
    }
    if (strlen(doubt) >= len) {
        mrd_error_set("%zu bytes are too few; %d suffice", len, MRD_SEALING_DOUBT_BYTES);
        return -ENOSPC;
    }
    memcpy(buf, doubt, strlen(doubt) + 1);
    return 0;
}
