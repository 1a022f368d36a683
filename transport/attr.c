/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/attr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/cc.h"
#include "core/spray.h"
#include "transport/error.h"

enum {
    MAX_PEERS_DEFAULT = 16384,
    SIM_MAX_PEERS_DEFAULT = 1024,
    MAX_FLOWS_DEFAULT = 4096,
    PPM = 1000000,

};
#define MSEC_NS         1000000ull
#define SEC_NS          1000000000ull
#define PEER_TIMEOUT_NS (8 * SEC_NS)
#define CHALLENGE_NS    (4 * SEC_NS)
#define LONGEST_NS      (86400 * SEC_NS)
#define ATTR_MASK                                                                                  \
    ((uint64_t)(MRD_CONTEXT_ATTR_CHALLENGE | MRD_CONTEXT_ATTR_SEED | MRD_CONTEXT_ATTR_GID_INDEX))
#define INVALID(...) (mrd_error_set(__VA_ARGS__), -EINVAL)

const char *mrd_attr_environment(const char *name)
{
    const char *value = getenv(name);

    return value && value[0] ? value : NULL;
}

/* A number from 1 on; its end in *rest. false: there is none. */
static bool scan_number(const char *text, char **rest, unsigned long *value)
{
    errno = 0;
    *value = strtoul(text, rest, 10);
    return !errno && text[0] >= '0' && text[0] <= '9' && *value;
}

/* Sets *value if it is 0 and the variable is set. 0, or -EINVAL with mrd_error_set(). */
static int apply_number(const char *name, unsigned long most, uint32_t *value)
{
    const char *text = mrd_attr_environment(name);
    unsigned long number;
    char *rest;

    if (*value || !text)
        return 0;
    if (!scan_number(text, &rest, &number) || *rest || number > most)
        return INVALID("%s=%s: expected a number from 1 to %lu", name, text, most);
    *value = (uint32_t)number;
    return 0;
}

static int apply_paths(struct mrd_context_attr *a)
{
    if (!a->paths)
        a->paths = a->num_source_ports;
    return apply_number("MRD_PATHS", MRD_PATHS_MAX, &a->paths);
}

/* MRD_SOURCE_PORTS=FIRST-LAST */
static int apply_source_ports(struct mrd_context_attr *a, uint16_t *ports)
{
    const char *text = mrd_attr_environment("MRD_SOURCE_PORTS");
    unsigned long first, last = 0;
    char *rest;

    if (a->num_source_ports || a->source_ports || !text)
        return 0;
    if (!scan_number(text, &rest, &first) || *rest != '-' || !scan_number(rest + 1, &rest, &last) ||
        *rest || last < first || last > UINT16_MAX || last - first >= MRD_PATHS_MAX)
        return INVALID("MRD_SOURCE_PORTS=%s: expected FIRST-LAST, at most %d ports", text,
                       MRD_PATHS_MAX);
    for (unsigned long port = first; port <= last; port++)
        ports[port - first] = (uint16_t)port;
    a->source_ports = ports;
    a->num_source_ports = (uint32_t)(last - first + 1);
    return 0;
}

/* Where a context is. A simulated one is in the simulation; only sockets have ports. */
static int apply_place(struct mrd_context_attr *a, const char *transport, uint16_t *ports)
{
    uint32_t port = a->port;
    int error;

    if (!strcmp(transport, "sim"))
        return 0;
    if (!a->address)
        a->address = mrd_attr_environment("MRD_ADDRESS");
    error = apply_number("MRD_MTU", MRD_PAYLOAD_BYTES_MAX, &a->mtu);
    if (!error)
        error = apply_number("MRD_DSCP", MRD_DSCP_MAX, &a->dscp);
    if (error || strcmp(transport, "udp"))
        return error;
    error = apply_number("MRD_PORT", UINT16_MAX, &port);
    a->port = (uint16_t)port;
    return error ? error : apply_source_ports(a, ports);
}

static int apply_policies(struct mrd_context_attr *a)
{
    const char *spray_from = a->spray ? "" : "MRD_SPRAY: ";
    const char *cc_from = a->cc ? "" : "MRD_CC: ";

    if (!a->spray)
        a->spray = mrd_attr_environment("MRD_SPRAY");
    if (!mrd_spray_find(a->spray))
        return INVALID("%sunknown spray policy \"%s\"", spray_from, a->spray);
    if (!a->cc)
        a->cc = mrd_attr_environment("MRD_CC");
    if (!mrd_cc_find(a->cc))
        return INVALID("%sunknown congestion control \"%s\"", cc_from, a->cc);
    return 0;
}

static int apply_ecn(struct mrd_context_attr *a)
{
    const char *text = a->ecn ? NULL : mrd_attr_environment("MRD_ECN");

    if (text && strcmp(text, "on") && strcmp(text, "off"))
        return INVALID("MRD_ECN=%s: expected on or off", text);
    if (text)
        a->ecn = strcmp(text, "off") ? MRD_ECN_ON : MRD_ECN_OFF;
    else if (!a->ecn)
        a->ecn = MRD_ECN_ON;
    return 0;
}

static int apply_check(struct mrd_context_attr *a)
{
    const char *text = a->check ? NULL : mrd_attr_environment("MRD_CHECK");

    if (text && strcmp(text, "on") && strcmp(text, "off"))
        return INVALID("MRD_CHECK=%s: expected on or off", text);
    if (text)
        a->check = strcmp(text, "off") ? MRD_CHECK_ON : MRD_CHECK_OFF;
    else if (!a->check)
        a->check = MRD_CHECK_ON;
    return 0;
}

static int apply_log(void)
{
    const char *text = mrd_attr_environment("MRD_LOG");
    enum mrd_log_level level;

    if (!text)
        return 0;
    if (mrd_log_parse(text, &level))
        return INVALID("MRD_LOG=%s: expected error, warn, info or debug", text);
    mrd_log_default(level);
    return 0;
}

static void apply_defaults(struct mrd_context_attr *a, const char *transport)
{
    if (!a->max_peers)
        a->max_peers = strcmp(transport, "sim") ? MAX_PEERS_DEFAULT : SIM_MAX_PEERS_DEFAULT;
    if (!a->max_flows)
        a->max_flows = MAX_FLOWS_DEFAULT;
    if (!a->peer_timeout_ns)
        a->peer_timeout_ns = PEER_TIMEOUT_NS;
    if (!a->challenge_ns && !(a->comp_mask & MRD_CONTEXT_ATTR_CHALLENGE))
        a->challenge_ns = CHALLENGE_NS;
    if (a->seed)
        a->comp_mask |= MRD_CONTEXT_ATTR_SEED;
}

static int check_source_ports(const struct mrd_context_attr *a)
{
    if (!a->source_ports != !a->num_source_ports)
        return INVALID("source_ports and num_source_ports go together");
    if (a->num_source_ports > MRD_PATHS_MAX)
        return INVALID("num_source_ports %u: at most %d", a->num_source_ports, MRD_PATHS_MAX);
    for (uint32_t i = 0; i < a->num_source_ports; i++) {
        if (!a->source_ports[i])
            return INVALID("source_ports[%u] is 0", i);
        for (uint32_t j = 0; j < i; j++)
            if (a->source_ports[i] == a->source_ports[j])
                return INVALID("source port %u is named twice", a->source_ports[i]);
    }
    return 0;
}

static int check_sizes(const struct mrd_context_attr *a)
{
    if (a->paths > MRD_PATHS_MAX)
        return INVALID("paths %u: at most %d", a->paths, MRD_PATHS_MAX);
    if (a->num_source_ports && a->paths > a->num_source_ports)
        return INVALID("paths %u but only %u source ports", a->paths, a->num_source_ports);
    if (a->mtu && (a->mtu % 64 || a->mtu < MRD_MTU_MIN || a->mtu > MRD_PAYLOAD_BYTES_MAX))
        return INVALID("mtu %u: expected a multiple of 64 from %d to %d", a->mtu, MRD_MTU_MIN,
                       MRD_PAYLOAD_BYTES_MAX);
    if (a->max_peers > MRD_PEERS_MAX)
        return INVALID("max_peers %u: at most %d", a->max_peers, MRD_PEERS_MAX);
    if (a->max_flows > MRD_FLOWS_MAX)
        return INVALID("max_flows %u: at most %d", a->max_flows, MRD_FLOWS_MAX);
    return 0;
}

static int check_rest(const struct mrd_context_attr *a)
{
    if (a->peer_timeout_ns < MSEC_NS || a->peer_timeout_ns > LONGEST_NS)
        return INVALID("peer_timeout_ns %llu: expected 1 ms to 1 day",
                       (unsigned long long)a->peer_timeout_ns);
    if (a->challenge_ns > LONGEST_NS)
        return INVALID("challenge_ns %llu: at most 1 day", (unsigned long long)a->challenge_ns);
    if (a->progress != MRD_PROGRESS_THREAD && a->progress != MRD_PROGRESS_MANUAL)
        return INVALID("progress %d: no such mode", (int)a->progress);
    if (a->threading != MRD_THREADING_MULTI && a->threading != MRD_THREADING_SINGLE)
        return INVALID("threading %d: no such mode", (int)a->threading);
    if ((unsigned)a->check > MRD_CHECK_OFF)
        return INVALID("check %d: no such mode", (int)a->check);
    if ((unsigned)a->ecn > MRD_ECN_OFF)
        return INVALID("ecn %d: no such mode", (int)a->ecn);
    if (a->rx_drop_ppm > PPM)
        return INVALID("rx_drop_ppm %u: at most %d", a->rx_drop_ppm, PPM);
    if (a->dscp > MRD_DSCP_MAX)
        return INVALID("dscp %u: at most %d", a->dscp, MRD_DSCP_MAX);
    if (a->entropy && strcmp(a->entropy, "auto") && strcmp(a->entropy, "ah") &&
        strcmp(a->entropy, "qp") && strcmp(a->entropy, "qpair"))
        return INVALID("entropy \"%s\": expected auto, ah, qp or qpair", a->entropy);
    return 0;
}

int mrd_attr_resolve(const struct mrd_context_attr *attr, const char *transport,
                     struct mrd_attr_resolved *resolved)
{
    struct mrd_context_attr a = {0};
    int error;

    if (attr)
        a = *attr;
    if (a.comp_mask & ~ATTR_MASK)
        return INVALID("unknown bits 0x%llx in comp_mask",
                       (unsigned long long)(a.comp_mask & ~ATTR_MASK));
    if ((error = apply_log()) || (error = apply_place(&a, transport, resolved->source_ports)) ||
        (error = check_source_ports(&a)) || (error = apply_paths(&a)) ||
        (error = apply_policies(&a)) || (error = apply_check(&a)) || (error = apply_ecn(&a)))
        return error;
    if (!a.key_file)
        a.key_file = mrd_attr_environment("MRD_KEY_FILE");
    apply_defaults(&a, transport);
    if ((error = check_sizes(&a)) || (error = check_rest(&a)))
        return error;
    resolved->attr = a;
    return 0;
}
