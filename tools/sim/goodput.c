/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/goodput.h"

#include <math.h>

bool simx_goodput_add(struct simx_goodput *goodput, double t_us, double bytes)
{
    if (goodput->num == SIMX_LOOKS_MAX)
        return false;
    goodput->t_us[goodput->num] = t_us;
    goodput->bytes[goodput->num++] = bytes;
    return true;
}

/* Returns the first sample at `t_us` or later, or `num`. */
static size_t look_at(const struct simx_goodput *g, double t_us)
{
    size_t low = 0, high = g->num;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (g->t_us[middle] < t_us)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Interpolates the bytes at `t_us`, which lies between the first and the last sample. */
static double bytes_by(const struct simx_goodput *g, double t_us)
{
    size_t i = look_at(g, t_us);

    if (i == 0)
        return g->bytes[0];

    double share = (t_us - g->t_us[i - 1]) / (g->t_us[i] - g->t_us[i - 1]);

    return g->bytes[i - 1] + share * (g->bytes[i] - g->bytes[i - 1]);
}

double simx_goodput_gbps(const struct simx_goodput *g, double from_us, double to_us)
{
    if (g->num == 0)
        return NAN;
    from_us = fmax(from_us, g->t_us[0]);
    to_us = fmin(to_us, g->t_us[g->num - 1]);
    if (to_us <= from_us)
        return NAN;
    return (bytes_by(g, to_us) - bytes_by(g, from_us)) * 8 / (to_us - from_us) / 1e3;
}

double simx_goodput_blackout_us(const struct simx_goodput *g, double at_us, double gbps)
{
    double longest = 0, begin = NAN;

    for (size_t i = look_at(g, at_us) + 1; i < g->num; i++) {
        double rate = (g->bytes[i] - g->bytes[i - 1]) * 8 / (g->t_us[i] - g->t_us[i - 1]) / 1e3;

        if (rate >= gbps) {
            begin = NAN;
            continue;
        }
        if (isnan(begin))
            begin = g->t_us[i - 1];
        longest = fmax(longest, g->t_us[i] - begin);
    }
    return longest;
}

/*
 * The first look that ends a window which begins at `at_us` or later. A grid of doubles may miss by
 * a rounding error.
 */
static size_t first_end(const struct simx_goodput *g, double at_us, double window_us)
{
    return look_at(g, at_us + window_us * (1 - 1e-9));
}

double simx_goodput_lowest_gbps(const struct simx_goodput *g, double at_us, double window_us)
{
    double lowest = NAN;

    for (size_t i = first_end(g, at_us, window_us); i < g->num; i++)
        lowest = fmin(lowest, simx_goodput_gbps(g, g->t_us[i] - window_us, g->t_us[i]));
    return lowest;
}

/* Is the window that ends with this sample slower? */
static bool is_slow(const struct simx_goodput *g, size_t end, double window_us, double gbps)
{
    return simx_goodput_gbps(g, g->t_us[end] - window_us, g->t_us[end]) < gbps;
}

double simx_goodput_first_back_us(const struct simx_goodput *g, double at_us, double window_us,
                                  double gbps)
{
    size_t i = first_end(g, at_us, window_us);

    if (i == g->num)
        return NAN;
    while (i < g->num && !is_slow(g, i, window_us, gbps))
        i++;
    if (i == g->num)
        return 0;
    while (i < g->num && is_slow(g, i, window_us, gbps))
        i++;
    return i < g->num ? g->t_us[i] - at_us : NAN;
}

double simx_goodput_back_us(const struct simx_goodput *g, double at_us, double window_us,
                            double gbps)
{
    size_t first = first_end(g, at_us, window_us), i = g->num;

    if (first == g->num)
        return NAN;
    while (i > first && !is_slow(g, i - 1, window_us, gbps))
        i--;
    if (i == g->num)
        return NAN;
    return i == first ? 0 : g->t_us[i] - at_us;
}
