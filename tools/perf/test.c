/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/test.h"

#include <errno.h>
#include <string.h>

static const char *const test_names[PERF_TESTS] = {
    [PERF_SEND_BW] = "send_bw",     [PERF_SEND_LAT] = "send_lat",     [PERF_WRITE_BW] = "write_bw",
    [PERF_WRITE_LAT] = "write_lat", [PERF_READ_BW] = "read_bw",       [PERF_READ_LAT] = "read_lat",
    [PERF_ATOMIC_BW] = "atomic_bw", [PERF_ATOMIC_LAT] = "atomic_lat",
};

const char *perf_test_name(enum perf_test test)
{
    return test_names[test];
}

const char *perf_test_names(void)
{
    return "send_bw, send_lat, write_bw, write_lat, read_bw, read_lat, atomic_bw, atomic_lat";
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
    return test == PERF_SEND_LAT || test == PERF_WRITE_LAT || test == PERF_READ_LAT ||
           test == PERF_ATOMIC_LAT;
}

bool perf_test_is_write(enum perf_test test)
{
    return test == PERF_WRITE_BW || test == PERF_WRITE_LAT;
}

bool perf_test_is_atomic(enum perf_test test)
{
    return test == PERF_ATOMIC_BW || test == PERF_ATOMIC_LAT;
}

bool perf_test_is_request(enum perf_test test)
{
    return test == PERF_READ_BW || test == PERF_READ_LAT || perf_test_is_atomic(test);
}
