/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs of protection domains, memory, completion channels, shared receive queues and address handles. */
#include "tests/support/fake_ibv_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static struct fake_ibv_device *device_of(const struct ibv_pd *pd)
{
    return fake_context_of(pd->context)->device;
}

/* ---------------------------------------------------------------------------------------- PD */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    int error = fake_enter(FAKE_ibv_alloc_pd);
    struct fake_context *c = fake_context_of(context);
    struct fake_pd *pd;

    if (!error && !fake_born(c->device, FAKE_PD))
        error = ENOMEM;
    if (error)
        return fake_fail_null(error);
    pd = fake_alloc(sizeof(*pd));
    pd->ibv.context = context;
    c->children++;
    fake_leave();
    return &pd->ibv;
}

int ibv_dealloc_pd(struct ibv_pd *ibv)
{
    int error = fake_enter(FAKE_ibv_dealloc_pd);
    struct fake_pd *pd = FAKE_OF(fake_pd, ibv);

    if (!error && pd->children)
        error = EBUSY;
    if (error)
        return fake_fail(error);
    fake_context_of(ibv->context)->children--;
    fake_gone(device_of(ibv), FAKE_PD);
    free(pd);
    fake_leave();
    return 0;
}

/* ---------------------------------------------------------------------------------------- MR */

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, unsigned access)
{
    int error = fake_enter(FAKE_ibv_reg_mr);
    struct fake_ibv_device *device = device_of(pd);
    struct fake_ibv_device_state *state = device->state;
    struct fake_mr *mr;

    if (error)
        return fake_fail_null(error);
    if (length == 0 || (uintptr_t)addr + length < (uintptr_t)addr ||
        length > device->attr.max_mr_size ||
        ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
         !(access & IBV_ACCESS_LOCAL_WRITE)))
        return fake_fail_null(EINVAL);
    if ((device->memlock_bytes && state->mr_bytes + length > device->memlock_bytes) ||
        !fake_born(device, FAKE_MR))
        return fake_fail_null(ENOMEM);
    mr = fake_alloc(sizeof(*mr));
    mr->ibv = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length};
    mr->ibv.lkey = state->next_key++;
    mr->ibv.rkey = mr->ibv.lkey;
    mr->access = (int)access;
    mr->next = state->mrs;
    state->mrs = mr;
    state->mr_bytes += length;
    FAKE_OF(fake_pd, pd)->children++;
    fake_leave();
    return &mr->ibv;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return reg_mr(pd, addr, length, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned int access)
{
    if (iova != (uintptr_t)addr)
        fake_broken("ibv_reg_mr_iova2: the fake knows only addresses as they are");
    return reg_mr(pd, addr, length, access);
}

int ibv_dereg_mr(struct ibv_mr *ibv)
{
    int error = fake_enter(FAKE_ibv_dereg_mr);
    struct fake_mr *mr = FAKE_OF(fake_mr, ibv);
    struct fake_ibv_device *device = device_of(ibv->pd);

    if (error)
        return fake_fail(error);
    for (struct fake_mr **i = &device->state->mrs; *i; i = &(*i)->next) {
        if (*i == mr) {
            *i = mr->next;
            break;
        }
    }
    device->state->mr_bytes -= ibv->length;
    FAKE_OF(fake_pd, ibv->pd)->children--;
    fake_gone(device, FAKE_MR);
    free(mr);
    fake_leave();
    return 0;
}

uint8_t *fake_memory(const struct ibv_pd *pd, const struct ibv_sge *sge, int access)
{
    for (const struct fake_mr *mr = device_of(pd)->state->mrs; mr; mr = mr->next) {
        uint64_t start = (uintptr_t)mr->ibv.addr;

        if (mr->ibv.lkey != sge->lkey)
            continue;
        if (mr->ibv.pd != pd || (mr->access & access) != access || sge->addr < start ||
            sge->length > mr->ibv.length || sge->addr - start > mr->ibv.length - sge->length)
            return NULL;
        return (uint8_t *)(uintptr_t)sge->addr;
    }
    return NULL;
}

/* ---------------------------------------------------------------------------------------- channel */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    int error = fake_enter(FAKE_ibv_create_comp_channel);
    struct fake_context *c = fake_context_of(context);
    struct fake_channel *channel;

    if (error)
        return fake_fail_null(error);
    channel = fake_alloc(sizeof(*channel));
    channel->ibv.context = context;
    channel->ibv.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    fake_born(c->device, FAKE_CHANNEL);
    c->children++;
    fake_leave();
    return &channel->ibv;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
    int error = fake_enter(FAKE_ibv_destroy_comp_channel);
    struct fake_context *c = fake_context_of(ibv->context);

    if (!error && ibv->refcnt)
        error = EBUSY;
    if (error)
        return fake_fail(error);
    close(ibv->fd);
    fake_gone(c->device, FAKE_CHANNEL);
    c->children--;
    free(FAKE_OF(fake_channel, ibv));
    fake_leave();
    return 0;
}

/* ---------------------------------------------------------------------------------------- SRQ */

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    int error = fake_enter(FAKE_ibv_create_srq);
    struct fake_ibv_device *device = device_of(pd);
    struct fake_srq *srq;

    if (error)
        return fake_fail_null(error);
    if (device->attr.max_srq == 0)
        return fake_fail_null(EOPNOTSUPP);
    if (init->attr.max_wr < 1 || init->attr.max_wr > (uint32_t)device->attr.max_srq_wr ||
        init->attr.max_sge > (uint32_t)device->attr.max_srq_sge)
        return fake_fail_null(EINVAL);
    if (!fake_born(device, FAKE_SRQ))
        return fake_fail_null(ENOMEM);
    srq = fake_alloc(sizeof(*srq));
    srq->ibv.context = pd->context;
    srq->ibv.srq_context = init->srq_context;
    srq->ibv.pd = pd;
    srq->queue.max = init->attr.max_wr;
    srq->queue.max_sge = init->attr.max_sge;
    srq->queue.entry = fake_alloc(srq->queue.max * sizeof(struct fake_recv));
    srq->next = fake.srqs;
    fake.srqs = srq;
    FAKE_OF(fake_pd, pd)->children++;
    fake_leave();
    return &srq->ibv;
}

int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
    int error = fake_enter(FAKE_ibv_modify_srq);

    if (!error && (mask & ~IBV_SRQ_LIMIT))
        error = EINVAL;
    if (!error && (mask & IBV_SRQ_LIMIT))
        FAKE_OF(fake_srq, ibv)->limit = attr->srq_limit;
    return fake_fail(error);
}

int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
    int error = fake_enter(FAKE_ibv_query_srq);
    const struct fake_srq *srq = FAKE_OF(fake_srq, ibv);

    if (!error)
        *attr = (struct ibv_srq_attr){srq->queue.max, srq->queue.max_sge, srq->limit};
    return fake_fail(error);
}

int ibv_destroy_srq(struct ibv_srq *ibv)
{
    int error = fake_enter(FAKE_ibv_destroy_srq);
    struct fake_srq *srq = FAKE_OF(fake_srq, ibv);

    if (!error && srq->users)
        error = EBUSY;
    if (error)
        return fake_fail(error);
    for (struct fake_srq **i = &fake.srqs; *i; i = &(*i)->next) {
        if (*i == srq) {
            *i = srq->next;
            break;
        }
    }
    FAKE_OF(fake_pd, ibv->pd)->children--;
    fake_gone(device_of(ibv->pd), FAKE_SRQ);
    free(srq->queue.entry);
    free(srq);
    fake_leave();
    return 0;
}

/* ---------------------------------------------------------------------------------------- AH */

static bool av_valid(const struct fake_ibv_device *device, const struct ibv_ah_attr *attr)
{
    const struct fake_ibv_port *port;

    if (attr->port_num < 1 || attr->port_num > device->attr.phys_port_cnt)
        return false;
    port = &device->ports[attr->port_num - 1];
    if (!attr->is_global)
        return port->attr.link_layer == IBV_LINK_LAYER_INFINIBAND;
    return attr->grh.sgid_index < port->attr.gid_tbl_len &&
           port->gids[attr->grh.sgid_index].valid && attr->grh.flow_label <= 0xfffff;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    int error = fake_enter(FAKE_ibv_create_ah);
    struct fake_ibv_device *device = device_of(pd);
    struct fake_ah *ah;

    if (!error && device->state->fatal)
        error = EIO;
    if (!error && !av_valid(device, attr))
        error = EINVAL;
    if (!error && !fake_born(device, FAKE_AH))
        error = ENOMEM;
    if (error)
        return fake_fail_null(error);
    ah = fake_alloc(sizeof(*ah));
    ah->ibv.context = pd->context;
    ah->ibv.pd = pd;
    ah->attr = *attr;
    FAKE_OF(fake_pd, pd)->children++;
    fake_leave();
    return &ah->ibv;
}

int ibv_destroy_ah(struct ibv_ah *ibv)
{
    int error = fake_enter(FAKE_ibv_destroy_ah);
    struct fake_ah *ah = FAKE_OF(fake_ah, ibv);

    if (error)
        return fake_fail(error);
    if (ah->posted)
        fake_broken("ibv_destroy_ah: %u posted sends still name it", ah->posted);
    FAKE_OF(fake_pd, ibv->pd)->children--;
    fake_gone(device_of(ibv->pd), FAKE_AH);
    free(ah);
    fake_leave();
    return 0;
}
