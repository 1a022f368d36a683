/* SPDX-License-Identifier: BSD-2-Clause */
/* How long each path is, to be told from the delay of a queue. */
#include <float.h>

#include "core/alloc.h"
#include "core/path.h"

/* Least recent delay of the way back. */
static int64_t back_ns(const struct mrd_paths *paths)
{
    return paths->back_cur < paths->back_prev ? paths->back_cur : paths->back_prev;
}

/*
 * Returns the delay beyond the least RTT, the path's length included. Unsigned arithmetic: the
 * stamps are the peer's.
 */
static int64_t excess_ns(const struct mrd_paths *paths, int64_t delay_ns, uint64_t rtt_min_ns)
{
    return (int64_t)((uint64_t)delay_ns + (uint64_t)back_ns(paths) - rtt_min_ns);
}

/*
 * Sets the weight of a packet in flight on each path. At equal rates a path's packets in flight are
 * proportional to its RTT. The longer the paths are in the mean, the older their delay samples, so
 * the more packets in flight count against them.
 */
static void weigh(struct mrd_paths *paths, uint64_t rtt_min_ns)
{
    float base_ns = (float)rtt_min_ns, mean_ns = 0;

    for (uint32_t i = 0; i < paths->num; i++)
        mean_ns += paths->path[i].excess_ns / (float)paths->num;
    paths->excess_mean_ns = mean_ns;
    mean_ns += base_ns;
    for (uint32_t i = 0; i < paths->num; i++)
        paths->load[i].weight =
            mean_ns > base_ns ? mean_ns / base_ns * mean_ns / (base_ns + paths->path[i].excess_ns)
                              : 1;
}

uint64_t mrd_path_measure_queue_ns(struct mrd_paths *paths, uint32_t index, int64_t delay_ns,
                                   uint64_t rtt_ns, uint64_t rtt_min_ns)
{
    struct mrd_path *path = &paths->path[index];
    int64_t excess = excess_ns(paths, delay_ns, rtt_min_ns);

    if (!paths->back_valid || rtt_ns < rtt_min_ns)
        return 0;
    if (excess < 0)
        excess = 0;
    if ((uint64_t)excess > rtt_ns - rtt_min_ns)
        excess = (int64_t)(rtt_ns - rtt_min_ns);
    if (path->excess_ns > 0 && (float)excess < path->excess_ns) {
        bool is_much = (float)excess < path->excess_ns * (1 - (float)paths->tune->q_gain);

        path->excess_ns = (float)excess;
        if (is_much)
            weigh(paths, rtt_min_ns);
    }
    return (uint64_t)excess - (uint64_t)path->excess_ns;
}

/* Is there memory for what is noted of each path? */
static bool may_watch(struct mrd_paths *paths, const struct mrd_allocator *allocator)
{
    if (!paths->watched)
        paths->watched = mrd_alloc(allocator, paths->num * sizeof(*paths->watched));
    return paths->watched != NULL;
}

void mrd_path_watch(struct mrd_paths *paths, const struct mrd_allocator *allocator)
{
    if (!may_watch(paths, allocator))
        return;
    for (uint32_t i = 0; i < paths->num; i++) {
        const struct mrd_path *path = &paths->path[i];

        paths->watched[i].before_ns = path->watch == paths->watch ? path->least_ns : path->last_ns;
        paths->watched[i].ce = path->rx_ce;
    }
    paths->watch++;
}

void mrd_path_drain(struct mrd_paths *paths, const struct mrd_allocator *allocator)
{
    if (!may_watch(paths, allocator))
        return;
    for (uint32_t i = 0; i < paths->num; i++)
        paths->watched[i].full_ns = paths->path[i].last_ns;
}

/*
 * Did the path's delay fall from `ns` to its least while watched by more than fall_share of the
 * calibration's fall_ns?
 */
static bool fell(const struct mrd_paths *paths, const struct mrd_path *path, int64_t ns,
                 const struct mrd_path_calibration *calibration)
{
    int64_t fell_ns = (int64_t)((uint64_t)ns - (uint64_t)path->least_ns);

    return fell_ns > (int64_t)(paths->tune->fall_share * (double)calibration->fall_ns);
}

/*
 * Returns the mean fall of the delays of watched paths since the drain began: the others' would
 * have fallen alike.
 */
static uint64_t mean_fall_ns(const struct mrd_paths *paths)
{
    int64_t sum_ns = 0, num = 0;

    for (uint32_t i = 0; i < paths->num; i++) {
        const struct mrd_path *path = &paths->path[i];
        int64_t fell_ns = (int64_t)((uint64_t)paths->watched[i].full_ns - (uint64_t)path->least_ns);

        if (path->watch != paths->watch)
            continue;
        sum_ns += fell_ns > 0 ? fell_ns : 0;
        num++;
    }
    return num ? (uint64_t)(sum_ns / num) : 0;
}

static bool is_watched(const struct mrd_paths *paths, uint32_t index)
{
    return paths->path[index].watch == paths->watch;
}

/*
 * Is the path longer for good? A queue of ours drains as long as it is, once the spray avoids it, and then
 * the path seems as short as others, or as it once was. A path that never was shorter is known soon. One
 * that was may have another way now, or a queue that some of our paths keep: that takes longer.
 */
static bool stays_longer(const struct mrd_paths *paths, uint32_t index, float excess_ns,
                         const struct mrd_path_calibration *calibration, uint64_t now_ns)
{
    const struct mrd_tune_path *tune = paths->tune;
    uint32_t ns = (uint32_t)now_ns - paths->load[index].level_at_ns;
    double rtt_ns = (double)calibration->rtt_min_ns + excess_ns, times = tune->level_times;

    if (paths->path[index].rtt_min_ns >= tune->level_once * rtt_ns)
        times = tune->level_new_times;
    return ns >= times * excess_ns;
}

static bool is_length(const struct mrd_paths *paths, uint32_t index,
                      const struct mrd_path_calibration *calibration, uint64_t now_ns)
{
    const struct mrd_path *path = &paths->path[index];
    const struct mrd_path_watch *w = &paths->watched[index];
    uint64_t at_ns = paths->load[index].q_at_ns;

    if (path->rx_ce != w->ce)
        return false;
    if (is_watched(paths, index))
        return !fell(paths, path, w->before_ns, calibration);
    /* Its last delay made the spray avoid it. If that is too much, the next sample corrects it. */
    return !calibration->unmarked && at_ns &&
           now_ns - at_ns <= mrd_tune_ns(paths->tune->last_rtts * (double)calibration->rtt_min_ns);
}

static void set_length(struct mrd_paths *paths, uint32_t index, float excess_ns)
{
    paths->path[index].excess_ns = excess_ns;
    /* Until now the length was counted as queue delay. */
    paths->load[index].q_ns = MRD_PATH_NO_DELAY;
}

/* Returns the path's new length; 0: it hardly grew, or the delay is not a length. */
static float learnt_ns(const struct mrd_paths *paths, uint32_t index,
                       const struct mrd_path_calibration *calibration, uint64_t ours_ns,
                       uint64_t now_ns)
{
    const struct mrd_path *path = &paths->path[index];
    int64_t least_ns = is_watched(paths, index) ? path->least_ns : path->last_ns;
    int64_t far = excess_ns(paths, least_ns, calibration->rtt_min_ns);

    if (!is_watched(paths, index))
        far -= (int64_t)ours_ns;
    uint64_t excess_ns = far < 0 ? 0 : (uint64_t)far;

    if (excess_ns > calibration->most_ns)
        excess_ns = calibration->most_ns;
    if ((float)excess_ns < path->excess_ns + (float)calibration->least_ns ||
        !is_length(paths, index, calibration, now_ns))
        return 0;
    return (float)excess_ns;
}

/*
 * Are most paths longer, of those that are or that are watched? Then it is the way that is, and not the
 * queue of a slow link.
 */
static bool most_are_longer(const struct mrd_paths *paths,
                            const struct mrd_path_calibration *calibration, uint64_t ours_ns,
                            uint64_t now_ns)
{
    uint32_t longer = 0, known = 0;

    for (uint32_t i = 0; i < paths->num; i++) {
        bool is_longer = learnt_ns(paths, i, calibration, ours_ns, now_ns) > 0;

        longer += is_longer;
        known += is_longer || is_watched(paths, i);
    }
    return 2 * longer >= known;
}

bool mrd_path_calibrate(struct mrd_paths *paths, const struct mrd_allocator *allocator,
                        const struct mrd_path_calibration *calibration, uint64_t now_ns)
{
    float least_ns = FLT_MAX; /* least length of the watched paths */
    bool learnt = false, most;
    uint64_t ours_ns;

    if (!may_watch(paths, allocator) || !paths->back_valid)
        return false;
    ours_ns = mean_fall_ns(paths);
    most = most_are_longer(paths, calibration, ours_ns, now_ns);
    for (uint32_t i = 0; i < paths->num; i++) {
        float excess_ns = learnt_ns(paths, i, calibration, ours_ns, now_ns);

        if (excess_ns > 0 && (most || stays_longer(paths, i, excess_ns, calibration, now_ns))) {
            set_length(paths, i, excess_ns);
            learnt = true;
        }
        if (is_watched(paths, i) && paths->path[i].excess_ns < least_ns)
            least_ns = paths->path[i].excess_ns;
    }
    if (!learnt)
        return false;
    for (uint32_t i = 0; least_ns < FLT_MAX && i < paths->num; i++) {
        if (!is_watched(paths, i) && paths->path[i].excess_ns < least_ns)
            set_length(paths, i, least_ns);
    }
    paths->delay_min_valid = false;
    weigh(paths, calibration->rtt_min_ns);
    return true;
}
