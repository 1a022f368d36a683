/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/verbs/rc.h"

#include <errno.h>

enum {
    TIMEOUT = 14, /* 4.096 us * 2^14 */
    RETRY_COUNT = 7,
    RNR_RETRY_FOREVER = 7,
    RNR_TIMER = 12,    /* 0.64 ms */
    INLINE_SMALL = 64, /* what about every device takes */
};

static struct ibv_qp *try_create(struct perf_ibv *v, struct ibv_cq *cq, uint32_t send_depth,
                                 uint32_t recv_depth, uint32_t *inline_bytes)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap =
            {
                .max_send_wr = send_depth,
                .max_recv_wr = recv_depth ? recv_depth : 1,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = *inline_bytes,
            },
    };
    struct ibv_qp *qp = ibv_create_qp(v->pd, &attr);

    if (qp && attr.cap.max_inline_data < *inline_bytes)
        *inline_bytes = attr.cap.max_inline_data;
    return qp;
}

static int to_init(struct perf_ibv *v, struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = v->port.number,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
    };

    return -ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

struct ibv_qp *rc_qp_create(struct perf_ibv *v, struct ibv_cq *cq, uint32_t send_depth,
                            uint32_t recv_depth, uint32_t *inline_bytes, char *error, size_t len)
{
    struct ibv_qp *qp = try_create(v, cq, send_depth, recv_depth, inline_bytes);

    /* Devices have various limits of inline data, and no way to ask for them. */
    if (!qp && errno == EINVAL && *inline_bytes > INLINE_SMALL) {
        *inline_bytes = INLINE_SMALL;
        qp = try_create(v, cq, send_depth, recv_depth, inline_bytes);
    }
    if (!qp && errno == EINVAL && *inline_bytes) {
        *inline_bytes = 0;
        qp = try_create(v, cq, send_depth, recv_depth, inline_bytes);
    }
    if (!qp) {
        perf_ibv_failed(-errno, "cannot create an RC queue pair", error, len);
        return NULL;
    }
    int rc = to_init(v, qp);
    if (rc == 0)
        return qp;
    perf_ibv_failed(rc, "cannot bring a queue pair to INIT", error, len);
    ibv_destroy_qp(qp);
    return NULL;
}

int rc_qp_connect(struct perf_ibv *v, struct ibv_qp *qp, const struct rc_end *here,
                  const struct rc_end *there, const struct perf_ibv_place *place, uint32_t mtu,
                  char *error, size_t len)
{
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = perf_ibv_mtu_value(mtu),
        .dest_qp_num = there->qpn,
        .rq_psn = there->psn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = RNR_TIMER,
        .ah_attr = perf_ibv_ah(v, place),
    };
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = here->psn,
        .timeout = TIMEOUT,
        .retry_cnt = RETRY_COUNT,
        .rnr_retry = RNR_RETRY_FOREVER,
        .max_rd_atomic = 1,
    };
    char what[128], name[64];

    int rc = -ibv_modify_qp(qp, &rtr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (rc == 0)
        rc = -ibv_modify_qp(qp, &rts,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    if (rc == 0)
        return 0;
    perf_ibv_format(place, name, sizeof(name));
    snprintf(what, sizeof(what), "cannot connect a queue pair with %s", name);
    return perf_ibv_failed(rc, what, error, len);
}
