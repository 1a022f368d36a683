/* SPDX-License-Identifier: BSD-2-Clause */
/* Eight ranks sum words, as NCCL does it: in a ring, and up and down a binary tree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/nccl/net.h"

enum {
    RANKS = 8,
    WORDS_MAX = 1 << 18,
    CHUNK_WORDS = 1 << 15, /* that a tree hands on at a time */
};

static const unsigned sizes[] = {1, 7, 1000, 65537, WORDS_MAX}; /* in words */

enum { SIZES = sizeof(sizes) / sizeof(*sizes), ROUNDS = 10 * SIZES };

static uint32_t sums[WORDS_MAX], arrived[2][WORDS_MAX + 1];

/* Comms to and from a neighbour, and what they send and receive. */
struct edge {
    struct net *net;
    struct net_link link;
    uint32_t *in;
    void *out_mr, *in_mr;
};

static void open_edge(struct edge *e, struct net *net, int to, int from, uint32_t *in)
{
    *e = (struct edge){.net = net, .link = net_link_ways(net, to, from), .in = in};
    e->out_mr = net_register(net, e->link.send, sums, sizeof(sums));
    e->in_mr = net_register(net, e->link.receive, in, sizeof(arrived[0]));
}

static void close_edge(struct edge *e)
{
    NEED(e->net->dereg_mr(e->link.send, e->out_mr) == ncclSuccess);
    NEED(e->net->dereg_mr(e->link.receive, e->in_mr) == ncclSuccess);
    net_unlink(e->net, &e->link, 1);
}

static void *send_words(struct edge *e, unsigned first, unsigned n)
{
    void *request;

    while (!(request =
                 net_send_one(e->net, e->link.send, sums + first, n * sizeof(*sums), 0, e->out_mr)))
        ;
    return request;
}

/* Room for one word more than comes. */
static void *receive_words(struct edge *e, unsigned n)
{
    void *request;

    while (!(request = net_receive_one(e->net, e->link.receive, e->in, (n + 1) * sizeof(*sums), 0,
                                       e->in_mr, true)))
        ;
    return request;
}

/* Words that have arrived are added, or taken. */
static void finish_words(struct edge *e, void *request, unsigned first, unsigned n, bool add)
{
    int bytes = -1;

    net_wait(e->net, request, &bytes);
    NEED((unsigned)bytes == n * sizeof(*sums));
    for (unsigned i = 0; i < n; i++)
        sums[first + i] = e->in[i] + (add ? sums[first + i] : 0);
}

static void fill(int rank, unsigned n, unsigned round)
{
    for (unsigned i = 0; i < n; i++)
        sums[i] = (uint32_t)(rank + 1) * (i * 2654435761u + round);
}

static void check(unsigned n, unsigned round)
{
    for (unsigned i = 0; i < n; i++)
        if (sums[i] != RANKS * (RANKS + 1) / 2 * (i * 2654435761u + round))
            rank_fail(__FILE__, __LINE__, "word %u of %u is wrong", i, n);
}

static void start(struct net *net, const unsigned *drop_ppm)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", *drop_ppm);
    (void)setenv("MRD_NCCL_DROP_PPM", text, 1);
    net_start(net, 11);
}

/* --------------------------------------------------------------------------------------- ring */

/* Each part goes once around the ring to be summed, and once more to be known. */
static void sum_in_ring(int rank, struct edge *e, unsigned n)
{
    for (int step = 0; step < 2 * (RANKS - 1); step++) {
        unsigned mine = (unsigned)(rank - step + 2 * RANKS) % RANKS,
                 next = (unsigned)(rank - step - 1 + 2 * RANKS) % RANKS;
        unsigned at = mine * n / RANKS, to = next * n / RANKS;
        unsigned len = (next + 1) * n / RANKS - to;
        void *in = receive_words(e, len), *out = send_words(e, at, (mine + 1) * n / RANKS - at);

        finish_words(e, in, to, len, step < RANKS - 1);
        net_wait(e->net, out, NULL);
    }
}

static void be_in_ring(int rank, const void *argument)
{
    struct edge e;
    struct net net;

    start(&net, argument);
    open_edge(&e, &net, (rank + 1) % RANKS, (rank + RANKS - 1) % RANKS, arrived[0]);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned n = sizes[round % SIZES];

        fill(rank, n, round);
        sum_in_ring(rank, &e, n);
        check(n, round);
    }
    rank_meet_all();
    close_edge(&e);
    NEED(net_finalize(&net) == ncclSuccess);
}

TEST(nccl_ring__sums)
{
    ranks_run(RANKS, be_in_ring, &(unsigned){0});
}

TEST(nccl_ring__sums_though_packets_are_lost)
{
    ranks_run(RANKS, be_in_ring, &(unsigned){10000});
}

/* --------------------------------------------------------------------------------------- tree */

struct node {
    struct edge up, down[2];
    bool has_parent;
    unsigned children;
};

/* Sums of the children go up with what is here; from the root, sums come down. */
static void sum_in_tree(struct node *node, unsigned first, unsigned n)
{
    void *in[2], *out[2];

    for (unsigned i = 0; i < node->children; i++)
        in[i] = receive_words(&node->down[i], n);
    for (unsigned i = 0; i < node->children; i++)
        finish_words(&node->down[i], in[i], first, n, true);
    if (node->has_parent) {
        in[0] = receive_words(&node->up, n);
        out[0] = send_words(&node->up, first, n);
        net_wait(node->up.net, out[0], NULL);
        finish_words(&node->up, in[0], first, n, false);
    }
    for (unsigned i = 0; i < node->children; i++)
        out[i] = send_words(&node->down[i], first, n);
    for (unsigned i = 0; i < node->children; i++)
        net_wait(node->down[i].net, out[i], NULL);
}

static void be_in_tree(int rank, const void *argument)
{
    struct node node = {.has_parent = rank > 0};
    struct net net;

    start(&net, argument);
    if (node.has_parent)
        open_edge(&node.up, &net, (rank - 1) / 2, (rank - 1) / 2, arrived[0]);
    for (int child = 2 * rank + 1; child <= 2 * rank + 2 && child < RANKS; child++) {
        open_edge(&node.down[node.children], &net, child, child, arrived[node.children]);
        node.children++;
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned n = sizes[round % SIZES];

        fill(rank, n, round);
        for (unsigned at = 0; at < n; at += CHUNK_WORDS)
            sum_in_tree(&node, at, n - at < CHUNK_WORDS ? n - at : CHUNK_WORDS);
        check(n, round);
    }
    rank_meet_all();
    if (node.has_parent)
        close_edge(&node.up);
    for (unsigned i = 0; i < node.children; i++)
        close_edge(&node.down[i]);
    NEED(net_finalize(&net) == ncclSuccess);
}

TEST(nccl_ring__tree_sums)
{
    ranks_run(RANKS, be_in_tree, &(unsigned){0});
}

TEST(nccl_ring__tree_sums_though_packets_are_lost)
{
    ranks_run(RANKS, be_in_tree, &(unsigned){10000});
}
