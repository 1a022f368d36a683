/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests: what each is called, and what kind it is of. */
#ifndef MRD_PERF_TEST_H
#define MRD_PERF_TEST_H

#include <stdbool.h>

enum perf_test {
    PERF_SEND_BW = 0,
    PERF_SEND_LAT,
    PERF_WRITE_BW,
    PERF_WRITE_LAT,
    PERF_READ_BW,
    PERF_READ_LAT,
    PERF_ATOMIC_BW,
    PERF_ATOMIC_LAT,
    PERF_TESTS,
};

const char *perf_test_name(enum perf_test test);
/* 0, or -ENOENT. */
int perf_test_find(const char *name, enum perf_test *test);
/* "send_bw, send_lat, ..." */
const char *perf_test_names(void);
bool perf_test_is_lat(enum perf_test test);
bool perf_test_is_write(enum perf_test test);
/* Fetch-and-adds of 1 to one word of the server's memory. */
bool perf_test_is_atomic(enum perf_test test);
/* Reads and atomics: the server's memory answers, and the client alone has completions. */
bool perf_test_is_request(enum perf_test test);

#endif
