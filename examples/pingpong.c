/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes answer each other: by messages (--send), or by writes with immediate data into the
 * other's memory (--write). Both check every byte.
 *
 *     $ ./pingpong                              the server; it prints what the client needs
 *     $ ./pingpong --write 192.0.2.7:40001/1    the client: address and queue pair of the server
 *
 * First each end sends the other a greeting. The server learns from its receive completion whom to
 * answer.
 */
#include <endian.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mrd/mrd.h>

enum { QKEY = 0x70696e67 };

/* The first message, in both directions; big-endian. */
struct greeting {
    uint64_t addr; /* where to write to */
    uint32_t rkey;
    uint32_t size;
    uint32_t iterations;
    uint32_t write; /* 1: write with immediate, 0: send */
};

struct options {
    const char *bind;
    uint16_t port;
    bool write;
    uint32_t size, iterations;
    char *server; /* NULL: be the server */
};

struct end {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    struct mrd_ah *peer;
    uint32_t peer_qpn;
    struct mrd_mr *greeting_mr, *mr;
    struct greeting greeting[2]; /* ours, theirs */
    uint8_t *tx, *rx;            /* one buffer, two halves */
    bool write;
    uint32_t size, iterations;
    uint64_t remote_addr;
    uint32_t remote_rkey;
    unsigned sent, received; /* completions polled, less those that wait_for() took */
    struct mrd_wc last_receive;
};

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "pingpong: %s: %s\n", what, mrd_last_error());
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void poll_once(struct end *e)
{
    struct mrd_wc wc;
    int n = mrd_poll_cq(e->cq, 1, &wc);

    check(n >= 0, "poll");
    if (n == 0)
        return;
    if (wc.status != MRD_WC_SUCCESS) {
        fprintf(stderr, "pingpong: %s failed: %s\n", wc.opcode < MRD_WC_RECV ? "send" : "receive",
                mrd_wc_status_str(wc.status));
        exit(1);
    }
    if (wc.opcode == MRD_WC_RECV || wc.opcode == MRD_WC_RECV_RDMA_WITH_IMM) {
        e->received++;
        e->last_receive = wc;
    } else {
        e->sent++;
    }
}

static void wait_for(struct end *e, unsigned sent, unsigned received)
{
    while (e->sent < sent || e->received < received)
        poll_once(e);
    e->sent -= sent;
    e->received -= received;
}

/* Posts a receive; one of size 0 takes immediate data only. */
static void post_receive(struct end *e, void *to, uint32_t size, uint32_t lkey)
{
    struct mrd_sge sge = {(uintptr_t)to, size, lkey};
    struct mrd_recv_wr wr = {.sg_list = &sge, .num_sge = size > 0}, *bad;

    check(mrd_post_recv(e->qp, &wr, &bad) == 0, "post receive");
}

static void post(struct end *e, struct mrd_send_wr *wr)
{
    struct mrd_send_wr *bad;

    wr->num_sge = 1;
    wr->send_flags = MRD_SEND_SIGNALED;
    wr->ud.ah = e->peer;
    wr->ud.remote_qpn = e->peer_qpn;
    wr->ud.remote_qkey = QKEY;
    check(mrd_post_send(e->qp, wr, &bad) == 0, "post send");
}

static void end_open(struct end *e, const struct options *o)
{
    struct mrd_context_attr attr = {.address = o->bind, .port = o->port};

    e->context = mrd_open_device(NULL, &attr);
    check(e->context, "open");
    e->pd = mrd_alloc_pd(e->context);
    check(e->pd, "protection domain");
    e->cq = mrd_create_cq(e->context, 8, NULL);
    check(e->cq, "completion queue");
    e->qp = mrd_create_qp(e->pd, &(struct mrd_qp_init_attr){
                                     .send_cq = e->cq,
                                     .recv_cq = e->cq,
                                     .cap = {.max_send_wr = 2, .max_recv_wr = 2},
                                     .qkey = QKEY,
                                 });
    check(e->qp, "queue pair");
    e->greeting_mr = mrd_reg_mr(e->pd, e->greeting, sizeof(e->greeting), MRD_ACCESS_LOCAL_WRITE);
    check(e->greeting_mr, "memory region");
    post_receive(e, &e->greeting[1], sizeof(e->greeting[1]), e->greeting_mr->lkey);
}

static void end_alloc(struct end *e, uint32_t size, uint32_t iterations, bool write)
{
    e->size = size;
    e->iterations = iterations;
    e->write = write;
    e->tx = calloc(2, size);
    if (!e->tx) {
        fprintf(stderr, "pingpong: no memory for twice %" PRIu32 " bytes\n", size);
        exit(1);
    }
    e->rx = e->tx + size;
    e->mr = mrd_reg_mr(e->pd, e->tx, 2 * (size_t)size,
                       MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE);
    check(e->mr, "memory region");
}

static void end_close(struct end *e)
{
    mrd_destroy_ah(e->peer);
    mrd_destroy_qp(e->qp);
    mrd_destroy_cq(e->cq);
    mrd_dereg_mr(e->mr);
    mrd_dereg_mr(e->greeting_mr);
    mrd_dealloc_pd(e->pd);
    check(mrd_close_device(e->context) == 0, "close");
    free(e->tx);
}

static void greet(struct end *e)
{
    struct mrd_sge sge = {(uintptr_t)&e->greeting[0], sizeof(e->greeting[0]), e->greeting_mr->lkey};
    struct mrd_send_wr wr = {.sg_list = &sge, .opcode = MRD_WR_SEND};

    e->greeting[0] = (struct greeting){
        .addr = htobe64((uintptr_t)e->rx),
        .rkey = htobe32(e->mr->rkey),
        .size = htobe32(e->size),
        .iterations = htobe32(e->iterations),
        .write = htobe32(e->write),
    };
    post(e, &wr);
}

static void learn_target(struct end *e)
{
    e->remote_addr = be64toh(e->greeting[1].addr);
    e->remote_rkey = be32toh(e->greeting[1].rkey);
}

static uint8_t pattern(uint32_t iteration, uint32_t i, bool server)
{
    return (uint8_t)(iteration * 31 + i * 7 + (i >> 8) + server);
}

static void hit(struct end *e, uint32_t iteration, bool server)
{
    struct mrd_sge sge = {(uintptr_t)e->tx, e->size, e->mr->lkey};
    struct mrd_send_wr wr = {
        .sg_list = &sge,
        .opcode = e->write ? MRD_WR_RDMA_WRITE_WITH_IMM : MRD_WR_SEND,
        .imm_data = htobe32(iteration),
        .wr.rdma = {.remote_addr = e->remote_addr, .rkey = e->remote_rkey},
    };

    for (uint32_t i = 0; i < e->size; i++)
        e->tx[i] = pattern(iteration, i, server);
    post(e, &wr);
}

static void expect(struct end *e)
{
    post_receive(e, e->rx, e->write ? 0 : e->size, e->mr->lkey);
}

static void verify(const struct end *e, uint32_t iteration, bool server)
{
    bool ok = e->last_receive.byte_len == e->size &&
              (!e->write || e->last_receive.imm_data == htobe32(iteration));

    for (uint32_t i = 0; ok && i < e->size; i++)
        ok = e->rx[i] == pattern(iteration, i, server);
    if (ok)
        return;
    fprintf(stderr, "pingpong: message %" PRIu32 " is not what was sent\n", iteration);
    exit(1);
}

static void serve(const struct options *o)
{
    struct end e = {0};
    char address[MRD_ADDRESS_MAX];

    end_open(&e, o);
    check(mrd_query_address(e.context, address, sizeof(address)) == 0, "address");
    printf("%s/%" PRIu32 "\n", address, e.qp->qp_num);
    fflush(stdout);

    wait_for(&e, 0, 1);
    if (e.last_receive.byte_len != sizeof(e.greeting[1]) || !e.greeting[1].size) {
        fprintf(stderr, "pingpong: that was no greeting\n");
        exit(1);
    }
    e.peer = mrd_create_ah_from_wc(e.pd, &e.last_receive);
    check(e.peer, "address of the client");
    e.peer_qpn = e.last_receive.src_qp;
    end_alloc(&e, be32toh(e.greeting[1].size), be32toh(e.greeting[1].iterations),
              e.greeting[1].write);
    learn_target(&e);
    expect(&e);
    greet(&e);
    wait_for(&e, 1, 0);

    for (uint32_t i = 0; i < e.iterations; i++) {
        wait_for(&e, 0, 1);
        verify(&e, i, false);
        if (i + 1 < e.iterations)
            expect(&e);
        hit(&e, i, true);
        wait_for(&e, 1, 0);
    }
    end_close(&e);
}

static void play(const struct options *o)
{
    struct end e = {0};
    char *slash = strrchr(o->server, '/');
    char *rest = slash;

    if (slash)
        e.peer_qpn = (uint32_t)strtoul(slash + 1, &rest, 10);
    if (!slash || rest == slash + 1 || *rest) {
        fprintf(stderr, "pingpong: %s: expected ADDRESS/QPN, as the server prints it\n", o->server);
        exit(2);
    }
    *slash = '\0';
    end_open(&e, o);
    e.peer = mrd_create_ah(e.pd, o->server);
    check(e.peer, "address of the server");
    end_alloc(&e, o->size, o->iterations, o->write);
    greet(&e);
    wait_for(&e, 1, 1);
    learn_target(&e);

    uint64_t start_ns = now_ns();

    for (uint32_t i = 0; i < e.iterations; i++) {
        expect(&e);
        hit(&e, i, false);
        wait_for(&e, 1, 1);
        verify(&e, i, true);
    }

    uint64_t end_ns = now_ns();

    printf("%" PRIu32 " round trips by %s of %" PRIu32 " bytes, verified: %.2f us each\n",
           e.iterations, e.write ? "writes" : "sends", e.size,
           (double)(end_ns - start_ns) / 1e3 / e.iterations);
    end_close(&e);
}

static void usage(FILE *to)
{
    fputs("usage: pingpong [options]              server: prints ADDRESS/QPN, serves one client\n"
          "       pingpong [options] ADDRESS/QPN  client\n"
          "  -s, --send          exchange messages (default; the client says which)\n"
          "  -w, --write         exchange writes with immediate data\n"
          "  -b, --bytes N       bytes a message, 1 .. 2^30 (default 64)\n"
          "  -n, --iterations N  round trips (default 1000)\n"
          "  -B, --bind ADDRESS  local address (default: any)\n"
          "  -p, --port N        local receive port (default: ephemeral)\n"
          "  -h, --help\n",
          to);
}

static uint32_t number(const char *text, uint32_t most, const char *option)
{
    char *rest;
    unsigned long long value = strtoull(text, &rest, 10);

    if (text[0] >= '0' && text[0] <= '9' && !*rest && value >= 1 && value <= most)
        return (uint32_t)value;
    fprintf(stderr, "pingpong: --%s %s: expected a number from 1 to %" PRIu32 "\n", option, text,
            most);
    exit(2);
}

int main(int argc, char **argv)
{
    static const struct option long_options[] = {
        {"send", no_argument, NULL, 's'},        {"write", no_argument, NULL, 'w'},
        {"bytes", required_argument, NULL, 'b'}, {"iterations", required_argument, NULL, 'n'},
        {"bind", required_argument, NULL, 'B'},  {"port", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},        {0},
    };
    struct options o = {.size = 64, .iterations = 1000};
    int c;

    while ((c = getopt_long(argc, argv, "swb:n:B:p:h", long_options, NULL)) != -1) {
        switch (c) {
        case 's':
        case 'w':
            o.write = c == 'w';
            break;
        case 'b':
            o.size = number(optarg, MRD_MESSAGE_BYTES_MAX, "bytes");
            break;
        case 'n':
            o.iterations = number(optarg, UINT32_MAX, "iterations");
            break;
        case 'B':
            o.bind = optarg;
            break;
        case 'p':
            o.port = (uint16_t)number(optarg, UINT16_MAX, "port");
            break;
        case 'h':
            usage(stdout);
            return 0;
        default:
            usage(stderr);
            return 2;
        }
    }
    if (argc - optind > 1) {
        usage(stderr);
        return 2;
    }
    o.server = argv[optind];
    if (o.server)
        play(&o);
    else
        serve(&o);
    return 0;
}
