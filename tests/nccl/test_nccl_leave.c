/* SPDX-License-Identifier: BSD-2-Clause */
/* What is left behind by a rank that leaves: data that was sent, requests that are not complete. */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/kit/kit.h"
#include "tests/nccl/net.h"
#include "tests/support/payload.h"

enum {
    BYTES = 100000,
    LARGE = 32 << 20, /* more than a socket keeps */
    SEED = 3,
    LEAVES = 0, /* ranks */
    STAYS = 1,
};

/* The timeout of 1 s, and 4 s more. */
static const uint64_t limit_ns = 5000000000;

struct side {
    struct net net;
    struct net_link link;
    unsigned char memory[4][BYTES], large[LARGE];
    void *out, *in;
};

static struct side side;

static void start(const char *eager_kb)
{
    (void)setenv("MRD_NCCL_TIMEOUT", "1", 1);
    (void)setenv("MRD_NCCL_EAGER_KB", eager_kb, 1);
    net_start(&side.net, 11);
}

static void open_link(int rank)
{
    net_link(&side.net, !rank, &side.link, 1);
    side.out = net_register(&side.net, side.link.send, side.memory, sizeof(side.memory) + LARGE);
    side.in = net_register(&side.net, side.link.receive, side.memory, sizeof(side.memory) + LARGE);
}

static void begin(int rank, const char *eager_kb)
{
    start(eager_kb);
    open_link(rank);
}

static void end(void)
{
    NEED(side.net.dereg_mr(side.link.send, side.out) == ncclSuccess);
    NEED(side.net.dereg_mr(side.link.receive, side.in) == ncclSuccess);
    net_unlink(&side.net, &side.link, 1);
}

static void *post_send(int i, size_t size, int tag)
{
    payload_fill(side.memory[i], size, SEED, (uint64_t)tag);
    return net_send_one(&side.net, side.link.send, side.memory[i], size, tag, side.out);
}

static void *post_receive(int i, int tag)
{
    return net_receive_one(&side.net, side.link.receive, side.memory[i], BYTES, tag, side.in,
                           false);
}

/* The request ends in ncclRemoteError before the time is over. */
static void need_remote_error(void *request, const char *which)
{
    uint64_t since_ns = rank_now_ns();
    ncclResult_t result = ncclSuccess;
    int done = 0;

    while (result == ncclSuccess && rank_now_ns() - since_ns < limit_ns) {
        result = side.net.test(request, &done, NULL);
        NEED(!done);
        sched_yield();
    }
    if (result != ncclRemoteError)
        rank_fail(__FILE__, __LINE__, "%s: %d after %u ms", which, (int)result,
                  (unsigned)((rank_now_ns() - since_ns) / 1000000));
}

/* Or it cannot be posted any more. */
static void need_send_to_fail(int tag)
{
    void *request;
    ncclResult_t result =
        net_send(&side.net, side.link.send, side.memory[3], BYTES, tag, side.out, &request);

    NEED(result == ncclSuccess || result == ncclRemoteError);
    if (result == ncclSuccess)
        need_remote_error(request, "a new send");
}

static void need_receive_to_fail(int tag)
{
    void *request = NULL, *data = side.memory[3];
    size_t size = BYTES;
    ncclResult_t result =
        net_receive(&side.net, side.link.receive, 1, &data, &size, &tag, &side.in, &request);

    NEED(result == ncclSuccess || result == ncclRemoteError);
    if (result == ncclSuccess)
        need_remote_error(request, "a new receive");
}

/* --------------------------------------------------------------------------- what was sent */

static const size_t early_sizes[] = {BYTES, 0, 100};
enum { EARLY = sizeof(early_sizes) / sizeof(*early_sizes) };

/* Its sends are done; then it closes and ends, or is killed. */
static void send_and_leave(int rank, const void *argument)
{
    void *request[EARLY];
    int told;

    begin(rank, "128");
    if (rank == LEAVES) {
        for (int i = 0; i < EARLY; i++)
            request[i] = post_send(i, early_sizes[i], i);
        for (int i = 0; i < EARLY; i++)
            net_wait(&side.net, request[i], NULL);
        if (*(const bool *)argument)
            rank_kill_myself(SIGKILL);
        end();
        NEED(net_finalize(&side.net) == ncclSuccess);
        return;
    }
    rank_await_death(LEAVES);
    need_send_to_fail(9);
    for (int i = 0; i < EARLY; i++) {
        net_wait(&side.net, post_receive(i, i), &told);
        NEED((size_t)told == early_sizes[i]);
        NEED(payload_mismatch(side.memory[i], early_sizes[i], SEED, (uint64_t)i) == early_sizes[i]);
    }
    need_receive_to_fail(9);
    end();
    NEED(net_finalize(&side.net) == ncclSuccess);
}

/* A send that is done has arrived, though its receive comes after the sender has gone. */
TEST(nccl_leave__sent_before_it_closed)
{
    ranks_run(2, send_and_leave, &(bool){false});
}

TEST(nccl_leave__sent_before_it_was_killed)
{
    ranks_run(2, send_and_leave, &(bool){true});
}

/* ------------------------------------------------------------------------- what is not complete */

/* Rank LEAVES closes with a send that waits; rank STAYS has a receive of another tag. */
static void close_sender_with_work(int rank, const void *argument)
{
    void *never = NULL, *request;
    char over;

    (void)argument;
    begin(rank, "0");
    if (rank == STAYS) {
        never = post_receive(0, 2);
        net_wait(&side.net, post_receive(1, 3), NULL);
        rank_meet(LEAVES);
        need_remote_error(never, "a receive");
        rank_tell(LEAVES, "", 1);
    } else {
        net_wait(&side.net, post_send(0, BYTES, 3), NULL);
        NEED(request = post_send(0, BYTES, 1));
        NEED(side.net.close_send(side.link.send) == ncclSuccess);
        rank_meet(STAYS);
        rank_hear(STAYS, &over, 1);
    }
}

TEST(nccl_leave__closed_with_a_send_outstanding)
{
    ranks_run(2, close_sender_with_work, NULL);
}

/* Rank LEAVES closes with a receive that waits; rank STAYS has a send of another tag. */
static void close_receiver_with_work(int rank, const void *argument)
{
    void *never;
    char over;

    (void)argument;
    begin(rank, "0");
    if (rank == STAYS) {
        net_wait(&side.net, post_send(0, BYTES, 3), NULL);
        NEED(never = post_send(0, BYTES, 2));
        rank_meet(LEAVES);
        rank_meet(LEAVES);
        need_remote_error(never, "a send");
        rank_tell(LEAVES, "", 1);
    } else {
        NEED(post_receive(0, 1));
        net_wait(&side.net, post_receive(1, 3), NULL);
        rank_meet(STAYS);
        NEED(side.net.close_receive(side.link.receive) == ncclSuccess);
        rank_meet(STAYS);
        rank_hear(STAYS, &over, 1);
    }
}

TEST(nccl_leave__closed_with_a_receive_outstanding)
{
    ranks_run(2, close_receiver_with_work, NULL);
}

/* The sender finds out that a send is too long; the receiver has more receives than that. */
static void close_after_misuse(int rank, const void *argument)
{
    void *never, *request, *data = side.memory[0];
    size_t room = 10;
    int tag = 1, done;
    char over;

    (void)argument;
    begin(rank, "0");
    if (rank == STAYS) {
        request = NULL;
        NEED(net_receive(&side.net, side.link.receive, 1, &data, &room, &tag, &side.in, &request) ==
             ncclSuccess);
        never = post_receive(1, 2);
        rank_meet(LEAVES);
        need_remote_error(request, "the receive");
        need_remote_error(never, "another one");
        rank_tell(LEAVES, "", 1);
    } else {
        NEED(request = post_send(0, BYTES, 1));
        ncclResult_t result;
        while ((result = side.net.test(request, &done, NULL)) == ncclSuccess)
            sched_yield();
        NEED(result == ncclInvalidUsage);
        end();
        rank_meet(STAYS);
        rank_hear(STAYS, &over, 1);
    }
}

TEST(nccl_leave__closed_after_misuse)
{
    ranks_run(2, close_after_misuse, NULL);
}

/* Rank STAYS is stopped meanwhile, so that the message does not get through. */
static void close_in_flight(int rank, const void *argument)
{
    pid_t pid = getpid();
    char over;

    (void)argument;
    begin(rank, "0");
    if (rank == STAYS) {
        void *never;

        NEED(net_receive_one(&side.net, side.link.receive, side.large, LARGE, 1, side.in, false));
        never = post_receive(1, 2);

        net_wait(&side.net, post_receive(2, 3), NULL);
        rank_tell(LEAVES, &pid, sizeof(pid));
        rank_hear(LEAVES, &over, 1);
        need_remote_error(never, "a receive");
        rank_tell(LEAVES, "", 1);
    } else {
        net_wait(&side.net, post_send(0, BYTES, 3), NULL);
        rank_hear(STAYS, &pid, sizeof(pid));
        NEED(!kill(pid, SIGSTOP));
        NEED(net_send_one(&side.net, side.link.send, side.large, LARGE, 1, side.out));
        NEED(side.net.close_send(side.link.send) == ncclSuccess);
        NEED(!kill(pid, SIGCONT));
        rank_tell(STAYS, "", 1);
        rank_hear(STAYS, &over, 1);
    }
}

TEST(nccl_leave__closed_with_half_a_message_sent)
{
    ranks_run(2, close_in_flight, NULL);
}

enum { CLOSES = 20 };

/* The receiver has got all, and of many acknowledgements the sender gets none before it closes. */
static void close_before_the_ack(int rank, const void *argument)
{
    (void)argument;
    if (rank == LEAVES)
        (void)setenv("MRD_NCCL_DROP_PPM", "500000", 1);
    start("0");
    for (int i = 0; i < CLOSES; i++) {
        char done;

        open_link(rank);

        if (rank == STAYS) {
            void *never = post_receive(0, 2);

            net_wait(&side.net, post_receive(1, 3), NULL);
            rank_tell(LEAVES, "", 1);
            need_remote_error(never, "a receive");
            end();
        } else {
            NEED(post_send(0, BYTES, 3));
            rank_hear(STAYS, &done, 1);
            NEED(side.net.close_send(side.link.send) == ncclSuccess);
            NEED(side.net.dereg_mr(side.link.receive, side.in) == ncclSuccess);
            NEED(side.net.close_receive(side.link.receive) == ncclSuccess);
        }
        rank_meet(!rank);
    }
    NEED(net_finalize(&side.net) == ncclSuccess);
}

TEST(nccl_leave__closed_before_the_ack)
{
    ranks_run(2, close_before_the_ack, NULL);
}

/* Rank STAYS is stopped until the other one has taken it for dead and closed its comms. */
static void stop_and_go_on(int rank, const void *argument)
{
    pid_t pid = getpid();
    char over;

    (void)argument;
    begin(rank, "0");
    if (rank == STAYS) {
        void *in = post_receive(0, 1), *out = post_send(1, BYTES, 2);

        rank_tell(LEAVES, &pid, sizeof(pid));
        rank_hear(LEAVES, &over, 1);
        need_remote_error(in, "a receive");
        need_remote_error(out, "a send");
        rank_tell(LEAVES, "", 1);
    } else {
        rank_hear(STAYS, &pid, sizeof(pid));
        NEED(!kill(pid, SIGSTOP));
        need_receive_to_fail(3);
        need_send_to_fail(4);
        end();
        NEED(!kill(pid, SIGCONT));
        rank_tell(STAYS, "", 1);
        rank_hear(STAYS, &over, 1);
    }
}

TEST(nccl_leave__stopped_and_goes_on)
{
    ranks_run(2, stop_and_go_on, NULL);
}

/* ----------------------------------------------------------------------------- memory that goes */

enum { GONE_BYTES = 8192 };

/* Memory of the comm, which goes while a request that names it is outstanding. */
static void *map_memory(void *comm, void **mhandle)
{
    void *memory =
        mmap(NULL, GONE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    NEED(memory != MAP_FAILED);
    *mhandle = net_register(&side.net, comm, memory, GONE_BYTES);
    return memory;
}

static void unmap_memory(void *comm, void *memory, void *mhandle)
{
    NEED(side.net.dereg_mr(comm, mhandle) == ncclSuccess);
    NEED(!munmap(memory, GONE_BYTES));
}

/* The send comes when the receive has no memory any more. */
static void lose_receive(int rank, const void *argument)
{
    bool hinted = *(const bool *)argument;

    begin(rank, "0");
    if (rank == STAYS) {
        void *mhandle, *memory = map_memory(side.link.receive, &mhandle);
        void *never =
            net_receive_one(&side.net, side.link.receive, memory, GONE_BYTES, 1, mhandle, hinted);

        net_wait(&side.net, post_receive(2, 2), NULL);
        unmap_memory(side.link.receive, memory, mhandle);
        rank_meet(LEAVES);
        need_remote_error(never, "a receive without memory");
    } else {
        net_wait(&side.net, post_send(2, 64, 2), NULL);
        rank_meet(STAYS);
        void *sent = post_send(0, GONE_BYTES, 1);
        int done = 0;
        while (side.net.test(sent, &done, NULL) == ncclSuccess && !done)
            sched_yield();
    }
    rank_meet(!rank);
    end();
    NEED(net_finalize(&side.net) == ncclSuccess);
}

TEST(nccl_leave__memory_of_a_receive)
{
    ranks_run(2, lose_receive, &(bool){false});
}

/* What is copied is not written there, either. */
TEST(nccl_leave__memory_of_a_hinted_receive)
{
    ranks_run(2, lose_receive, &(bool){true});
}

/* The receive comes when the send has no memory any more. */
static void lose_send(int rank, const void *argument)
{
    (void)argument;
    begin(rank, "0");
    if (rank == LEAVES) {
        void *mhandle, *memory = map_memory(side.link.send, &mhandle);
        void *never = net_send_one(&side.net, side.link.send, memory, GONE_BYTES, 1, mhandle);
        ncclResult_t result;
        int done = 0;

        net_wait(&side.net, post_send(2, 64, 2), NULL);
        unmap_memory(side.link.send, memory, mhandle);
        rank_meet(STAYS);
        while ((result = side.net.test(never, &done, NULL)) == ncclSuccess && !done)
            sched_yield();
        NEED(result == ncclSystemError && !done);
        NEED(side.net.close_send(side.link.send) == ncclSuccess);
    } else {
        net_wait(&side.net, post_receive(2, 2), NULL);
        rank_meet(LEAVES);
        need_remote_error(post_receive(0, 1), "a receive of it");
    }
    rank_meet(!rank);
}

TEST(nccl_leave__memory_of_a_send)
{
    ranks_run(2, lose_send, NULL);
}

/* ------------------------------------------------------------------------------ the last acks */

enum { ROUNDS = 60 };

/* Who has received all closes at once, while many acks are lost: the sends are done all the same. */
static void receive_and_close(int rank, const void *argument)
{
    (void)argument;
    (void)setenv("MRD_NCCL_DROP_PPM", "200000", 1);
    (void)setenv("MRD_NCCL_TIMEOUT", "8", 1);
    net_start(&side.net, 11);
    for (int i = 0; i < ROUNDS; i++) {
        int peer = !rank;

        if (rank == LEAVES) {
            side.link = net_link_ways(&side.net, NET_NOBODY, peer);
            side.in = net_register(&side.net, side.link.receive, side.memory, sizeof(side.memory));
            net_wait(&side.net, post_receive(0, i), NULL);
            NEED(side.net.close_receive(side.link.receive) == ncclSuccess);
        } else {
            side.link = net_link_ways(&side.net, peer, NET_NOBODY);
            side.out = net_register(&side.net, side.link.send, side.memory, sizeof(side.memory));
            net_wait(&side.net, post_send(0, i % 2 ? BYTES : 100, i), NULL);
            NEED(side.net.close_send(side.link.send) == ncclSuccess);
        }
    }
    rank_meet(!rank);
    NEED(net_finalize(&side.net) == ncclSuccess);
}

TEST(nccl_leave__received_and_closed_at_once)
{
    ranks_run(2, receive_and_close, NULL);
}
