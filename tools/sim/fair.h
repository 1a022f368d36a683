/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How evenly rates are spread: start with all zero, simx_fair_add() each, then the figures.
 */
#ifndef SIMX_FAIR_H
#define SIMX_FAIR_H

#include <math.h>
#include <stdint.h>

struct simx_fair {
    uint32_t num;
    double sum, squares, least, most;
};

static inline void simx_fair_add(struct simx_fair *fair, double rate)
{
    fair->least = fair->num ? fmin(fair->least, rate) : rate;
    fair->most = fair->num ? fmax(fair->most, rate) : rate;
    fair->sum += rate;
    fair->squares += rate * rate;
    fair->num++;
}

/*
 * 1 if all have the same rate, 1 / num if one has all (Jain, Chiu and Hawe, 1984). NAN: nobody has
 * any.
 */
static inline double simx_fair_jain(const struct simx_fair *fair)
{
    return fair->squares > 0 ? fair->sum * fair->sum / (fair->num * fair->squares) : NAN;
}

/* A rate over the mean of all. NAN: nobody has any. */
static inline double simx_fair_over(const struct simx_fair *fair, double rate)
{
    return fair->sum > 0 ? rate * fair->num / fair->sum : NAN;
}

#endif
