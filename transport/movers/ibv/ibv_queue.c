/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/ibv/ibv_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "transport/movers/ibv/ibv_slot.h"

enum { ALIGN_BYTES = 64 };

int mrd_ibv_memory_error(const struct mrd_ibv *ibv, const char *what, size_t bytes)
{
    int error = errno ? errno : EIO;
    struct rlimit limit;

    if ((error == ENOMEM || error == EPERM || error == EAGAIN) &&
        getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        mrd_error_set("%s: %s (%zu bytes) cannot be pinned: the limit of locked memory is %llu "
                      "KiB; raise it with \"ulimit -l unlimited\" or LimitMEMLOCK=infinity",
                      ibv->name, what, bytes, (unsigned long long)limit.rlim_cur / 1024);
    else
        mrd_error_set("%s: %s (%zu bytes) cannot be registered: %s", ibv->name, what, bytes,
                      strerror(error));
    return -error;
}

static int failed(const struct mrd_ibv *ibv, const char *what)
{
    return mrd_ibv_memory_error(ibv, what, 0);
}

/* -------------------------------------------------------------------- memory */

static uint32_t aligned(uint32_t bytes)
{
    return (bytes + ALIGN_BYTES - 1) & ~(uint32_t)(ALIGN_BYTES - 1);
}

static int memory_init(struct mrd_ibv *ibv)
{
    const struct mrd_ibv_port *port = &ibv->port;

    ibv->rx_stride = aligned(MRD_IBV_GRH_BYTES + port->mtu);
    ibv->tx_stride = aligned(port->mtu);
    ibv->memory_bytes =
        (size_t)ibv->rx_stride * port->rx_slots + (size_t)ibv->tx_stride * port->tx_slots;
    ibv->memory =
        mmap(NULL, ibv->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ibv->memory == MAP_FAILED) {
        ibv->memory = NULL;
        mrd_error_set("%s: no memory for packets (%zu bytes)", ibv->name, ibv->memory_bytes);
        return -ENOMEM;
    }
    errno = 0;
    ibv->mr = ibv_reg_mr(ibv->pd, ibv->memory, ibv->memory_bytes, IBV_ACCESS_LOCAL_WRITE);
    return ibv->mr ? 0 : mrd_ibv_memory_error(ibv, "memory for packets", ibv->memory_bytes);
}

static int slots_init(struct mrd_ibv *ibv)
{
    const struct mrd_ibv_port *port = &ibv->port;

    ibv->tx_slots = calloc(port->tx_slots, sizeof(*ibv->tx_slots));
    ibv->rx_slots = calloc(port->rx_slots, sizeof(*ibv->rx_slots));
    ibv->rx_idle = calloc(port->rx_slots, sizeof(*ibv->rx_idle));
    ibv->qps = calloc(ibv->max_paths, sizeof(*ibv->qps));
    if (!ibv->tx_slots || !ibv->rx_slots || !ibv->rx_idle || !ibv->qps) {
        mrd_error_set("no memory for %u packets", port->tx_slots + port->rx_slots);
        return -ENOMEM;
    }
    ibv->tx_free = ibv->tx_done = MRD_IBV_NONE;
    for (uint32_t i = port->tx_slots; i-- > 0;) {
        ibv->tx_slots[i].next = ibv->tx_free;
        ibv->tx_free = i;
    }
    ibv->tx_num_free = port->tx_slots;
    for (uint32_t i = 0; i < port->rx_slots; i++)
        ibv->rx_idle[ibv->rx_num_idle++] = i;
    return 0;
}

/* -------------------------------------------------------------------- queue pairs */

static int bring_to_rts(struct ibv_qp *qp, uint8_t port)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = port, .qkey = MRD_IBV_QKEY};
    int error =
        ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

    attr.qp_state = IBV_QPS_RTR;
    if (!error)
        error = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    if (!error)
        error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    return error;
}

/*
 * Creates a queue pair. Devices differ in how many bytes they take inline: asks for fewer if the
 * device refuses.
 */
static struct ibv_qp *create_qp(struct mrd_ibv *ibv, uint32_t *max_inline)
{
    static const uint32_t inline_bytes[] = {MRD_IBV_INLINE_BYTES, MRD_IBV_INLINE_BYTES / 2, 0};
    struct ibv_qp *qp = NULL;

    for (unsigned i = 0; i < 3 && !qp; i++) {
        struct ibv_qp_init_attr attr = {
            .send_cq = ibv->send_cq,
            .recv_cq = ibv->recv_cq,
            .srq = ibv->srq,
            .qp_type = IBV_QPT_UD,
            .cap = {.max_send_wr = ibv->port.qp_depth,
                    .max_recv_wr = ibv->srq ? 0 : ibv->port.rx_slots,
                    .max_send_sge = ibv->port.gathers ? MRD_IBV_PIECES : 1,
                    .max_recv_sge = 1,
                    .max_inline_data = inline_bytes[i]},
        };

        errno = 0;
        qp = ibv_create_qp(ibv->pd, &attr);
        *max_inline = attr.cap.max_inline_data;
        if (!qp && errno != EINVAL)
            break;
    }
    return qp;
}

int mrd_ibv_qp_add(struct mrd_ibv *ibv)
{
    struct mrd_ibv_qp *q = &ibv->qps[ibv->num_qps];

    memset(q, 0, sizeof(*q));
    q->head = q->tail = MRD_IBV_NONE;
    q->qp = create_qp(ibv, &q->max_inline);
    if (!q->qp)
        return failed(ibv, "a queue pair");
    errno = bring_to_rts(q->qp, ibv->port.num);
    if (errno) {
        int error = -errno;

        mrd_error_set("%s: a queue pair cannot be made ready to send: %s", ibv->name,
                      strerror(-error));
        ibv_destroy_qp(q->qp);
        q->qp = NULL;
        return error;
    }
    ibv->num_qps++;
    return 0;
}

void mrd_ibv_qp_revive(struct mrd_ibv *ibv, uint32_t index)
{
    struct mrd_ibv_qp *q = &ibv->qps[index];
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    int error = ibv_modify_qp(q->qp, &attr, IBV_QP_STATE);

    mrd_ibv_tx_forget(ibv, q);
    if (!ibv->srq)
        mrd_ibv_rx_forget(ibv, index);
    if (!error)
        error = bring_to_rts(q->qp, ibv->port.num);
    q->dead = error != 0;
    if (error)
        mrd_log(MRD_LOG_ERROR, "%s: queue pair %u cannot be brought back: %s", ibv->name,
                q->qp->qp_num, strerror(error));
    else if (!ibv->srq)
        mrd_ibv_rx_post(ibv);
}

/* -------------------------------------------------------------------- all */

/*
 * Queue pairs at open: one for each path, or fewer where flow labels or pairs of QPs make
 * the paths.
 */
static uint32_t qps_at_start(const struct mrd_ibv *ibv)
{
    uint32_t qps = ibv->num_paths;

    if (ibv->port.entropy == MRD_IBV_BY_AH)
        return 1;
    if (ibv->port.entropy == MRD_IBV_BY_QPAIR && qps > MRD_IBV_PAIR_QPS)
        qps = MRD_IBV_PAIR_QPS;
    return qps < ibv->port.max_qps ? qps : ibv->port.max_qps;
}

static int srq_init(struct mrd_ibv *ibv)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = ibv->port.rx_slots, .max_sge = 1}};

    if (!ibv->port.has_srq)
        return 0;
    errno = 0;
    ibv->srq = ibv_create_srq(ibv->pd, &attr);
    return ibv->srq ? 0 : failed(ibv, "a shared receive queue");
}

int mrd_ibv_queues_init(struct mrd_ibv *ibv)
{
    struct ibv_context *v = ibv->verbs;
    int error = slots_init(ibv);

    if (error)
        return error;
    errno = 0;
    if (!(ibv->pd = ibv_alloc_pd(v)))
        return failed(ibv, "a protection domain");
    if ((error = memory_init(ibv)))
        return error;
    errno = 0;
    if (!(ibv->channel = ibv_create_comp_channel(v)))
        return failed(ibv, "a completion channel");
    errno = 0;
    ibv->send_cq = ibv_create_cq(v, (int)ibv->port.tx_slots, NULL, ibv->channel, 0);
    if (!ibv->send_cq)
        return failed(ibv, "a completion queue of sends");
    errno = 0;
    ibv->recv_cq = ibv_create_cq(v, (int)ibv->port.rx_slots, NULL, ibv->channel, 0);
    if (!ibv->recv_cq)
        return failed(ibv, "a completion queue of receives");
    if ((error = srq_init(ibv)))
        return error;
    for (uint32_t qps = qps_at_start(ibv); ibv->num_qps < qps;)
        if ((error = mrd_ibv_qp_add(ibv)))
            return error;
    mrd_ibv_rx_post(ibv);
    return 0;
}

void mrd_ibv_qps_fini(struct mrd_ibv *ibv)
{
    while (ibv->num_qps)
        ibv_destroy_qp(ibv->qps[--ibv->num_qps].qp);
}

void mrd_ibv_queues_fini(struct mrd_ibv *ibv)
{
    if (ibv->srq)
        ibv_destroy_srq(ibv->srq);
    if (ibv->recv_cq)
        ibv_destroy_cq(ibv->recv_cq);
    if (ibv->send_cq)
        ibv_destroy_cq(ibv->send_cq);
    if (ibv->channel)
        ibv_destroy_comp_channel(ibv->channel);
    if (ibv->mr)
        ibv_dereg_mr(ibv->mr);
    if (ibv->memory)
        munmap(ibv->memory, ibv->memory_bytes);
    if (ibv->pd)
        ibv_dealloc_pd(ibv->pd);
    free(ibv->tx_slots);
    free(ibv->rx_slots);
    free(ibv->rx_idle);
    free(ibv->qps);
}
