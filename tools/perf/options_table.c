/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/seal.h"
#include "tools/perf/options.h"
#include "tools/perf/transport.h"

enum {
    GID_INDEX_MAX = 65535,
    TEST = 1 << PERF_MODE_TEST,
    COMPARE = 1 << PERF_MODE_COMPARE,
    DOCTOR = 1 << PERF_MODE_DOCTOR,
    STATE = 1 << PERF_MODE_STATE,
    SCALE = 1 << PERF_MODE_SCALE,
    KEYGEN = 1 << PERF_MODE_KEYGEN,
    ALL = TEST | COMPARE | DOCTOR | STATE | SCALE,
    RUNS = ALL & ~DOCTOR, /* which chooses the parameters of its runs */
};

_Static_assert(PERF_PORTS_MAX == 256 && PERF_TRANSPORTS_MAX == 8, "the rows below say so");

/* ------------------------------------------------------------------- arguments of our own forms */

static bool is_in(const uint16_t *list, unsigned count, uint64_t value)
{
    for (unsigned i = 0; i < count; i++) {
        if (list[i] == value)
            return true;
    }
    return false;
}

static bool scan_whole(const struct option_row *row, const char **text, uint64_t *value)
{
    long double number;

    if (!option_scan(text, &number) || number != floorl(number) || number < row->low ||
        number > row->high)
        return false;
    *value = (uint64_t)number;
    return true;
}

/* "3" or "0,1", and where ranges are allowed "5000,5004,5100-5103": distinct numbers. */
static int take_list(const struct option_value *v, bool ranges, unsigned *count)
{
    uint16_t *list = (uint16_t *)(void *)((char *)v->to + v->row->offset);
    const char *text = v->text;
    uint64_t first, last;

    for (*count = 0;; text++) {
        if (!scan_whole(v->row, &text, &first))
            return -EINVAL;
        last = first;
        if (ranges && *text == '-' && (text++, !scan_whole(v->row, &text, &last)))
            return -EINVAL;
        if (first > last)
            return -EINVAL;
        for (; first <= last; first++) {
            if (*count == v->row->bytes / sizeof(list[0]) || (ranges && is_in(list, *count, first)))
                return -EINVAL;
            list[(*count)++] = (uint16_t)first;
        }
        if (*text != ',')
            return *text == '\0' ? 0 : -EINVAL;
    }
}

static int take_ports(const struct option_value *v)
{
    return take_list(v, true, &((struct perf_options *)v->to)->num_source_ports);
}

static int take_cpus(const struct option_value *v)
{
    return take_list(v, false, &((struct perf_options *)v->to)->num_cpus);
}

bool perf_options_add_transport(struct perf_options *o, const char *name, size_t len)
{
    if (o->num_transports == PERF_TRANSPORTS_MAX || len == 0 || len >= PERF_NAME_BYTES)
        return false;
    snprintf(o->transports[o->num_transports++], PERF_NAME_BYTES, "%.*s", (int)len, name);
    return true;
}

/* "a,b,c" */
static int take_transports(const struct option_value *v)
{
    struct perf_options *o = v->to;
    size_t len = 0;

    o->num_transports = 0;
    for (const char *text = v->text;; text += len + 1) {
        len = strcspn(text, ",");
        if (!perf_options_add_transport(o, text, len))
            return -EINVAL;
        if (text[len] == '\0')
            return 0;
    }
}

/* A device, or with --local the server's and the client's. */
static int take_device(const struct option_value *v)
{
    struct perf_options *o = v->to;
    size_t first = strcspn(v->text, ",");
    const char *second = v->text[first] ? v->text + first + 1 : v->text;

    o->two_devices = v->text[first] == ',';
    if (first == 0 || first >= sizeof(o->server_device) || !*second ||
        strlen(second) >= v->row->bytes)
        return -EINVAL;
    snprintf(o->server_device, sizeof(o->server_device), "%.*s", (int)first, v->text);
    strcpy(o->device, second);
    return 0;
}

static int take_order(const struct option_value *v)
{
    bool ordered = strcmp(v->text, "msg") == 0;

    *(bool *)((char *)v->to + v->row->offset) = ordered;
    return ordered || strcmp(v->text, "none") == 0 ? 0 : -EINVAL;
}

/* ------------------------------------------------------------------------------------ the table */

const char *const perf_cipher_names[] = {"aes-128-gcm", "aes-256-gcm", "chacha20-poly1305", NULL};

#define IN(member) OPTION_MEMBER(struct perf_options, member)

static const char *const entropies[] = {"auto", "ah", "qp", "qpair", NULL};
static const char *const waits[] = {"auto", "spin", "sleep", NULL};
static const char device_expected[] = "a device, or with --local two of them, apart by a comma";

static const struct option_row rows[] = {
    {"size", 's', OPTION_BYTES, IN(params.size_bytes), 0, MRD_MESSAGE_BYTES_MAX, "SIZE",
     .help = "bytes a message, with K, M or G (bw: 65536, lat: 2)", .modes = RUNS,
     .heading = "As in perftest"},
    {"all", 'a', OPTION_FLAG, IN(all_sizes), 0, 0, NULL, .help = "sizes 2^1 .. 2^23",
     .modes = TEST},
    {"iters", 'n', OPTION_COUNT, IN(params.iterations), PERF_ITERATIONS_MIN, INT64_MAX, "N",
     .help = "messages, or exchanges (default: enough for the size)",
     .modes = TEST | COMPARE | STATE},
    {"duration", 'D', OPTION_COUNT, IN(params.duration_s), 1, PERF_DURATION_S_MAX, "S",
     .help = "run for S seconds instead", .modes = RUNS},
    {"run_infinitely", 0, OPTION_FLAG, IN(params.run_infinitely), 0, 0, NULL,
     .help = "run until SIGINT or SIGTERM, with a line each second", .modes = TEST},
    {"bidirectional", 'b', OPTION_FLAG, IN(params.bidirectional), 0, 0, NULL,
     .help = "both ends send at once, and the sum is reported (bandwidth only)", .modes = RUNS},
    {"events", 'e', OPTION_FLAG, IN(params.events), 0, 0, NULL,
     .help = "sleep on completion channels instead of polling", .modes = RUNS},
    {"tx-depth", 't', OPTION_COUNT, IN(params.tx_depth), 1, PERF_DEPTH_MAX, "N",
     .help = "messages outstanding a QP (128; fewer from 64 KiB on)", .modes = RUNS},
    {"rx-depth", 'r', OPTION_COUNT, IN(params.rx_depth), 1, PERF_DEPTH_MAX, "N",
     .help = "receives posted a QP (512)", .modes = RUNS},
    {"outs", 'o', OPTION_COUNT, IN(params.outs), 1, PERF_DEPTH_MAX, "N",
     .help = "reads and atomics outstanding a QP (as -t; rc: the device's most)", .modes = RUNS},
    {"qp", 'q', OPTION_COUNT, IN(params.qps), 1, PERF_QPS_MAX, "N",
     .help = "queue pairs, for bandwidth", .value = "1", .modes = RUNS},
    {"port", 'p', OPTION_COUNT, IN(port), 1, UINT16_MAX, "PORT",
     .help = "of the server: TCP for control, and its UDP receive port", .value = "4793"},
    {"ib-dev", 'd', OPTION_OTHER, IN(device), 0, 0, "DEVICE",
     .help = "RDMA device: its transports, mrd-ibv by default; or udp", .expected = device_expected,
     .take = take_device},
    {"device", 0, OPTION_OTHER, IN(device), 0, 0, "DEVICE", .help = "as --ib-dev",
     .expected = device_expected, .take = take_device},
    {"ib-port", 'i', OPTION_COUNT, IN(ib_port), 1, UINT8_MAX, "N",
     .help = "port of the RDMA device (the first active one)", .modes = RUNS},
    {"gid-index", 'x', OPTION_COUNT, IN(gid_index), 0, GID_INDEX_MAX, "N",
     .help = "GID of that port (RoCEv2, of an IPv4 address if there is one)", .modes = RUNS},
    {"mtu", 'm', OPTION_COUNT, IN(params.mtu), 64, PERF_MTU_MAX, "BYTES",
     .help = "sockets: payload a packet, multiple of 64; RDMA: path MTU, 256 .. 4096",
     .modes = RUNS},
    {"inline_size", 'I', OPTION_COUNT, IN(params.inline_bytes), 0, MRD_INLINE_BYTES_MAX, "N",
     .help = "messages up to N bytes are sent inline (bw: 0, lat: 220)", .modes = RUNS},
    {"cq-mod", 'Q', OPTION_COUNT, IN(params.cq_mod), 1, PERF_DEPTH_MAX, "N",
     .help = "a completion for every Nth message", .modes = RUNS},
    {"post_list", 'l', OPTION_COUNT, IN(params.post_list), 1, PERF_POST_LIST_MAX, "N",
     .help = "post work requests in linked lists of N (bandwidth only)", .modes = RUNS},
    {"write_with_imm", 0, OPTION_FLAG, IN(params.write_with_imm), 0, 0, NULL,
     .help = "each write ends with an immediate, which takes a receive; "
             "scale: write so, do not send",
     .modes = RUNS},
    {"report-histogram", 'H', OPTION_FLAG, IN(params.histogram), 0, 0, NULL,
     .help = "all latencies, sorted", .modes = RUNS},
    {"report-unsorted", 'U', OPTION_FLAG, IN(params.unsorted), 0, 0, NULL,
     .help = "all latencies, in the order measured", .modes = RUNS},
    {"CPU-freq", 'F', OPTION_FLAG, IN(quiet_cpufreq), 0, 0, NULL,
     .help = "no warning about CPU frequency scaling"},
    {"report_gbits", 0, OPTION_FLAG, IN(gbits), 0, 0, NULL,
     .help = "Gbit/s in the table instead of MiB/s"},
    {"out_json", 0, OPTION_FLAG, IN(out_json), 0, 0, NULL,
     .help = "JSON on stdout, the table on stderr"},
    {"out_json_file", 0, OPTION_TEXT, IN(out_json_file), 0, 0, "FILE", .help = "JSON into a file"},
    {"ipv6", '6', OPTION_FLAG, IN(ipv6), 0, 0, NULL, .help = "use IPv6"},
    {"help", 'h', OPTION_STOP, 0, 0, PERF_PARSE_HELP, 0, NULL, .help = "print this"},
    {"version", 'V', OPTION_STOP, 0, 0, PERF_PARSE_VERSION, 0, NULL, .help = "print the version"},

    {"transport", 0, OPTION_CHOICE, IN(params.transport), 0, 0, "NAME", .help = "",
     .value = "mrd-udp", .modes = TEST, .heading = "Transport",
     .list_values = perf_transport_names},
    {"transports", 0, OPTION_OTHER, IN(transports), 0, 0, "A,B,...", .help = "these in turn",
     .modes = COMPARE | STATE, .expected = "a list of up to 8 names", .take = take_transports},
    {"repeat", 0, OPTION_COUNT, IN(repeat), 1, PERF_REPEAT_MAX, "N",
     .help = "runs of each transport", .value = "5", .modes = COMPARE},
    {"paths", 0, OPTION_COUNT, IN(params.paths), 1, PERF_PORTS_MAX, "N",
     .help = "paths, that is source ports, to spray over", .modes = RUNS},
    {"source-ports", 0, OPTION_OTHER, IN(source_ports), 1, UINT16_MAX, "LIST",
     .help = "these ports: FIRST-LAST, or a list", .modes = TEST | COMPARE | STATE,
     .expected = "FIRST-LAST or a list of up to 256 distinct ports", .take = take_ports},
    {"spray", 0, OPTION_CHOICE, IN(params.spray), 0, 0, "POLICY", .help = "", .modes = RUNS,
     .list_values = mrd_spray_names},
    {"cc", 0, OPTION_CHOICE, IN(params.cc), 0, 0, "NAME", .help = "", .modes = RUNS,
     .list_values = mrd_cc_names},
    {"entropy", 0, OPTION_CHOICE, IN(params.entropy), 0, 0, "SOURCE", .help = "of mrd-ibv's paths",
     .modes = RUNS, .values = entropies},
    {"order", 0, OPTION_OTHER, IN(params.ordered), 0, 0, "none|msg",
     .help = "messages are delivered in any order, or in the order posted", .modes = RUNS,
     .expected = "none or msg", .take = take_order},
    {"verify", 0, OPTION_FLAG, IN(params.verify), 0, 0, NULL,
     .help = "check every byte of every message", .modes = RUNS},
    {"drop", 0, OPTION_SHARE, IN(params.drop_ppm), 0, 0, "P",
     .help = "lose a share P of received packets on purpose, at both ends", .modes = RUNS},
    {"seed", 0, OPTION_COUNT, IN(params.seed), 0, UINT64_MAX, "N",
     .help = "of message contents and losses", .value = "1", .modes = RUNS},

    {"local", 0, OPTION_FLAG, IN(local), 0, 0, NULL,
     .help = "both ends here, over loopback, each on its own core; "
             "-d A,B: the server over RDMA device A, the client over B",
     .modes = TEST | COMPARE | DOCTOR, .heading = "Where"},
    {"bind", 0, OPTION_OTHER, IN(cpus), 0, CPU_SETSIZE - 1, "CPU[,CPU]",
     .help = "cores of the client and the server", .expected = "CPU or CPU,CPU", .take = take_cpus},
    {"bind-address", 0, OPTION_TEXT, IN(bind_address), 0, 0, "A", .help = "local address"},
    {"key-file", 0, OPTION_TEXT, IN(key_file), 0, 0, "FILE",
     .help = "of keys, one at each end: packets of mrd are sealed"},
    {"forever", 0, OPTION_FLAG, IN(forever), 0, 0, NULL,
     .help = "the server goes on after its first client", .modes = TEST | DOCTOR},
    {"interval", 0, OPTION_COUNT, IN(params.interval_ms), 1, PERF_INTERVAL_MS_MAX, "MS",
     .help = "of the samples that the receiver takes", .value = "10", .modes = RUNS},
    {"wait", 0, OPTION_CHOICE, IN(params.wait), 0, 0, "POLICY",
     .help = "for packets, in bandwidth tests over sockets; auto sleeps where others want the core",
     .value = "auto", .modes = RUNS, .values = waits},
    {"threads", 0, OPTION_COUNT, IN(params.threads), 1, PERF_THREADS_MAX, "N",
     .help = "of each end, each with its QP and CQ on one context, for bandwidth", .value = "1",
     .modes = RUNS},
    {"peers", 0, OPTION_COUNT, IN(peers), PERF_PEERS_MIN, PERF_PEERS_MAX, "N",
     .help = "how many to make", .value = "1000", .modes = STATE},
    {"contexts", 0, OPTION_FLAG, IN(scale_contexts), 0, 0, NULL,
     .help = "each peer is a context of its own, at most 256", .modes = SCALE},
    {"id", 0, OPTION_COUNT, IN(keygen.id), 0, MRD_SEAL_KEY_ID_MAX, "N",
     .help = "of the key; with --add by default the next one", .value = "1", .modes = KEYGEN},
    {"cipher", 0, OPTION_CHOICE, IN(keygen.cipher), 0, 0, "NAME", .help = "",
     .value = "aes-128-gcm", .modes = KEYGEN, .values = perf_cipher_names},
    {"add", 0, OPTION_FLAG, IN(keygen.add), 0, 0, NULL,
     .help = "a new first key into the file; its former first one becomes the second",
     .modes = KEYGEN},
    {0},
};

static const char *const modes[] = {"TEST", "compare", "doctor", "state", "scale", "keygen", NULL};

const struct option_table perf_option_table = {
    .rows = rows,
    .modes = modes,
    .explain = perf_explain_perftest,
};

void perf_options_init(struct perf_options *o)
{
    *o = (struct perf_options){.gid_index = -1, .params.inline_bytes = -1};
    option_defaults(&perf_option_table, o);
}
