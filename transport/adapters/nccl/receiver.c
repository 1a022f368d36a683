/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/nccl/receiver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "transport/adapters/nccl/copy.h"
#include "transport/adapters/nccl/log.h"

enum { PAGE = 4096, FREED_SOON = COMM_SLOTS / 4 };

/* -------------------------------------------------------------------------------------- groups */

static struct comm_request *group_at(struct receiver *r, uint64_t number)
{
    return &r->comm.requests[number % COMM_GROUPS];
}

static void end_receive(struct comm_request *group, unsigned i, size_t bytes)
{
    group->sizes[i] = (int)bytes;
    if (!--group->open)
        comm_end_request(group, COMM_DONE);
}

static void place(struct comm_request *group, unsigned i, const void *from, size_t bytes)
{
    if (group->copies)
        copy_lines(group->buffer[i].data, from, bytes);
    else if (bytes)
        memcpy(group->buffer[i].data, from, bytes);
}

/*
 * A send has met the receive. Once all of a group have, it is not looked at any more: its request becomes
 * another group as soon as it has ended.
 */
static void meet(struct receiver *r, struct comm_request *group, unsigned receive)
{
    group->taken |= 1u << receive;
    while (r->first_group < r->num_groups &&
           group_at(r, r->first_group)->taken == (1u << group_at(r, r->first_group)->n) - 1)
        r->first_group++;
}

/* The first receive of the tag that no send has met. */
static struct comm_request *find_receive(struct receiver *r, int tag, unsigned *receive)
{
    for (uint64_t g = r->first_group; g < r->num_groups; g++) {
        struct comm_request *group = group_at(r, g);

        for (*receive = 0; *receive < group->n; ++*receive)
            if (group->buffer[*receive].tag == tag && !(group->taken >> *receive & 1))
                return group;
    }
    return NULL;
}

static const struct comm_eager *slot_at(const struct receiver *r, unsigned slot)
{
    return (const struct comm_eager *)(const void *)(r->slots + (size_t)slot * r->slot_bytes);
}

static void take_eager(struct receiver *r, const struct receiver_unexpected *u,
                       struct comm_request *group, unsigned receive)
{
    meet(r, group, receive);
    r->freed |= 1u << u->slot;
    if (u->bytes > group->buffer[receive].bytes) {
        log_warn("%s: a send of %u bytes meets a receive of %zu", r->comm.peer, u->bytes,
                 group->buffer[receive].bytes);
        comm_end_request(group, COMM_TOO_LONG);
        comm_break(&r->comm, "a send was longer than its receive");
        return;
    }
    place(group, receive, slot_at(r, u->slot) + 1, u->bytes);
    end_receive(group, receive, u->bytes);
}

/* --------------------------------------------------------------------------- the sender leaves */

/*
 * Sends that have arrived in slots are done for the sender, which may leave before their receives are
 * posted. They are still taken; a receive that meets none of them is the end.
 */
static void break_when_empty(struct receiver *r)
{
    if (r->left && (!r->num_unexpected || r->first_group < r->num_groups))
        comm_break(&r->comm, r->left);
}

static void sender_left(struct lane_user *user, const char *why)
{
    struct receiver *r = (struct receiver *)((char *)user - offsetof(struct comm, user));

    if (!r->left)
        r->left = why;
    break_when_empty(r);
}

/* ---------------------------------------------------------------------------- what it is told */

/* False: not now. */
static bool send_grant(struct receiver *r, struct lane_op *op, struct comm_grant *grant)
{
    grant->magic = COMM_GRANT;
    grant->freed = r->freed;
    if (!comm_post(&r->comm, op, r->comm.remote_qpn, r->comm.remote_qkey, grant,
                   offsetof(struct comm_grant, at) + grant->receives * sizeof(grant->at[0])))
        return false;
    r->freed = 0;
    return true;
}

static void grant_done(struct lane_op *op, const struct mrd_wc *wc)
{
    struct comm_request *group =
        (struct comm_request *)((char *)op - offsetof(struct comm_request, op));
    struct comm *comm = group->comm;

    group->granting = false;
    comm->control.done(&comm->control, wc);
}

/*
 * Grants arrive in any order, and the sender keeps one for each place. So a group waits until the sender has
 * got the grant of the group before it in this place, which eager sends may have ended before.
 */
static void tell(struct comm *comm)
{
    struct receiver *r = (struct receiver *)comm;

    if (atomic_load(&comm->broken))
        return;
    for (; !r->left && r->next_grant < r->num_groups; r->next_grant++) {
        struct comm_request *group = group_at(r, r->next_grant);
        struct comm_grant grant = {.receives = group->n, .group = r->next_grant};

        if (group->granting)
            return;
        for (unsigned i = 0; i < group->n; i++) {
            const struct comm_buffer *b = &group->buffer[i];

            grant.at[i] =
                (struct comm_grant_at){.address = (uintptr_t)b->landing,
                                       .bytes = b->bytes,
                                       .rkey = group->copies ? group->bounce.mr->rkey : b->rkey,
                                       .tag = b->tag};
        }
        if (!send_grant(r, &group->op, &grant))
            return;
        group->granting = true;
    }
    if (!r->left && __builtin_popcount(r->freed) >= FREED_SOON)
        (void)send_grant(r, &r->comm.control, &(struct comm_grant){0});
}

/* --------------------------------------------------------------------------- what the sender says */

static void take_eager_message(struct receiver *r, const struct receiver_message *m)
{
    struct receiver_unexpected u = {.slot = m->imm >> COMM_IMM_PLACE & (COMM_SLOTS - 1),
                                    .bytes = m->bytes - (uint32_t)sizeof(struct comm_eager)};
    unsigned receive;

    if (!r->slots || m->bytes < sizeof(struct comm_eager) || m->bytes > r->slot_bytes ||
        r->num_unexpected == COMM_SLOTS) {
        comm_break(&r->comm, "it sends what has no room");
        return;
    }
    u.tag = slot_at(r, u.slot)->tag;
    struct comm_request *group = find_receive(r, u.tag, &receive);
    if (group)
        take_eager(r, &u, group, receive);
    else
        r->unexpected[r->num_unexpected++] = u;
}

static void take_written(struct receiver *r, const struct receiver_message *m)
{
    struct comm_request *group = group_at(r, m->imm >> COMM_IMM_PLACE & (COMM_GROUPS - 1));
    unsigned receive = m->imm >> COMM_IMM_RECEIVE & (SETTINGS_GROUP_MAX - 1);

    if (group->number < r->first_group || group->number >= r->next_grant || receive >= group->n ||
        group->taken >> receive & 1 || m->bytes > group->buffer[receive].bytes) {
        comm_break(&r->comm, "it answers what was not asked");
        return;
    }
    meet(r, group, receive);
    if (group->copies)
        place(group, receive, group->buffer[receive].landing, m->bytes);
    end_receive(group, receive, m->bytes);
}

static void take_messages(struct receiver *r)
{
    for (;;) {
        struct receiver_message *m = &r->message[r->next_message % COMM_NUMBERS];

        if (!m->here || atomic_load(&r->comm.broken))
            return;
        m->here = false;
        r->next_message++;
        if (m->imm & COMM_IMM_BYE)
            sender_left(&r->comm.user, "it has closed the connection");
        else if (m->imm & COMM_IMM_EAGER)
            take_eager_message(r, m);
        else
            take_written(r, m);
    }
}

static bool post_receive(struct receiver *r)
{
    struct mrd_recv_wr wr = {.wr_id = (uintptr_t)&r->incoming}, *bad;

    return !mrd_post_recv(r->comm.qp, &wr, &bad);
}

static void arrived(struct lane_op *op, const struct mrd_wc *wc)
{
    struct receiver *r = (struct receiver *)((char *)op - offsetof(struct receiver, incoming));

    if (!r->comm.qp || wc->status == MRD_WC_WR_FLUSH_ERR)
        return;
    if (wc->status == MRD_WC_SUCCESS && wc->wc_flags & MRD_WC_WITH_IMM) {
        uint32_t imm = __builtin_bswap32(wc->imm_data);

        r->message[imm % COMM_NUMBERS] = (struct receiver_message){true, imm, wc->byte_len};
    } else if (wc->status == MRD_WC_REM_ABORT_ERR) {
        sender_left(&r->comm.user, "it has closed the connection");
    }
    if (!post_receive(r))
        comm_break(&r->comm, mrd_last_error());
    take_messages(r);
    tell(&r->comm);
}

/* ------------------------------------------------------------------------------------- receives */

/* Memory that nobody looks into, as large as all receives of the group. */
static bool make_bounce(struct comm_request *group)
{
    struct lane *lane = group->comm->lane;
    size_t bytes = 0;

    for (unsigned i = 0; i < group->n; i++)
        bytes += (group->buffer[i].bytes + 63) / 64 * 64;
    if (bytes > group->bounce.bytes) {
        if (group->bounce.mr)
            mrd_dereg_mr(group->bounce.mr);
        free(group->bounce.data);
        group->bounce.mr = NULL;
        group->bounce.bytes = (bytes + PAGE - 1) / PAGE * PAGE;
        group->bounce.data = aligned_alloc(PAGE, group->bounce.bytes);
        if (group->bounce.data)
            group->bounce.mr =
                mrd_reg_mr(lane->pd, group->bounce.data, group->bounce.bytes,
                           MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | lane->on_demand);
    }
    if (bytes && !group->bounce.mr) {
        group->bounce.bytes = 0;
        return false;
    }
    uint8_t *at = group->bounce.data;
    for (unsigned i = 0; i < group->n; i++) {
        group->buffer[i].landing = at;
        at += (group->buffer[i].bytes + 63) / 64 * 64;
    }
    group->copies = bytes;
    return true;
}

static void take_unexpected(struct receiver *r)
{
    unsigned kept = 0, receive;

    for (unsigned i = 0; i < r->num_unexpected; i++) {
        struct receiver_unexpected u = r->unexpected[i];
        struct comm_request *group = find_receive(r, u.tag, &receive);

        if (group)
            take_eager(r, &u, group, receive);
        else
            r->unexpected[kept++] = u;
    }
    r->num_unexpected = kept;
}

static void run_post(struct lane_work *work)
{
    struct comm_request *group = (struct comm_request *)work;
    struct receiver *r = (struct receiver *)group->comm;

    group->taken = 0;
    group->open = group->n;
    for (unsigned i = 0; i < group->n; i++)
        group->buffer[i].landing = group->buffer[i].data;
    if (atomic_load(&r->comm.broken)) {
        comm_end_request(group, COMM_GONE);
        return;
    }
    if (group->copies && !make_bounce(group)) {
        log_warn("%s: no memory to receive into", r->comm.peer);
        comm_end_request(group, COMM_FAILED);
        comm_break(&r->comm, "no memory is left here");
        return;
    }
    r->num_groups++;
    if (r->num_unexpected)
        take_unexpected(r);
    break_when_empty(r);
    tell(&r->comm);
}

struct comm_request *receiver_post(struct receiver *r, unsigned n,
                                   const struct comm_buffer *buffers, bool looked_into)
{
    struct comm_request *group = comm_take(&r->comm);

    if (!group)
        return NULL;
    group->n = n;
    group->copies = looked_into;
    memcpy(group->buffer, buffers, n * sizeof(*buffers));
    lane_push(r->comm.lane, &group->work);
    return group;
}

/* What arrives may be copied there. */
void receiver_forget(struct receiver *r, uint32_t lkey)
{
    for (uint64_t g = r->first_group; g < r->num_groups; g++) {
        const struct comm_request *group = group_at(r, g);

        for (unsigned i = 0; i < group->n; i++)
            if (!(group->taken >> i & 1) && group->buffer[i].bytes && group->buffer[i].lkey == lkey)
                comm_break(&r->comm, "memory of a receive was deregistered");
    }
}

/* ------------------------------------------------------------------------------ open and close */

/* Slots are pages that are there once they are used. Without memory there is none. */
static void make_slots(struct receiver *r, uint32_t eager_bytes)
{
    size_t slot = (eager_bytes + sizeof(struct comm_eager) + 63) / 64 * 64,
           bytes = slot * COMM_SLOTS;

    if (!eager_bytes)
        slot = 64, bytes = PAGE; /* what sends of 0 bytes name */
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return;
    r->slots = memory;
    r->slots_bytes = bytes;
    r->slot_bytes = eager_bytes ? (uint32_t)slot : 0;
    r->slots_mr =
        mrd_reg_mr(r->comm.lane->pd, memory, bytes,
                   MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | r->comm.lane->on_demand);
}

static void free_receiver(struct comm *comm)
{
    struct receiver *r = (struct receiver *)comm;

    comm_close(comm);
    if (r->slots_mr)
        mrd_dereg_mr(r->slots_mr);
    if (r->slots)
        munmap(r->slots, r->slots_bytes);
    comm_free(comm);
    free(r);
}

/* NULL, or why not. */
static const char *open_receiver(struct receiver *r, const struct comm_hello *hello,
                                 uint32_t eager_bytes)
{
    struct mrd_qp_cap cap = {.max_send_wr = 4 * COMM_GROUPS,
                             .max_recv_wr = COMM_SENDS + 4,
                             .max_inline_data = sizeof(union comm_message)};
    struct mrd_qp_attr attr = {.qp_state = MRD_QPS_RTS, .dest_qp_num = hello->qp_num};
    const char *why;

    make_slots(r, eager_bytes);
    if (!r->slots)
        return "no memory for messages";
    if (!r->slots_mr || !comm_open(&r->comm, MRD_QPS_INIT, cap))
        return mrd_last_error();
    why = lane_join(r->comm.lane, &r->comm.user, hello->address);
    if (why)
        return why;
    for (unsigned i = 0; i < cap.max_recv_wr; i++)
        if (!post_receive(r))
            return mrd_last_error();
    attr.dest_ah = r->comm.user.peer->ah;
    if (mrd_modify_qp(r->comm.qp, &attr, MRD_QP_DEST) ||
        mrd_modify_qp(r->comm.qp, &attr, MRD_QP_STATE))
        return mrd_last_error();
    return NULL;
}

static bool say_welcome(struct receiver *r)
{
    struct mrd_qp_init_attr attr = {0};

    if (mrd_query_qp(r->comm.qp, &attr, sizeof(attr)))
        return false;
    struct comm_hello welcome = {.magic = COMM_WELCOME,
                                 .version = COMM_VERSION,
                                 .qp_num = r->comm.qp->qp_num,
                                 .qkey = attr.qkey,
                                 .slots = (uintptr_t)r->slots,
                                 .slots_rkey = r->slots_mr->rkey,
                                 .slot_bytes = r->slot_bytes};
    return comm_post(&r->comm, &r->comm.control, r->comm.remote_qpn, r->comm.remote_qkey, &welcome,
                     sizeof(welcome));
}

static struct receiver *make_receiver(struct lane *lane, const struct comm_hello *hello,
                                      uint32_t eager_bytes)
{
    struct receiver *r = calloc(1, sizeof(*r));
    const char *why;

    if (!r || !comm_init(&r->comm, lane, false)) {
        free(r);
        log_warn("%s: no memory for a connection", hello->address);
        return NULL;
    }
    r->comm.user.gone = sender_left;
    r->comm.ready = tell;
    r->comm.finish = free_receiver;
    r->comm.remote_qpn = hello->qp_num;
    r->comm.remote_qkey = hello->qkey;
    r->incoming.done = arrived;
    snprintf(r->comm.peer, sizeof(r->comm.peer), "%s", hello->address);
    for (unsigned i = 0; i < COMM_GROUPS; i++) {
        r->comm.requests[i].work.run = run_post;
        r->comm.requests[i].op.done = grant_done;
        r->comm.requests[i].number = UINT64_MAX;
    }
    why = open_receiver(r, hello, eager_bytes);
    if (!why && !say_welcome(r))
        why = mrd_last_error();
    if (!why)
        return r;
    log_warn("%s: a connection from it: %s", hello->address, why);
    free_receiver(&r->comm);
    return NULL;
}

/* The peer is told. Where receives are left, nothing may be written any more. */
static void close_receiver(struct lane *lane, void *argument)
{
    static const uint32_t magic = COMM_BYE;
    struct comm *comm = argument;
    struct mrd_sge sge = {.addr = (uintptr_t)&magic, .length = sizeof(magic)};
    struct mrd_send_wr bye = {
        .sg_list = &sge, .num_sge = 1, .opcode = MRD_WR_SEND, .send_flags = MRD_SEND_INLINE};

    (void)lane;
    if (!((struct receiver *)comm)->left && comm_has_peer(comm) &&
        (comm_is_idle(comm) || comm_renew(comm))) {
        bye.ud.ah = comm->user.peer->ah;
        bye.ud.remote_qpn = comm->remote_qpn;
        bye.ud.remote_qkey = comm->remote_qkey;
        if (comm_say_bye(comm, &bye))
            return;
    }
    free_receiver(comm);
}

void receiver_close(struct receiver *r)
{
    lane_call(r->comm.lane, close_receiver, &r->comm);
}

/* ------------------------------------------------------------------------------------- listener */

struct listener_incoming {
    struct lane_op op;
    struct listener *listener;
};

struct listener {
    struct lane *lane;
    struct mrd_qp *qp;
    uint32_t eager_bytes;
    struct mrd_mr *mr;
    struct comm_hello hello[COMM_BACKLOG];
    struct listener_incoming incoming[COMM_BACKLOG];
    unsigned waiting[COMM_BACKLOG]; /* which of them, the oldest first */
    unsigned first;
    atomic_uint num_waiting;
    struct lane_op refusal; /* done when one of these was heard, or cannot be */
    unsigned refusals;
    int cqe; /* reserved */
};

static bool post_hello(struct listener *l, unsigned i)
{
    struct mrd_sge sge = {(uintptr_t)&l->hello[i], sizeof(l->hello[i]), l->mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = (uintptr_t)&l->incoming[i].op, .sg_list = &sge, .num_sge = 1},
                       *bad;

    return !mrd_post_recv(l->qp, &wr, &bad);
}

static bool is_hello(const struct comm_hello *hello, size_t bytes)
{
    return bytes == sizeof(*hello) && hello->magic == COMM_HELLO &&
           memchr(hello->address, 0, sizeof(hello->address));
}

static void hello_arrived(struct lane_op *op, const struct mrd_wc *wc)
{
    struct listener_incoming *incoming = (struct listener_incoming *)op;
    struct listener *l = incoming->listener;
    unsigned i = (unsigned)(incoming - l->incoming);

    if (!l->qp || wc->status == MRD_WC_WR_FLUSH_ERR)
        return;
    if (wc->status == MRD_WC_SUCCESS && is_hello(&l->hello[i], wc->byte_len)) {
        l->waiting[(l->first + atomic_load(&l->num_waiting)) % COMM_BACKLOG] = i;
        atomic_fetch_add(&l->num_waiting, 1);
    } else if (!post_hello(l, i)) {
        log_warn("a listener: %s", mrd_last_error());
    }
}

static void refusal_done(struct lane_op *op, const struct mrd_wc *wc)
{
    struct listener *l = (struct listener *)((char *)op - offsetof(struct listener, refusal));

    (void)wc;
    l->refusals--;
}

/* Who connects would wait for ever. false: it cannot be told now. */
static bool refuse(struct listener *l, const struct comm_hello *hello)
{
    static const uint32_t magic = COMM_BYE;
    struct mrd_sge sge = {.addr = (uintptr_t)&magic, .length = sizeof(magic)};
    struct mrd_ah *ah = mrd_create_ah(l->lane->pd, hello->address);
    struct mrd_send_wr wr = {.wr_id = (uintptr_t)&l->refusal,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = MRD_WR_SEND,
                             .send_flags = MRD_SEND_INLINE | MRD_SEND_SIGNALED,
                             .ud = {ah, hello->qp_num, hello->qkey}},
                       *bad;

    lane_await(l->lane, &l->refusals); /* there is room for one */
    bool told = ah && !mrd_post_send(l->qp, &wr, &bad);

    l->refusals += told;
    if (ah)
        mrd_destroy_ah(ah);
    return told;
}

struct listener_accept {
    struct listener *listener;
    struct receiver *receiver;
};

/*
 * Of the oldest that waits. NULL: it is in the log, and is told; or it waits on, if it cannot be told
 * and `keep`.
 */
static struct receiver *take_waiting(struct listener *l, bool keep)
{
    lane_take_events(l->lane);
    unsigned i = l->waiting[l->first];
    const struct comm_hello *hello = &l->hello[i];
    struct receiver *receiver = NULL;
    /* Both before others arrive, which they may while a receiver is made in vain. */
    l->first = (l->first + 1) % COMM_BACKLOG;
    atomic_fetch_sub(&l->num_waiting, 1);
    if (hello->version == COMM_VERSION)
        receiver = make_receiver(l->lane, hello, l->eager_bytes);
    else
        log_warn("%s: it has another version of this plugin", hello->address);
    if (!receiver && !refuse(l, hello) && keep) {
        l->first = (l->first + COMM_BACKLOG - 1) % COMM_BACKLOG;
        l->waiting[l->first] = i;
        atomic_fetch_add(&l->num_waiting, 1);
        return NULL;
    }
    if (!post_hello(l, i))
        log_warn("a listener: %s", mrd_last_error());
    return receiver;
}

static void accept_one(struct lane *lane, void *argument)
{
    struct listener_accept *a = argument;

    (void)lane;
    a->receiver = take_waiting(a->listener, true);
}

struct receiver *listener_accept(struct listener *l, bool *failed)
{
    struct listener_accept a = {.listener = l};

    *failed = false;
    if (!atomic_load(&l->num_waiting))
        return NULL;
    lane_call(l->lane, accept_one, &a);
    *failed = !a.receiver;
    return a.receiver;
}

static void close_listener(struct lane *lane, void *argument)
{
    struct listener *l = argument;

    while (atomic_load(&l->num_waiting)) { /* who connects hears that this is the end */
        struct receiver *receiver = take_waiting(l, false);

        if (receiver)
            close_receiver(lane, &receiver->comm);
    }
    lane_await(lane, &l->refusals);
    if (l->qp)
        mrd_destroy_qp(l->qp);
    l->qp = NULL;
    lane_drain(lane);
    if (l->cqe)
        (void)lane_reserve(lane, -l->cqe);
    if (l->mr)
        mrd_dereg_mr(l->mr);
}

void listener_close(struct listener *l)
{
    lane_call(l->lane, close_listener, l);
    free(l);
}

struct listener_open {
    struct listener *listener;
    struct comm_handle *handle;
    bool ok;
};

static void open_listener(struct lane *lane, void *argument)
{
    struct listener_open *open = argument;
    struct listener *l = open->listener;
    struct mrd_qp_init_attr attr = {
        .send_cq = lane->cq,
        .recv_cq = lane->cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = COMM_BACKLOG, .max_inline_data = sizeof(uint32_t)},
        .qkey = comm_random()};

    l->refusal.done = refusal_done;
    open->ok = lane_reserve(lane, COMM_BACKLOG + 1);
    l->cqe = open->ok ? COMM_BACKLOG + 1 : 0;
    open->ok = open->ok &&
               (l->mr = mrd_reg_mr(lane->pd, l->hello, sizeof(l->hello),
                                   MRD_ACCESS_LOCAL_WRITE | lane->on_demand)) &&
               (l->qp = mrd_create_qp(lane->pd, &attr));
    for (unsigned i = 0; open->ok && i < COMM_BACKLOG; i++) {
        l->incoming[i] = (struct listener_incoming){{hello_arrived}, l};
        open->ok = post_hello(l, i);
    }
    if (!open->ok) {
        log_warn("a listener: %s", mrd_last_error());
        return;
    }
    if (strlen(lane->address) >= sizeof(open->handle->address)) {
        log_warn("a listener: %s has no room in a handle", lane->address);
        open->ok = false;
        return;
    }
    *open->handle = (struct comm_handle){
        .magic = COMM_HANDLE, .version = COMM_VERSION, .qp_num = l->qp->qp_num, .qkey = attr.qkey};
    strcpy(open->handle->address, lane->address);
}

struct listener *listener_open(struct lane *lane, uint32_t eager_bytes, struct comm_handle *handle)
{
    struct listener *l = calloc(1, sizeof(*l));
    struct listener_open open = {.listener = l, .handle = handle};

    if (!l) {
        log_warn("no memory for a listener");
        return NULL;
    }
    l->lane = lane;
    l->eager_bytes = eager_bytes;
    lane_call(lane, open_listener, &open);
    if (open.ok)
        return l;
    listener_close(l);
    return NULL;
}
