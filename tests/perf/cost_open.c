/* SPDX-License-Identifier: BSD-2-Clause */
/* An end is opened: an engine with the numbers of the UDP mover, and one object of each kind. */
#include <stdio.h>
#include <stdlib.h>

#include "core/limits.h"
#include "tests/perf/cost_end.h"

enum { SEED = 1 };

void cost_check(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "engine_cost: %s\n", what);
    exit(1);
}

static void *take_memory(void *arg, size_t bytes)
{
    (void)arg;
    return calloc(1, bytes);
}

static void give_memory(void *arg, void *ptr, size_t bytes)
{
    (void)arg;
    (void)bytes;
    free(ptr);
}

/* As fill_mover() in transport/movers/udp/udp.c does, over IPv4; payloads of 4,096 or 1,408 bytes. */
static struct mrd_mover udp_mover(uint32_t payload_bytes)
{
    struct mrd_mover m = {
        .payload_bytes = payload_bytes,
        .paths = MRD_UDP_PATHS_DEFAULT,
        .rx_buffer_bytes = 2 * MRD_UDP_RCVBUF_BYTES,
        .rx_packet_overhead = payload_bytes > 2048 ? 4256 : 800,
        .header_bytes = 42,
        .copies = true,
    };

    mrd_mover_fill_sockets(&m);
    return m;
}

static void open_engine(struct cost_end *end, const struct cost_end_options *options)
{
    static const struct mrd_allocator allocator = {.alloc = take_memory, .free = give_memory};
    struct mrd_engine_config config = {
        .mover = udp_mover(options->payload_bytes),
        .self = end->addr,
        .seed = SEED + options->number,
        .incarnation = 1000 + options->number,
        .paths = MRD_UDP_PATHS_DEFAULT,
        .max_peers = 1024,
        .max_flows = 1024,
        .peer_timeout_ns = 8 * MRD_SEC,
        .key = {SEED, options->number},
    };
    int error;

    end->engine = mrd_engine_create(&config, &allocator, options->now_ns, &error);
    cost_check(end->engine, "mrd_engine_create");
}

static void open_objects(struct cost_end *end, size_t memory_bytes)
{
    struct mrd_qp_init_attr attr = {
        .cap = {.max_send_wr = COST_DEPTH,
                .max_recv_wr = COST_DEPTH,
                .max_send_sge = 1,
                .max_recv_sge = 1},
        .qkey = COST_QKEY,
        .rnr_retry = 7,
    };
    int error;

    end->pd = mrd_engine_alloc_pd(end->engine, NULL);
    cost_check(end->pd, "mrd_engine_alloc_pd");
    end->cq = mrd_engine_create_cq(end->engine, NULL, COST_DEPTH + COST_DEPTH, NULL, &error);
    cost_check(end->cq, "mrd_engine_create_cq");
    attr.send_cq = attr.recv_cq = end->cq;
    end->qp = mrd_engine_create_qp(end->engine, end->pd, &attr, &error);
    cost_check(end->qp, "mrd_engine_create_qp");
    end->mr = mrd_engine_reg_mr(end->engine, end->pd, end->memory, memory_bytes,
                                MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE,
                                &(struct mrd_mover_mr){0}, &error);
    cost_check(end->mr, "mrd_engine_reg_mr");
}

void cost_end_open(struct cost_end *end, struct cost_link *links,
                   const struct cost_end_options *options)
{
    uint8_t *heads = calloc(MRD_TX_BATCH_MAX, MRD_TX_HEAD_BYTES);

    *end = (struct cost_end){
        .memory = calloc(1, options->memory_bytes),
        .addr = cost_wire_addr(options->number),
        .links = links,
        .number = options->number,
        .drop_ppm = options->drop_ppm,
    };
    cost_check(heads && end->memory, "no memory");
    mrd_rng_init(&end->rng, SEED);
    for (unsigned i = 0; i < MRD_TX_BATCH_MAX; i++) {
        end->tx[i].head = heads + (size_t)i * MRD_TX_HEAD_BYTES;
        end->tx[i].head_cap = MRD_TX_HEAD_BYTES;
    }
    open_engine(end, options);
    open_objects(end, options->memory_bytes);
}

struct mrd_ah *cost_end_ah(struct cost_end *end, const struct cost_end *to)
{
    int error;
    struct mrd_ah *ah = mrd_engine_create_ah(end->engine, end->pd, &to->addr, 0, &error);

    cost_check(ah, "mrd_engine_create_ah");
    return ah;
}
