/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/path.h"

#include <assert.h>
#include <string.h>

enum {
    SUSPEND_RTTS = 4,      /* first suspension, base RTTs */
    SUSPEND_SHIFT_MAX = 4, /* it doubles up to 4 << 4 */
    ORDER_SPURIOUS_MAX = 3,
    DELAY_WINDOW_RTTS = 8, /* half of the window of the least delay */
    /*
     * A path dies when its share of loss exceeds 10% and four times the mean of the others that are GOOD (those that
     * are out would hide a failure that hits a quarter of the paths at once), and either eight probes in a row
     * failed (a black hole: 188 base RTTs after the first loss plus the probes' own time; uniform loss of 5% does
     * that once in 2^35 losses, and from 20% on the comparison with the mean cannot come true), or its last 256
     * packets all found the share above 10% (a bad cable).
     */
    DEAD_ROW = 8,
    DEAD_PACKETS = 256,
};

#define DEAD_SHARE      0.10f
#define DEAD_TIMES_MEAN 4.0f
#define LOSS_GAIN       (1.0f / 32)
#define LOSS_AVG_GAIN   (1.0f / 512)
#define Q_GAIN          (1.0f / 8)
#define Q_FIRST_GAIN    (1.0f / 2)
#define Q_AVG_GAIN      (1.0f / 32)
#define DEAD_PROBE_NS   UINT64_C(1000000000)
#define RTT_UNKNOWN_NS  UINT64_C(100000)
#define PROBE_UNDER_WAY UINT64_MAX

void mrd_paths_init(struct mrd_paths *paths, struct mrd_path *path, uint32_t num, uint64_t now_ns)
{
    assert(num > 0 && num <= UINT16_MAX);
    memset(paths, 0, sizeof(*paths));
    paths->path = path;
    paths->num = num;
    paths->delay_min_at_ns = now_ns;
    for (uint32_t i = 0; i < num; i++) {
        path[i].ev = (uint16_t)i;
        path[i].id = (uint16_t)i;
        path[i].state = MRD_PATH_GOOD;
        path[i].pseq_next = 1; /* above both of pseq_acked[] */
    }
}

static void make_good(struct mrd_paths *paths, struct mrd_path *path)
{
    if (path->state == MRD_PATH_GOOD)
        return;
    if (path->state ==
        MRD_PATH_DEAD) { /* what was measured is old, and the loss that killed it is over */
        path->q_valid = false;
        path->loss_ewma = paths->loss_avg;
        path->bad_packets = 0;
        path->wants_ev = 0;
    }
    path->state = MRD_PATH_GOOD;
    path->until_ns = 0;
    paths->num_out--;
}

uint32_t mrd_path_sent(struct mrd_paths *paths, uint32_t index)
{
    struct mrd_path *path = &paths->path[index];

    path->out_packets++;
    path->packets++;
    if (path->state != MRD_PATH_GOOD)
        path->until_ns = PROBE_UNDER_WAY;
    return path->pseq_next++;
}

/* One packet's fate is known. */
static void resolved(struct mrd_paths *paths, struct mrd_path *path, bool lost)
{
    float sample = lost ? 1 : 0;

    assert(path->out_packets > 0);
    path->out_packets--;
    path->loss_ewma += (sample - path->loss_ewma) * LOSS_GAIN;
    paths->loss_avg += (sample - paths->loss_avg) * LOSS_AVG_GAIN;
    if (path->loss_ewma <= DEAD_SHARE)
        path->bad_packets = 0;
    else if (path->bad_packets < DEAD_PACKETS)
        path->bad_packets++;
}

void mrd_path_acked(struct mrd_paths *paths, uint32_t index, uint64_t now_ns)
{
    struct mrd_path *path = &paths->path[index];

    resolved(paths, path, false);
    paths->acked_ns = now_ns;
    /* A packet sent before the path died proves nothing. */
    if (path->state == MRD_PATH_DEAD && path->until_ns != PROBE_UNDER_WAY)
        return;
    path->losses_row = 0;
    make_good(paths, path);
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

/* Mean share of loss of the other GOOD paths that carried packets; negative: there is none to compare with. */
static float mean_of_others(const struct mrd_paths *paths, uint32_t index)
{
    float sum = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < paths->num; i++) {
        const struct mrd_path *path = &paths->path[i];

        if (i == index || path->state != MRD_PATH_GOOD || path->packets == 0)
            continue;
        sum += path->loss_ewma;
        n++;
    }
    return n ? sum / (float)n : -1;
}

static bool is_dead(const struct mrd_paths *paths, uint32_t index)
{
    const struct mrd_path *path = &paths->path[index];

    if (path->loss_ewma <= DEAD_SHARE)
        return false;
    if (path->losses_row < DEAD_ROW && path->bad_packets < DEAD_PACKETS)
        return false;
    float mean = mean_of_others(paths, index);
    return mean >= 0 && path->loss_ewma > DEAD_TIMES_MEAN * mean;
}

/* Room for one more path that is out. One that has served its time but that nobody chose since counts as back. */
static bool may_go_out(struct mrd_paths *paths, uint64_t now_ns)
{
    if (paths->num_out < paths->num / 2)
        return true;
    for (uint32_t i = 0; i < paths->num; i++) {
        struct mrd_path *path = &paths->path[i];

        if (path->state == MRD_PATH_SUSPENDED && now_ns >= path->until_ns) {
            make_good(paths, path);
            return paths->num_out < paths->num / 2;
        }
    }
    return false;
}

static void suspend(struct mrd_paths *paths, struct mrd_path *path, uint64_t base_rtt_ns,
                    uint64_t now_ns)
{
    unsigned shift = path->losses_row - 1u;
    uint64_t rtt_ns = base_rtt_ns ? base_rtt_ns : RTT_UNKNOWN_NS;

    if (path->state == MRD_PATH_GOOD)
        paths->num_out++;
    path->state = MRD_PATH_SUSPENDED;
    path->until_ns =
        now_ns + (SUSPEND_RTTS * rtt_ns << (shift < SUSPEND_SHIFT_MAX ? shift : SUSPEND_SHIFT_MAX));
}

void mrd_path_lost(struct mrd_paths *paths, uint32_t index, uint64_t base_rtt_ns, uint64_t now_ns)
{
    struct mrd_path *path = &paths->path[index];
    /* While nothing gets through anywhere, a loss says nothing about this path: the row does not grow. */
    bool others_work = paths->acked_ns > path->lost_ns;

    resolved(paths, path, true);
    path->lost++;
    if (path->state != MRD_PATH_GOOD && path->until_ns != PROBE_UNDER_WAY)
        return; /* it left before the path went out */
    path->lost_ns = now_ns;
    if (path->state == MRD_PATH_DEAD) {
        path->until_ns = now_ns + DEAD_PROBE_NS;
        return;
    }
    if (path->state == MRD_PATH_GOOD && !may_go_out(paths, now_ns))
        return;
    if (path->losses_row == 0 || (others_work && path->losses_row < UINT8_MAX))
        path->losses_row++;
    suspend(paths, path, base_rtt_ns, now_ns);
    if (is_dead(paths, index)) {
        path->state = MRD_PATH_DEAD;
        path->wants_ev = 1;
        path->until_ns = now_ns + DEAD_PROBE_NS;
    }
}

void mrd_path_forgot(struct mrd_paths *paths, uint32_t index)
{
    struct mrd_path *path = &paths->path[index];

    assert(path->out_packets > 0);
    path->out_packets--;
    /* The probe went with it: the next packet may be one. */
    if (path->out_packets == 0 && path->state != MRD_PATH_GOOD && path->until_ns == PROBE_UNDER_WAY)
        path->until_ns = 0;
}

void mrd_path_order_spurious(struct mrd_path *path)
{
    path->spurious++;
    if (path->spurious >= ORDER_SPURIOUS_MAX)
        path->order_off = 1;
}

/* How much longer this packet took than the fastest of the last 16 RTT on any path: clocks drift, so it is windowed. */
static float queue_delay(struct mrd_paths *paths, int64_t delay_ns, uint64_t srtt_ns,
                         uint64_t now_ns)
{
    uint64_t half_ns = DELAY_WINDOW_RTTS * (srtt_ns ? srtt_ns : RTT_UNKNOWN_NS);
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
    /* Unsigned: the stamps are the peer's, and whatever they say may not overflow. */
    return (float)((uint64_t)delay_ns - (uint64_t)least_ns);
}

void mrd_path_sample(struct mrd_paths *paths, uint32_t index, int64_t delay_ns, uint64_t rtt_ns,
                     uint64_t srtt_ns, uint64_t now_ns)
{
    struct mrd_path *path = &paths->path[index];
    float q_ns = queue_delay(paths, delay_ns, srtt_ns, now_ns);

    if (!paths->q_avg_valid) {
        paths->q_avg_ns = q_ns;
        paths->q_avg_valid = true;
    }
    /* One sample alone is weak: it counts half against what the other paths saw. */
    if (path->q_valid)
        path->q_ns += (q_ns - path->q_ns) * Q_GAIN;
    else
        path->q_ns = paths->q_avg_ns + (q_ns - paths->q_avg_ns) * Q_FIRST_GAIN;
    path->q_valid = true;
    path->q_at_ns = now_ns;
    paths->q_avg_ns += (q_ns - paths->q_avg_ns) * Q_AVG_GAIN;

    if (rtt_ns == 0)
        return;
    /* RFC 6298, 2.3 */
    path->srtt_ns = path->srtt_ns ? path->srtt_ns - path->srtt_ns / 8 + rtt_ns / 8 : rtt_ns;
    if (path->rtt_min_ns == 0 || rtt_ns < path->rtt_min_ns)
        path->rtt_min_ns = rtt_ns;
}

void mrd_path_replace(struct mrd_paths *paths, uint32_t index, uint16_t ev, uint64_t now_ns)
{
    struct mrd_path *path = &paths->path[index];
    uint32_t id = path->id + paths->num;

    make_good(paths, path);
    path->ev = ev;
    path->id = (uint16_t)(id <= UINT16_MAX ? id : index);
    path->losses_row = 0;
    path->order_off = 0;
    path->wants_ev = 0;
    path->spurious = 0;
    path->q_valid = false;
    path->loss_ewma = paths->loss_avg;
    path->bad_packets = 0;
    path->lost_ns = now_ns;
    path->packets = path->lost = path->ce = 0;
    path->rx_count = path->rx_ce = 0;
    path->srtt_ns = path->rtt_min_ns = 0;
}

void mrd_path_keep(struct mrd_path *path, uint64_t now_ns)
{
    path->wants_ev = 0;
    if (path->state == MRD_PATH_DEAD && path->until_ns != PROBE_UNDER_WAY)
        path->until_ns = now_ns + DEAD_PROBE_NS;
}
