/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FORWARD_CLOCK_H
#define FORWARD_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC */
static inline uint64_t forward_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

#endif
