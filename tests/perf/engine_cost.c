/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the engine does for fixed workloads, to be counted by callgrind: cost.sh runs it.
 *
 * Two engines, or more, move messages over a wire in memory, in virtual time. After a warm-up the
 * calls of the engines at one end are counted, of a number of messages. Prints what was moved
 * meanwhile. All of it is the same each time: seeds, times and what is lost are fixed.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "core/limits.h"
#include "tests/perf/cost_end.h"
#include "tests/perf/workload.h"

enum {
    SENDER = 0, /* the end that sends; those that receive follow */
    POLL = 16,  /* completions a poll */
    TURN_NS = 500,
};

/* What the instructions depend on besides the sources: the bounds hold for one such build. */
#define TEXT(x)    TEXT_OF(x)
#define TEXT_OF(x) #x
#if defined(__clang__)
#define COMPILER "clang " TEXT(__clang_major__)
#else
#define COMPILER "gcc " TEXT(__GNUC__)
#endif
#if defined(__x86_64__)
#define MACHINE "x86-64"
#else
#define MACHINE "another machine"
#endif
#define XXHASH                                                                                     \
    "xxhash " TEXT(XXH_VERSION_MAJOR) "." TEXT(XXH_VERSION_MINOR) "." TEXT(XXH_VERSION_RELEASE)

/* Turns without a completion after which nothing will come any more. */
#define TURNS_MAX 1000000u

static struct {
    const struct workload *load;
    bool count_sender; /* else those who receive */
    uint64_t now_ns;
    struct cost_end *ends; /* 1 + load->peers */
    struct cost_link links[1 + WORKLOAD_PEERS_MAX];
    /* At the sender, to each end; [SENDER]: at the other end, to the sender. */
    struct mrd_ah *ah[1 + WORKLOAD_PEERS_MAX];
    uint8_t *message;            /* the bytes of each message */
    unsigned target[COST_DEPTH]; /* of the sender's slots: the end that the message goes to */
    unsigned posted, done;
    uint64_t packets, answers; /* while counted, of the sender and to it */
} world;

static unsigned num_ends(void)
{
    return 1 + world.load->peers;
}

/* --------------------------------------------------------------------------------- messages */

static uint8_t *slot_memory(const struct cost_end *end, uint64_t slot)
{
    return end->memory + slot * world.load->message_bytes;
}

static struct mrd_sge slot_sge(const struct cost_end *end, uint64_t slot)
{
    return (struct mrd_sge){(uintptr_t)slot_memory(end, slot), world.load->message_bytes,
                            end->mr->lkey};
}

/* Receives take the upper half of the memory. */
static void post_receives(struct cost_end *end, const uint64_t *slots, unsigned n)
{
    struct mrd_recv_wr wr[POLL];
    struct mrd_sge sge[POLL];

    if (!n)
        return;
    for (unsigned i = 0; i < n; i++) {
        sge[i] = slot_sge(end, COST_DEPTH + slots[i]);
        wr[i] = (struct mrd_recv_wr){.wr_id = slots[i],
                                     .next = i + 1 < n ? &wr[i + 1] : NULL,
                                     .sg_list = &sge[i],
                                     .num_sge = 1};
    }
    cost_end_post_recv(end, wr, world.now_ns);
}

static void post_sends(struct cost_end *end, const uint64_t *slots, unsigned n)
{
    struct mrd_send_wr wr[POLL];
    struct mrd_sge sge[POLL];

    if (!n)
        return;
    for (unsigned i = 0; i < n; i++) {
        unsigned to = end->number == SENDER ? 1 + world.posted++ % world.load->peers : SENDER;
        const struct cost_end *peer = &world.ends[to];

        if (end->number == SENDER)
            world.target[slots[i]] = to;
        sge[i] = slot_sge(end, slots[i]);
        wr[i] = (struct mrd_send_wr){
            .wr_id = slots[i],
            .next = i + 1 < n ? &wr[i + 1] : NULL,
            .sg_list = &sge[i],
            .num_sge = 1,
            .opcode = world.load->is_send ? MRD_WR_SEND : MRD_WR_RDMA_WRITE,
            .send_flags = MRD_SEND_SIGNALED,
            .ud = {.ah = world.ah[to], .remote_qpn = peer->qp->qp_num, .remote_qkey = COST_QKEY},
            .wr = {.rdma = {.remote_addr = (uintptr_t)slot_memory(peer, slots[i]),
                            .rkey = peer->mr->rkey}}};
    }
    cost_end_post_send(end, wr, world.now_ns);
}

static void set_counted(bool on)
{
    for (unsigned i = 0; i < num_ends(); i++)
        world.ends[i].counted = on && (i == SENDER) == world.count_sender;
}

/* Counting begins after the warm-up and ends with the last message that is to be counted. */
static void note_done(void)
{
    const struct workload *load = world.load;
    uint64_t answers = 0;

    world.done++;
    if (world.done != load->warmup && world.done != load->warmup + load->messages)
        return;
    for (unsigned i = 1; i < num_ends(); i++)
        answers += world.ends[i].sent_packets;
    world.packets = world.ends[SENDER].sent_packets - world.packets;
    world.answers = answers - world.answers;
    set_counted(world.done == load->warmup);
}

static bool is_over(void)
{
    return world.done >= world.load->warmup + world.load->messages;
}

/* The bytes that came are those of a message. They are wiped out: the next must bring its own. */
static void check_bytes(uint8_t *bytes)
{
    cost_check(!memcmp(bytes, world.message, world.load->message_bytes),
               "a message came with other bytes");
    memset(bytes, 0, world.load->message_bytes);
}

/* A poll of an end, and what follows from it. Returns whether there was anything. */
static bool serve(struct cost_end *end)
{
    const struct workload *load = world.load;
    struct mrd_wc wc[POLL];
    uint64_t received[POLL], sent[POLL];
    unsigned num_received = 0, num_sent = 0;
    bool handled;
    int n = cost_end_poll(end, wc, POLL, &handled, world.now_ns);

    for (int i = 0; i < n; i++) {
        bool is_receive = wc[i].opcode == MRD_WC_RECV;

        cost_check(wc[i].status == MRD_WC_SUCCESS, "a message failed");
        if (is_receive) {
            cost_check(wc[i].byte_len == load->message_bytes, "a message has another length");
            check_bytes(slot_memory(end, COST_DEPTH + wc[i].wr_id));
            received[num_received++] = wc[i].wr_id;
        } else {
            if (!load->is_send)
                check_bytes(slot_memory(&world.ends[world.target[wc[i].wr_id]], wc[i].wr_id));
            sent[num_sent++] = wc[i].wr_id;
        }
        if (end->number == SENDER && is_receive == load->is_answered)
            note_done();
    }
    post_receives(end, received, num_received);
    if (load->is_answered)
        memset(sent, 0, sizeof(sent)); /* there is one slot */
    if (end->number == SENDER && !is_over())
        post_sends(end, sent, load->is_answered ? num_received : num_sent);
    else if (end->number != SENDER && load->is_answered)
        post_sends(end, sent, num_received);
    return n || handled;
}

/* --------------------------------------------------------------------------------- the run */

static uint64_t wake_ns(const struct cost_end *end)
{
    uint64_t arrival_ns = cost_wire_arrival_ns(&world.links[end->number]);

    return arrival_ns < end->deadline_ns ? arrival_ns : end->deadline_ns;
}

/* Until `enough()`, or until nobody has anything to do. */
static void run(bool (*enough)(void))
{
    unsigned done = world.done;

    for (unsigned turns = 0; !enough(); turns++) {
        uint64_t next_ns = UINT64_MAX;

        for (unsigned i = 0; i < num_ends(); i++)
            if (wake_ns(&world.ends[i]) < next_ns)
                next_ns = wake_ns(&world.ends[i]);
        if (next_ns == UINT64_MAX)
            return;
        world.now_ns = next_ns > world.now_ns + TURN_NS ? next_ns : world.now_ns + TURN_NS;
        for (unsigned i = 0; i < num_ends(); i++) {
            if (wake_ns(&world.ends[i]) > world.now_ns)
                continue;
            while (serve(&world.ends[i]))
                ;
            cost_end_sleep(&world.ends[i]);
        }
        if (world.done != done)
            turns = 0;
        done = world.done;
        cost_check(turns < TURNS_MAX, "messages do not come to an end");
    }
}

static bool is_idle(void)
{
    return is_over() && world.done == world.posted;
}

static void open_world(void)
{
    const struct workload *load = world.load;
    struct cost_end_options options = {
        .payload_bytes = load->payload_bytes,
        .now_ns = world.now_ns,
        .memory_bytes =
            (size_t)load->message_bytes * (load->is_send ? 2 * COST_DEPTH : load->outstanding),
    };

    world.ends = calloc(num_ends(), sizeof(*world.ends));
    world.message = malloc(load->message_bytes);
    cost_check(world.ends && world.message, "no memory");
    for (unsigned i = 0; i < load->message_bytes; i++)
        world.message[i] = (uint8_t)(i * 31 + i / 256);
    for (unsigned i = 0; i < num_ends(); i++) {
        options.number = i;
        options.drop_ppm = i == SENDER ? 0 : load->drop_ppm;
        cost_end_open(&world.ends[i], world.links, &options);
    }
    for (unsigned i = 0; i < num_ends(); i++)
        world.ah[i] = cost_end_ah(&world.ends[i == SENDER ? 1 : SENDER], &world.ends[i]);
    for (unsigned i = 0; i < load->outstanding; i++) {
        memcpy(slot_memory(&world.ends[SENDER], i), world.message, load->message_bytes);
        if (load->is_answered)
            memcpy(slot_memory(&world.ends[1], i), world.message, load->message_bytes);
    }
}

static void start(void)
{
    for (uint64_t slot = 0; world.load->is_send && slot < COST_DEPTH; slot++)
        for (unsigned i = 0; i < num_ends(); i++)
            post_receives(&world.ends[i], &slot, 1);
    for (uint64_t slot = 0; slot < world.load->outstanding; slot++)
        post_sends(&world.ends[SENDER], &slot, 1);
}

/* All that was posted came to its end, as it should, and nothing leaked. */
static void check_world(void)
{
    cost_check(world.done == world.posted, "messages did not complete");
    for (unsigned i = 0; i < num_ends(); i++) {
        const char *leak = mrd_engine_audit(world.ends[i].engine);

        cost_check(!leak, leak);
    }
}

static void print_counters(const struct cost_end *end)
{
    struct mrd_counter counters[256];
    int n = mrd_engine_query_counters(end->engine, counters, 256);

    for (int i = 0; i < n && i < 256; i++)
        if (counters[i].value)
            printf("  %u %s %llu\n", end->number, counters[i].name,
                   (unsigned long long)counters[i].value);
}

static void usage(FILE *to)
{
    fprintf(to, "usage: engine_cost WORKLOAD sender|receiver [-v]   -v: counters, too\n"
                "       engine_cost workloads                      their names\n"
                "       engine_cost build                          what this was built with\n");
}

/* Returns whether it was asked for, and printed. */
static bool print_fact(const char *what)
{
    if (!strcmp(what, "build")) {
        puts(COMPILER " " MACHINE " " XXHASH);
        return true;
    }
    if (strcmp(what, "workloads") != 0)
        return false;
    for (const struct workload *w = workload_list; w->name; w++)
        puts(w->name);
    return true;
}

int main(int argc, char **argv)
{
    if (argc == 2 && print_fact(argv[1]))
        return 0;
    if (argc < 3 || argc > 4 || !workload_find(argv[1]) ||
        (strcmp(argv[2], "sender") != 0 && strcmp(argv[2], "receiver") != 0)) {
        usage(stderr);
        return 2;
    }
    world.load = workload_find(argv[1]);
    world.count_sender = !strcmp(argv[2], "sender");
    world.now_ns = 1000 * MRD_SEC;
    open_world();
    start();
    run(is_over);
    run(is_idle);
    check_world();
    printf("messages %u packets %llu answers %llu\n", world.load->messages,
           (unsigned long long)world.packets, (unsigned long long)world.answers);
    for (unsigned i = 0; argc == 4 && i < num_ends(); i++)
        print_counters(&world.ends[i]);
    return 0;
}
