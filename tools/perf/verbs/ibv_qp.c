/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "tools/perf/verbs/verbs.h"

enum {
    TIMEOUT = 14, /* 4.096 us * 2^14 */
    RETRY_COUNT = 7,
    RNR_RETRY_FOREVER = 7,
    RNR_TIMER = 12,    /* 0.64 ms */
    INLINE_SMALL = 64, /* what about every device takes */
};

static int to_init(struct perf_ibv *v, struct ibv_qp *qp, bool connected)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = v->port.number,
        .qkey = VERBS_QKEY,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
    };

    return -ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                              (connected ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY));
}

/* Devices have various limits of inline data, and no way to ask for them: try less and less. */
static struct ibv_qp *try_create(struct perf_ibv *v, struct ibv_qp_init_attr *attr)
{
    uint32_t wanted = attr->cap.max_inline_data;
    const uint32_t tries[] = {wanted, INLINE_SMALL < wanted ? INLINE_SMALL : 0, 0};
    struct ibv_qp *qp = NULL;

    errno = EINVAL;
    for (unsigned i = 0; i < 3 && !qp && errno == EINVAL; i++) {
        attr->cap.max_inline_data = tries[i];
        attr->cap.max_send_sge = attr->cap.max_recv_sge = 1;
        qp = ibv_create_qp(v->pd, attr);
    }
    if (attr->cap.max_inline_data > wanted)
        attr->cap.max_inline_data = wanted;
    return qp;
}

struct ibv_qp *verbs_qp_create(struct perf_ibv *v, struct ibv_qp_init_attr *attr, char *error)
{
    bool connected = attr->qp_type == IBV_QPT_RC;
    struct ibv_qp *qp = try_create(v, attr);

    if (!qp) {
        perf_ibv_failed(
            -errno, connected ? "cannot create an RC queue pair" : "cannot create a UD queue pair",
            error);
        return NULL;
    }
    int rc = to_init(v, qp, connected);
    if (rc == 0)
        return qp;
    perf_ibv_failed(rc, "cannot bring a queue pair to INIT", error);
    ibv_destroy_qp(qp);
    return NULL;
}

int verbs_qp_start(struct ibv_qp *qp, char *error)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    int rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE);

    attr.qp_state = IBV_QPS_RTS;
    if (rc == 0)
        rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    return rc ? perf_ibv_failed(-rc, "cannot bring a queue pair to RTS", error) : 0;
}

int verbs_qp_connect(struct perf_ibv *v, struct ibv_qp *qp, const struct verbs_end *here,
                     const struct verbs_end *there, const struct perf_ibv_place *place,
                     uint32_t mtu, char *error)
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
    return perf_ibv_failed(rc, what, error);
}
