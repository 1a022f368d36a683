/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/mr.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "transport/adapters/ofi/cntr.h"
#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/eq.h"
#include "transport/adapters/ofi/fabric.h"
#include "transport/adapters/ofi/log.h"
#include "transport/adapters/ofi/nosys.h"
#include "transport/adapters/ofi/wait.h"

enum {
    BUCKETS_FIRST = 64, /* a power of two */
    BUCKETS_MAX = 1 << 20,
    KEY_TRIES = 8, /* random keys, before keys are counted */
};

static struct mrd_ofi_mr *mr_of(struct fid *fid)
{
    return mrd_container_of(fid, struct mrd_ofi_mr, fid.fid);
}

/* The domain's mode bits, those of libfabric before 1.5 translated. */
static int modes(const struct mrd_ofi_domain *d)
{
    int mr_mode = d->info->domain_attr->mr_mode;

    if (mr_mode == FI_MR_BASIC)
        return FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    return mr_mode == FI_MR_SCALABLE ? 0 : mr_mode;
}

bool mrd_ofi_mr_is_virtual(const struct mrd_ofi_domain *d)
{
    return modes(d) & FI_MR_VIRT_ADDR;
}

/* ----------------------------------------------------------------------------------------- keys */

static struct mrd_node *bucket_of(const struct mrd_ofi_mrs *mrs, uint64_t key)
{
    /* Applications count their keys; the golden ratio spreads others, too. */
    uint64_t hash = key * 0x9e3779b97f4a7c15u >> 32;

    return &mrs->bucket[hash & (mrs->num_buckets - 1)];
}

static struct mrd_node *new_buckets(uint32_t num)
{
    struct mrd_node *bucket = malloc(num * sizeof(*bucket));

    for (uint32_t i = 0; bucket && i < num; i++)
        mrd_list_init(&bucket[i]);
    return bucket;
}

int mrd_ofi_mrs_init(struct mrd_ofi_domain *d)
{
    struct mrd_node *bucket = new_buckets(BUCKETS_FIRST);

    if (!bucket)
        return -FI_ENOMEM;
    d->mrs = (struct mrd_ofi_mrs){.bucket = bucket, .num_buckets = BUCKETS_FIRST, .next_key = 1};
    return 0;
}

void mrd_ofi_mrs_fini(struct mrd_ofi_domain *d)
{
    free(d->mrs.bucket);
    d->mrs = (struct mrd_ofi_mrs){0};
}

struct mrd_ofi_mr *mrd_ofi_mr_find(struct mrd_ofi_domain *d, uint64_t key)
{
    struct mrd_node *bucket = bucket_of(&d->mrs, key);

    for (struct mrd_node *n = bucket->next; n != bucket; n = n->next) {
        struct mrd_ofi_mr *mr = mrd_container_of(n, struct mrd_ofi_mr, by_key);

        if (mr->fid.key == key)
            return mr;
    }
    return NULL;
}

/* More buckets for more regions; without memory for them the lists grow longer. */
static void spread(struct mrd_ofi_mrs *mrs)
{
    uint32_t num = 2 * mrs->num_buckets;
    struct mrd_ofi_mrs wider = {.num_buckets = num};

    if (mrs->num < mrs->num_buckets || num > BUCKETS_MAX)
        return;
    wider.bucket = new_buckets(num);
    if (!wider.bucket)
        return;
    for (uint32_t i = 0; i < mrs->num_buckets; i++) {
        struct mrd_node *n;

        while ((n = mrd_list_pop(&mrs->bucket[i])))
            mrd_list_append(
                bucket_of(&wider, mrd_container_of(n, struct mrd_ofi_mr, by_key)->fid.key), n);
    }
    free(mrs->bucket);
    mrs->bucket = wider.bucket;
    mrs->num_buckets = num;
}

static bool key_is_free(struct mrd_ofi_domain *d, uint64_t key)
{
    return key != FI_KEY_NOTAVAIL && !mrd_ofi_mr_find(d, key);
}

/* A key that peers who were not told it do not guess. */
static uint64_t choose_key(struct mrd_ofi_domain *d)
{
    uint64_t key;

    for (unsigned i = 0; i < KEY_TRIES; i++)
        if (getrandom(&key, sizeof(key), GRND_NONBLOCK) == sizeof(key) && key_is_free(d, key))
            return key;
    do
        key = d->mrs.next_key++;
    while (!key_is_free(d, key));
    return key;
}

/* Gives the region its key. 0, -FI_ENOKEY, -FI_EKEYREJECTED. */
static int add_key(struct mrd_ofi_mr *mr, uint64_t requested_key)
{
    struct mrd_ofi_domain *d = mr->domain;
    uint64_t key = modes(d) & FI_MR_PROV_KEY ? choose_key(d) : requested_key;

    if (key == FI_KEY_NOTAVAIL)
        return -FI_EKEYREJECTED;
    if (!key_is_free(d, key))
        return -FI_ENOKEY;
    spread(&d->mrs);
    mr->fid.key = key;
    mrd_list_append(bucket_of(&d->mrs, key), &mr->by_key);
    d->mrs.num++;
    d->users++;
    return 0;
}

static void remove_key(struct mrd_ofi_mr *mr)
{
    mrd_list_remove(&mr->by_key);
    mr->domain->mrs.num--;
    mr->domain->users--;
}

/* -------------------------------------------------------------------------------- registrations */

/* What mrd permits peers. Atomics write, whatever they fetch besides. */
static int access_flags(const struct mrd_ofi_mr *mr, const struct mrd_ofi_ep *ep)
{
    int access = ep->dev.on_demand ? MRD_ACCESS_ON_DEMAND : 0;

    if (mr->access & FI_REMOTE_READ)
        access |= MRD_ACCESS_REMOTE_READ;
    if (mr->access & FI_REMOTE_WRITE)
        access |= MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_ATOMIC;
    return access;
}

struct mrd_mr *mrd_ofi_mr_register(struct mrd_ofi_mr *mr, struct mrd_ofi_ep *ep, uint32_t index)
{
    const struct iovec *iov = &mr->iov[index];
    struct mrd_ofi_mr_reg *reg;

    for (struct mrd_node *n = mr->regs.next; n != &mr->regs; n = n->next) {
        reg = mrd_container_of(n, struct mrd_ofi_mr_reg, node);
        if (reg->ep == ep && reg->index == index)
            return reg->mr;
    }
    reg = calloc(1, sizeof(*reg));
    if (!reg)
        return NULL;
    reg->ep = ep;
    reg->index = index;
    reg->mr = mrd_reg_mr(ep->dev.pd, iov->iov_base, iov->iov_len, access_flags(mr, ep));
    if (!reg->mr) {
        free(reg);
        return NULL;
    }
    mrd_list_append(&mr->regs, &reg->node);
    mrd_list_append(&ep->dev.mr_regs, &reg->ep_node);
    return reg->mr;
}

static void unregister(struct mrd_ofi_mr_reg *reg)
{
    mrd_list_remove(&reg->node);
    mrd_list_remove(&reg->ep_node);
    if (mrd_dereg_mr(reg->mr))
        MRD_OFI_WARN(MR, "%s\n", mrd_last_error());
    free(reg);
}

void mrd_ofi_mr_forget_ep(struct mrd_ofi_ep *ep)
{
    for (struct mrd_node *n = ep->dev.mr_regs.next, *next; n != &ep->dev.mr_regs; n = next) {
        next = n->next;
        unregister(mrd_container_of(n, struct mrd_ofi_mr_reg, ep_node));
    }
}

/* --------------------------------------------------------------------------------------- lookup */

/* Finds the range that `addr` lies in, and how far in. */
static bool find_range(const struct mrd_ofi_mr *mr, uint64_t addr, uint32_t *index,
                       uint64_t *offset)
{
    bool is_virtual = mrd_ofi_mr_is_virtual(mr->domain);

    for (uint32_t i = 0; i < mr->num_iov; i++) {
        uint64_t start = is_virtual ? (uintptr_t)mr->iov[i].iov_base : 0;

        if (addr >= start && addr - start < mr->iov[i].iov_len) {
            *index = i;
            *offset = addr - start;
            return true;
        }
        if (!is_virtual)
            addr -= mr->iov[i].iov_len;
    }
    return false;
}

/* Is [addr, addr + len) in the region? It may take several ranges, each of them once. */
static bool covers(const struct mrd_ofi_mr *mr, uint64_t addr, uint64_t len)
{
    uint32_t index;
    uint64_t offset, part;

    while (len) {
        if (!find_range(mr, addr, &index, &offset))
            return false;
        part = mr->iov[index].iov_len - offset;
        if (part >= len)
            return true;
        len -= part;
        if (addr + part < addr)
            return false;
        addr += part;
    }
    return true;
}

void *mrd_ofi_mr_at(const struct mrd_ofi_mr *mr, uint64_t addr, uint64_t *len, uint32_t *index)
{
    uint64_t offset, part;
    uint32_t found;

    if (!find_range(mr, addr, &found, &offset) || !covers(mr, addr, *len))
        return NULL;
    part = mr->iov[found].iov_len - offset;
    if (*len > part)
        *len = part;
    *index = found;
    return (char *)mr->iov[found].iov_base + offset;
}

/* --------------------------------------------------------------------------------- bind, enable */

/*
 * Peers may write to a region through any endpoint of the domain: a counter of the region's hears
 * of all of them.
 */
static void hear_none(struct mrd_ofi_mr *mr)
{
    for (struct mrd_node *n = mr->domain->eps.next; n != &mr->domain->eps; n = n->next)
        mrd_ofi_sources_del(&mr->cntr->sources, &mr->cntr->wait,
                            &mrd_container_of(n, struct mrd_ofi_ep, domain_node)->source);
}

static int hear_all(struct mrd_ofi_mr *mr)
{
    for (struct mrd_node *n = mr->domain->eps.next; n != &mr->domain->eps; n = n->next) {
        int error =
            mrd_ofi_sources_add(&mr->cntr->sources, &mr->cntr->wait,
                                &mrd_container_of(n, struct mrd_ofi_ep, domain_node)->source);

        if (error) {
            hear_none(mr);
            return error;
        }
    }
    return 0;
}

int mrd_ofi_mrs_add_ep(struct mrd_ofi_ep *ep)
{
    struct mrd_ofi_mrs *mrs = &ep->domain->mrs;

    for (uint32_t i = 0; i < mrs->num_buckets; i++) {
        for (struct mrd_node *n = mrs->bucket[i].next; n != &mrs->bucket[i]; n = n->next) {
            struct mrd_ofi_mr *mr = mrd_container_of(n, struct mrd_ofi_mr, by_key);
            int error = mr->cntr
                            ? mrd_ofi_sources_add(&mr->cntr->sources, &mr->cntr->wait, &ep->source)
                            : 0;

            if (error)
                return error;
        }
    }
    return 0;
}

void mrd_ofi_mrs_del_ep(struct mrd_ofi_ep *ep)
{
    struct mrd_ofi_mrs *mrs = &ep->domain->mrs;

    for (uint32_t i = 0; i < mrs->num_buckets; i++) {
        for (struct mrd_node *n = mrs->bucket[i].next; n != &mrs->bucket[i]; n = n->next) {
            struct mrd_ofi_mr *mr = mrd_container_of(n, struct mrd_ofi_mr, by_key);

            if (mr->cntr)
                mrd_ofi_sources_del(&mr->cntr->sources, &mr->cntr->wait, &ep->source);
        }
    }
}

static int bind_cntr(struct mrd_ofi_mr *mr, struct mrd_ofi_cntr *cntr, uint64_t flags)
{
    int error = 0;

    if (flags != FI_REMOTE_WRITE)
        return -FI_EBADFLAGS;
    mrd_ofi_lock(mr->domain);
    if (mr->cntr || cntr->domain != mr->domain) {
        error = -FI_EINVAL;
    } else {
        mr->cntr = cntr;
        error = hear_all(mr);
        if (error)
            mr->cntr = NULL;
        else
            cntr->users++;
    }
    mrd_ofi_unlock(mr->domain);
    return error;
}

static int mr_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    switch (other->fclass) {
    case FI_CLASS_CNTR:
        return bind_cntr(mr_of(fid), mrd_container_of(other, struct mrd_ofi_cntr, fid.fid), flags);
    case FI_CLASS_EP:
        return flags ? -FI_EBADFLAGS : 0; /* a key is good at all endpoints of the domain */
    default:
        return -FI_EINVAL;
    }
}

static int mr_control(struct fid *fid, int command, void *arg)
{
    struct mrd_ofi_mr *mr = mr_of(fid);

    (void)arg;
    if (command != FI_ENABLE)
        return -FI_ENOSYS;
    mrd_ofi_lock(mr->domain);
    mr->enabled = true;
    mrd_ofi_unlock(mr->domain);
    return 0;
}

static void free_mr(struct mrd_ofi_mr *mr)
{
    mrd_ofi_lock(mr->domain);
    remove_key(mr);
    for (struct mrd_node *n = mr->regs.next, *next; n != &mr->regs; n = next) {
        next = n->next;
        unregister(mrd_container_of(n, struct mrd_ofi_mr_reg, node));
    }
    if (mr->cntr) {
        hear_none(mr);
        mr->cntr->users--;
    }
    mrd_ofi_unlock(mr->domain);
    free(mr);
}

static int mr_close(struct fid *fid)
{
    free_mr(mr_of(fid));
    return 0;
}

static struct fi_ops mr_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = mr_close,
    .bind = mr_bind,
    .control = mr_control,
    .ops_open = mrd_ofi_no_ops_open,
};

/* ------------------------------------------------------------------------------------- register */

static int check_attr(const struct mrd_ofi_domain *d, const struct fi_mr_attr *attr, uint64_t flags)
{
    const uint64_t known =
        FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_COLLECTIVE;

    if (!attr->iov_count || attr->iov_count > MRD_OFI_IOV_MAX || !attr->mr_iov || attr->offset)
        return -FI_EINVAL;
    if (attr->access & ~known)
        return -FI_EINVAL;
    /* Structs of an application of libfabric before 1.5 end before the authorization key. */
    if (d->fabric->fid.api_version >= FI_VERSION(1, 5) && attr->auth_key_size)
        return -FI_EINVAL;
    return flags & ~FI_RMA_EVENT ? -FI_EBADFLAGS : 0;
}

/* Peers cannot use it yet: it waits for what is bound to it, and for fi_mr_enable(). */
static bool starts_disabled(const struct mrd_ofi_domain *d, uint64_t flags)
{
    return modes(d) & FI_MR_ENDPOINT || (modes(d) & FI_MR_RMA_EVENT && flags & FI_RMA_EVENT);
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
                      struct fid_mr **mr_fid)
{
    struct mrd_ofi_domain *d = mrd_container_of(fid, struct mrd_ofi_domain, fid.fid);
    struct mrd_ofi_mr *mr;
    int error = check_attr(d, attr, flags);

    if (error)
        return error;
    mr = calloc(1, sizeof(*mr));
    if (!mr)
        return -FI_ENOMEM;
    mr->fid.fid = (struct fid){.fclass = FI_CLASS_MR, .context = attr->context, .ops = &mr_fid_ops};
    mr->fid.mem_desc = mr; /* nobody needs it: buffers are registered when they are used */
    mr->domain = d;
    mr->num_iov = (uint32_t)attr->iov_count;
    memcpy(mr->iov, attr->mr_iov, attr->iov_count * sizeof(*mr->iov));
    mr->access = attr->access;
    mr->flags = flags;
    mr->enabled = !starts_disabled(d, flags);
    mrd_list_init(&mr->regs);

    mrd_ofi_lock(d);
    error = add_key(mr, attr->requested_key);
    mrd_ofi_unlock(d);
    if (error) {
        free(mr);
        return error;
    }
    *mr_fid = &mr->fid; /* before the event can be read */
    if (d->eq)
        error = mrd_ofi_eq_add(d->eq, FI_MR_COMPLETE, &mr->fid.fid, attr->context, 0);
    if (error)
        free_mr(mr);
    return error;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
                   uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
                   void *context)
{
    const struct fi_mr_attr attr = {
        .mr_iov = iov,
        .iov_count = count,
        .access = access,
        .offset = offset,
        .requested_key = requested_key,
        .context = context,
    };

    return mr_regattr(fid, &attr, flags, mr);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
                  uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
    const struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};

    return mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

struct fi_ops_mr mrd_ofi_mr_ops = {
    .size = sizeof(struct fi_ops_mr),
    .reg = mr_reg,
    .regv = mr_regv,
    .regattr = mr_regattr,
};
