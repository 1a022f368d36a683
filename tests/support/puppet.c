/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/support/puppet.h"

#include <stdlib.h>
#include <string.h>

enum { PUPPET = HOST_0, TARGET = HOST_1, ANSWER_NS = 3000, BUFFERS_AT = 1 << 20 };

static void destroy_puppet(void *object)
{
    struct puppet *p = object;

    assert_int_equal(mrd_destroy_qp(p->qp), 0);
    assert_int_equal(mrd_destroy_cq(p->cq), 0);
    free(p);
}

struct puppet *puppet_create(void)
{
    struct puppet *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    p->w = sim_fabric_world(&(struct sim_options){.no_challenge = true});
    p->incarnation = 0x5eed1234;
    p->epoch = 7;
    sim_close(p->w, PUPPET); /* only the tap gets the target's answers */
    p->tap = wiretap_open(p->w);

    struct sim_node *node = &p->w->node[TARGET];

    p->buf = (void *)(node->arena + BUFFERS_AT);
    p->cq = mrd_create_cq(node->context, 64, NULL);
    assert_non_null(p->cq);
    p->qp = mrd_create_qp(
        node->pd, &(struct mrd_qp_init_attr){
                      .send_cq = p->cq, .recv_cq = p->cq, .cap.max_recv_wr = PUPPET_RECVS_MAX});
    assert_non_null(p->qp);
    kit_own(p, destroy_puppet);
    return p;
}

uint32_t puppet_recv(struct puppet *p)
{
    struct mrd_sge sge = {(uintptr_t)p->buf[p->num_recvs], PUPPET_MESSAGE_BYTES,
                          p->w->node[TARGET].mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = p->num_recvs, .sg_list = &sge, .num_sge = 1}, *bad_wr;

    assert_true(p->num_recvs < PUPPET_RECVS_MAX);
    assert_int_equal(mrd_post_recv(p->qp, &wr, &bad_wr), 0);
    return p->num_recvs++;
}

static void deliver(struct puppet *p, const uint8_t *data, const uint8_t *end)
{
    uint64_t now_ns = mrd_sim_now(p->w->sim);

    assert_int_equal(
        mrd_sim_inject(p->w->sim, PUPPET, TARGET, data, (uint32_t)(end - data), now_ns + 1), 0);
    mrd_sim_run_until(p->w->sim, now_ns + ANSWER_NS);
}

void puppet_parts(struct puppet *p, uint32_t psn, const struct mrd_wire_part *parts, unsigned num,
                  const uint8_t *payload)
{
    struct mrd_wire_head head = {.type = MRD_WIRE_DATA,
                                 .flags = MRD_WIRE_FIRST_CONTACT | MRD_WIRE_ACK_REQUEST,
                                 .src_inc = p->incarnation,
                                 .epoch = p->epoch,
                                 .psn = psn,
                                 .pseq = (uint16_t)psn,
                                 .reply = PUPPET + 1};
    uint8_t data[1024];
    uint8_t *end = mrd_wire_put_head(data, &head);
    uint32_t len = 0;

    for (unsigned i = 0; i < num; i++) {
        end = mrd_wire_put_part(end, &parts[i]);
        len += parts[i].len;
    }
    mrd_wire_set_payload_check(data, mrd_wire_payload_check(payload, len));
    mrd_wire_seal(data, end);
    assert_true((size_t)(end - data) + len <= sizeof(data));
    if (len)
        memcpy(end, payload, len);
    deliver(p, data, end + len);
}

void puppet_part(struct puppet *p, uint32_t psn, const struct mrd_wire_part *part,
                 const uint8_t *payload)
{
    puppet_parts(p, psn, part, 1, payload);
}

void puppet_segment(struct puppet *p, uint32_t psn, uint32_t id, uint8_t attempt, uint32_t index,
                    uint8_t fill)
{
    uint8_t payload[PUPPET_SEGMENT_BYTES];

    memset(payload, fill, sizeof(payload));
    puppet_part(p, psn,
                &(struct mrd_wire_part){.op = MRD_OP_SEND,
                                        .flags = MRD_PART_MULTI,
                                        .attempt = attempt,
                                        .len = PUPPET_SEGMENT_BYTES,
                                        .dst_qpn = p->qp->qp_num,
                                        .src_qpn = 99,
                                        .id = id,
                                        .total = PUPPET_MESSAGE_BYTES,
                                        .offset = index * PUPPET_SEGMENT_BYTES},
                payload);
}

void puppet_abort(struct puppet *p, uint32_t psn, uint32_t id)
{
    puppet_part(p, psn,
                &(struct mrd_wire_part){.op = MRD_OP_ABORT,
                                        .flags = MRD_PART_MULTI,
                                        .attempt = 1,
                                        .dst_qpn = p->qp->qp_num,
                                        .src_qpn = 99,
                                        .id = id,
                                        .total = PUPPET_MESSAGE_BYTES},
                NULL);
}

void puppet_ack(struct puppet *p)
{
    struct mrd_wire_head head = {
        .type = MRD_WIRE_ACK, .src_inc = p->incarnation, .reply = PUPPET + 1};
    struct mrd_wire_ack ack = {.serial = ++p->ack_serial, .psn_limit = 1024};
    uint8_t data[256];

    for (uint32_t i = 0; i < p->tap->num; i++) {
        const struct mrd_wire_head *seen = &p->tap->packets[i].head;

        if (p->tap->packets[i].from != TARGET || seen->type != MRD_WIRE_DATA)
            continue;
        head.dst_inc = seen->src_inc;
        head.epoch = seen->epoch;
        head.psn = seen->psn >= head.psn ? seen->psn + 1 : head.psn;
    }
    assert_true(head.psn > 0);
    ack.cum = head.psn;

    uint8_t *end = mrd_wire_put_ack(mrd_wire_put_head(data, &head), &ack);

    mrd_wire_seal(data, end);
    deliver(p, data, end);
}

bool puppet_acked(const struct puppet *p, uint32_t psn)
{
    return wiretap_acked_ns(p->tap, TARGET, psn) != UINT64_MAX;
}

uint8_t puppet_refused(const struct puppet *p, uint32_t psn)
{
    for (uint32_t i = 0; i < p->tap->num; i++) {
        const struct wire_packet *packet = &p->tap->packets[i];
        struct mrd_wire_refusal_entry entry;

        if (packet->from != TARGET || packet->kind != WIRE_REFUSAL || packet->part.psn != psn)
            continue;
        mrd_wire_get_refusal_entry(&packet->part, 0, &entry);
        return entry.code;
    }
    return 0;
}

uint32_t puppet_poll(struct puppet *p)
{
    struct mrd_wc wc;

    while (mrd_poll_cq(p->cq, 1, &wc) == 1) {
        assert_true(wc.wr_id < p->num_recvs && !p->done[wc.wr_id]);
        p->done[wc.wr_id] = true;
        p->wc[wc.wr_id] = wc;
        p->num_done++;
    }
    return p->num_done;
}
