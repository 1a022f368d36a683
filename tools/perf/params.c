/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/perf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "tools/perf/ibv_device.h"
#include "tools/perf/ibv_mtu.h"
#include "tools/perf/transport.h"

/* How much a bandwidth run moves unless -n or -D says: enough to measure, not more than a few seconds. */
#define BW_BYTES_MIN (256ull << 20)
#define BW_BYTES_MAX (5000ull << 20)
enum {
    BW_ITERATIONS = 5000,
    BW_ITERATIONS_MIN = 8,
    BW_ITERATIONS_MAX = 1000 * 1000,
    LAT_ITERATIONS = 10000,
    LAT_ITERATIONS_MIN = 20,
    LAT_BYTES_MAX = 512 << 20,
    LAT_WARMUP_MAX = 1000,
    TX_DEPTH = 128,
    TX_DEPTH_LARGE_MIN = 4,
    RX_DEPTH = 512,
    LARGE_BYTES = 64 << 10,
    LARGE_IN_FLIGHT_BYTES = 8 << 20,
    CQ_MOD_SIZE_LIMIT = 8192, /* larger messages are signaled one by one */
    LAT_INLINE_BYTES = 220,
    LAT_SLOTS = 4,
};

static const char *const test_names[PERF_TESTS] = {"send_bw", "send_lat", "write_bw", "write_lat"};

const char *perf_test_name(enum perf_test test)
{
    return test_names[test];
}

int perf_test_find(const char *name, enum perf_test *test)
{
    for (unsigned i = 0; i < PERF_TESTS; i++) {
        if (strcmp(name, test_names[i]) == 0) {
            *test = (enum perf_test)i;
            return 0;
        }
    }
    return -ENOENT;
}

bool perf_test_is_lat(enum perf_test test)
{
    return test == PERF_SEND_LAT || test == PERF_WRITE_LAT;
}

bool perf_test_is_write(enum perf_test test)
{
    return test == PERF_WRITE_BW || test == PERF_WRITE_LAT;
}

void perf_params_init(struct perf_params *params)
{
    *params = (struct perf_params){
        .transport = "mrd-udp",
        .qps = 1,
        .inline_bytes = -1,
        .seed = 1,
        .interval_ms = 10,
        .wait = "auto",
    };
}

static uint64_t clamp_u64(uint64_t value, uint64_t low, uint64_t high)
{
    if (value < low)
        return low;
    return value > high ? high : value;
}

static uint64_t default_iterations(enum perf_test test, uint64_t size)
{
    if (size == 0)
        size = 1;
    if (perf_test_is_lat(test))
        return clamp_u64(LAT_BYTES_MAX / size, LAT_ITERATIONS_MIN, LAT_ITERATIONS);
    if (BW_ITERATIONS * size < BW_BYTES_MIN)
        return clamp_u64(BW_BYTES_MIN / size, BW_ITERATIONS, BW_ITERATIONS_MAX);
    return clamp_u64(BW_BYTES_MAX / size, BW_ITERATIONS_MIN, BW_ITERATIONS);
}

static void settle_lat(struct perf_params *p)
{
    p->tx_depth = p->tx_depth ? p->tx_depth : 1;
    p->slots = LAT_SLOTS;
    p->warmup =
        (uint32_t)clamp_u64(p->duration_s ? LAT_WARMUP_MAX : p->iterations / 10, 1, LAT_WARMUP_MAX);
    if (p->inline_bytes < 0)
        p->inline_bytes = LAT_INLINE_BYTES;
    p->cq_mod = 1;
}

static void settle_bw(struct perf_params *p)
{
    if (p->tx_depth == 0 && p->size_bytes >= LARGE_BYTES)
        p->tx_depth = (uint32_t)clamp_u64(LARGE_IN_FLIGHT_BYTES / p->size_bytes, TX_DEPTH_LARGE_MIN,
                                          TX_DEPTH);
    if (p->tx_depth == 0)
        p->tx_depth = TX_DEPTH;
    /* The slots are shared by the QPs: a verified run has that many messages in flight in all. */
    uint64_t most = PERF_VERIFY_MEMORY_BYTES / (p->size_bytes ? p->size_bytes : 1);
    p->slots =
        (uint32_t)clamp_u64((uint64_t)p->tx_depth * p->qps, 1, clamp_u64(most, 1, PERF_DEPTH_MAX));
    if (p->inline_bytes < 0)
        p->inline_bytes = 0;
    if (p->cq_mod == 0)
        p->cq_mod =
            p->size_bytes > CQ_MOD_SIZE_LIMIT ? 1 : (uint32_t)clamp_u64(p->tx_depth / 4, 1, 100);
    if (p->cq_mod > p->tx_depth)
        p->cq_mod = p->tx_depth;
}

void perf_params_settle(struct perf_params *p)
{
    if (p->duration_s)
        p->iterations = 0;
    else if (p->iterations == 0)
        p->iterations = default_iterations(p->test, p->size_bytes);
    if (p->rx_depth == 0)
        p->rx_depth = RX_DEPTH;
    if (perf_test_is_lat(p->test))
        settle_lat(p);
    else
        settle_bw(p);
}

static int check_name(const char *name, const char *const *known, const char *what, char *error,
                      size_t len)
{
    char list[128] = "";

    if (name[0] == '\0')
        return 0;
    for (unsigned i = 0; known[i]; i++) {
        if (strcmp(name, known[i]) == 0)
            return 0;
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", known[i]);
    }
    snprintf(error, len, "%s '%s' is not known; there is %s", what, name, list);
    return -EINVAL;
}

static int check_range(uint64_t value, uint64_t low, uint64_t high, const char *what, char *error,
                       size_t len)
{
    if (value >= low && value <= high)
        return 0;
    snprintf(error, len, "%s %llu is not within %llu..%llu", what, (unsigned long long)value,
             (unsigned long long)low, (unsigned long long)high);
    return -EINVAL;
}

/* What must hold between parameters that are each in range. */
static int check_together(const struct perf_params *p, char *error, size_t len)
{
    const struct perf_transport_ops *ops = perf_transport_find(p->transport);

    if (!ops) {
        snprintf(error, len, "transport '%s' is not known; there is %s", p->transport,
                 perf_transport_names());
        return -EINVAL;
    }
    if (ops->rdma && perf_ibv_missing()) {
        snprintf(error, len, "transport '%s' is not offered: %s", p->transport, perf_ibv_missing());
        return -EINVAL;
    }
    if (perf_test_is_lat(p->test) && p->qps != 1) {
        snprintf(error, len, "latency tests use one QP: -q is for send_bw and write_bw");
        return -EINVAL;
    }
    if (ops->raw && p->size_bytes == 0) {
        snprintf(error, len, "%s cannot send messages of 0 bytes: use -s 1 or more", p->transport);
        return -EINVAL;
    }
    if (p->mtu && ops->rdma && !perf_ibv_mtu_valid(p->mtu)) {
        snprintf(error, len, "-m %u is no path MTU of %s: there is 256, 512, 1024, 2048, 4096",
                 p->mtu, p->transport);
        return -EINVAL;
    }
    if (p->mtu % 64) {
        snprintf(error, len, "-m %u is not a multiple of 64", p->mtu);
        return -EINVAL;
    }
    return 0;
}

int perf_params_check(const struct perf_params *p, char *error, size_t len)
{
    static const char *const sprays[] = {"single", "rr", "random", "reps", "adaptive", NULL};
    static const char *const ccs[] = {"nscc", "dctcp", "swift", "none", NULL};
    static const char *const entropies[] = {"auto", "ah", "qp", "qpair", NULL};
    static const char *const waits[] = {"auto", "spin", "sleep", NULL};
    const struct {
        const char *what;
        uint64_t value, low, high;
    } ranges[] = {
        {"test", p->test, 0, PERF_TESTS - 1},
        {"size", p->size_bytes, 0, MRD_MESSAGE_BYTES_MAX},
        {"number of iterations", p->iterations ? p->iterations : PERF_ITERATIONS_MIN,
         PERF_ITERATIONS_MIN, INT64_MAX},
        {"duration", p->duration_s, 0, PERF_DURATION_S_MAX},
        {"tx depth", p->tx_depth, 0, PERF_DEPTH_MAX},
        {"rx depth", p->rx_depth, 0, PERF_DEPTH_MAX},
        {"number of QPs", p->qps, 1, PERF_QPS_MAX},
        {"MTU", p->mtu, 0, PERF_MTU_MAX},
        {"CQ moderation", p->cq_mod, 0, PERF_DEPTH_MAX},
        {"inline size", p->inline_bytes < 0 ? 0 : (uint64_t)p->inline_bytes, 0,
         MRD_INLINE_BYTES_MAX},
        {"number of paths", p->paths, 0, PERF_PORTS_MAX},
        {"dropped share in parts per million", p->drop_ppm, 0, 999999},
        {"interval in ms", p->interval_ms, 1, PERF_INTERVAL_MS_MAX},
    };

    for (unsigned i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        int rc =
            check_range(ranges[i].value, ranges[i].low, ranges[i].high, ranges[i].what, error, len);
        if (rc)
            return rc;
    }
    if (check_name(p->spray, sprays, "spray policy", error, len) ||
        check_name(p->cc, ccs, "congestion control", error, len) ||
        check_name(p->entropy, entropies, "entropy", error, len) ||
        check_name(p->wait, waits, "way to wait", error, len))
        return -EINVAL;
    return check_together(p, error, len);
}

uint64_t perf_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * PERF_SEC_NS + (uint64_t)ts.tv_nsec;
}

double perf_cpu_s(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}
