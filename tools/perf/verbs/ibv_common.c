/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/verbs/verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>

#include "tools/perf/message.h"

enum { HOP_LIMIT = 64, GIDS_MAX = 1024 };

int perf_ibv_failed(int rc, const char *what, char *error)
{
    struct rlimit limit;

    if (rc == 0)
        rc = -EIO; /* not every verb sets errno */
    snprintf(error, PERF_ERROR_BYTES, "%s: %s", what, strerror(-rc));
    if ((rc != -ENOMEM && rc != -EPERM) || getrlimit(RLIMIT_MEMLOCK, &limit) ||
        limit.rlim_cur == RLIM_INFINITY)
        return rc;
    return perf_fail(error, rc,
                     "%s: %s; only %llu KiB of memory may be locked (RLIMIT_MEMLOCK): allow more, "
                     "for example with 'ulimit -l unlimited'",
                     what, strerror(-rc), (unsigned long long)limit.rlim_cur / 1024);
}

static struct ibv_context *open_named(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = NULL;

    for (struct ibv_device **d = list; d && *d; d++) {
        if (strcmp(ibv_get_device_name(*d), name) == 0) {
            ctx = ibv_open_device(*d);
            break;
        }
    }
    if (list)
        ibv_free_device_list(list);
    return ctx;
}

static bool is_ipv4(const union ibv_gid *gid)
{
    struct in6_addr address;

    memcpy(&address, gid->raw, sizeof(address));
    return IN6_IS_ADDR_V4MAPPED(&address);
}

/* Greater is better; 0: never chosen unasked. */
static int rank_of(const struct ibv_gid_entry *entry, bool ethernet)
{
    if (!ethernet)
        return 1;
    if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
        return 0;
    return is_ipv4(&entry->gid) ? 2 : 1;
}

const struct ibv_gid_entry *perf_ibv_gid_pick(const struct ibv_gid_entry *entries, size_t count,
                                              const struct perf_ibv_port *port, bool ethernet,
                                              int wanted, char *error)
{
    const struct ibv_gid_entry *best = NULL;
    int best_rank = 0;

    for (size_t i = 0; i < count; i++) {
        const struct ibv_gid_entry *entry = &entries[i];
        if (entry->port_num != port->number)
            continue;
        if (wanted >= 0 && entry->gid_index == (uint32_t)wanted)
            return entry;
        int rank = wanted < 0 ? rank_of(entry, ethernet) : 0;
        if (rank > best_rank) {
            best = entry;
            best_rank = rank;
        }
    }
    if (best)
        return best;
    if (wanted >= 0)
        snprintf(error, PERF_ERROR_BYTES,
                 "-x %d: port %u of %s has no such GID; the table is what 'show_gids' or "
                 "'ibv_devinfo -v' shows",
                 wanted, port->number, port->device);
    else
        snprintf(error, PERF_ERROR_BYTES,
                 "port %u of %s has no RoCEv2 GID: give its interface an IP address, or choose "
                 "another GID with -x",
                 port->number, port->device);
    return NULL;
}

static int choose_gid(struct perf_ibv *v, const struct ibv_port_attr *attr, int wanted, char *error)
{
    static struct ibv_gid_entry entries[GIDS_MAX];
    bool ethernet = attr->link_layer == IBV_LINK_LAYER_ETHERNET;
    ssize_t count = ibv_query_gid_table(v->ctx, entries, GIDS_MAX, 0);

    if (count < 0)
        return perf_fail(error, (int)count, "cannot read the GIDs of %s: %s", v->port.device,
                         strerror((int)-count));
    const struct ibv_gid_entry *entry =
        perf_ibv_gid_pick(entries, (size_t)count, &v->port, ethernet, wanted, error);
    if (!entry)
        return -ENODEV;
    v->gid_index = entry->gid_index;
    v->here = (struct perf_ibv_place){.lid = attr->lid, .gid = entry->gid};
    v->global = ethernet || wanted >= 0;
    return 0;
}

int perf_ibv_open(struct perf_ibv *v, const struct perf_options *options, uint32_t mtu, char *error)
{
    struct ibv_port_attr attr;
    int rc = perf_ibv_find_port(options, &v->port, error);

    if (rc == 0)
        rc = perf_ibv_mtu_check(mtu, &v->port, error);
    if (rc)
        return rc;
    v->ctx = open_named(v->port.device);
    if (!v->ctx) {
        rc = errno ? -errno : -ENODEV;
        return perf_fail(error, rc, "cannot open the RDMA device %s: %s", v->port.device,
                         strerror(-rc));
    }
    if (ibv_query_port(v->ctx, v->port.number, &attr) || ibv_query_device(v->ctx, &v->limits))
        return perf_ibv_failed(-errno, "cannot query the RDMA device", error);
    rc = choose_gid(v, &attr, options->gid_index, error);
    if (rc)
        return rc;
    v->pd = ibv_alloc_pd(v->ctx);
    return v->pd ? 0 : perf_ibv_failed(-errno, "ibv_alloc_pd", error);
}

void perf_ibv_close(struct perf_ibv *v)
{
    if (v->pd)
        ibv_dealloc_pd(v->pd);
    if (v->ctx)
        ibv_close_device(v->ctx);
}

void perf_ibv_format(const struct perf_ibv_place *place, char *text, size_t len)
{
    char gid[INET6_ADDRSTRLEN] = "?";

    if (place->lid) {
        snprintf(text, len, "LID %u", place->lid);
        return;
    }
    inet_ntop(AF_INET6, place->gid.raw, gid, sizeof(gid));
    snprintf(text, len, "%s", gid);
}

void perf_ibv_tell(const struct perf_ibv *v, struct json_object *info)
{
    char gid[INET6_ADDRSTRLEN] = "";

    inet_ntop(AF_INET6, v->here.gid.raw, gid, sizeof(gid));
    json_add_string(info, "gid", gid);
    json_add_u64(info, "lid", v->here.lid);
    perf_ibv_mtu_tell(&v->port, info);
}

int perf_ibv_hear(struct perf_run *run, struct perf_ibv *v, struct json_object *info)
{
    const char *gid = json_get_string(info, "gid");
    uint64_t lid;

    if (!gid || inet_pton(AF_INET6, gid, v->there.gid.raw) != 1 ||
        json_get_u64(info, "lid", &lid) || lid > UINT16_MAX)
        return perf_run_fail(run, -EPROTO, "the other end does not tell its GID");
    v->there.lid = (uint16_t)lid;
    return perf_ibv_mtu_hear(run, &v->port, info, &v->mtu);
}

struct ibv_ah_attr perf_ibv_ah(const struct perf_ibv *v, const struct perf_ibv_place *place)
{
    struct ibv_ah_attr ah = {
        .dlid = place->lid,
        .port_num = v->port.number,
        .is_global = v->global,
    };

    if (v->global)
        ah.grh = (struct ibv_global_route){
            .dgid = place->gid,
            .sgid_index = (uint8_t)v->gid_index,
            .hop_limit = HOP_LIMIT,
        };
    return ah;
}

enum ibv_mtu perf_ibv_mtu_value(uint32_t bytes)
{
    enum ibv_mtu value = IBV_MTU_256;

    while (value < IBV_MTU_4096 && 128u << value < bytes)
        value++;
    return value;
}
