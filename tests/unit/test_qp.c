/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/qp.h"
#include "tests/kit/kit.h"

enum { SEND_WR = 3, RECV_WR = 2, SEND_SGE = 3, RECV_SGE = 2, INLINE = 24 };

FIXTURE(qp_fixture)
{
    struct mrd_qp_impl *qp;
    struct mrd_qp_init_attr attr;
    struct mrd_pd pd;
    struct mrd_ah ah;
    struct mrd_sge sge[4];
    char memory[64];
};

static void begin(struct qp_fixture *f)
{
    memset(f, 0, sizeof(*f));
    f->attr.cap = (struct mrd_qp_cap){.max_send_wr = SEND_WR,
                                      .max_recv_wr = RECV_WR,
                                      .max_send_sge = SEND_SGE,
                                      .max_recv_sge = RECV_SGE,
                                      .max_inline_data = INLINE};
    f->attr.qkey = 0x1234;
    size_t bytes = mrd_qp_bytes(&f->attr.cap);
    f->qp = calloc(1, bytes); /* exactly, so that a sanitizer sees a slot that lies outside */
    assert_non_null(f->qp);
    mrd_qp_init(f->qp, &f->pd, &f->attr, bytes);
    for (unsigned i = 0; i < 4; i++)
        f->sge[i] = (struct mrd_sge){
            .addr = (uint64_t)(uintptr_t)&f->memory[10 * i], .length = 8, .lkey = i};
}

static void end(struct qp_fixture *f)
{
    free(f->qp);
}

FIXTURE_FROM(qp_fixture, begin, end);

static struct mrd_send_wr send_wr(struct qp_fixture *f, int num_sge)
{
    return (struct mrd_send_wr){.wr_id = 77,
                                .sg_list = f->sge,
                                .num_sge = num_sge,
                                .opcode = MRD_WR_SEND,
                                .ud = {.ah = &f->ah, .remote_qpn = 20, .remote_qkey = 21}};
}

TEST(mrd_qp_bytes__rejects_caps_out_of_range)
{
    static const struct {
        struct mrd_qp_cap cap;
        bool good;
    } table[] = {
        {{0, 0, 0, 0, 0}, true},
        {{1 << 20, 0, 0, 0, 0}, true},
        {{(1 << 20) + 1, 0, 0, 0, 0}, false},
        {{0, (1 << 20) + 1, 0, 0, 0}, false},
        {{1, 1, MRD_SGE_MAX, MRD_SGE_MAX, MRD_INLINE_BYTES_MAX}, true},
        {{1, 1, MRD_SGE_MAX + 1, 1, 0}, false},
        {{1, 1, 1, MRD_SGE_MAX + 1, 0}, false},
        {{1, 1, 1, 1, MRD_INLINE_BYTES_MAX + 1}, false},
        {{UINT32_MAX, UINT32_MAX, 1, 1, 0}, false},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        assert_int_equal(mrd_qp_bytes(&table[i].cap) != 0, table[i].good);
}

/* Slots, lists and inline data lie in the one allocation and nowhere upon each other. */
TEST_F(qp_fixture, mrd_qp_init__slots_do_not_overlap)
{
    struct mrd_recv *recv[RECV_WR];
    struct mrd_recv_wr wr = {0};

    for (uint32_t i = 0; i < SEND_WR; i++) {
        memset(self->qp->msgs[i].wr.sge, 0xa0 + (int)i, SEND_SGE * sizeof(struct mrd_sge));
        memset(self->qp->msgs[i].wr.inline_data, 0xb0 + (int)i, INLINE);
    }
    for (uint32_t i = 0; i < RECV_WR; i++)
        assert_int_equal(mrd_recvq_post(self->qp->recvq, &wr), 0);
    for (uint32_t i = 0; i < RECV_WR; i++)
        recv[i] = mrd_recvq_take(self->qp->recvq);
    for (uint32_t i = 0; i < RECV_WR; i++)
        memset(recv[i]->sge, 0xc0 + (int)i, RECV_SGE * sizeof(struct mrd_sge));
    for (uint32_t i = 0; i < SEND_WR; i++) {
        assert_int_equal(((uint8_t *)self->qp->msgs[i].wr.sge)[0], 0xa0 + i);
        assert_int_equal(
            ((uint8_t *)self->qp->msgs[i].wr.sge)[SEND_SGE * sizeof(struct mrd_sge) - 1], 0xa0 + i);
        assert_int_equal(self->qp->msgs[i].wr.inline_data[0], 0xb0 + i);
        assert_int_equal(self->qp->msgs[i].wr.inline_data[INLINE - 1], 0xb0 + i);
        assert_ptr_equal(self->qp->msgs[i].qp, self->qp);
    }
    for (uint32_t i = 0; i < RECV_WR; i++) {
        assert_int_equal(((uint8_t *)recv[i]->sge)[0], 0xc0 + i);
        assert_int_equal(((uint8_t *)recv[i]->sge)[RECV_SGE * sizeof(struct mrd_sge) - 1],
                         0xc0 + i);
    }
    assert_int_equal(self->qp->qkey, 0x1234);
}

TEST_F(qp_fixture, mrd_qp_check_send__says_what_is_wrong)
{
    for (int i = 0; i < 12; i++) {
        struct mrd_send_wr wr = send_wr(self, 3);
        uint32_t length = 99;
        const char *why;

        if (i == 0)
            wr.opcode = (enum mrd_wr_opcode)7;
        if (i == 1)
            wr.opcode = (enum mrd_wr_opcode) - 1;
        if (i == 2)
            wr.send_flags = 1 << 4;
        if (i == 3)
            wr.num_sge = SEND_SGE + 1;
        if (i == 4)
            wr.num_sge = -1;
        if (i == 5)
            wr.ud.ah = NULL;
        if (i == 6) {
            wr.send_flags = MRD_SEND_INLINE;
            self->sge[0].length = INLINE - 16 + 1;
        }
        if (i == 7)
            self->sge[0].length = MRD_MESSAGE_BYTES_MAX - 15;
        if (i > 7) {
            self->sge[0].length = 8;
            wr.num_sge = 1;
            wr.opcode = MRD_WR_ATOMIC_FETCH_AND_ADD;
        }
        if (i == 8)
            wr.wr.atomic.remote_addr = 4;
        if (i == 9)
            self->sge[0].length = 4;
        if (i == 10) {
            wr.opcode = MRD_WR_RDMA_READ;
            wr.send_flags = MRD_SEND_INLINE;
        }
        if (i == 11) {
            wr.opcode = MRD_WR_ATOMIC_CMP_AND_SWP;
            wr.num_sge = 0;
        }
        assert_int_equal(mrd_qp_check_send(self->qp, &wr, &length, &why),
                         i == 7 ? -EMSGSIZE : -EINVAL);
        assert_non_null(why);
        assert_int_equal(length, 99); /* set on success only */
    }
}

/* Up to the bounds themselves; sums of lengths do not wrap. */
TEST_F(qp_fixture, mrd_qp_check_send__lengths_at_the_bounds)
{
    uint32_t length;
    const char *why;
    struct mrd_send_wr wr = send_wr(self, 3);

    wr.send_flags = MRD_SEND_INLINE;
    assert_int_equal(mrd_qp_check_send(self->qp, &wr, &length, &why), 0);
    assert_int_equal(length, INLINE);
    wr.send_flags = 0;
    self->sge[0].length = MRD_MESSAGE_BYTES_MAX - 16;
    assert_int_equal(mrd_qp_check_send(self->qp, &wr, &length, &why), 0);
    assert_int_equal(length, MRD_MESSAGE_BYTES_MAX);
    self->sge[0].length = self->sge[1].length = self->sge[2].length = UINT32_MAX;
    assert_int_equal(mrd_qp_check_send(self->qp, &wr, &length, &why), -EMSGSIZE);
}

TEST(mrd_qp_msg_alloc__table)
{
    static const struct {
        enum mrd_wr_opcode opcode;
        unsigned flags;
        enum mrd_order order;
        uint8_t op, part_flags;
    } table[] = {
        {MRD_WR_SEND, 0, MRD_ORDER_NONE, MRD_OP_SEND, 0},
        {MRD_WR_SEND_WITH_IMM, MRD_SEND_SIGNALED, MRD_ORDER_NONE, MRD_OP_SEND, MRD_PART_IMM},
        {MRD_WR_RDMA_WRITE, 0, MRD_ORDER_MSG, MRD_OP_WRITE, MRD_PART_ORDERED},
        {MRD_WR_RDMA_WRITE_WITH_IMM, MRD_SEND_SOLICITED, MRD_ORDER_MSG, MRD_OP_WRITE,
         MRD_PART_IMM | MRD_PART_SOLICITED | MRD_PART_ORDERED},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        bool write = table[i].op == MRD_OP_WRITE;
        struct qp_fixture f;

        begin(&f);
        f.qp->pub.order = table[i].order;
        f.qp->rnr_retry = 5;
        struct mrd_send_wr wr = send_wr(&f, 2);
        wr.opcode = table[i].opcode;
        wr.send_flags = table[i].flags;
        wr.imm_data = 0x55;
        wr.wr.rdma.remote_addr = 0x1000;
        wr.wr.rdma.rkey = 0x2000;
        struct mrd_msg *msg = mrd_qp_msg_alloc(f.qp, &wr, 16);
        assert_int_equal(msg->wr.op, table[i].op);
        assert_int_equal(msg->wr.part_flags, table[i].part_flags);
        assert_int_equal(msg->wr.signaled, table[i].flags & MRD_SEND_SIGNALED ? 1 : 0);
        assert_int_equal(msg->state, MRD_MSG_QUEUED);
        assert_int_equal(msg->wr.id, 77);
        assert_int_equal(msg->wr.length, 16);
        assert_int_equal(msg->wr.dst_qpn, 20);
        assert_int_equal(msg->wr.qkey, 21);
        assert_int_equal(msg->wr.imm, 0x55);
        assert_int_equal(msg->rnr.left, 5);
        assert_int_equal(msg->wr.remote_addr, write ? 0x1000 : 0);
        assert_int_equal(msg->wr.rkey, write ? 0x2000 : 0);
        assert_int_equal(msg->wr.num_sge, 2);
        assert_memory_equal(msg->wr.sge, f.sge, 2 * sizeof(f.sge[0]));
        end(&f);
    }
}

/* Nothing of the slot's earlier life is left. */
TEST_F(qp_fixture, mrd_qp_msg_alloc__slot_is_fresh)
{
    struct mrd_send_wr wr = send_wr(self, 1);

    self->qp->sig_all = true;
    for (unsigned i = 0; i < 2 * SEND_WR; i++) {
        struct mrd_msg *msg = mrd_qp_msg_alloc(self->qp, &wr, 8);

        assert_true(msg->wr.signaled);
        assert_int_equal(msg->attempt, 0);
        assert_int_equal(msg->next_offset, 0);
        assert_int_equal(msg->acked_bytes, 0);
        assert_int_equal(msg->vendor_err, 0);
        assert_int_equal(msg->reading, 0);
        assert_int_equal(msg->status, MRD_WC_SUCCESS);
        assert_false(msg->has_id || msg->packet.chained || msg->abort.pending || msg->abort.sent ||
                     msg->started);
        assert_null(msg->order.flow);
        assert_null(msg->packet.next);
        assert_null(msg->abort.next);
        msg->attempt = msg->vendor_err = 3;
        msg->next_offset = msg->acked_bytes = msg->reading = 5;
        msg->has_id = msg->packet.chained = msg->abort.pending = msg->abort.sent = msg->started =
            true;
        msg->packet.next = msg->abort.next = msg;
        msg->status = MRD_WC_GENERAL_ERR;
        mrd_qp_msg_free(self->qp, msg);
    }
}

/* The bytes are taken at once: the caller's buffer is free when the post returns. */
TEST_F(qp_fixture, mrd_qp_msg_alloc__copies_inline_data)
{
    memcpy(&self->memory[0], "ABCDEFGH", 8);
    memcpy(&self->memory[10], "ijklmnop", 8);
    struct mrd_send_wr wr = send_wr(self, 2);
    wr.send_flags = MRD_SEND_INLINE;
    struct mrd_msg *msg = mrd_qp_msg_alloc(self->qp, &wr, 16);
    memset(self->memory, 0, sizeof(self->memory));
    assert_true(msg->wr.is_inline);
    assert_memory_equal(msg->wr.inline_data, "ABCDEFGHijklmnop", 16);
}

TEST_F(qp_fixture, mrd_qp_msg_free__gives_the_slot_back)
{
    struct mrd_msg *msg[SEND_WR];
    struct mrd_send_wr wr = send_wr(self, 0);

    for (unsigned i = 0; i < SEND_WR; i++) {
        msg[i] = mrd_qp_msg_alloc(self->qp, &wr, 0);
        assert_non_null(msg[i]);
    }
    assert_null(mrd_qp_msg_alloc(self->qp, &wr, 0));
    assert_int_equal(self->qp->live_msgs, SEND_WR);
    mrd_qp_msg_free(self->qp, msg[1]);
    assert_int_equal(self->qp->live_msgs, SEND_WR - 1);
    assert_int_equal(msg[1]->state, MRD_MSG_FREE);
    assert_ptr_equal(mrd_qp_msg_alloc(self->qp, &wr, 0), msg[1]);
}
