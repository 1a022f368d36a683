/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/params.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrd/mrd.h"
#include "transport/adapters/ofi/log.h"

enum {
    PATHS_MAX = 256, /* of a context: mrd_open_device(3) has the ranges */
    MTU_MIN = 256,
    MTU_MAX = 16384,
    PAYLOAD_STEP = 64,
    TIMEOUT_MS_MAX = 24 * 60 * 60 * 1000,
    EAGER_MIN = 1024,
    EAGER_MAX = 65536,
    EAGER_BYTES = 16384,
    RX_BUFFERS_MIN = 16,
    RX_BUFFERS_MAX = 65536,
    RX_BUFFERS = 512,
    PERCENT_PPM = 10000,
};
#define MSEC_NS 1000000ull

struct mrd_ofi_params mrd_ofi_params;

/* All are strings to libfabric: its numbers are what strtol() makes of any text. */
static const struct {
    const char *name, *help;
} known[] = {
    {"DEVICE", "Device that packets go through: one of mrd_get_device_list(3), for example an RDMA "
               "device such as mlx5_0 (default: udp, all network interfaces)"},
    {"IFACE", "Offer the addresses of this network interface only, for example eth0 (default: of "
              "all that are up)"},
    {"PATHS", "Paths to each peer that packets are sprayed over, 1 to 256 (default: 32, or as many "
              "as FI_MRD_PORTS has; fewer on RDMA devices)"},
    {"SPRAY", "Which path a packet takes: one of mrd_spray_names(3) (default: adaptive)"},
    {"CC", "Congestion control: one of mrd_cc_names(3) (default: nscc)"},
    {"MTU",
     "Payload bytes of a packet, a multiple of 64 from 256 to 16384 (default: what each path "
     "is found to take)"},
    {"PORTS", "UDP source ports, FIRST-LAST, at most 256: where a firewall permits no others "
              "(default: ephemeral ones)"},
    {"PEER_TIMEOUT", "Milliseconds without an answer after which a peer is unreachable and its "
                     "operations fail, 1 to 86400000 (default: 8000)"},
    {"EAGER_SIZE",
     "Bytes up to which a message is sent at once; of a longer one the receiver reads "
     "the bytes when it has a buffer. A multiple of 64 from 1024 to 65536 (default: "
     "16384)"},
    {"RX_BUFFERS", "Buffers of FI_MRD_EAGER_SIZE that each endpoint has for arriving messages, 16 "
                   "to 65536 (default: 512)"},
    {"KEY_FILE", "File of keys, mrd_keys(5): packets are encrypted and authenticated, and those of "
                 "processes that have other keys, or none, are dropped (default: MRD_KEY_FILE, or "
                 "none)"},
    {"DROP", "For tests: percentage of the received packets to lose on purpose, for example 0.5 "
             "(default: 0)"},
};

void mrd_ofi_params_define(void)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        fi_param_define(&mrd_ofi_provider, known[i].name, FI_PARAM_STRING, "%s", known[i].help);
}

/* NULL: the variable is not set, or empty. */
static const char *value_of(const char *name)
{
    char *value = NULL;

    if (fi_param_get_str(&mrd_ofi_provider, name, &value) || !value || !value[0])
        return NULL;
    return value;
}

static char *copy_of(const char *name)
{
    const char *value = value_of(name);

    return value ? strdup(value) : NULL;
}

static bool scan(const char *text, char **rest, uint64_t *number)
{
    errno = 0;
    *number = strtoull(text, rest, 10);
    return !errno && text[0] >= '0' && text[0] <= '9';
}

/* A multiple of `step` from `least` to `most`. */
static uint32_t number(const char *name, uint32_t least, uint32_t most, uint32_t step,
                       uint32_t otherwise)
{
    const char *text = value_of(name);
    uint64_t n;
    char *rest;

    if (!text)
        return otherwise;
    if (scan(text, &rest, &n) && !*rest && n >= least && n <= most && n % step == 0)
        return (uint32_t)n;
    if (step == 1)
        MRD_OFI_WARN(CORE, "FI_MRD_%s=%s: expected a number from %u to %u\n", name, text, least,
                     most);
    else
        MRD_OFI_WARN(CORE, "FI_MRD_%s=%s: expected a multiple of %u from %u to %u\n", name, text,
                     step, least, most);
    return otherwise;
}

/* Writes `words`, which end with NULL, into `text`: "a, b, c". What does not fit is left out. */
static void join(const char *const *words, char *text, size_t size)
{
    int length = snprintf(text, size, "%s", words[0]);

    for (size_t i = 1; words[i] && (size_t)length < size; i++)
        length += snprintf(text + length, size - (size_t)length, ", %s", words[i]);
}

/* One of `words`, which end with NULL; NULL: none. */
static const char *word(const char *name, const char *const *words)
{
    const char *text = value_of(name);
    char expected[256];

    for (size_t i = 0; text && words[i]; i++)
        if (!strcmp(text, words[i]))
            return words[i];
    join(words, expected, sizeof(expected));
    if (text)
        MRD_OFI_WARN(CORE, "FI_MRD_%s=%s: expected one of %s\n", name, text, expected);
    return NULL;
}

/* FIRST-LAST */
static void parse_ports(struct mrd_ofi_params *p)
{
    const char *text = value_of("PORTS");
    uint64_t first, last = 0;
    char *rest;

    if (!text)
        return;
    if (!scan(text, &rest, &first) || *rest != '-' || !scan(rest + 1, &rest, &last) || *rest ||
        !first || last < first || last > UINT16_MAX || last - first >= PATHS_MAX) {
        MRD_OFI_WARN(CORE, "FI_MRD_PORTS=%s: expected FIRST-LAST, at most %d ports\n", text,
                     PATHS_MAX);
        return;
    }
    p->ports = malloc((last - first + 1) * sizeof(*p->ports));
    if (!p->ports)
        return;
    p->num_ports = (uint32_t)(last - first + 1);
    for (uint32_t i = 0; i < p->num_ports; i++)
        p->ports[i] = (uint16_t)(first + i);
}

/* A percentage with at most four decimals, in parts per million; a locale changes nothing. */
static bool scan_percent(const char *text, uint64_t *ppm)
{
    uint64_t whole;
    uint32_t unit = PERCENT_PPM;
    char *rest;

    if (!scan(text, &rest, &whole) || whole > 100)
        return false;
    *ppm = whole * PERCENT_PPM;
    if (*rest == '.')
        rest++;
    for (; *rest >= '0' && *rest <= '9' && unit > 1; rest++) {
        unit /= 10;
        *ppm += (uint64_t)(*rest - '0') * unit;
    }
    return !*rest && *ppm <= 100 * PERCENT_PPM;
}

static uint32_t parse_drop(void)
{
    const char *text = value_of("DROP");
    uint64_t ppm = 0;

    if (!text || scan_percent(text, &ppm))
        return (uint32_t)ppm;
    MRD_OFI_WARN(CORE, "FI_MRD_DROP=%s: expected a percentage, for example 0.5\n", text);
    return 0;
}

void mrd_ofi_params_parse(struct mrd_ofi_params *p)
{
    *p = (struct mrd_ofi_params){.device = copy_of("DEVICE"),
                                 .interface = copy_of("IFACE"),
                                 .key_file = copy_of("KEY_FILE")};
    p->spray = word("SPRAY", mrd_spray_names());
    p->cc = word("CC", mrd_cc_names());
    p->paths = number("PATHS", 1, PATHS_MAX, 1, 0);
    p->mtu = number("MTU", MTU_MIN, MTU_MAX, PAYLOAD_STEP, 0);
    p->peer_timeout_ns = number("PEER_TIMEOUT", 1, TIMEOUT_MS_MAX, 1, 0) * MSEC_NS;
    p->eager_bytes = number("EAGER_SIZE", EAGER_MIN, EAGER_MAX, PAYLOAD_STEP, EAGER_BYTES);
    p->rx_buffers = number("RX_BUFFERS", RX_BUFFERS_MIN, RX_BUFFERS_MAX, 1, RX_BUFFERS);
    parse_ports(p);
    if (p->num_ports && p->paths > p->num_ports) {
        MRD_OFI_WARN(CORE, "FI_MRD_PATHS=%u: FI_MRD_PORTS has only %u\n", p->paths, p->num_ports);
        p->paths = p->num_ports;
    }
    p->drop_ppm = parse_drop();
}

static void read_once(void)
{
    mrd_ofi_params_parse(&mrd_ofi_params);
    mrd_ofi_log_forward();
}

void mrd_ofi_params_read(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_once);
}

void mrd_ofi_params_free(struct mrd_ofi_params *p)
{
    free((char *)(uintptr_t)p->device);
    free((char *)(uintptr_t)p->interface);
    free((char *)(uintptr_t)p->key_file);
    free(p->ports);
    *p = (struct mrd_ofi_params){0};
}
