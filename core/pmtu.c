/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/pmtu.h"

#include <string.h>

#include "core/limits.h"

enum {
    STEP = 64,       /* sizes are multiples of it */
    ETHERNET = 1344, /* payload at an MTU of 1,500: below IPv4 or IPv6, UDP and our header */
};

static uint16_t msec(uint64_t ns)
{
    return (uint16_t)(ns / MRD_MSEC);
}

/* What becomes of a probe in flight says nothing of the size that is tried next. */
static void forget_probes(struct mrd_pmtu *m)
{
    m->probed = 0;
    m->lost = 0;
}

/* No size between was tried yet. */
static void begin_search(struct mrd_pmtu *m, const struct mrd_pmtu_range *r)
{
    m->failed = (uint16_t)(r->limit + STEP);
    forget_probes(m);
}

void mrd_pmtu_init(struct mrd_pmtu *m, const struct mrd_pmtu_range *r, bool sure)
{
    memset(m, 0, sizeof(*m));
    m->payload = (uint16_t)(sure ? r->limit : r->base);
    begin_search(m, r);
}

static bool is_open(const struct mrd_pmtu *m, uint32_t bytes)
{
    return bytes > m->payload && bytes < m->failed;
}

static uint32_t candidate(const struct mrd_pmtu *m, const struct mrd_pmtu_range *r)
{
    if (is_open(m, m->hint))
        return m->hint;
    if (m->failed > r->limit)
        return r->limit;
    if (is_open(m, ETHERNET))
        return ETHERNET;
    return (uint32_t)(m->payload + m->failed) / 2 / STEP * STEP;
}

static bool is_over(const struct mrd_pmtu *m)
{
    return m->failed <= m->payload + STEP;
}

/* When the size is known another search may find more later, where a route has changed. */
static void end_search(struct mrd_pmtu *m, uint64_t now_ns)
{
    uint64_t pause_ns = MRD_PMTU_PAUSE_NS << m->searches;

    if (!is_over(m))
        return;
    if (pause_ns < MRD_PMTU_PAUSE_MAX_NS)
        m->searches++;
    else
        pause_ns = MRD_PMTU_PAUSE_MAX_NS;
    m->search_s = (uint16_t)((now_ns + pause_ns) / MRD_SEC);
}

uint32_t mrd_pmtu_next(struct mrd_pmtu *m, const struct mrd_pmtu_range *r, uint64_t now_ns)
{
    uint16_t ahead_s;

    if (m->probed || m->payload >= r->limit)
        return 0;
    if (is_over(m)) {
        /* It was at most the longest pause ahead, so a time further ahead has passed. */
        ahead_s = (uint16_t)(m->search_s - now_ns / MRD_SEC);
        if (ahead_s && ahead_s <= MRD_PMTU_PAUSE_MAX_NS / MRD_SEC)
            return 0;
        begin_search(m, r);
    }
    return candidate(m, r);
}

void mrd_pmtu_sent(struct mrd_pmtu *m, uint32_t bytes)
{
    m->probed = (uint16_t)bytes;
}

void mrd_pmtu_acked(struct mrd_pmtu *m, const struct mrd_pmtu_range *r, uint32_t bytes,
                    uint64_t now_ns)
{
    if (bytes == m->probed)
        m->probed = m->lost = 0;
    if (bytes <= m->payload || bytes > r->limit)
        return;
    m->payload = m->hint = (uint16_t)bytes;
    if (m->failed <= bytes) /* it was taken for lost, and came late */
        m->failed = (uint16_t)(bytes + STEP);
    end_search(m, now_ns);
}

void mrd_pmtu_lost(struct mrd_pmtu *m, uint32_t bytes, uint64_t now_ns)
{
    if (bytes != m->probed)
        return;
    m->probed = 0;
    if (m->lost + 1 < MRD_PMTU_PROBES) {
        m->lost++;
        return;
    }
    m->lost = 0;
    if (bytes < m->failed)
        m->failed = (uint16_t)bytes;
    end_search(m, now_ns);
}

void mrd_pmtu_inconclusive(struct mrd_pmtu *m, uint32_t bytes)
{
    if (bytes == m->probed)
        m->probed = 0;
}

void mrd_pmtu_too_big(struct mrd_pmtu *m, uint32_t bytes, uint64_t now_ns)
{
    if (m->payload <= bytes && m->failed <= bytes + STEP) /* it is known */
        return;
    if (m->payload > bytes) {
        m->payload = (uint16_t)bytes;
        m->searches = 0;
    }
    if (m->failed > bytes + STEP)
        m->failed = (uint16_t)(bytes + STEP);
    if (m->hint > bytes)
        m->hint = 0;
    m->losses = 0;
    forget_probes(m);
    end_search(m, now_ns);
}

void mrd_pmtu_limit(struct mrd_pmtu *m, const struct mrd_pmtu_range *r)
{
    if (m->payload > r->limit)
        m->payload = (uint16_t)r->limit;
    if (m->hint > r->limit)
        m->hint = 0;
    m->losses = 0; /* of sizes that are not sent any more */
    begin_search(m, r);
}

bool mrd_pmtu_payload_lost(struct mrd_pmtu *m, const struct mrd_pmtu_range *r, uint32_t bytes,
                           uint64_t srtt_ns, uint64_t now_ns)
{
    uint64_t span_ns = MRD_PMTU_LOSSES_NS + MRD_PMTU_LOSSES_SRTTS * srtt_ns;

    /* What is larger was made before the path was found to take less, and leaves in pieces. */
    if (bytes <= r->base || bytes > m->payload)
        return false;
    if (!m->losses)
        m->losses_ms = msec(now_ns);
    if (!m->losses || bytes > m->most)
        m->most = (uint16_t)bytes;
    if (m->losses + 1 < MRD_PMTU_LOSSES)
        m->losses++;
    else if ((uint16_t)(msec(now_ns) - m->losses_ms) * MRD_MSEC >= span_ns) {
        m->hint = m->payload;
        m->payload = (uint16_t)r->base;
        m->losses = 0;
        m->searches = 0;
        begin_search(m, r);
        return true;
    }
    return false;
}

void mrd_pmtu_payload_acked(struct mrd_pmtu *m, const struct mrd_pmtu_range *r, uint32_t bytes)
{
    if (bytes > r->base && bytes >= m->most)
        m->losses = 0;
}
