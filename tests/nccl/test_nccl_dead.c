/* SPDX-License-Identifier: BSD-2-Clause */
/* What a rank hears of a peer that is killed, falls silent, comes again or closes its comms. */
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/kit/kit.h"
#include "tests/nccl/net.h"

enum {
    BYTES = 4096,
    SURVIVOR = 0, /* ranks */
    DYING = 1,
    OTHER = 2,
};

/* The peer's timeout of 2 s, and 3 s more. */
static const uint64_t limit_ns = 5000000000;

/* How rank DYING goes. */
enum end { KILLED, STOPPED, FINALIZED, CLOSED };

struct scene {
    enum end end;
    int version;
    uint16_t port; /* of the one that comes again */
};

struct comms {
    struct net *net;
    struct net_link link;
    void *out, *in; /* memory, registered with them */
};

static unsigned char memory[BYTES];

static void register_memory(struct comms *c, struct net *net)
{
    c->net = net;
    c->out = net_register(net, c->link.send, memory, BYTES);
    c->in = net_register(net, c->link.receive, memory, BYTES);
}

static void open_comms(struct comms *c, struct net *net, int peer)
{
    net_link(net, peer, &c->link, 1);
    register_memory(c, net);
}

static void close_comms(struct comms *c)
{
    NEED(c->net->dereg_mr(c->link.send, c->out) == ncclSuccess);
    NEED(c->net->dereg_mr(c->link.receive, c->in) == ncclSuccess);
    net_unlink(c->net, &c->link, 1);
}

static void *post_receive(struct comms *c, int tag)
{
    return net_receive_one(c->net, c->link.receive, memory, BYTES, tag, c->in, false);
}

static void *post_send(struct comms *c, int tag)
{
    return net_send_one(c->net, c->link.send, memory, BYTES, tag, c->out);
}

/* A message each way, with a peer that does the same. */
static void swap(struct comms *c)
{
    void *in = post_receive(c, 1), *out = post_send(c, 1);
    int size = 0;

    net_wait(c->net, in, &size);
    NEED(size == BYTES);
    net_wait(c->net, out, NULL);
}

/* No eager sends: so a send waits for its receive. */
static void start(struct net *net, int version)
{
    (void)setenv("MRD_NCCL_TIMEOUT", "2", 1);
    (void)setenv("MRD_NCCL_EAGER_KB", "0", 1);
    net_start(net, version);
}

static void go_away(struct comms *c, enum end end)
{
    char over;

    if (end == KILLED || end == STOPPED)
        rank_kill_myself(end == KILLED ? SIGKILL : SIGSTOP);
    close_comms(c);
    if (end == FINALIZED)
        NEED(net_finalize(c->net) == ncclSuccess);
    rank_hear(SURVIVOR, &over, 1);
    exit(0);
}

/* Of what is left over, both ways. */
static void see_the_end(struct comms *c)
{
    void *arrived = post_receive(c, 1), *nothing = post_receive(c, 2), *unread = post_send(c, 3),
         *request = NULL, *data = memory;
    size_t size = BYTES;
    int tag = 4, told = 0;

    rank_meet(DYING); /* the first message is sent */
    net_forget_said();
    rank_tell(DYING, "", 1);
    uint64_t since_ns = rank_now_ns();
    NEED(net_wait_end(c->net, nothing) == ncclRemoteError);
    NEED(net_wait_end(c->net, unread) == ncclRemoteError);
    NEED(net_send(c->net, c->link.send, memory, BYTES, 4, c->out, &request) == ncclRemoteError);
    NEED(!request);
    uint64_t took_ns = rank_now_ns() - since_ns;
    if (took_ns > limit_ns)
        rank_fail(__FILE__, __LINE__, "after %u ms", (unsigned)(took_ns / 1000000));
    NEED(net_receive(c->net, c->link.receive, 1, &data, &size, &tag, &c->in, &request) ==
         ncclRemoteError);
    NEED(!request);
    NEED(net_said(c->link.peer));
    NEED(net_is_done(c->net, arrived, &told) && told == BYTES); /* it came before the end */
}

static void run_scene(int rank, const void *argument)
{
    const struct scene *scene = argument;
    struct comms dying, other;
    struct net net;
    char go;

    start(&net, scene->version);
    if (rank != OTHER)
        open_comms(&dying, &net, rank == DYING ? SURVIVOR : DYING);
    if (rank == DYING) {
        net_wait(&net, post_send(&dying, 1), NULL);
        rank_meet(SURVIVOR);
        rank_hear(SURVIVOR, &go, 1);
        go_away(&dying, scene->end);
    }
    open_comms(&other, &net, rank == OTHER ? SURVIVOR : OTHER);
    swap(&other);
    if (rank == SURVIVOR)
        see_the_end(&dying);
    swap(&other); /* goes on */
    if (rank == SURVIVOR) {
        close_comms(&dying);
        if (scene->end >= FINALIZED)
            rank_tell(DYING, "", 1);
    }
    rank_meet(rank == OTHER ? SURVIVOR : OTHER);
    close_comms(&other);
    NEED(net_finalize(&net) == ncclSuccess);
}

TEST(nccl_dead__killed)
{
    ranks_run(3, run_scene, &(struct scene){.end = KILLED, .version = 11});
}

TEST(nccl_dead__killed_v8)
{
    ranks_run(3, run_scene, &(struct scene){.end = KILLED, .version = 8});
}

TEST(nccl_dead__silent)
{
    ranks_run(3, run_scene, &(struct scene){.end = STOPPED, .version = 11});
}

TEST(nccl_dead__finalized)
{
    ranks_run(3, run_scene, &(struct scene){.end = FINALIZED, .version = 11});
}

/* Its process goes on. */
TEST(nccl_dead__closed)
{
    ranks_run(3, run_scene, &(struct scene){.end = CLOSED, .version = 11});
}

/* -------------------------------------------------------------------------- started anew */

/* A port that is free; 0: this one is not. */
static uint16_t free_port(uint16_t port)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t len = sizeof(any);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (bind(fd, (struct sockaddr *)&any, len) || getsockname(fd, (struct sockaddr *)&any, &len))
        any.sin_port = 0;
    close(fd);
    return ntohs(any.sin_port);
}

static void come_again(int rank, const void *argument)
{
    const struct scene *scene = argument;
    struct comms dead, anew;
    struct net net;
    char port[8];

    snprintf(port, sizeof(port), "%u", scene->port);
    if (rank != SURVIVOR)
        (void)setenv("MRD_PORT", port, 1);
    if (rank == OTHER) {
        rank_await_death(DYING);
        while (!free_port(scene->port)) /* until all of its sockets are closed */
            sched_yield();
    }
    start(&net, 11);
    if (rank == DYING) {
        open_comms(&dead, &net, SURVIVOR);
        swap(&dead);
        rank_meet(SURVIVOR);
        rank_kill_myself(SIGKILL);
    }
    if (rank == SURVIVOR) {
        open_comms(&dead, &net, DYING);
        swap(&dead);
        rank_meet(DYING);
    }
    void *never = rank == SURVIVOR ? post_receive(&dead, 2) : NULL;
    uint64_t since_ns = rank_now_ns();
    if (rank == SURVIVOR) {
        anew.link = net_link_ways(&net, NET_NOBODY, OTHER);
        NEED(net_wait_end(&net, never) == ncclRemoteError);
        struct net_link back = net_link_ways(&net, OTHER, NET_NOBODY);
        NEED(!strcmp(back.peer, dead.link.peer));
        anew.link.send = back.send;
        NEED(rank_now_ns() - since_ns < limit_ns);
        NEED(net_said(dead.link.peer));
        close_comms(&dead);
    } else {
        anew.link = net_link_ways(&net, SURVIVOR, NET_NOBODY);
        anew.link.receive = net_link_ways(&net, NET_NOBODY, SURVIVOR).receive;
    }
    register_memory(&anew, &net);
    swap(&anew);
    rank_meet(rank == OTHER ? SURVIVOR : OTHER);
    close_comms(&anew);
    NEED(net_finalize(&net) == ncclSuccess);
}

/* Another process has its address: the old comms end, new ones work. */
TEST(nccl_dead__started_anew)
{
    ranks_run(3, come_again, &(struct scene){.port = free_port(0)});
}
