/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts in virtual time, four links between them, one of which loses packets: host 0 writes 8
 * MiB to host 1. Prints when it was done, what each link carried, and the counters of the sender
 * that are not zero.
 */
#include <inttypes.h>
#include <mrd/mrd.h>
#include <mrd/sim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINKS = 4, LOSSY_LINK = 2, LOSS_PPM = 50000, MESSAGE_BYTES = 8 << 20 };
#define STEP_NS   10000u
#define BUDGET_NS 1000000000u

struct host {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_mr *mr;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    uint8_t *memory;
};

static void check(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "%s: %s\n", what, mrd_last_error());
    exit(1);
}

static void open_host(struct host *h, struct mrd_sim *sim, uint32_t number)
{
    struct mrd_context_attr attr = {.seed = 1 + number};

    h->context = mrd_open_device(mrd_sim_device(sim, number), &attr);
    check(h->context != NULL, "open");
    h->pd = mrd_alloc_pd(h->context);
    h->cq = mrd_create_cq(h->context, 16, NULL);
    h->memory = calloc(1, MESSAGE_BYTES);
    check(h->pd && h->cq && h->memory, "create");
    h->mr = mrd_reg_mr(h->pd, h->memory, MESSAGE_BYTES,
                       MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE);
    check(h->mr != NULL, "register");
    h->qp = mrd_create_qp(h->pd, &(struct mrd_qp_init_attr){
                                     .send_cq = h->cq,
                                     .recv_cq = h->cq,
                                     .cap = {.max_send_wr = 4, .max_recv_wr = 4},
                                 });
    check(h->qp != NULL, "create a QP");
}

static void close_host(struct host *h)
{
    check(mrd_destroy_qp(h->qp) == 0 && mrd_destroy_cq(h->cq) == 0 && mrd_dereg_mr(h->mr) == 0 &&
              mrd_dealloc_pd(h->pd) == 0 && mrd_close_device(h->context) == 0,
          "close");
    free(h->memory);
}

/* Host a writes all its memory to host b, whose receive completes when every byte is there. */
static void post(struct host *a, struct host *b, struct mrd_ah *ah)
{
    struct mrd_recv_wr recv = {.wr_id = 1}, *bad_recv;
    struct mrd_sge sge = {(uintptr_t)a->memory, MESSAGE_BYTES, a->mr->lkey};
    struct mrd_send_wr send = {.wr_id = 2,
                               .sg_list = &sge,
                               .num_sge = 1,
                               .opcode = MRD_WR_RDMA_WRITE_WITH_IMM,
                               .send_flags = MRD_SEND_SIGNALED,
                               .ud = {.ah = ah, .remote_qpn = b->qp->qp_num},
                               .wr.rdma = {(uintptr_t)b->memory, b->mr->rkey}},
                       *bad_send;

    check(mrd_post_recv(b->qp, &recv, &bad_recv) == 0, "post a receive");
    check(mrd_post_send(a->qp, &send, &bad_send) == 0, "post a write");
}

static void print_figures(const struct mrd_sim *sim, struct mrd_context *context)
{
    struct mrd_counter counters[128];
    int n = mrd_query_counters(context, counters, 128);

    for (int link = 0; link < LINKS; link++) {
        struct mrd_sim_stats stats;

        check(mrd_sim_link_stats(sim, 0, 1, link, &stats) == 0, "link");
        printf("link %d: %6" PRIu64 " packets, %4" PRIu64 " lost, %5" PRIu64 " marked\n", link,
               stats.packets, stats.lost, stats.ce);
    }
    for (int i = 0; i < n && i < 128; i++) {
        if (counters[i].value > 0)
            printf("%-32s %12" PRIu64 " %s\n", counters[i].name, counters[i].value,
                   counters[i].unit);
    }
}

int main(void)
{
    struct mrd_sim *sim = mrd_sim_create(
        &(struct mrd_sim_attr){.seed = 1, .links = LINKS, .knows = MRD_SIM_KNOWS_FABRIC});
    struct mrd_sim_link lossy;
    struct host a, b;
    char address[MRD_ADDRESS_MAX];

    check(sim != NULL, "simulation");
    check(mrd_sim_get_link(sim, 0, 1, LOSSY_LINK, &lossy) == 0, "link");
    lossy.loss_ppm = LOSS_PPM;
    check(mrd_sim_set_link(sim, 0, 1, LOSSY_LINK, &lossy) == 0, "link");

    open_host(&a, sim, 0);
    open_host(&b, sim, 1);
    for (size_t i = 0; i < MESSAGE_BYTES; i++)
        a.memory[i] = (uint8_t)(i * 2654435761u >> 24);
    check(mrd_query_address(b.context, address, sizeof(address)) == 0, "address");

    struct mrd_ah *ah = mrd_create_ah(a.pd, address);
    int completions = 0;

    check(ah != NULL, "address handle");
    post(&a, &b, ah);
    while (completions < 2 && mrd_sim_now(sim) < BUDGET_NS) {
        struct mrd_wc wc;

        mrd_sim_run_until(sim, mrd_sim_now(sim) + STEP_NS);
        while (mrd_poll_cq(a.cq, 1, &wc) == 1 || mrd_poll_cq(b.cq, 1, &wc) == 1) {
            check(wc.status == MRD_WC_SUCCESS, mrd_wc_status_str(wc.status));
            completions++;
        }
    }
    check(completions == 2, "no completion");
    check(memcmp(a.memory, b.memory, MESSAGE_BYTES) == 0, "the bytes differ");
    printf("%d bytes in %.1f us, %.1f Gb/s\n", MESSAGE_BYTES, (double)mrd_sim_now(sim) / 1e3,
           MESSAGE_BYTES * 8.0 / (double)mrd_sim_now(sim));
    print_figures(sim, a.context);

    check(mrd_destroy_ah(ah) == 0, "destroy");
    close_host(&a);
    close_host(&b);
    mrd_sim_destroy(sim);
    return 0;
}
