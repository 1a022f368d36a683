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

/* A delay above the average fades into the average: such a path is not chosen, so not sampled. */
static float delay_ns(const struct mrd_path_load *load, float average_ns, float fade,
                      const struct mrd_spray_args *args)
{
    if (load->q_ns <= average_ns)
        return load->q_ns >= 0 ? load->q_ns : average_ns;

    float weight = 1 - (float)(int64_t)(args->now_ns - load->q_at_ns) * fade;

    return weight > 0 ? average_ns + (load->q_ns - average_ns) * weight : average_ns;
}

/*
 * Rounds down to multiples of noise_ns: else few paths that seem a little shorter would carry all.
 */
static float steps(float ns, float noise_ns)
{
    return noise_ns > 0 && ns < 1e9f ? (float)(int64_t)(ns / noise_ns) * noise_ns : ns;
}

static uint32_t adaptive_pick(struct mrd_spray *s, const struct mrd_paths *paths,
                              const struct mrd_spray_args *args)
{
    const struct mrd_tune_adaptive *tune = &args->tune->adaptive;
    float base_ns = (float)args->base_rtt_ns;
    /* Before the first RTT sample there is no delay either: any unit will do. */
    float unit_ns = args->base_rtt_ns ? (float)tune->unit_rtts * base_ns : 1;
    float fade = args->base_rtt_ns ? 1 / ((float)tune->fade_rtts * base_ns) : 1;
    float noise_ns = (float)tune->noise_rtts * base_ns;
    float average_ns = paths->q_avg_ns;
    float best_ns = FLT_MAX;
    uint16_t tied[MRD_PATHS_MAX];
    uint32_t ties = 0;

    (void)s;
    for (uint32_t i = 0; i < paths->num; i++) {
        const struct mrd_path_load *load = &paths->load[i];
        float score_ns = 0;

        if (!args->blind) {
            score_ns = (float)(int32_t)load->out_packets * unit_ns * load->weight;
            if (score_ns > best_ns) /* with the delay, which costs more to tell, all the more */
                continue;
            score_ns += steps(delay_ns(load, average_ns, fade, args), noise_ns);
        }
        /* While all paths are GOOD, only the loads are read: fewer cache lines. */
        if (score_ns > best_ns || (int)i == args->avoid ||
            (paths->num_out && !mrd_path_is_good(&paths->path[i])))
            continue;
        if (score_ns < best_ns)
            ties = 0;
        best_ns = score_ns;
        tied[ties++] = (uint16_t)i;
    }
    if (!ties)
        return mrd_spray_last_resort(paths, args);
    return tied[ties == 1 ? 0 : mrd_rng_below(args->rng, ties)];
}

const struct mrd_spray_ops mrd_spray_adaptive = {
    .name = "adaptive",
    .init = adaptive_init,
    .pick = adaptive_pick,
};
