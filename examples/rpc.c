/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remote calls: a server that sleeps in epoll, and clients that do so too. A call carries a number,
 * and its answer the square of that.
 *
 *     $ ./rpc                                     the server; it prints what clients need
 *     $ ./rpc --clients 32 192.0.2.7:40001/1      32 clients: address and queue pair of the server;
 *                                                 its host may be a name
 *
 * Both ends wait in the same way: take the event of the channel, ask for the next one, poll until
 * the queue is empty, sleep. Polling after asking finds what came in between. The channel's
 * descriptor tells of packets, too, which mrd_get_cq_event() handles: it may find no completion.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <mrd/mrd.h>

enum {
    QKEY = 0x727063,
    CALLS = 4096,   /* that the server has receives for */
    CALLERS = 8192, /* address handles that it keeps */
    CLIENTS_MAX = 1000,
    BATCH = 32,
};

/* Big-endian; a call has no result yet. */
struct call {
    uint64_t number, result;
};

struct end {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_comp_channel *channel;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    struct mrd_mr *mr;
    struct call *calls; /* one for each receive */
    unsigned num_calls;
};

struct options {
    const char *bind;
    uint16_t port;
    bool manual;
    unsigned clients, seconds;
    char *server; /* NULL: be the server */
};

static volatile sig_atomic_t stopped;

static void stop(int number)
{
    (void)number;
    stopped = 1;
}

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "rpc: %s: %s\n", what, mrd_last_error());
    exit(1);
}

/* ------------------------------------------------------------------------------------ each end */

static void post_receive(struct end *e, uint64_t i)
{
    struct mrd_sge sge = {(uintptr_t)&e->calls[i], sizeof(e->calls[i]), e->mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

    check(mrd_post_recv(e->qp, &wr, &bad) == 0, "post receive");
}

static void end_open(struct end *e, const struct options *o, bool manual, unsigned num_calls)
{
    struct mrd_context_attr attr = {.address = o->bind,
                                    .port = o->port,
                                    .progress = manual ? MRD_PROGRESS_MANUAL : MRD_PROGRESS_THREAD};

    e->num_calls = num_calls;
    e->calls = calloc(num_calls, sizeof(e->calls[0]));
    check(e->calls, "no memory");
    e->context = mrd_open_device(NULL, &attr);
    check(e->context, "open");
    e->pd = mrd_alloc_pd(e->context);
    check(e->pd, "protection domain");
    e->mr = mrd_reg_mr(e->pd, e->calls, num_calls * sizeof(e->calls[0]), MRD_ACCESS_LOCAL_WRITE);
    check(e->mr, "memory region");
    e->channel = mrd_create_comp_channel(e->context);
    check(e->channel, "completion channel");
    check(fcntl(e->channel->fd, F_SETFL, O_NONBLOCK) == 0, "completion channel");
    e->cq = mrd_create_cq_ex(e->context, &(struct mrd_cq_init_attr){.cqe = (int)(2 * num_calls),
                                                                    .cq_context = e,
                                                                    .channel = e->channel});
    check(e->cq, "completion queue");
    e->qp = mrd_create_qp(e->pd, &(struct mrd_qp_init_attr){
                                     .send_cq = e->cq,
                                     .recv_cq = e->cq,
                                     .cap = {.max_send_wr = num_calls,
                                             .max_recv_wr = num_calls,
                                             .max_inline_data = sizeof(struct call)},
                                     .qkey = QKEY,
                                 });
    check(e->qp, "queue pair");
    for (unsigned i = 0; i < num_calls; i++)
        post_receive(e, i);
    check(mrd_req_notify_cq(e->cq, 0) == 0, "ask for an event");
}

static void end_close(struct end *e)
{
    mrd_destroy_qp(e->qp);
    mrd_destroy_cq(e->cq);
    mrd_destroy_comp_channel(e->channel);
    mrd_dereg_mr(e->mr);
    mrd_dealloc_pd(e->pd);
    check(mrd_close_device(e->context) == 0, "close");
    free(e->calls);
}

/* Sends a call or an answer. It is inline, and asks for no completion unless it fails. */
static void post(struct end *e, struct mrd_ah *to, uint32_t qpn, struct call call)
{
    struct mrd_sge sge = {(uintptr_t)&call, sizeof(call), 0};
    struct mrd_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = MRD_WR_SEND,
        .send_flags = MRD_SEND_INLINE | MRD_SEND_SOLICITED,
        .ud = {.ah = to, .remote_qpn = qpn, .remote_qkey = QKEY},
    };
    struct mrd_send_wr *bad;
    int error;

    /* Full: earlier answers are not acked yet, and acks come by progress. */
    while ((error = mrd_post_send(e->qp, &wr, &bad)) == -ENOMEM && !stopped)
        mrd_progress(e->context);
    check(error == 0 || stopped, "post send");
}

/* The descriptor was readable: takes the event, if there is one, and asks for the next. */
static void take_event(struct end *e)
{
    struct mrd_cq *cq;
    void *context;

    if (mrd_get_cq_event(e->channel, &cq, &context))
        return;
    mrd_ack_cq_events(cq, 1);
    check(mrd_req_notify_cq(cq, 0) == 0, "ask for an event");
}

static void watch(int set, struct end *e)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = e};

    check(epoll_ctl(set, EPOLL_CTL_ADD, e->channel->fd, &event) == 0, "epoll");
}

/* ---------------------------------------------------------------------------------- the server */

struct caller {
    uint32_t peer_id; /* 0: none */
    struct mrd_ah *ah;
};

/* The address handle of whom a call is from: kept, because the same peers call again. */
static struct mrd_ah *caller_of(struct end *e, struct caller *callers, const struct mrd_wc *wc)
{
    struct caller *c = &callers[wc->peer_id % CALLERS];

    if (c->peer_id == wc->peer_id && c->ah)
        return c->ah;
    if (c->ah)
        mrd_destroy_ah(c->ah);
    c->peer_id = wc->peer_id;
    c->ah = mrd_create_ah_from_wc(e->pd, wc); /* NULL: the peer is forgotten already */
    return c->ah;
}

static void answer(struct end *e, struct caller *callers, const struct mrd_wc *wc)
{
    struct call call = e->calls[wc->wr_id];
    struct mrd_ah *to = caller_of(e, callers, wc);
    uint64_t number = be64toh(call.number);

    post_receive(e, wc->wr_id);
    call.result = htobe64(number * number);
    if (to)
        post(e, to, wc->src_qp, call);
}

static void serve(const struct options *o)
{
    static struct caller callers[CALLERS];
    char address[MRD_ADDRESS_MAX];
    struct end e = {0};
    struct epoll_event event;
    uint64_t served = 0;
    int set = epoll_create1(EPOLL_CLOEXEC);

    end_open(&e, o, o->manual, CALLS);
    watch(set, &e);
    check(mrd_query_address(e.context, address, sizeof(address)) == 0, "address");
    printf("%s/%" PRIu32 "\n", address, e.qp->qp_num);
    fflush(stdout);
    while (!stopped) {
        struct mrd_wc wc[BATCH];
        int n;

        if (epoll_wait(set, &event, 1, -1) < 1)
            continue; /* a signal */
        take_event(&e);
        while ((n = mrd_poll_cq(e.cq, BATCH, wc)) > 0)
            for (int i = 0; i < n; i++) {
                if (wc[i].status != MRD_WC_SUCCESS || wc[i].opcode != MRD_WC_RECV)
                    continue; /* an answer to a client that is gone */
                served += wc[i].byte_len == sizeof(struct call);
                answer(&e, callers, &wc[i]);
            }
        check(n == 0, "poll");
    }
    printf("%" PRIu64 " calls answered\n", served);
    for (unsigned i = 0; i < CALLERS; i++)
        if (callers[i].ah)
            mrd_destroy_ah(callers[i].ah);
    close(set);
    end_close(&e);
}

/* ---------------------------------------------------------------------------------- the clients */

struct client {
    struct end end; /* first: what epoll tells of */
    struct mrd_ah *server;
    uint64_t number; /* of the call under way */
    uint64_t done;
};

static void ask(struct client *c, uint32_t qpn)
{
    c->number = c->number * 2862933555777941757u + 3037000493u;
    post(&c->end, c->server, qpn, (struct call){.number = htobe64(c->number)});
}

static void hear(struct client *c, uint32_t qpn)
{
    struct mrd_wc wc[2];
    int n;

    take_event(&c->end);
    while ((n = mrd_poll_cq(c->end.cq, 2, wc)) > 0)
        for (int i = 0; i < n; i++) {
            const struct call *call = &c->end.calls[wc[i].wr_id];

            if (wc[i].status != MRD_WC_SUCCESS) {
                fprintf(stderr, "rpc: a call failed: %s\n", mrd_wc_status_str(wc[i].status));
                exit(1);
            }
            if (be64toh(call->number) != c->number ||
                be64toh(call->result) != c->number * c->number) {
                fprintf(stderr, "rpc: a wrong answer\n");
                exit(1);
            }
            c->done++;
            post_receive(&c->end, wc[i].wr_id);
            ask(c, qpn);
        }
    check(n == 0, "poll");
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void call(const struct options *o)
{
    struct client *clients = calloc(o->clients, sizeof(*clients));
    char *slash = strrchr(o->server, '/'), *rest = slash;
    uint32_t qpn = slash ? (uint32_t)strtoul(slash + 1, &rest, 10) : 0;
    int set = epoll_create1(EPOLL_CLOEXEC);
    uint64_t done = 0, end_ns;

    if (!slash || rest == slash + 1 || *rest) {
        fprintf(stderr, "rpc: %s: expected ADDRESS/QPN, as the server prints it\n", o->server);
        exit(2);
    }
    *slash = '\0';
    check(clients, "no memory");
    char address[MRD_ADDRESS_MAX];
    /* Without a thread each: one thread drives all clients. */
    for (unsigned i = 0; i < o->clients; i++) {
        end_open(&clients[i].end, o, true, 2);
        watch(set, &clients[i].end);
        check(mrd_resolve(clients[i].end.context, o->server, address, sizeof(address)) == 0,
              "the server's name");
        clients[i].server = mrd_create_ah(clients[i].end.pd, address);
        check(clients[i].server, "address of the server");
        clients[i].number = i;
        ask(&clients[i], qpn);
    }
    end_ns = now_ns() + o->seconds * 1000000000ull;
    while (!stopped && now_ns() < end_ns) {
        struct epoll_event events[BATCH];
        int n = epoll_wait(set, events, BATCH, 100);

        for (int i = 0; i < n; i++)
            hear(events[i].data.ptr, qpn);
    }
    for (unsigned i = 0; i < o->clients; i++) {
        done += clients[i].done;
        mrd_destroy_ah(clients[i].server);
        end_close(&clients[i].end);
    }
    printf("%u clients: %" PRIu64 " calls in %u s, %.0f a second, all answers right\n", o->clients,
           done, o->seconds, (double)done / o->seconds);
    free(clients);
    close(set);
    if (!done)
        exit(1);
}

/* ---------------------------------------------------------------------------------------- options */

static void usage(FILE *to)
{
    fputs("usage: rpc [options]              server: prints ADDRESS/QPN; ends with SIGINT\n"
          "       rpc [options] ADDRESS/QPN  clients\n"
          "  -m, --manual        server: without a progress thread\n"
          "  -c, --clients N     clients of this process, 1 .. 1000 (default 16)\n"
          "  -t, --time S        seconds that they call (default 3)\n"
          "  -B, --bind ADDRESS  local address (default: any)\n"
          "  -p, --port N        the server's receive port (default: ephemeral)\n"
          "  -h, --help\n",
          to);
}

static unsigned number(const char *text, unsigned most)
{
    char *rest;
    unsigned long value = strtoul(text, &rest, 10);

    if (text[0] >= '0' && text[0] <= '9' && !*rest && value >= 1 && value <= most)
        return (unsigned)value;
    fprintf(stderr, "rpc: %s: expected a number from 1 to %u\n", text, most);
    exit(2);
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"manual", no_argument, NULL, 'm'},
        {"clients", required_argument, NULL, 'c'},
        {"time", required_argument, NULL, 't'},
        {"bind", required_argument, NULL, 'B'},
        {"port", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct options o = {.clients = 16, .seconds = 3};
    int letter;

    while ((letter = getopt_long(argc, argv, "mc:t:B:p:h", longs, NULL)) != -1) {
        switch (letter) {
        case 'm':
            o.manual = true;
            break;
        case 'c':
            o.clients = number(optarg, CLIENTS_MAX);
            break;
        case 't':
            o.seconds = number(optarg, 86400);
            break;
        case 'B':
            o.bind = optarg;
            break;
        case 'p':
            o.port = (uint16_t)number(optarg, UINT16_MAX);
            break;
        case 'h':
            usage(stdout);
            return 0;
        default:
            usage(stderr);
            return 2;
        }
    }
    if (optind + 1 < argc) {
        usage(stderr);
        return 2;
    }
    sigaction(SIGINT, &(struct sigaction){.sa_handler = stop}, NULL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = stop}, NULL);
    o.server = argv[optind];
    if (o.server)
        call(&o);
    else
        serve(&o);
    return 0;
}
