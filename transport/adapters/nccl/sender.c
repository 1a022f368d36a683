/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/nccl/sender.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/adapters/nccl/log.h"

static struct sender *sender_of(struct comm *comm)
{
    return (struct sender *)comm;
}

/* ------------------------------------------------------------------------------------- sending */

/* The receiver has closed. What it has taken before is told first: its acks may come later. */
static void peer_closed(struct sender *s)
{
    s->peer_closed = true;
    if (!s->posted)
        comm_break(&s->comm, "it has closed the connection");
}

static void send_done(struct lane_op *op, const struct mrd_wc *wc)
{
    struct comm_request *r =
        (struct comm_request *)((char *)op - offsetof(struct comm_request, op));
    struct sender *s = sender_of(r->comm);

    s->posted--;
    if (wc->status == MRD_WC_SUCCESS) {
        comm_end_request(r, COMM_DONE);
    } else {
        comm_break(r->comm, wc->status == MRD_WC_REM_INV_REQ_ERR ? "it has closed the connection"
                                                                 : mrd_wc_status_str(wc->status));
        comm_end_request(r, COMM_GONE);
    }
    if (s->peer_closed)
        peer_closed(s);
}

static void post(struct comm_request *r, struct mrd_sge *sg_list, int num_sge, uint64_t address,
                 uint32_t rkey, uint32_t imm)
{
    struct comm *comm = r->comm;
    struct mrd_send_wr wr = {.wr_id = (uintptr_t)&r->op,
                             .sg_list = sg_list,
                             .num_sge = num_sge,
                             .opcode = MRD_WR_RDMA_WRITE_WITH_IMM,
                             .send_flags = MRD_SEND_SIGNALED,
                             .imm_data = __builtin_bswap32(imm | sender_of(comm)->next_message %
                                                                     COMM_NUMBERS),
                             .ud = {comm->user.peer->ah, comm->remote_qpn, comm->remote_qkey},
                             .wr.rdma = {address, rkey}},
                       *bad;

    if (mrd_post_send(comm->qp, &wr, &bad)) {
        log_warn("%s: a send of %zu bytes: %s", comm->peer, r->buffer[0].bytes, mrd_last_error());
        comm_end_request(r, COMM_FAILED);
    } else {
        sender_of(comm)->next_message++;
        sender_of(comm)->posted++;
    }
}

static struct mrd_sge data_of(const struct comm_request *r)
{
    return (struct mrd_sge){.addr = (uintptr_t)r->buffer[0].data,
                            .length = (uint32_t)r->buffer[0].bytes,
                            .lkey = r->buffer[0].lkey};
}

static void send_to(struct sender *s, struct comm_request *r, const struct comm_grant *group,
                    unsigned receive)
{
    const struct comm_grant_at *at = &group->at[receive];
    uint32_t imm =
        (uint32_t)(group->group % COMM_GROUPS) << COMM_IMM_PLACE | receive << COMM_IMM_RECEIVE;
    struct mrd_sge sge = data_of(r);

    if (r->buffer[0].bytes > at->bytes) {
        log_warn("%s: a send of %zu bytes meets a receive of %llu", s->comm.peer,
                 r->buffer[0].bytes, (unsigned long long)at->bytes);
        comm_end_request(r, COMM_TOO_LONG);
        comm_break(&s->comm, "a send was longer than its receive");
    } else if (sge.length) {
        post(r, &sge, 1, at->address, at->rkey, imm);
    } else { /* the receive may be no memory at all */
        post(r, NULL, 0, s->slots, s->slots_rkey, imm);
    }
}

/* False: it must wait for a receive. */
static bool send_eagerly(struct sender *s, struct comm_request *r)
{
    struct mrd_sge sge[2] = {{0}, data_of(r)};
    struct comm_eager *head = &s->eager[r->number % COMM_SENDS];

    if (!s->free_slots || r->buffer[0].bytes > s->eager_bytes ||
        s->num_waiting >= SENDER_WAITING - COMM_SENDS)
        return false;
    unsigned slot = (unsigned)__builtin_ctz(s->free_slots);
    s->free_slots &= ~(1u << slot);
    *head = (struct comm_eager){.tag = r->buffer[0].tag};
    sge[0] = (struct mrd_sge){(uintptr_t)head, sizeof(*head), s->eager_mr->lkey};
    post(r, sge, sge[1].length ? 2 : 1, s->slots + (uint64_t)slot * s->slot_bytes, s->slots_rkey,
         COMM_IMM_EAGER | slot << COMM_IMM_PLACE);
    return true;
}

/* ------------------------------------------------------------------------------------ matching */

static bool is_here(const struct sender *s, uint64_t number)
{
    const struct comm_grant *group = &s->group[number % COMM_GROUPS];

    return group->receives && group->group == number;
}

/* The first receive of the tag that no send has met. */
static struct comm_grant *find_receive(struct sender *s, int tag, unsigned *receive)
{
    for (uint64_t g = s->first_group; g < s->first_group + COMM_GROUPS && is_here(s, g); g++) {
        struct comm_grant *group = &s->group[g % COMM_GROUPS];
        unsigned met = s->met[g % COMM_GROUPS];

        for (*receive = 0; *receive < group->receives; ++*receive)
            if (group->at[*receive].tag == tag && !(met >> *receive & 1))
                return group;
    }
    return NULL;
}

static void forget_met_groups(struct sender *s)
{
    while (is_here(s, s->first_group)) {
        struct comm_grant *group = &s->group[s->first_group % COMM_GROUPS];

        if (s->met[s->first_group % COMM_GROUPS] != (1u << group->receives) - 1)
            return;
        group->receives = 0;
        s->met[s->first_group % COMM_GROUPS] = 0;
        s->first_group++;
    }
}

/* Of the first n that wait, is there one of the tag whose data has not left? */
static bool one_waits(const struct sender *s, unsigned n, int tag)
{
    for (unsigned i = 0; i < n; i++)
        if (s->waiting[i].request && s->waiting[i].tag == tag)
            return true;
    return false;
}

/*
 * In the order in which they were posted; what finds no receive stays. Of a tag, no send passes an earlier
 * one: that found no receive, either.
 */
static void match(struct sender *s)
{
    unsigned kept = 0, receive;

    for (unsigned i = 0; i < s->num_waiting; i++) {
        struct sender_wait wait = s->waiting[i];
        struct comm_grant *group = find_receive(s, wait.tag, &receive);

        if (group) {
            s->met[group->group % COMM_GROUPS] |= 1u << receive;
            if (wait.request)
                send_to(s, wait.request, group, receive);
            continue;
        }
        if (wait.request && !one_waits(s, kept, wait.tag) && send_eagerly(s, wait.request))
            wait.request = NULL;
        s->waiting[kept++] = wait;
    }
    s->num_waiting = kept;
    forget_met_groups(s);
}

static void run_send(struct lane_work *work)
{
    struct comm_request *r = (struct comm_request *)work;
    struct sender *s = sender_of(r->comm);

    if (atomic_load(&s->comm.broken)) {
        comm_end_request(r, COMM_GONE);
        return;
    }
    s->waiting[s->num_waiting++] = (struct sender_wait){.tag = r->buffer[0].tag, .request = r};
    match(s);
}

struct comm_request *sender_send(struct sender *s, void *data, size_t bytes, int tag, uint32_t lkey)
{
    struct comm_request *r = comm_take(&s->comm);

    if (!r)
        return NULL;
    r->n = 1;
    r->sizes[0] = (int)bytes;
    r->buffer[0] = (struct comm_buffer){.data = data, .bytes = bytes, .lkey = lkey, .tag = tag};
    lane_push(s->comm.lane, &r->work);
    return r;
}

/* -------------------------------------------------------------------------- what the peer says */

static bool post_receive(struct sender *s, unsigned i)
{
    struct mrd_sge sge = {.addr = (uintptr_t)&s->message[i],
                          .length = sizeof(s->message[i]),
                          .lkey = s->message_mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = (uintptr_t)&s->incoming[i].op, .sg_list = &sge, .num_sge = 1},
                       *bad;

    return !mrd_post_recv(s->comm.qp, &wr, &bad);
}

static void take_welcome(struct sender *s, const struct comm_hello *welcome)
{
    if (welcome->version != COMM_VERSION) {
        comm_break(&s->comm, "it has another version of this plugin");
        return;
    }
    s->comm.remote_qpn = welcome->qp_num;
    s->comm.remote_qkey = welcome->qkey;
    s->slots = welcome->slots;
    s->slots_rkey = welcome->slots_rkey;
    s->slot_bytes = welcome->slot_bytes;
    if (welcome->slot_bytes > sizeof(struct comm_eager)) {
        uint32_t room = welcome->slot_bytes - (uint32_t)sizeof(struct comm_eager);

        s->eager_bytes = s->eager_bytes < room ? s->eager_bytes : room;
        s->free_slots = s->eager_bytes ? UINT32_MAX : 0;
    }
    atomic_store(&s->ready, true);
}

static void take_grant(struct sender *s, const struct comm_grant *grant, size_t bytes)
{
    s->free_slots |= grant->freed;
    if (grant->receives && grant->receives <= SETTINGS_GROUP_MAX &&
        bytes >= offsetof(struct comm_grant, at) + grant->receives * sizeof(grant->at[0]))
        memcpy(&s->group[grant->group % COMM_GROUPS], grant, bytes);
    match(s);
}

static void heard(struct lane_op *op, const struct mrd_wc *wc)
{
    struct sender_incoming *incoming = (struct sender_incoming *)op;
    struct sender *s = incoming->sender;
    unsigned i = (unsigned)(incoming - s->incoming);
    const union comm_message *m = &s->message[i];

    if (!s->comm.qp || wc->status == MRD_WC_WR_FLUSH_ERR)
        return;
    if (wc->status == MRD_WC_SUCCESS && wc->byte_len >= sizeof(m->welcome) &&
        m->magic == COMM_WELCOME && !atomic_load(&s->ready))
        take_welcome(s, &m->welcome);
    else if (wc->status == MRD_WC_SUCCESS && wc->byte_len >= offsetof(struct comm_grant, at) &&
             m->magic == COMM_GRANT)
        take_grant(s, &m->grant, wc->byte_len);
    else if (wc->status == MRD_WC_SUCCESS && wc->byte_len == sizeof(m->magic) &&
             m->magic == COMM_BYE)
        peer_closed(s);
    if (!post_receive(s, i))
        comm_break(&s->comm, mrd_last_error());
}

/* ------------------------------------------------------------------------------ open and close */

/* NULL, or why not. */
static const char *open_sender(struct sender *s)
{
    struct lane *lane = s->comm.lane;
    struct mrd_qp_cap cap = {.max_send_wr = COMM_SENDS + 4,
                             .max_recv_wr = SENDER_GRANT_BUFFERS,
                             .max_send_sge = 2,
                             .max_inline_data = sizeof(struct comm_hello)};

    s->message_mr = mrd_reg_mr(lane->pd, s->message, sizeof(s->message),
                               MRD_ACCESS_LOCAL_WRITE | lane->on_demand);
    s->eager_mr = mrd_reg_mr(lane->pd, s->eager, sizeof(s->eager), lane->on_demand);
    if (!s->message_mr || !s->eager_mr || !comm_open(&s->comm, MRD_QPS_RTS, cap))
        return mrd_last_error();
    for (unsigned i = 0; i < SENDER_GRANT_BUFFERS; i++) {
        s->incoming[i] = (struct sender_incoming){{heard}, s};
        if (!post_receive(s, i))
            return mrd_last_error();
    }
    return lane_join(lane, &s->comm.user, s->handle.address);
}

static void say_hello(struct lane *lane, void *argument)
{
    struct sender *s = argument;
    struct mrd_qp_init_attr attr = {0};
    struct comm_hello hello = {.magic = COMM_HELLO, .version = COMM_VERSION};
    const char *why;

    lane_take_events(lane);
    why = open_sender(s);
    if (!why && mrd_query_qp(s->comm.qp, &attr, sizeof(attr)))
        why = mrd_last_error();
    if (why) {
        log_warn("%s: a connection to it: %s", s->handle.address, why);
        comm_break(&s->comm, why);
        return;
    }
    hello.qp_num = s->comm.qp->qp_num;
    hello.qkey = attr.qkey;
    strcpy(hello.address, lane->address);
    (void)comm_post(&s->comm, &s->comm.control, s->handle.qp_num, s->handle.qkey, &hello,
                    sizeof(hello));
}

static void finish_close(struct comm *comm)
{
    struct sender *s = sender_of(comm);

    comm_close(comm);
    if (s->message_mr)
        mrd_dereg_mr(s->message_mr);
    if (s->eager_mr)
        mrd_dereg_mr(s->eager_mr);
    comm_free(comm);
    free(s);
}

struct sender *sender_connect(struct lane *lane, const struct comm_handle *handle,
                              uint32_t eager_bytes)
{
    struct sender *s = calloc(1, sizeof(*s));

    if (!s || !comm_init(&s->comm, lane, true)) {
        log_warn("%s: no memory for a connection", handle->address);
        free(s);
        return NULL;
    }
    s->handle = *handle;
    s->eager_bytes = eager_bytes;
    snprintf(s->comm.peer, sizeof(s->comm.peer), "%s", handle->address);
    for (unsigned i = 0; i < COMM_SENDS; i++) {
        s->comm.requests[i].work.run = run_send;
        s->comm.requests[i].op.done = send_done;
    }
    s->comm.finish = finish_close;
    lane_call(lane, say_hello, s);
    return s;
}

/*
 * The peer is told. Messages that are on their way must not touch their memory any more: they are given up, of
 * which it hears, unless it has got all of them. So who lacks only acks waits for those.
 */
static void close_sender(struct lane *lane, void *argument)
{
    struct sender *s = argument;
    struct comm *comm = &s->comm;
    struct mrd_send_wr bye = {.opcode = MRD_WR_RDMA_WRITE_WITH_IMM,
                              .imm_data =
                                  __builtin_bswap32(COMM_IMM_BYE | s->next_message % COMM_NUMBERS),
                              .wr.rdma = {s->slots, s->slots_rkey}};

    s->num_waiting = 0;
    if (comm_has_peer(comm))
        lane_await(lane, &s->posted);
    if (atomic_load(&s->ready) && comm_has_peer(comm) && !s->posted) {
        bye.ud.ah = comm->user.peer->ah;
        bye.ud.remote_qpn = comm->remote_qpn;
        bye.ud.remote_qkey = comm->remote_qkey;
        if (comm_say_bye(comm, &bye))
            return;
    }
    finish_close(comm);
}

void sender_close(struct sender *s)
{
    lane_call(s->comm.lane, close_sender, s);
}
