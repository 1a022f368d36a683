/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads of memory whose owner never sends of its own: it has no address handle of the reader, and
 * yet answers by packets as large as the route takes.
 */
#include "udp_process.h"

#include "tests/kit/kit.h"

enum {
    BYTES = 4 << 20,
    PACKET = 8192, /* no more is asked of the loopback */
};

TEST(udp_read__answers_as_large_as_the_route_takes)
{
    static struct node end[2];
    struct node *reader = &end[0], *owner = &end[1];
    struct mrd_send_wr wr = {.opcode = MRD_WR_RDMA_READ, .send_flags = MRD_SEND_SIGNALED}, *bad;
    struct mrd_sge sge = {.length = BYTES};
    struct mrd_wc wc;

    for (unsigned i = 0; i < 2; i++)
        node_open(&end[i], &(struct mrd_context_attr){.progress = MRD_PROGRESS_MANUAL}, 1, 4,
                  BYTES);
    node_fill(owner, 0, BYTES, 1);
    struct mrd_mr *source = mrd_reg_mr(owner->pd, owner->memory, BYTES, MRD_ACCESS_REMOTE_READ);
    must(source);
    sge.addr = (uintptr_t)reader->memory;
    sge.lkey = reader->mr->lkey;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.ud.ah = node_ah(reader, node_name(owner).address);
    wr.ud.remote_qpn = owner->qp[0]->qp_num;
    wr.wr.rdma.remote_addr = (uintptr_t)owner->memory;
    wr.wr.rdma.rkey = source->rkey;
    must(mrd_post_send(reader->qp[0], &wr, &bad) == 0);
    uint64_t until_ns = clock_now_ns() + PATIENCE_S * SEC_NS;
    while (!mrd_poll_cq(reader->cq, 1, &wc)) {
        must(mrd_poll_cq(owner->cq, 1, &wc) == 0);
        must(clock_now_ns() < until_ns);
    }
    assert_int_equal(wc.status, MRD_WC_SUCCESS);
    assert_true(node_is_filled(reader, 0, BYTES, 1));
    /* Those sent again, if the machine is slow, and acks do not count. */
    assert_in_range(node_counter(owner, "tx_packets") - node_counter(owner, "retx_packets"), 1,
                    BYTES / PACKET + 64);
    must(mrd_destroy_ah(wr.ud.ah) == 0);
    must(mrd_dereg_mr(source) == 0);
    for (unsigned i = 0; i < 2; i++)
        node_close(&end[i]);
}
