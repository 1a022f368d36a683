/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/av.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/adapters/ofi/eq.h"
#include "transport/adapters/ofi/fabric.h"
#include "transport/adapters/ofi/nosys.h"

enum {
    ENTRIES_MAX = 1 << 28,
    ENTRIES_FIRST = 64,         /* room at first */
    ENTRIES_EXPECTED = 1 << 16, /* room at first, at most, if more are announced */
    NAME_BYTES = 256,           /* of a host's name */
};

/* An address to be inserted. */
struct candidate {
    union mrd_ofi_addr addr;
    int error; /* it is not to be: a negative FI_ error number */
};

static struct mrd_ofi_av *av_of(struct fid_av *fid)
{
    return mrd_container_of(fid, struct mrd_ofi_av, fid);
}

/* -------------------------------------------------------------------------------------- entries */

static uint32_t *bucket_of(const struct mrd_ofi_av *av, const union mrd_ofi_addr *addr)
{
    return &av->bucket[mrd_ofi_addr_hash(addr) & (av->num_buckets - 1)];
}

static void link_entry(struct mrd_ofi_av *av, uint32_t index)
{
    uint32_t *bucket = bucket_of(av, &av->entry[index].addr);

    av->entry[index].next = *bucket;
    *bucket = index + 1;
}

static void unlink_entry(struct mrd_ofi_av *av, uint32_t index)
{
    uint32_t *link = bucket_of(av, &av->entry[index].addr);

    while (*link != index + 1)
        link = &av->entry[*link - 1].next;
    *link = av->entry[index].next;
}

/* `room` is a power of two. */
static int make_room(struct mrd_ofi_av *av, uint32_t room)
{
    struct mrd_ofi_av_entry *entry;
    uint32_t *bucket;

    if (room > ENTRIES_MAX)
        return -FI_ENOMEM;
    entry = realloc(av->entry, room * sizeof(*entry));
    if (!entry)
        return -FI_ENOMEM;
    av->entry = entry;
    bucket = calloc(room, sizeof(*bucket));
    if (!bucket)
        return -FI_ENOMEM;
    free(av->bucket);
    av->bucket = bucket;
    av->num_buckets = av->room = room;
    for (uint32_t i = 0; i < av->num; i++)
        if (av->entry[i].used)
            link_entry(av, i);
    return 0;
}

/* Takes the lowest free index. */
static int add(struct mrd_ofi_av *av, const union mrd_ofi_addr *addr, fi_addr_t *fi_addr)
{
    uint32_t index = av->free ? av->free - 1 : av->num;
    int error = index == av->room ? make_room(av, av->room * 2) : 0;

    if (error)
        return error;
    if (index == av->num) {
        av->num++;
    } else {
        while (av->free <= av->num && (av->free == index + 1 || av->entry[av->free - 1].used))
            av->free++;
        if (av->free > av->num)
            av->free = 0;
    }
    av->entry[index] = (struct mrd_ofi_av_entry){.addr = *addr, .used = true};
    link_entry(av, index);
    av->version++;
    *fi_addr = index;
    return 0;
}

static void drop(struct mrd_ofi_av *av, uint32_t index)
{
    unlink_entry(av, index);
    av->entry[index].used = false;
    if (!av->free || index + 1 < av->free)
        av->free = index + 1;
    av->version++;
}

const union mrd_ofi_addr *mrd_ofi_av_get(const struct mrd_ofi_av *av, fi_addr_t fi_addr)
{
    if (fi_addr >= av->num || !av->entry[fi_addr].used)
        return NULL;
    return &av->entry[fi_addr].addr;
}

fi_addr_t mrd_ofi_av_find(const struct mrd_ofi_av *av, const union mrd_ofi_addr *addr)
{
    fi_addr_t found = FI_ADDR_NOTAVAIL;

    for (uint32_t i = *bucket_of(av, addr); i; i = av->entry[i - 1].next)
        if (i - 1 < found && mrd_ofi_addr_equal(&av->entry[i - 1].addr, addr))
            found = i - 1;
    return found;
}

/* --------------------------------------------------------------------------------------- insert */

/* Could this be the address of an endpoint? 0 or a negative FI_ error number. */
static int check(const struct mrd_ofi_av *av, const union mrd_ofi_addr *addr)
{
    const struct sockaddr_in6 *in6 = &addr->in6;

    if (!mrd_ofi_addr_fits(av->domain->info->addr_format, addr))
        return -FI_EINVAL;
    switch (addr->sa.sa_family) {
    case AF_INET:
        return addr->in.sin_port && addr->in.sin_addr.s_addr ? 0 : -FI_EINVAL;
    case AF_INET6:
        if (IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
            return -FI_EINVAL;
        return in6->sin6_port || in6->sin6_flowinfo ? 0 : -FI_EINVAL;
    default:
        return -FI_EINVAL;
    }
}

/* 0 or -FI_ENOMEM. All error events come before the one that ends the insert. */
static int report(struct mrd_ofi_av *av, const struct candidate *list, size_t num, int inserted,
                  void *context)
{
    int error = 0;

    for (size_t i = 0; i < num && !error; i++)
        if (list[i].error)
            error = mrd_ofi_eq_add_error(av->eq, &av->fid.fid, context, i, -list[i].error);
    if (error)
        return error;
    return mrd_ofi_eq_add(av->eq, FI_AV_COMPLETE, &av->fid.fid, context, (uint64_t)inserted);
}

/* Returns how many were inserted; 0 if the EQ tells that. */
static int insert_all(struct mrd_ofi_av *av, struct candidate *list, size_t num, fi_addr_t *fi_addr,
                      uint64_t flags, void *context)
{
    int *errors = flags & FI_SYNC_ERR ? context : NULL;
    int inserted = 0;

    mrd_ofi_lock(av->domain);
    for (size_t i = 0; i < num; i++) {
        fi_addr_t index = FI_ADDR_NOTAVAIL;

        if (!list[i].error)
            list[i].error = check(av, &list[i].addr);
        if (!list[i].error)
            list[i].error = add(av, &list[i].addr, &index);
        inserted += !list[i].error;
        if (fi_addr)
            fi_addr[i] = index;
        if (errors)
            errors[i] = -list[i].error;
    }
    mrd_ofi_unlock(av->domain);
    return av->async ? report(av, list, num, inserted, context) : inserted;
}

static int check_insert(const struct mrd_ofi_av *av, uint64_t flags, const void *context)
{
    if (flags & ~(FI_MORE | FI_SYNC_ERR))
        return -FI_EBADFLAGS;
    if (flags & FI_SYNC_ERR && av->async)
        return -FI_EBADFLAGS;
    if (flags & FI_SYNC_ERR && !context)
        return -FI_EINVAL;
    return av->async && !av->eq ? -FI_ENOEQ : 0;
}

static struct candidate *new_list(size_t num)
{
    return num > ENTRIES_MAX ? NULL : calloc(num ? num : 1, sizeof(struct candidate));
}

/* Bytes from one address of an array to the next: all are of the same format. */
static size_t stride(const struct mrd_ofi_av *av, const void *addr)
{
    switch (av->domain->info->addr_format) {
    case FI_SOCKADDR_IN:
        return sizeof(struct sockaddr_in);
    case FI_SOCKADDR_IN6:
        return sizeof(struct sockaddr_in6);
    default:
        return ((const struct sockaddr *)addr)->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                                      : sizeof(struct sockaddr_in);
    }
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *fi_addr,
                     uint64_t flags, void *context)
{
    struct mrd_ofi_av *av = av_of(fid);
    size_t bytes = count ? stride(av, addr) : 0;
    int result = check_insert(av, flags, context);
    struct candidate *list = result ? NULL : new_list(count);

    if (!list)
        return result ? result : -FI_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        memcpy(&list[i].addr, (const char *)addr + i * bytes, bytes);
        if (mrd_ofi_addr_bytes(&list[i].addr) > bytes)
            list[i].error = -FI_EINVAL;
    }
    result = insert_all(av, list, count, fi_addr, flags, context);
    free(list);
    return result;
}

/* ---------------------------------------------------------------------------------------- names */

/* The host `distance` after `node`, as host9 and host11 after host8. */
static int nth_name(const char *node, size_t distance, char *name)
{
    size_t len = strlen(node), prefix = len;
    int written;

    while (prefix && node[prefix - 1] >= '0' && node[prefix - 1] <= '9')
        prefix--;
    if (prefix == len || len >= NAME_BYTES)
        return -FI_EINVAL;
    written = snprintf(name, NAME_BYTES, "%.*s%0*zu", (int)prefix, node, (int)(len - prefix),
                       (size_t)strtoul(node + prefix, NULL, 10) + distance);
    return written < NAME_BYTES ? 0 : -FI_EINVAL;
}

/* The IP address after this one. */
static void next_ip(union mrd_ofi_addr *addr)
{
    bool v4 = addr->sa.sa_family == AF_INET;
    uint8_t *bytes = v4 ? (uint8_t *)&addr->in.sin_addr : addr->in6.sin6_addr.s6_addr;

    for (size_t i = v4 ? 4 : 16; i && !++bytes[i - 1]; i--)
        ;
}

/* The address whose port, or QP number, is `distance` higher. */
static int nth_service(union mrd_ofi_addr *addr, size_t distance)
{
    bool v4 = addr->sa.sa_family == AF_INET;
    uint16_t *port = v4 ? &addr->in.sin_port : &addr->in6.sin6_port;

    if (!v4 && !*port) {
        addr->in6.sin6_flowinfo = htonl(ntohl(addr->in6.sin6_flowinfo) + (uint32_t)distance);
        return 0;
    }
    if (distance > UINT16_MAX - (size_t)ntohs(*port))
        return -FI_EINVAL;
    *port = htons((uint16_t)(ntohs(*port) + distance));
    return 0;
}

/*
 * Fills nodecnt * svccnt entries, all services of a node before the next node. Without the lock: it
 * may take long.
 */
static void look_up_all(const struct mrd_ofi_av *av, struct candidate *list, const char *node,
                        size_t nodecnt, const char *service, size_t svccnt)
{
    struct in_addr in;
    bool numeric = strchr(node, ':') || inet_pton(AF_INET, node, &in) == 1;
    union mrd_ofi_addr addr = {0};
    uint32_t format = av->domain->info->addr_format;
    int error = mrd_ofi_addr_look_up(format, node, service, &addr);
    char name[NAME_BYTES];

    for (size_t i = 0; i < nodecnt; i++) {
        if (i && numeric) {
            next_ip(&addr);
        } else if (i) {
            error = nth_name(node, i, name);
            if (!error)
                error = mrd_ofi_addr_look_up(format, name, service, &addr);
        }
        for (size_t j = 0; j < svccnt; j++, list++) {
            list->addr = addr;
            list->error = error ? error : nth_service(&list->addr, j);
        }
    }
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt, const char *service,
                        size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
    struct mrd_ofi_av *av = av_of(fid);
    int result = check_insert(av, flags, context);
    struct candidate *list = NULL;

    if (!result && (!node || nodecnt > INT_MAX || svccnt > UINT16_MAX))
        result = -FI_EINVAL;
    if (!result)
        list = new_list(nodecnt * svccnt);
    if (!list)
        return result ? result : -FI_ENOMEM;
    if (nodecnt && svccnt)
        look_up_all(av, list, node, nodecnt, service, svccnt);
    result = insert_all(av, list, nodecnt * svccnt, fi_addr, flags, context);
    free(list);
    return result;
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service,
                        fi_addr_t *fi_addr, uint64_t flags, void *context)
{
    return av_insertsym(fid, node, 1, service, 1, fi_addr, flags, context);
}

/* ----------------------------------------------------------------------------- other operations */

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
    struct mrd_ofi_av *av = av_of(fid);
    int result = 0;

    if (flags)
        return -FI_EBADFLAGS;
    mrd_ofi_lock(av->domain);
    for (size_t i = 0; i < count; i++) {
        if (mrd_ofi_av_get(av, fi_addr[i]))
            drop(av, (uint32_t)fi_addr[i]);
        else
            result = -FI_EINVAL;
    }
    mrd_ofi_unlock(av->domain);
    return result;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
    struct mrd_ofi_av *av = av_of(fid);
    const union mrd_ofi_addr *found;
    size_t bytes;

    mrd_ofi_lock(av->domain);
    found = mrd_ofi_av_get(av, fi_addr);
    if (found) {
        bytes = mrd_ofi_addr_bytes(found);
        memcpy(addr, found, bytes < *addrlen ? bytes : *addrlen);
        *addrlen = bytes;
    }
    mrd_ofi_unlock(av->domain);
    return found ? 0 : -FI_EINVAL;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
    char text[MRD_ADDRESS_MAX] = "unknown address family";
    union mrd_ofi_addr copy = {.sa = *(const struct sockaddr *)addr};
    size_t room = *len;

    (void)fid;
    if (mrd_ofi_addr_bytes(&copy)) {
        memcpy(&copy, addr, mrd_ofi_addr_bytes(&copy));
        mrd_ofi_addr_text(&copy, text);
    }
    *len = strlen(text) + 1;
    if (buf && room)
        snprintf(buf, room, "%s", text);
    return buf;
}

static int av_set(struct fid_av *fid, struct fi_av_set_attr *attr, struct fid_av_set **set,
                  void *context)
{
    (void)fid;
    (void)attr;
    (void)set;
    (void)context;
    return -FI_ENOSYS;
}

/* ---------------------------------------------------------------------------------- open, close */

static int av_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    struct mrd_ofi_av *av = mrd_container_of(fid, struct mrd_ofi_av, fid.fid);

    if (other->fclass != FI_CLASS_EQ || av->eq)
        return -FI_EINVAL;
    if (flags)
        return -FI_EBADFLAGS;
    av->eq = mrd_container_of(other, struct mrd_ofi_eq, fid.fid);
    atomic_fetch_add(&av->eq->users, 1);
    return 0;
}

static int av_close(struct fid *fid)
{
    struct mrd_ofi_av *av = mrd_container_of(fid, struct mrd_ofi_av, fid.fid);
    int error = mrd_ofi_domain_leave(av->domain, &av->users);

    if (error)
        return error;
    if (av->eq)
        atomic_fetch_sub(&av->eq->users, 1);
    free(av->bucket);
    free(av->entry);
    free(av);
    return 0;
}

static struct fi_ops av_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = av_close,
    .bind = av_bind,
    .control = mrd_ofi_no_control,
    .ops_open = mrd_ofi_no_ops_open,
};

static struct fi_ops_av av_ops = {
    .size = sizeof(struct fi_ops_av),
    .insert = av_insert,
    .insertsvc = av_insertsvc,
    .insertsym = av_insertsym,
    .remove = av_remove,
    .lookup = av_lookup,
    .straddr = av_straddr,
    .av_set = av_set,
};

static int check_attr(const struct fi_av_attr *attr)
{
    if (attr->name || attr->flags & FI_READ || attr->rx_ctx_bits)
        return -FI_ENOSYS; /* shared by processes; of scalable endpoints */
    if (attr->flags & ~(FI_EVENT | FI_SYMMETRIC))
        return -FI_EBADFLAGS;
    switch (attr->type) {
    case FI_AV_UNSPEC:
    case FI_AV_MAP:
    case FI_AV_TABLE:
        return 0;
    default:
        return -FI_EINVAL;
    }
}

/* A power of two. */
static uint32_t first_room(size_t expected)
{
    uint32_t room = ENTRIES_FIRST;

    while (room < expected && room < ENTRIES_EXPECTED)
        room *= 2;
    return room;
}

int mrd_ofi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **fid,
                    void *context)
{
    struct mrd_ofi_domain *d = mrd_container_of(domain, struct mrd_ofi_domain, fid);
    int error = attr ? check_attr(attr) : -FI_EINVAL;
    struct mrd_ofi_av *av = error ? NULL : calloc(1, sizeof(*av));

    if (!av)
        return error ? error : -FI_ENOMEM;
    error = make_room(av, first_room(attr->count));
    if (error) {
        free(av->entry);
        free(av);
        return error;
    }
    if (attr->type == FI_AV_UNSPEC)
        attr->type = FI_AV_MAP;
    av->fid.fid = (struct fid){.fclass = FI_CLASS_AV, .context = context, .ops = &av_fid_ops};
    av->fid.ops = &av_ops;
    av->domain = d;
    av->type = attr->type;
    av->async = attr->flags & FI_EVENT;
    mrd_ofi_domain_join(d);
    *fid = &av->fid;
    return 0;
}
