/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends one message to itself, over the loopback or whatever leads to its own address. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mrd/mrd.h>

static void check(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "%s: %s\n", what, mrd_last_error());
    exit(1);
}

int main(void)
{
    static char memory[2][64] = {"hello, paths"};
    char address[MRD_ADDRESS_MAX];

    struct mrd_context *context = mrd_open_device(NULL, NULL);
    check(context != NULL, "open");
    check(mrd_query_address(context, address, sizeof(address)) == 0, "address");

    struct mrd_pd *pd = mrd_alloc_pd(context);
    check(pd != NULL, "protection domain");
    struct mrd_mr *mr = mrd_reg_mr(pd, memory, sizeof(memory), MRD_ACCESS_LOCAL_WRITE);
    check(mr != NULL, "memory region");
    struct mrd_cq *cq = mrd_create_cq(context, 2, NULL);
    check(cq != NULL, "completion queue");
    struct mrd_qp *qp = mrd_create_qp(pd, &(struct mrd_qp_init_attr){
                                              .send_cq = cq,
                                              .recv_cq = cq,
                                              .cap = {.max_send_wr = 1, .max_recv_wr = 1},
                                          });
    check(qp != NULL, "queue pair");
    struct mrd_ah *ah = mrd_create_ah(pd, address);
    check(ah != NULL, "address handle");

    struct mrd_sge from = {(uintptr_t)memory[0], sizeof(memory[0]), mr->lkey};
    struct mrd_sge to = {(uintptr_t)memory[1], sizeof(memory[1]), mr->lkey};
    struct mrd_recv_wr recv = {.wr_id = 1, .sg_list = &to, .num_sge = 1}, *bad_recv;
    struct mrd_send_wr send = {
        .wr_id = 2,
        .sg_list = &from,
        .num_sge = 1,
        .opcode = MRD_WR_SEND,
        .send_flags = MRD_SEND_SIGNALED,
        .ud = {.ah = ah, .remote_qpn = qp->qp_num},
    };
    struct mrd_send_wr *bad_send;
    check(mrd_post_recv(qp, &recv, &bad_recv) == 0, "post receive");
    check(mrd_post_send(qp, &send, &bad_send) == 0, "post send");

    for (int left = 2; left > 0;) {
        struct mrd_wc wc;
        int n = mrd_poll_cq(cq, 1, &wc);
        check(n >= 0, "poll");
        if (n == 0)
            continue;
        if (wc.status != MRD_WC_SUCCESS) {
            fprintf(stderr, "work request: %s\n", mrd_wc_status_str(wc.status));
            return 1;
        }
        if (wc.opcode == MRD_WC_RECV)
            printf("%s received \"%s\" (%u bytes)\n", address, memory[1], wc.byte_len);
        left -= n;
    }

    mrd_destroy_ah(ah);
    mrd_destroy_qp(qp);
    mrd_destroy_cq(cq);
    mrd_dereg_mr(mr);
    mrd_dealloc_pd(pd);
    return mrd_close_device(context) != 0;
}
