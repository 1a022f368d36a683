/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/ibv/ibv_addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/movers/ibv/ibv_remote.h"

enum {
    /* The last QPN is that of multicast, 0 and 1 are those of subnet management. */
    QPN_MAX = (1 << 24) - 2
};

bool mrd_ibv_parse_gid(const char *text, union ibv_gid *gid)
{
    struct in_addr v4;

    if (inet_pton(AF_INET, text, &v4) == 1) {
        memset(gid, 0, sizeof(*gid));
        gid->raw[10] = gid->raw[11] = 0xff;
        memcpy(gid->raw + 12, &v4, 4);
        return true;
    }
    return inet_pton(AF_INET6, text, gid) == 1;
}

static int malformed(const char *text)
{
    mrd_error_set("\"%.100s\" is not an address: expected \"<gid>/<qpn>\", for example "
                  "\"::ffff:10.0.0.7/17\"",
                  text);
    return -EINVAL;
}

/* Parses up to `max` QPNs and returns how many; 0: malformed. */
static unsigned parse_qpns(const char *text, uint32_t *qpns, unsigned max)
{
    unsigned n = 0;

    for (;; text++) {
        char *end;

        if (*text < '0' || *text > '9')
            return 0;
        errno = 0;
        unsigned long qpn = strtoul(text, &end, 10);
        if (errno || qpn < 2 || qpn > QPN_MAX)
            return 0;
        if (n < max)
            qpns[n++] = (uint32_t)qpn;
        if (!*end)
            return n;
        if (*end != ',')
            return 0;
        text = end;
    }
}

/* Parses an address with up to MRD_IBV_PAIR_QPS QPNs; *num: how many. 0 or -EINVAL. */
static int parse(const char *text, struct mrd_addr *addr, uint32_t *qpns, unsigned *num)
{
    char gid_text[INET6_ADDRSTRLEN];
    union ibv_gid gid;
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : 0;

    if (!slash) {
        (void)malformed(text);
        if (mrd_ibv_parse_gid(text, &gid))
            mrd_error_set("\"%.100s\" lacks a QPN: a GID alone does not reach a queue pair; "
                          "mrd_query_address() tells the whole address",
                          text);
        return -EINVAL;
    }
    if (len >= sizeof(gid_text))
        return malformed(text);
    memcpy(gid_text, text, len);
    gid_text[len] = '\0';

    unsigned n = parse_qpns(slash + 1, qpns, MRD_IBV_PAIR_QPS);

    if (!n || !mrd_ibv_parse_gid(gid_text, &gid))
        return malformed(text);

    struct mrd_addr found = {.port = qpns[0]};

    memcpy(found.ip, gid.raw, sizeof(found.ip));
    *addr = found;
    *num = n;
    return 0;
}

int mrd_ibv_check_address(struct mrd_backend *b, const char *text, struct mrd_addr *addr)
{
    uint32_t qpns[MRD_IBV_PAIR_QPS];
    unsigned n;

    (void)b;
    return parse(text, addr, qpns, &n);
}

int mrd_ibv_parse_address(struct mrd_backend *b, const char *text, struct mrd_addr *addr)
{
    struct mrd_ibv *ibv = mrd_ibv_of(b);
    uint32_t qpns[MRD_IBV_PAIR_QPS];
    unsigned n;
    int error = parse(text, addr, qpns, &n);

    if (error)
        return error;
    if (ibv->port.entropy == MRD_IBV_BY_QPAIR) {
        struct mrd_ibv_remote *remote = mrd_ibv_remote_get(ibv, addr, ibv->dscp);

        for (unsigned i = 1; remote && i < n; i++)
            mrd_ibv_remote_learn(remote, qpns[i]);
    }
    return 0;
}

/* Lists a peer's QPNs, or our own, without the first. Returns how many. */
static unsigned further_qpns(struct mrd_ibv *ibv, const struct mrd_addr *addr, uint32_t *qpns)
{
    const struct mrd_ibv_remote *remote;
    struct mrd_addr self;
    unsigned n = 0;

    if (ibv->port.entropy != MRD_IBV_BY_QPAIR)
        return 0;
    (void)mrd_ibv_self_address(&ibv->base, &self);
    if (memcmp(addr, &self, sizeof(self)) == 0) {
        for (uint32_t i = 1; i < ibv->num_qps; i++)
            qpns[n++] = ibv->qps[i].qp->qp_num;
        return n;
    }
    remote = mrd_ibv_remote_find(ibv, addr);
    for (uint32_t i = 1; remote && i < remote->num_qpns; i++)
        qpns[n++] = remote->qpn[i];
    return n;
}

int mrd_ibv_format_address(struct mrd_backend *b, const struct mrd_addr *addr, char *text,
                           size_t len)
{
    char gid[INET6_ADDRSTRLEN], out[MRD_ADDRESS_MAX];
    uint32_t qpns[MRD_IBV_PAIR_QPS];
    unsigned n = further_qpns(mrd_ibv_of(b), addr, qpns);

    if (!inet_ntop(AF_INET6, addr->ip, gid, sizeof(gid)))
        return -EINVAL;

    int used = snprintf(out, sizeof(out), "%s/%u", gid, addr->port);

    /* It always fits: 45 characters for the GID and 9 for each of MRD_IBV_PAIR_QPS QPNs. */
    for (unsigned i = 0; i < n; i++)
        used += snprintf(out + used, sizeof(out) - (size_t)used, ",%u", qpns[i]);
    if ((size_t)used >= len)
        return -ENOSPC;
    memcpy(text, out, (size_t)used + 1);
    return 0;
}

int mrd_ibv_self_address(struct mrd_backend *b, struct mrd_addr *addr)
{
    const struct mrd_ibv *ibv = mrd_ibv_of(b);

    memset(addr, 0, sizeof(*addr));
    memcpy(addr->ip, ibv->port.gid.raw, sizeof(addr->ip));
    addr->port = ibv->qps[0].qp->qp_num;
    return 0;
}

int mrd_ibv_payload_bytes(struct mrd_backend *b, const struct mrd_addr *to)
{
    struct mrd_ibv *ibv = mrd_ibv_of(b);
    char text[MRD_ADDRESS_MAX];
    struct mrd_ibv_remote *remote;

    if (mrd_ibv_format_address(b, to, text, sizeof(text)))
        text[0] = '\0';
    if (mrd_ibv_is_v4(to->ip) != ibv->port.v4) {
        mrd_error_set("%s is %s, but GID %u of %s is %s: choose another GID at one end", text,
                      ibv->port.v4 ? "IPv6" : "IPv4", ibv->port.gid_index, ibv->name,
                      ibv->port.v4 ? "IPv4" : "IPv6");
        return -EHOSTUNREACH;
    }
    remote = mrd_ibv_remote_get(ibv, to, ibv->dscp);
    if (!remote) {
        mrd_error_set("no room for an address handle to %s: all %u are in use", text,
                      ibv->remotes.max);
        return -ENOMEM;
    }
    /* The user asks for a handle: try now, even if the last try failed a moment ago. */
    remote->failed_ns = 0;
    if (!mrd_ibv_remote_get_ah(ibv, remote, 0)) {
        mrd_error_set("%s has no way to %s: %s", ibv->name, text, strerror(errno));
        return -EHOSTUNREACH;
    }
    return (int)ibv->payload_bytes;
}
