/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/loss.h"

#include <string.h>

#include "core/alloc.h"

/* Late samples that are further apart than this may belong to two stalls. */
enum { STALLS_APART_RTTS = 16 };

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void mrd_loss_init(struct mrd_loss *l, const struct mrd_tune *tune, uint64_t now_ns)
{
    memset(l, 0, sizeof(*l));
    l->tune = tune ? &tune->loss : &mrd_tune_default.loss;
    l->min_cur_ns = l->min_prev_ns = MRD_NEVER;
    l->rack_ns = MRD_NEVER;
    l->min_at_ns = l->progress_ns = l->last_send_ns = now_ns;
}

void mrd_loss_fini(struct mrd_loss *l, const struct mrd_allocator *allocator)
{
    if (l->log)
        mrd_free(allocator, l->log, MRD_RETX_LOG * sizeof(*l->log));
    l->log = NULL;
}

/* RFC 6298, section 2, with its gains of 1/8 and 1/4. */
void mrd_loss_rtt(struct mrd_loss *l, uint64_t rtt_ns, uint64_t now_ns)
{
    rtt_ns = max_u64(rtt_ns, 1);
    l->latest_ns = rtt_ns;
    if (!l->srtt_ns) {
        l->srtt_ns = rtt_ns;
        l->rttvar_ns = rtt_ns / 2;
    } else {
        uint64_t dev = rtt_ns > l->srtt_ns ? rtt_ns - l->srtt_ns : l->srtt_ns - rtt_ns;

        l->rttvar_ns = (3 * l->rttvar_ns + dev) / 4;
        l->srtt_ns = (7 * l->srtt_ns + rtt_ns) / 8;
    }
    uint64_t half_ns = mrd_tune_ns(l->tune->min_window_ns);
    if (now_ns - l->min_at_ns > half_ns) {
        bool idle = now_ns - l->min_at_ns > 2 * half_ns;

        l->min_prev_ns = idle ? MRD_NEVER : l->min_cur_ns;
        l->min_cur_ns = MRD_NEVER;
        l->min_at_ns = now_ns;
    }
    l->min_cur_ns = min_u64(l->min_cur_ns, rtt_ns);
}

bool mrd_loss_stalled(struct mrd_loss *l, uint64_t tx_ns, uint64_t rtt_ns)
{
    uint64_t gap_ns = tx_ns - l->late_tx_ns;

    if (l->late_rtt_ns && (tx_ns < l->late_tx_ns || gap_ns < rtt_ns / 4))
        return true; /* sent too close together to tell the two cases apart */
    if (l->late_rtt_ns && rtt_ns + gap_ns / 2 > l->late_rtt_ns && rtt_ns >= l->late_rtt_ns / 2 &&
        rtt_ns / 2 <= l->late_rtt_ns && gap_ns < STALLS_APART_RTTS * l->late_rtt_ns) {
        l->late_rtt_ns = 0;
        l->srtt_ns = rtt_ns;
        l->rttvar_ns = rtt_ns / 2;
        return false;
    }
    l->late_tx_ns = tx_ns;
    l->late_rtt_ns = rtt_ns;
    return true;
}

uint64_t mrd_loss_rtt_min_ns(const struct mrd_loss *l)
{
    uint64_t m = min_u64(l->min_cur_ns, l->min_prev_ns);

    return m == MRD_NEVER ? 0 : m;
}

static uint64_t srtt_or_initial(const struct mrd_loss *l)
{
    return l->srtt_ns ? l->srtt_ns : mrd_tune_ns(l->tune->initial_rtt_ns);
}

static uint64_t times(double factor, uint64_t ns)
{
    return mrd_tune_ns(factor * (double)ns);
}

bool mrd_loss_acked(struct mrd_loss *l, const struct mrd_sent *rec, bool echoed, uint64_t now_ns)
{
    l->progress_ns = now_ns;
    l->probes = 0;
    l->overtaken |= UINT64_C(1) << rec->path % 64;
    /*
     * If the first copy arrived late, its ack must not advance rack_tx_ns to the last copy's: that
     * would declare everything sent between the two lost.
     */
    if (rec->tx_count > 1 && !echoed)
        return false;
    if (rec->tx_ns >= l->rack_tx_ns) {
        l->rack_tx_ns = rec->tx_ns;
        return true;
    }
    /*
     * Acked after a packet that was sent later: the reordering window must cover that difference.
     */
    if (rec->tx_count == 1) {
        uint64_t late = l->rack_tx_ns - rec->tx_ns;

        if (late > l->skew_ns ||
            now_ns - l->skew_at_ns > times(l->tune->skew_life_rtts, srtt_or_initial(l))) {
            l->skew_ns = late;
            l->skew_at_ns = now_ns;
        }
    }
    return true;
}

uint64_t mrd_loss_window_ns(const struct mrd_loss *l)
{
    const struct mrd_tune_loss *t = l->tune;
    uint64_t srtt = srtt_or_initial(l);
    uint64_t window = min_u64(srtt, max_u64(times(t->window_min_rtts, mrd_loss_rtt_min_ns(l)),
                                            times(t->window_skews, l->skew_ns)));

    return l->steps ? window + times(t->window_step_rtts, l->steps * srtt) : window;
}

/*
 * Returns a packet that two later ones of its path overtook. Only paths with newly acked packets
 * can have one: the others were checked before.
 */
static struct mrd_sent *find_lost_by_order(struct mrd_loss *l, const struct mrd_sents *s,
                                           const struct mrd_paths *paths, uint64_t now_ns)
{
    for (; l->overtaken; l->overtaken &= l->overtaken - 1) {
        for (uint32_t index = (uint32_t)__builtin_ctzll(l->overtaken); index < paths->num;
             index += 64) {
            const struct mrd_path *p = &paths->path[index];
            struct mrd_sent *rec;

            if (!paths->load[index].out_packets || p->order_off)
                continue;
            rec = mrd_sent_get(s, p->head);
            /* Only if older than its path's packets were when lately acked: paths may reorder. */
            if (rec && (int32_t)(rec->pseq - p->pseq_acked[1]) < 0 &&
                now_ns - rec->tx_ns >= p->age_ns)
                return rec;
        }
    }
    return NULL;
}

/*
 * Returns the oldest packet of some path, if it is older than `least_age_ns` and than that path's
 * packets were when acked lately. Walks the records oldest first; the first one of each
 * path counts.
 */
static struct mrd_sent *find_lost_by_time(struct mrd_loss *l, const struct mrd_sents *s,
                                          const struct mrd_paths *paths, uint64_t least_age_ns,
                                          uint64_t now_ns)
{
    uint64_t seen[MRD_PATHS_MAX / 64] = {0};
    uint32_t psn = s->inflight.head;

    for (uint32_t i = 0; i < s->inflight.num; i++) {
        struct mrd_sent *rec = mrd_sent_get(s, psn);
        uint64_t bit = UINT64_C(1) << rec->path % 64;

        psn = rec->next;
        if (rec->tx_ns >= l->rack_tx_ns)
            break;
        if (now_ns - rec->tx_ns < least_age_ns) {
            l->rack_ns = min_u64(l->rack_ns, rec->tx_ns + least_age_ns);
            break;
        }
        if (seen[rec->path / 64] & bit)
            continue;
        seen[rec->path / 64] |= bit;

        uint64_t path_ns =
            max_u64(least_age_ns, times(l->tune->window_ages, paths->path[rec->path].age_ns));
        if (now_ns - rec->tx_ns >= path_ns)
            return rec;
        l->rack_ns = min_u64(l->rack_ns, rec->tx_ns + path_ns);
    }
    return NULL;
}

/*
 * Shrinks the reordering window again after some RTTs; RFC 8985, section 6.2, step 4, does so after
 * 16 recoveries.
 */
static void forget(struct mrd_loss *l, uint64_t now_ns)
{
    if (l->steps && now_ns - l->steps_at_ns > times(l->tune->step_life_rtts, srtt_or_initial(l))) {
        l->steps--;
        l->steps_at_ns = now_ns;
    }
    if (l->skew_ns && now_ns - l->skew_at_ns > times(l->tune->skew_life_rtts, srtt_or_initial(l)))
        l->skew_ns = 0;
}

struct mrd_sent *mrd_loss_next(struct mrd_loss *l, const struct mrd_sents *s,
                               const struct mrd_paths *paths, uint64_t now_ns,
                               enum mrd_loss_cause *cause)
{
    struct mrd_sent *rec;
    uint64_t window;

    forget(l, now_ns);
    window = mrd_loss_window_ns(l);
    l->rack_ns = MRD_NEVER;
    if (!s->inflight.num)
        return NULL;
    *cause = MRD_LOSS_BY_ORDER;
    rec = find_lost_by_order(l, s, paths, now_ns);
    if (rec)
        return rec;
    *cause = MRD_LOSS_BY_RACK;
    rec = mrd_sent_get(s, s->inflight.head);
    if (rec->tx_ns >= l->rack_tx_ns)
        return NULL;
    /* RFC 8985, section 6.2, step 5: lost when RTT and window have passed since transmission. */
    if (now_ns - rec->tx_ns < srtt_or_initial(l) + window) {
        l->rack_ns = rec->tx_ns + srtt_or_initial(l) + window;
        return NULL;
    }
    return find_lost_by_time(l, s, paths, srtt_or_initial(l) + window, now_ns);
}

void mrd_loss_log(struct mrd_loss *l, const struct mrd_allocator *allocator,
                  const struct mrd_sent *rec, uint16_t old_path)
{
    if (!l->log)
        l->log = mrd_alloc(allocator, MRD_RETX_LOG * sizeof(*l->log));
    if (!l->log)
        return;
    l->log[l->log_next++ % MRD_RETX_LOG] =
        (struct mrd_retx){.psn = rec->psn,
                          .live = true,
                          .deliberate = rec->deliberate != 0,
                          .by_order = rec->by_order != 0,
                          .path_penalized = rec->path_penalized != 0,
                          .old_path = old_path,
                          .tx_ns = rec->tx_ns};
}

struct mrd_retx *mrd_loss_spurious(struct mrd_loss *l, uint32_t psn, uint64_t now_ns)
{
    for (uint32_t i = 1; l->log && i <= MRD_RETX_LOG; i++) {
        struct mrd_retx *r = &l->log[(l->log_next - i) % MRD_RETX_LOG];

        if (!r->live || r->psn != psn)
            continue;
        r->live = false;
        if (r->deliberate)
            return NULL;
        l->steps += l->steps < l->tune->steps_most;
        l->steps_at_ns = now_ns;
        return r;
    }
    return NULL;
}

uint64_t mrd_loss_rto_ns(const struct mrd_loss *l, uint64_t rto_floor_ns)
{
    uint64_t rto = srtt_or_initial(l) + times(l->tune->rto_rttvars, l->rttvar_ns);

    return max_u64(rto_floor_ns, rto) + l->peer_ack_delay_ns;
}

bool mrd_loss_timed_out(const struct mrd_loss *l)
{
    return l->probes > mrd_tune_count(l->tune->tail_probes);
}

/*
 * Full window: max(last send + full_rtts SRTTs, last new ack + full_progress_rtts SRTTs) + the
 * peer's ack delay, not doubled. Small window: last send + small_rtts SRTTs + SRTT / cwnd, doubled
 * by each probe up to 16-fold, + the ack delay. After tail_probes probes: the RTO, doubled after
 * every rto_tries of them. (Names: tune.h.)
 */
uint64_t mrd_loss_tail_ns(const struct mrd_loss *l, bool full, double cwnd_packets,
                          uint64_t rto_floor_ns)
{
    const struct mrd_tune_loss *t = l->tune;
    uint64_t srtt = srtt_or_initial(l);
    uint64_t rto = mrd_loss_rto_ns(l, rto_floor_ns);

    if (l->probes >= t->tail_probes) {
        uint32_t doublings =
            (l->probes - mrd_tune_count(t->tail_probes)) / mrd_tune_count(t->rto_tries);

        return l->last_send_ns + (rto << (doublings < 8 ? doublings : 8));
    }
    if (full) {
        uint64_t probe = max_u64(times(t->full_rtts, srtt), times(t->full_floors, rto_floor_ns));
        uint64_t idle = times(t->full_progress_rtts, srtt);

        return max_u64(l->last_send_ns + probe, l->progress_ns + idle) + l->peer_ack_delay_ns;
    }
    uint64_t gap = cwnd_packets < 0.01 ? 100 * srtt : (uint64_t)((double)srtt / cwnd_packets);

    uint64_t probe =
        max_u64(times(t->small_rtts, srtt) + gap, times(t->small_floors, rto_floor_ns));

    return l->last_send_ns + (probe << (l->probes < 4 ? l->probes : 4)) + l->peer_ack_delay_ns;
}
