/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/perf/ibv_device.h"
#include "tools/perf/ibv_mtu.h"
#include "tools/perf/transports.h"

static int check_name(const char *name, const char *const *known, const char *what, char *error)
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
    snprintf(error, PERF_ERROR_BYTES, "%s '%s' is not known; there is %s", what, name, list);
    return -EINVAL;
}

static int check_range(uint64_t value, uint64_t low, uint64_t high, const char *what, char *error)
{
    if (value >= low && value <= high)
        return 0;
    snprintf(error, PERF_ERROR_BYTES, "%s %llu is not within %llu..%llu", what,
             (unsigned long long)value, (unsigned long long)low, (unsigned long long)high);
    return -EINVAL;
}

/* What must hold between parameters that are each in range. */
static int check_together(const struct perf_params *p, char *error)
{
    const struct perf_transport_ops *ops = perf_transport_find(p->transport);

    if (!ops) {
        snprintf(error, PERF_ERROR_BYTES, "transport '%s' is not known; there is %s", p->transport,
                 perf_transport_names());
        return -EINVAL;
    }
    if (ops->rdma && perf_ibv_missing()) {
        snprintf(error, PERF_ERROR_BYTES, "transport '%s' is not offered: %s", p->transport,
                 perf_ibv_missing());
        return -EINVAL;
    }
    if (perf_test_is_lat(p->test) && p->qps != 1) {
        snprintf(error, PERF_ERROR_BYTES,
                 "latency tests use one QP: -q is for send_bw and write_bw");
        return -EINVAL;
    }
    if (ops->raw && p->size_bytes == 0) {
        snprintf(error, PERF_ERROR_BYTES, "%s cannot send messages of 0 bytes: use -s 1 or more",
                 p->transport);
        return -EINVAL;
    }
    if (p->mtu && ops->rdma && !perf_ibv_mtu_valid(p->mtu)) {
        snprintf(error, PERF_ERROR_BYTES,
                 "-m %u is no path MTU of %s: there is 256, 512, 1024, 2048, 4096", p->mtu,
                 p->transport);
        return -EINVAL;
    }
    if (p->mtu % 64) {
        snprintf(error, PERF_ERROR_BYTES, "-m %u is not a multiple of 64", p->mtu);
        return -EINVAL;
    }
    return 0;
}

int perf_params_check(const struct perf_params *p, char *error)
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
        int rc = check_range(ranges[i].value, ranges[i].low, ranges[i].high, ranges[i].what, error);
        if (rc)
            return rc;
    }
    if (check_name(p->spray, sprays, "spray policy", error) ||
        check_name(p->cc, ccs, "congestion control", error) ||
        check_name(p->entropy, entropies, "entropy", error) ||
        check_name(p->wait, waits, "way to wait", error))
        return -EINVAL;
    return check_together(p, error);
}
