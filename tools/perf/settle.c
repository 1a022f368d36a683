/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/perf.h"

#include <errno.h>
#include <string.h>

/*
 * The bytes that a bandwidth run moves unless -n or -D is given: enough to measure, a few seconds
 * at most.
 */
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
