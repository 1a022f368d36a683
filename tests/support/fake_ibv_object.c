/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs of PDs, memory, completion channels, shared receive queues and address handles. */
#include "tests/support/fake_ibv_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#undef ibv_reg_mr

static struct fake_ibv_device *device_of(const struct ibv_pd *pd)
{
    return fake_context_of(pd->context)->device;
}

static unsigned *users_of(struct ibv_pd *pd)
{
    return &FAKE_OF(fake_pd, pd)->users;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    int error = fake_enter(FAKE_ibv_alloc_pd);
    struct fake_pd *pd = fake_new(sizeof(*pd), &fake_context_of(context)->users, error);

    if (pd)
        pd->ibv.context = context;
    return fake_leave_new(pd, error);
}

int ibv_dealloc_pd(struct ibv_pd *ibv)
{
    fake_lock();
    return fake_destroy(ibv, *users_of(ibv), &fake_context_of(ibv->context)->users);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned int access)
{
    int error = fake_enter(FAKE_ibv_reg_mr);
    struct fake_ibv_device_state *state = device_of(pd)->state;

    if (!error && (length == 0 || iova != (uintptr_t)addr || (access & ~IBV_ACCESS_LOCAL_WRITE)))
        error = EINVAL;
    if (!error && state->device->memlock_bytes &&
        state->mr_bytes + length > state->device->memlock_bytes)
        error = ENOMEM;
    struct fake_mr *mr = fake_new(sizeof(*mr), users_of(pd), error);
    if (mr) {
        mr->ibv = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr};
        mr->ibv.length = length;
        mr->ibv.lkey = mr->ibv.rkey = state->next_key++;
        mr->access = (int)access;
        mr->next = state->mrs;
        state->mrs = mr;
        state->mr_bytes += length;
    }
    return fake_leave_new(mr, error);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

int ibv_dereg_mr(struct ibv_mr *ibv)
{
    int error = fake_enter(FAKE_ibv_dereg_mr);
    struct fake_ibv_device_state *state = device_of(ibv->pd)->state;
    struct fake_mr *mr = FAKE_OF(fake_mr, ibv), **i = &state->mrs;

    if (error)
        return fake_leave(error);
    while (*i != mr)
        i = &(*i)->next;
    *i = mr->next;
    state->mr_bytes -= ibv->length;
    return fake_destroy(mr, 0, users_of(ibv->pd));
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

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    int error = fake_enter(FAKE_ibv_create_comp_channel);
    struct fake_channel *channel =
        fake_new(sizeof(*channel), &fake_context_of(context)->users, error);

    if (channel) {
        channel->ibv.context = context;
        channel->ibv.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    }
    return fake_leave_new(channel, error);
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
    struct fake_channel *channel = FAKE_OF(fake_channel, ibv);

    fake_lock();
    if (!channel->users)
        close(ibv->fd);
    return fake_destroy(channel, channel->users, &fake_context_of(ibv->context)->users);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    int error = fake_enter(FAKE_ibv_create_srq);
    const struct ibv_device_attr *limits = &device_of(pd)->attr;

    if (!error && limits->max_srq == 0)
        error = EOPNOTSUPP;
    if (!error && (init->attr.max_wr < 1 || init->attr.max_wr > (uint32_t)limits->max_srq_wr ||
                   init->attr.max_sge > (uint32_t)limits->max_srq_sge))
        error = EINVAL;
    struct fake_srq *srq = fake_new(sizeof(*srq), users_of(pd), error);
    if (srq) {
        srq->ibv.context = pd->context;
        srq->ibv.pd = pd;
        srq->queue.max = init->attr.max_wr;
        srq->queue.max_sge = init->attr.max_sge;
        srq->queue.entry = fake_alloc(srq->queue.max * sizeof(struct fake_recv));
    }
    return fake_leave_new(srq, error);
}

int ibv_destroy_srq(struct ibv_srq *ibv)
{
    struct fake_srq *srq = FAKE_OF(fake_srq, ibv);

    fake_lock();
    if (!srq->users)
        free(srq->queue.entry);
    return fake_destroy(srq, srq->users, users_of(ibv->pd));
}

static int check_ah(const struct fake_ibv_device *device, const struct ibv_ah_attr *attr)
{
    if (device->state->fatal)
        return EIO;
    if (attr->port_num < 1 || attr->port_num > device->attr.phys_port_cnt || !attr->is_global)
        return EINVAL;
    const struct fake_ibv_port *port = &device->ports[attr->port_num - 1];
    if (attr->grh.sgid_index >= port->attr.gid_tbl_len || !port->gids[attr->grh.sgid_index].valid ||
        attr->grh.flow_label > 0xfffff)
        return EINVAL;
    return device->state->ah_count == device->attr.max_ah ? ENOMEM : 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    int error = fake_enter(FAKE_ibv_create_ah);

    if (!error)
        error = check_ah(device_of(pd), attr);
    struct fake_ah *ah = fake_new(sizeof(*ah), users_of(pd), error);
    if (ah) {
        ah->ibv.context = pd->context;
        ah->ibv.pd = pd;
        ah->attr = *attr;
        device_of(pd)->state->ah_count++;
    }
    return fake_leave_new(ah, error);
}

int ibv_destroy_ah(struct ibv_ah *ibv)
{
    struct fake_ah *ah = FAKE_OF(fake_ah, ibv);

    fake_lock();
    if (ah->posted)
        fake_broken("ibv_destroy_ah: %u posted sends still name it", ah->posted);
    device_of(ibv->pd)->state->ah_count--;
    return fake_destroy(ah, 0, users_of(ibv->pd));
}
