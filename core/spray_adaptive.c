/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adaptive: the GOOD path with the least out * U + q, ties at random.
 *
 * `out` is the number of our packets in flight on the path: join the shortest queue. It is known at
 * once and concerns only this sender, so senders cannot herd. `q` is the smoothed one-way queue
 * delay by the peer's stamps; it breaks ties between paths of equal `out`. It is a round trip old,
 * and senders that follow it alone all chase the path that was empty then. (U = unit_rtts base
 * RTTs; with 0.05 a permutation took 27% longer than a lone flow, with 0.3 10%.)
 *
 * A longer path holds more packets at the same rate: a packet on it weighs less, and its length is
 * not in `q` (path.h).
 *
 * While no acks arrive, all GOOD paths are equal. Else a dead path, whose packets were declared
 * lost, would have the least `out`, and working paths whose acks were lost would never be tried.
 */
#include <float.h>

#include "core/limits.h"
#include "core/spray.h"

static void adaptive_init(struct mrd_spray *s, const struct mrd_paths *paths, struct mrd_rng *rng)
{
    (void)paths;
    (void)rng;
    s->ops = &mrd_spray_adaptive;
}

/* What a pick reckons with. */
struct reckoning {
    float unit_ns;    /* for each packet in flight */
    float fade;       /* share that a delay above the average loses in a nanosecond */
    float noise_ns;   /* scores are told apart by multiples of it */
    float average_ns; /* stands for a delay that is not known */
};

static struct reckoning reckon(const struct mrd_paths *paths, const struct mrd_spray_args *args)
{
    const struct mrd_tune_adaptive *tune = &args->tune->adaptive;
    float base_ns = (float)args->base_rtt_ns;

    return (struct reckoning){
        /* Before the first RTT sample there is no delay either: any unit will do. */
        .unit_ns = args->base_rtt_ns ? (float)tune->unit_rtts * base_ns : 1,
        .fade = args->base_rtt_ns ? 1 / ((float)tune->fade_rtts * base_ns) : 1,
        .noise_ns = (float)tune->noise_rtts * base_ns,
        .average_ns = paths->q_avg_ns,
    };
}

/* A delay above the average fades into the average: such a path is not chosen, so not sampled. */
static float faded_ns(const struct mrd_path_load *load, const struct reckoning *r, uint64_t now_ns)
{
    float weight = 1 - (float)(int64_t)(now_ns - load->q_at_ns) * r->fade;

    return weight > 0 ? r->average_ns + (load->q_ns - r->average_ns) * weight : r->average_ns;
}

/*
 * Rounds down to multiples of noise_ns: else few paths that seem a little shorter would carry all.
 */
static float steps(float ns, float noise_ns)
{
    return noise_ns > 0 && ns < 1e9f ? (float)(int64_t)(ns / noise_ns) * noise_ns : ns;
}

/*
 * A score that is more than this before its delay is rounded down is above best_ns: steps() takes
 * less than noise_ns off. MARGIN is more than what the rounding of floats takes.
 */
#define MARGIN 1.000001f
static float score_limit_ns(float best_ns, float noise_ns)
{
    return (best_ns + noise_ns) * MARGIN;
}

/* The paths with the least score, into `tied`. Returns how many; 0: none is GOOD. */
static uint32_t least_loaded(const struct mrd_paths *paths, const struct mrd_spray_args *args,
                             uint16_t *tied)
{
    const struct reckoning r = reckon(paths, args);
    const struct mrd_path_load *end = paths->load + paths->num;
    float best_ns = FLT_MAX, limit_ns = FLT_MAX;
    uint32_t ties = 0;

    for (const struct mrd_path_load *load = paths->load; load < end; load++) {
        float score_ns = (float)(int32_t)load->out_packets * r.unit_ns * load->weight;
        float delay_ns = load->q_ns;

        /* What is cheap to tell comes first: it leaves few paths whose delay is to be divided. */
        if (score_ns > best_ns)
            continue;
        if (delay_ns < 0)
            delay_ns = r.average_ns;
        if (delay_ns > r.average_ns) {
            if (score_ns + r.average_ns > limit_ns)
                continue;
            delay_ns = faded_ns(load, &r, args->now_ns);
        }
        if (score_ns + delay_ns > limit_ns)
            continue;
        score_ns += steps(delay_ns, r.noise_ns);
        if (score_ns > best_ns)
            continue;

        uint32_t i = (uint32_t)(load - paths->load);

        /* While all paths are GOOD, only the loads are read: fewer cache lines. */
        if ((int)i == args->avoid || (paths->num_out && !mrd_path_is_good(&paths->path[i])))
            continue;
        if (score_ns < best_ns) {
            ties = 0;
            best_ns = score_ns;
            limit_ns = score_limit_ns(best_ns, r.noise_ns);
        }
        tied[ties++] = (uint16_t)i;
    }
    return ties;
}

/* All GOOD paths, into `tied`. Returns how many. */
static uint32_t good_paths(const struct mrd_paths *paths, const struct mrd_spray_args *args,
                           uint16_t *tied)
{
    uint32_t num = 0;

    for (uint32_t i = 0; i < paths->num; i++) {
        if ((int)i != args->avoid && mrd_path_is_good(&paths->path[i]))
            tied[num++] = (uint16_t)i;
    }
    return num;
}

static uint32_t adaptive_pick(struct mrd_spray *s, const struct mrd_paths *paths,
                              const struct mrd_spray_args *args)
{
    uint16_t tied[MRD_PATHS_MAX];
    uint32_t ties = args->blind ? good_paths(paths, args, tied) : least_loaded(paths, args, tied);

    (void)s;
    if (!ties)
        return mrd_spray_last_resort(paths, args);
    return tied[ties == 1 ? 0 : mrd_rng_below(args->rng, ties)];
}

const struct mrd_spray_ops mrd_spray_adaptive = {
    .name = "adaptive",
    .init = adaptive_init,
    .pick = adaptive_pick,
};
