/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/path.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

#define PROBE_UNDER_WAY UINT64_MAX
#define FAILS_LOSSES    1.5
#define LOSS_NONE       1e-9f /* a share of loss that is none */

/* Of zeroed memory. */
static void init_path(struct mrd_paths *paths, uint32_t index)
{
    struct mrd_path *path = &paths->path[index];

    path->ev = path->id = (uint16_t)index;
    path->state = MRD_PATH_GOOD;
    path->pseq_next = 1; /* above both of pseq_acked[] */
    paths->load[index].q_ns = MRD_PATH_NO_DELAY;
    paths->load[index].weight = 1;
}

void mrd_paths_init(struct mrd_paths *paths, struct mrd_path *path, struct mrd_path_load *load,
                    uint32_t num, uint32_t max, const struct mrd_tune *tune, uint64_t now_ns)
{
    assert(num > 0 && num <= max && max <= UINT16_MAX);
    memset(paths, 0, sizeof(*paths));
    paths->tune = tune ? &tune->path : &mrd_tune_default.path;
    paths->path = path;
    paths->load = load;
    paths->num = num;
    paths->max = max;
    paths->delay_min_at_ns = now_ns;
    for (uint32_t i = 0; i < num; i++)
        init_path(paths, i);
}

static size_t block_bytes(uint32_t num)
{
    return num * (sizeof(struct mrd_path) + sizeof(struct mrd_path_load));
}

static void free_block(struct mrd_paths *paths, const struct mrd_allocator *allocator)
{
    if (paths->owned)
        mrd_free(allocator, paths->path, block_bytes(paths->num));
    paths->owned = false;
}

/* Moves `paths` to a block for `num` paths. */
static bool move(struct mrd_paths *paths, const struct mrd_allocator *allocator, uint32_t num)
{
    size_t watched_bytes = sizeof(*paths->watched);
    struct mrd_path *path = mrd_alloc(allocator, block_bytes(num));
    struct mrd_path_watch *watched = NULL;
    struct mrd_path_load *load;

    if (path && paths->watched)
        watched =
            mrd_grow(allocator, paths->watched, paths->num * watched_bytes, num * watched_bytes);
    if (path && paths->watched && !watched)
        mrd_free(allocator, path, block_bytes(num));
    if (!path || (paths->watched && !watched))
        return false;
    load = (struct mrd_path_load *)&path[num];
    memcpy(path, paths->path, paths->num * sizeof(*path));
    memcpy(load, paths->load, paths->num * sizeof(*load));
    free_block(paths, allocator);
    paths->path = path;
    paths->load = load;
    paths->owned = true;
    paths->watched = watched;
    return true;
}

bool mrd_paths_add(struct mrd_paths *paths, const struct mrd_allocator *allocator)
{
    uint32_t old = paths->num, num = 2 * old < paths->max ? 2 * old : paths->max, shortest = 0;

    if (num == old || !move(paths, allocator, num))
        return false;
    paths->num = num;
    for (uint32_t i = 1; i < old; i++) {
        if (paths->path[i].excess_ns < paths->path[shortest].excess_ns)
            shortest = i;
    }
    for (uint32_t i = old; i < num; i++) {
        init_path(paths, i);
        paths->path[i].order_off = paths->num_disordered > 1;
        paths->path[i].watch = (uint16_t)(paths->watch - 1);
        paths->path[i].excess_ns = paths->path[shortest].excess_ns;
        paths->load[i].weight = paths->load[shortest].weight;
    }
    return true;
}

void mrd_paths_fini(struct mrd_paths *paths, const struct mrd_allocator *allocator)
{
    if (paths->watched)
        mrd_free(allocator, paths->watched, paths->num * sizeof(*paths->watched));
    paths->watched = NULL;
    free_block(paths, allocator);
}

static struct mrd_path_load *load_of(const struct mrd_paths *paths, const struct mrd_path *path)
{
    return &paths->load[path - paths->path];
}

static void make_good(struct mrd_paths *paths, struct mrd_path *path)
{
    if (path->state == MRD_PATH_GOOD)
        return;
    /* What was measured before the path died is outdated, and the failure is over. */
    if (path->state == MRD_PATH_DEAD) {
        load_of(paths, path)->q_ns = MRD_PATH_NO_DELAY;
        path->loss_ewma = paths->loss_avg;
        path->bad_packets = 0;
        path->wants_ev = 0;
        paths->num_dead--;
    }
    path->state = MRD_PATH_GOOD;
    path->until_ns = 0;
    paths->num_out--;
}

uint32_t mrd_path_sent(struct mrd_paths *paths, uint32_t index)
{
    struct mrd_path *path = &paths->path[index];

    paths->load[index].out_packets++;
    path->packets++;
    if (path->state != MRD_PATH_GOOD)
        path->until_ns = PROBE_UNDER_WAY;
    return path->pseq_next++;
}

static uint32_t dead_packets(const struct mrd_paths *paths)
{
    uint32_t packets = mrd_tune_count(paths->tune->dead_packets);

    return packets < UINT16_MAX ? packets : UINT16_MAX;
}

/* Counts a packet as acked or lost. */
static void count_outcome(struct mrd_paths *paths, struct mrd_path *path, bool lost)
{
    const struct mrd_tune_path *tune = paths->tune;
    float sample = lost ? 1 : 0;

    assert(load_of(paths, path)->out_packets > 0);
    load_of(paths, path)->out_packets--;
    path->loss_ewma += (sample - path->loss_ewma) * (float)tune->loss_gain;
    paths->loss_avg += (sample - paths->loss_avg) * (float)tune->loss_avg_gain;
    /* Not ever smaller numbers: those near the least that a float holds are slow. */
    if (path->loss_ewma < LOSS_NONE)
        path->loss_ewma = 0;
    if (paths->loss_avg < LOSS_NONE)
        paths->loss_avg = 0;
    if (path->loss_ewma <= (float)tune->dead_share)
        path->bad_packets = 0;
    else if (path->bad_packets < dead_packets(paths))
        path->bad_packets++;
}

void mrd_path_acked(struct mrd_paths *paths, uint32_t index)
{
    struct mrd_path *path = &paths->path[index];

    count_outcome(paths, path, false);
    mrd_path_came(path);
    paths->acks++;
    /* The ack of a packet sent before the path died proves nothing. */
    if (path->state == MRD_PATH_DEAD && path->until_ns != PROBE_UNDER_WAY)
        return;
    path->losses_row = 0;
    make_good(paths, path);
}

void mrd_path_run_acked(struct mrd_paths *paths, uint32_t index, uint32_t n)
{
    struct mrd_path *path = &paths->path[index];
    uint32_t left = n;

    assert(path->state == MRD_PATH_GOOD);
    /* Without losses only the count changes. */
    for (; left && (path->loss_ewma > 0 || paths->loss_avg > 0 || path->bad_packets); left--)
        count_outcome(paths, path, false);
    assert(load_of(paths, path)->out_packets >= left);
    load_of(paths, path)->out_packets -= left;
    mrd_path_came(path);
    paths->acks += n;
    path->losses_row = 0;
}

void mrd_path_pseq_acked(struct mrd_path *path, uint32_t pseq)
{
    if ((int32_t)(pseq - path->pseq_acked[0]) > 0) {
        path->pseq_acked[1] = path->pseq_acked[0];
        path->pseq_acked[0] = pseq;
        return;
    }
    if (pseq != path->pseq_acked[0] && (int32_t)(pseq - path->pseq_acked[1]) > 0)
        path->pseq_acked[1] = pseq;
}

/*
 * Returns the mean share of loss of the other GOOD paths that carried packets and whose last packet
 * was not lost; negative: there is none. A path whose last packet was lost may be GOOD only because
 * too many fail, or because the loss was a usual one.
 */
static float mean_of_others(const struct mrd_paths *paths, uint32_t index)
{
    float sum = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < paths->num; i++) {
        const struct mrd_path *path = &paths->path[i];

        if (i == index || path->state != MRD_PATH_GOOD || path->losses_row || path->packets == 0)
            continue;
        sum += path->loss_ewma;
        n++;
    }
    return n ? sum / (float)n : -1;
}

static bool is_dead(const struct mrd_paths *paths, uint32_t index)
{
    const struct mrd_path *path = &paths->path[index];

    if (path->loss_ewma <= (float)paths->tune->dead_share)
        return false;
    if (path->losses_row < paths->tune->dead_row && path->bad_packets < dead_packets(paths))
        return false;
    float mean = mean_of_others(paths, index);
    return mean >= 0 && path->loss_ewma > (float)paths->tune->dead_times_mean * mean;
}

/*
 * At most half of the paths that are not dead may be out: losses by congestion must not push all
 * traffic onto one path.
 */
static bool has_room(const struct mrd_paths *paths)
{
    uint32_t suspended = paths->num_out - paths->num_dead;

    return suspended < (paths->num - paths->num_dead) / 2;
}

/*
 * Makes room for one more path that is out, if there is none: the path becomes GOOD whose
 * suspension ended first, as a fixed order would always bring back the same few. Returns whether
 * there is room.
 */
static bool make_room_outside(struct mrd_paths *paths, uint64_t now_ns)
{
    struct mrd_path *longest = NULL;

    if (has_room(paths))
        return true;
    for (uint32_t i = 0; i < paths->num; i++) {
        struct mrd_path *path = &paths->path[i];

        if (path->state == MRD_PATH_SUSPENDED && now_ns >= path->until_ns &&
            (!longest || path->until_ns < longest->until_ns))
            longest = path;
    }
    if (!longest)
        return false;
    make_good(paths, longest);
    return has_room(paths);
}

static void suspend(struct mrd_paths *paths, struct mrd_path *path, uint64_t base_rtt_ns,
                    uint64_t now_ns)
{
    const struct mrd_tune_path *tune = paths->tune;
    double rtt_ns = base_rtt_ns ? (double)base_rtt_ns : tune->rtt_unknown_ns;
    uint32_t doublings = path->losses_row - 1u;

    if (path->state == MRD_PATH_GOOD)
        paths->num_out++;
    path->state = MRD_PATH_SUSPENDED;
    if (doublings > tune->suspend_doublings)
        doublings = mrd_tune_count(tune->suspend_doublings);
    doublings = doublings < 62 ? doublings : 62;
    path->until_ns =
        now_ns + mrd_tune_ns(tune->suspend_rtts * rtt_ns * (double)(UINT64_C(1) << doublings));
}

/* A lone loss on a path that loses no more than others do: it says nothing about this path. */
static bool is_background_loss(const struct mrd_paths *paths, uint32_t index)
{
    const struct mrd_path *path = &paths->path[index];

    if (path->state != MRD_PATH_GOOD || path->losses_row)
        return false;

    float mean = mean_of_others(paths, index);

    return mean >= (float)paths->tune->usual_share &&
           path->loss_ewma <= (float)paths->tune->usual_times * mean;
}

void mrd_path_lost(struct mrd_paths *paths, uint32_t index, uint64_t base_rtt_ns, uint64_t now_ns)
{
    struct mrd_path *path = &paths->path[index];
    /* While no path works, a loss says nothing about this one: losses_row does not grow. */
    bool others_work = paths->acks != path->lost_acks;
    bool usual = is_background_loss(paths, index);

    count_outcome(paths, path, true);
    path->lost++;
    if (path->state != MRD_PATH_GOOD && path->until_ns != PROBE_UNDER_WAY)
        return; /* the packet left before the path went out */
    path->lost_acks = paths->acks;
    if (usual) {
        path->losses_row = 1;
        return;
    }
    if (path->state == MRD_PATH_DEAD) {
        path->until_ns = now_ns + mrd_tune_ns(paths->tune->dead_probe_ns);
        return;
    }
    if (path->state == MRD_PATH_GOOD && !make_room_outside(paths, now_ns))
        return;
    if (path->losses_row == 0 || (others_work && path->losses_row < UINT8_MAX))
        path->losses_row++;
    suspend(paths, path, base_rtt_ns, now_ns);
    if (is_dead(paths, index)) {
        path->state = MRD_PATH_DEAD;
        paths->num_dead++;
        path->wants_ev = 1;
        path->until_ns = now_ns + mrd_tune_ns(paths->tune->dead_probe_ns);
    }
}

bool mrd_path_fails(struct mrd_paths *paths, uint32_t index, uint64_t now_ns)
{
    const struct mrd_tune_path *tune = paths->tune;
    const struct mrd_path *path = &paths->path[index];
    double mean = mean_of_others(paths, index), chance = 1;
    /* A loss adds loss_gain: it lost more than one packet of late. */
    bool more = path->loss_ewma > FAILS_LOSSES * tune->loss_gain && mean >= 0 &&
                path->loss_ewma > tune->dead_times_mean * mean;

    for (uint32_t i = 0; i < path->losses_row; i++)
        chance *= mean < 0 ? 1 : mean;
    if (path->losses_row < 2)
        return more;
    if (path->losses_row >= tune->fails_row || chance < tune->fails_sure)
        paths->failed_ns = now_ns;
    return more || path->losses_row >= tune->fails_row || chance < tune->fails_chance;
}

bool mrd_path_in_queue(const struct mrd_paths *paths, uint32_t index, double delay_ns,
                       uint64_t srtt_ns, uint64_t now_ns)
{
    float least_ns = (float)paths->tune->in_queue * paths->q_avg_ns;
    uint32_t in = 0, sampled = 0;

    if (paths->q_avg_ns < delay_ns / 2)
        return true;
    if (paths->load[index].q_ns >= 0 && now_ns - paths->load[index].q_at_ns <= srtt_ns)
        return paths->load[index].q_ns >= least_ns;
    if (paths->failed_ns &&
        now_ns - paths->failed_ns < mrd_tune_ns(paths->tune->fails_rtts * (double)srtt_ns))
        return false;
    for (uint32_t i = 0; i < paths->num; i++) {
        if (paths->load[i].q_ns < 0 || now_ns - paths->load[i].q_at_ns > srtt_ns)
            continue;
        in += paths->load[i].q_ns >= least_ns;
        sampled++;
    }
    return 2 * in >= sampled;
}

bool mrd_path_suspect(struct mrd_paths *paths, uint32_t index)
{
    struct mrd_path *path = &paths->path[index];
    bool again = path->suspect && paths->acks != path->suspect_acks;

    if (!path->suspect)
        path->suspect_acks = paths->acks;
    path->suspect = true;
    return again;
}

void mrd_path_forgot(struct mrd_paths *paths, uint32_t index)
{
    struct mrd_path *path = &paths->path[index];

    assert(paths->load[index].out_packets > 0);
    paths->load[index].out_packets--;
    /* It was the probe: allow another. */
    if (paths->load[index].out_packets == 0 && path->state != MRD_PATH_GOOD &&
        path->until_ns == PROBE_UNDER_WAY)
        path->until_ns = 0;
}

void mrd_path_order_spurious(struct mrd_paths *paths, uint32_t index)
{
    struct mrd_path *path = &paths->path[index];
    bool off;

    if (path->spurious < UINT8_MAX)
        path->spurious++;
    off = path->spurious >= paths->tune->order_spurious;
    /* One entropy value alone may be split over two routes; if two reorder, so does the network. */
    if (path->spurious == 1)
        paths->num_disordered++;
    path->order_off |= off;
    for (uint32_t i = 0; paths->num_disordered > 1 && i < paths->num; i++)
        paths->path[i].order_off = 1;
}

/*
 * Returns how much longer this packet took than the fastest one on any path in the window of
 * delay_window_rtts. The minimum is windowed because clocks drift.
 */
static float update_queue_delay(struct mrd_paths *paths, int64_t delay_ns, uint64_t srtt_ns,
                                uint64_t now_ns)
{
    const struct mrd_tune_path *tune = paths->tune;
    double rtt_ns = srtt_ns ? (double)srtt_ns : tune->rtt_unknown_ns;
    uint64_t half_ns = mrd_tune_ns(tune->delay_window_rtts * rtt_ns);
    uint64_t age_ns = now_ns - paths->delay_min_at_ns;

    if (!paths->delay_min_valid || age_ns >= 2 * half_ns) {
        paths->delay_min_cur = paths->delay_min_prev = delay_ns;
        paths->delay_min_at_ns = now_ns;
        paths->delay_min_valid = true;
        return 0;
    }
    if (age_ns >= half_ns) {
        paths->delay_min_prev = paths->delay_min_cur;
        paths->delay_min_cur = delay_ns;
        paths->delay_min_at_ns = now_ns;
    }
    if (delay_ns < paths->delay_min_cur)
        paths->delay_min_cur = delay_ns;
    int64_t least_ns =
        paths->delay_min_cur < paths->delay_min_prev ? paths->delay_min_cur : paths->delay_min_prev;
    /* Unsigned: the stamps are the peer's, and may be anything. */
    return (float)((uint64_t)delay_ns - (uint64_t)least_ns);
}

static void note_back(struct mrd_paths *paths, int64_t back, bool new_half)
{
    if (!paths->back_valid)
        paths->back_cur = paths->back_prev = back;
    else if (new_half) {
        paths->back_prev = paths->back_cur;
        paths->back_cur = back;
    }
    if (back < paths->back_cur)
        paths->back_cur = back;
    paths->back_valid = true;
}

void mrd_path_sample(struct mrd_paths *paths, uint32_t index, int64_t delay_ns, uint64_t rtt_ns,
                     uint64_t srtt_ns, uint64_t now_ns)
{
    struct mrd_path *path = &paths->path[index];
    struct mrd_path_load *load = &paths->load[index];
    uint64_t half_at_ns = paths->delay_min_at_ns;
    float q_ns = update_queue_delay(paths, delay_ns - (int64_t)path->excess_ns, srtt_ns, now_ns);

    if (path->watch != paths->watch || delay_ns < path->least_ns)
        path->least_ns = delay_ns;
    path->watch = paths->watch;
    path->last_ns = delay_ns;
    if (!load->level_at_ns || q_ns < (float)paths->tune->level_share * (float)srtt_ns)
        load->level_at_ns = (uint32_t)now_ns ? (uint32_t)now_ns : 1;
    if (rtt_ns)
        note_back(paths, (int64_t)(rtt_ns - (uint64_t)delay_ns),
                  paths->delay_min_at_ns != half_at_ns);

    if (!paths->q_avg_valid) {
        paths->q_avg_ns = q_ns;
        paths->q_avg_valid = true;
    }
    if (load->q_ns >= 0)
        load->q_ns += (q_ns - load->q_ns) * (float)paths->tune->q_gain;
    else
        load->q_ns = paths->q_avg_ns + (q_ns - paths->q_avg_ns) * (float)paths->tune->q_first_gain;
    load->q_at_ns = now_ns;
    paths->q_avg_ns += (q_ns - paths->q_avg_ns) * (float)paths->tune->q_avg_gain;

    if (rtt_ns == 0)
        return;
    /* RFC 6298, 2.3 */
    uint32_t ns = rtt_ns < UINT32_MAX ? (uint32_t)rtt_ns : UINT32_MAX;
    path->srtt_ns = path->srtt_ns ? path->srtt_ns - path->srtt_ns / 8 + ns / 8 : ns;
    if (path->rtt_min_ns == 0 || ns < path->rtt_min_ns)
        path->rtt_min_ns = ns;
}

void mrd_path_found(struct mrd_paths *paths, uint32_t index)
{
    struct mrd_path *path = &paths->path[index];
    float gain = (float)paths->tune->loss_gain, gain_avg = (float)paths->tune->loss_avg_gain;

    if (path->lost)
        path->lost--;
    path->loss_ewma = (path->loss_ewma - gain) / (1 - gain);
    if (path->loss_ewma < 0)
        path->loss_ewma = 0;
    paths->loss_avg = (paths->loss_avg - gain_avg) / (1 - gain_avg);
    if (paths->loss_avg < 0)
        paths->loss_avg = 0;
    if (path->state == MRD_PATH_DEAD)
        return;
    path->losses_row = 0;
    make_good(paths, path);
}

void mrd_path_replace(struct mrd_paths *paths, uint32_t index, uint16_t ev)
{
    struct mrd_path *path = &paths->path[index];
    uint32_t id = path->id + paths->max;

    make_good(paths, path);
    path->ev = ev;
    path->id = (uint16_t)(id <= UINT16_MAX ? id : index);
    path->losses_row = 0;
    path->order_off = 0;
    path->wants_ev = 0;
    path->spurious = 0;
    paths->load[index].q_ns = MRD_PATH_NO_DELAY;
    path->loss_ewma = paths->loss_avg;
    path->bad_packets = 0;
    path->lost_acks = paths->acks;
    path->packets = path->lost = path->ce = 0;
    path->rx_count = path->rx_ce = 0;
    path->srtt_ns = path->rtt_min_ns = path->age_ns = 0;
    path->suspect = false;
    path->excess_ns = 0;
    paths->load[index].weight = 1;
    paths->load[index].level_at_ns = 0;
    path->watch = (uint16_t)(paths->watch - 1);
}

void mrd_path_keep(struct mrd_paths *paths, uint32_t index, uint64_t now_ns)
{
    struct mrd_path *path = &paths->path[index];

    path->wants_ev = 0;
    if (path->state == MRD_PATH_DEAD && path->until_ns != PROBE_UNDER_WAY)
        path->until_ns = now_ns + mrd_tune_ns(paths->tune->dead_probe_ns);
}
