/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adaptive: the GOOD path with the least out * U + q; of equal ones the next in turn.
 *
 * `out` is the number of our packets in flight on the path: join the shortest queue. It is known at
 * once and concerns only this sender, so senders cannot herd. `q` is the smoothed one-way queue
 * delay by the peer's stamps; it breaks ties between paths of equal `out`. It is a round trip old,
 * and senders that follow it alone all chase the path that was empty then. (U = unit_rtts RTTs;
 * with 0.05 a permutation took 27% longer than a lone flow, with 0.3 10%.) The RTT is the base RTT
 * and the mean of `q`: behind a queue that all paths share, `q` differs by when it was sampled, and
 * a U of base RTTs would send a window's packets to whichever path was seen empty.
 *
 * In turn, not at random: where each path has a token bucket of its own, as flows have in clouds,
 * all get the same. At 32 buckets of 1 Gb/s and 100 Gb/s of links, random ties reached 0.70 of the
 * sum, and turns 0.94.
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
    s->next = mrd_rng_below(rng, paths->num);
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
    float rtt_ns = base_ns + (paths->q_avg_ns > 0 ? paths->q_avg_ns : 0);

    return (struct reckoning){
        /* Before the first RTT sample there is no delay either: any unit will do. */
        .unit_ns = args->base_rtt_ns ? (float)tune->unit_rtts * rtt_ns : 1,
        .fade = args->base_rtt_ns ? 1 / ((float)tune->fade_rtts * base_ns) : 1,
        .noise_ns = (float)tune->noise_rtts * rtt_ns,
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

/* The best of the paths looked at so far. */
struct choice {
    float score_ns, limit_ns;
    int index; /* -1: none was GOOD */
};

/* Looks at paths first..end - 1. Of equal ones the first counts. */
static void look(const struct mrd_paths *paths, const struct mrd_spray_args *args,
                 const struct reckoning *r, uint32_t first, uint32_t end, struct choice *best)
{
    for (uint32_t i = first; i < end; i++) {
        const struct mrd_path_load *load = &paths->load[i];
        float score_ns = (float)(int32_t)load->out_packets * r->unit_ns * load->weight;
        float delay_ns = load->q_ns;

        /* What is cheap to tell comes first: it leaves few paths whose delay is to be divided. */
        if (score_ns >= best->score_ns)
            continue;
        if (delay_ns < 0)
            delay_ns = r->average_ns;
        if (delay_ns > r->average_ns) {
            if (score_ns + r->average_ns > best->limit_ns)
                continue;
            delay_ns = faded_ns(load, r, args->now_ns);
        }
        if (score_ns + delay_ns > best->limit_ns)
            continue;
        score_ns += steps(delay_ns, r->noise_ns);
        /* While all paths are GOOD, only the loads are read: fewer cache lines. */
        if (score_ns >= best->score_ns || (int)i == args->avoid ||
            (paths->num_out && !mrd_path_is_good(&paths->path[i])))
            continue;
        *best = (struct choice){score_ns, score_limit_ns(score_ns, r->noise_ns), (int)i};
    }
}

static uint32_t adaptive_pick(struct mrd_spray *s, const struct mrd_paths *paths,
                              const struct mrd_spray_args *args)
{
    const struct reckoning r = reckon(paths, args);
    struct choice best = {FLT_MAX, FLT_MAX, -1};
    uint32_t start = s->next < paths->num ? s->next : 0, index;

    if (args->blind) {
        index = mrd_spray_walk(paths, args, start);
    } else {
        look(paths, args, &r, start, paths->num, &best);
        look(paths, args, &r, 0, start, &best);
        index = best.index >= 0 ? (uint32_t)best.index : mrd_spray_last_resort(paths, args);
    }
    s->next = index + 1;
    return index;
}

const struct mrd_spray_ops mrd_spray_adaptive = {
    .name = "adaptive",
    .init = adaptive_init,
    .pick = adaptive_pick,
};
