/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Goodput over time, and the effect of a failure on it.
 *
 * simx_goodput_add() with all that has come so far, as often as one looks; then the figures.
 * Between two looks the bytes are taken to come evenly.
 */
#ifndef SIMX_GOODPUT_H
#define SIMX_GOODPUT_H

#include <stdbool.h>
#include <stddef.h>

enum { SIMX_LOOKS_MAX = 16384 };

/* A series; start with all zero. */
struct simx_goodput {
    size_t num;
    double t_us[SIMX_LOOKS_MAX];  /* times of the samples, ascending */
    double bytes[SIMX_LOOKS_MAX]; /* bytes received by then, not descending */
};

/* Returns false if the series is full. */
bool simx_goodput_add(struct simx_goodput *goodput, double t_us, double bytes);

/* Mean rate between two times, cut to the sampled range. NAN: no sample there. */
double simx_goodput_gbps(const struct simx_goodput *goodput, double from_us, double to_us);
/* The longest time after `at_us` in which each step between two looks was slower than `gbps`. */
double simx_goodput_blackout_us(const struct simx_goodput *goodput, double at_us, double gbps);
/* The least rate over a window that begins at `at_us` or later; NAN: none fits. */
double simx_goodput_lowest_gbps(const struct simx_goodput *goodput, double at_us, double window_us);
/*
 * From `at_us` to the end of the first window that is not slower than `gbps` after one that was; 0:
 * none ever was; NAN: none is, or none fits.
 */
double simx_goodput_first_back_us(const struct simx_goodput *goodput, double at_us,
                                  double window_us, double gbps);
/*
 * For good: from `at_us` to the end of the first window since when no window was slower than
 * `gbps`; 0: none ever was; NAN: the last one still is, or none fits.
 */
double simx_goodput_back_us(const struct simx_goodput *goodput, double at_us, double window_us,
                            double gbps);

#endif
