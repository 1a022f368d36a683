/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and atomics of the swarm: of each host's store, which never changes, and of its words, which
 * only atomics change.
 *
 * Each FETCH_AND_ADD adds 1. So all that succeeded answered different values, and a word is at the
 * end at least as great as there were successes, and no greater than there were tries. A
 * CMP_AND_SWP compares with a value that no word reaches: it answers what is there.
 */
#include <string.h>

#include "tests/support/payload.h"
#include "tests/support/swarm.h"

enum { STORE_OFFSET = 4096, STORE_NUMBER = 1 << 30 };

#define NO_VALUE UINT64_MAX

bool swarm_is_request(const struct swarm_message *m)
{
    return m->opcode >= MRD_WR_RDMA_READ;
}

static bool is_atomic(const struct swarm_message *m)
{
    return swarm_is_request(m) && m->opcode != MRD_WR_RDMA_READ;
}

static uint64_t *words_of(const struct swarm *s, uint32_t host)
{
    return (uint64_t *)(void *)s->host[host].store;
}

void swarm_fill_store(struct swarm *s, uint32_t host)
{
    payload_fill(s->host[host].store + STORE_OFFSET, SWARM_STORE_BYTES, s->seed,
                 STORE_NUMBER + host);
}

void swarm_open_store(struct swarm *s, struct swarm_host *h)
{
    h->words_mr = mrd_reg_mr(h->pd, h->store, SWARM_WORDS * sizeof(uint64_t),
                             MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_ATOMIC);
    h->store_mr =
        mrd_reg_mr(h->pd, h->store + STORE_OFFSET, SWARM_STORE_BYTES, MRD_ACCESS_REMOTE_READ);
    swarm_check(s, h->words_mr && h->store_mr, "reg_mr: %s", mrd_last_error());
    h->words_rkey = h->words_mr->rkey;
    h->store_rkey = h->store_mr->rkey;
}

void swarm_close_store(struct swarm_host *h)
{
    assert_int_equal(mrd_dereg_mr(h->words_mr), 0);
    assert_int_equal(mrd_dereg_mr(h->store_mr), 0);
}

void swarm_draw_request(struct swarm *s, struct swarm_message *m)
{
    static const enum mrd_wr_opcode opcodes[] = {
        MRD_WR_RDMA_READ, MRD_WR_RDMA_READ, MRD_WR_ATOMIC_FETCH_AND_ADD, MRD_WR_ATOMIC_CMP_AND_SWP};

    m->opcode = opcodes[swarm_below(s, 4)];
    m->signaled = true;
    m->is_inline = false;
    if (is_atomic(m)) {
        m->len = sizeof(uint64_t);
        m->offset = (uint32_t)sizeof(uint64_t) * swarm_below(s, SWARM_WORDS);
    } else {
        m->len = m->len < SWARM_STORE_BYTES ? m->len : SWARM_STORE_BYTES;
        m->offset = swarm_below(s, SWARM_STORE_BYTES - m->len + 1);
    }
    m->flaw = SWARM_SOUND;
    if (s->config.bad_requests && m->len && swarm_chance(s, s->config.flawed))
        m->flaw = swarm_chance(s, 500) ? SWARM_BAD_QPN : SWARM_BAD_RKEY;
}

void swarm_aim_request(const struct swarm *s, const struct swarm_message *m, struct mrd_send_wr *wr)
{
    const struct swarm_host *to = &s->host[s->qp[m->to_qp].host];
    uint32_t wrong = m->flaw == SWARM_BAD_RKEY;

    if (!is_atomic(m)) {
        wr->wr.rdma.remote_addr = (uintptr_t)to->store + STORE_OFFSET + m->offset;
        wr->wr.rdma.rkey = to->store_rkey + wrong;
        return;
    }
    wr->wr.atomic.remote_addr = (uintptr_t)to->store + m->offset;
    wr->wr.atomic.rkey = to->words_rkey + wrong;
    wr->wr.atomic.compare_add = m->opcode == MRD_WR_ATOMIC_FETCH_AND_ADD ? 1 : NO_VALUE;
    wr->wr.atomic.swap = NO_VALUE;
}

void swarm_judge_request(struct swarm *s, struct swarm_message *m)
{
    uint32_t number = (uint32_t)(m - s->message);
    const uint8_t *store = s->host[s->qp[m->to_qp].host].store;

    if (m->status != MRD_WC_SUCCESS)
        return;
    if (!m->source) /* deregistered after the answer came, before the request was acked */
        m->answer = NO_VALUE;
    else if (is_atomic(m))
        memcpy(&m->answer, m->source, sizeof(m->answer));
    else
        swarm_check(s, !memcmp(m->source, store + STORE_OFFSET + m->offset, m->len),
                    "message %u: %u bytes were read that are not in the store", number, m->len);
}

/* Does the message concern that word, and which value did it answer? */
static bool is_of_word(const struct swarm *s, const struct swarm_message *m, uint32_t host,
                       uint32_t word)
{
    return is_atomic(m) && s->qp[m->to_qp].host == host && m->offset == word * sizeof(uint64_t);
}

static bool may_have_run(const struct swarm_message *m)
{
    return m->flaw == SWARM_SOUND && (!m->sent || (m->status != MRD_WC_REM_ACCESS_ERR &&
                                                   m->status != MRD_WC_REM_INV_REQ_ERR));
}

static void judge_word(struct swarm *s, uint32_t host, uint32_t word)
{
    static uint8_t seen[SWARM_MESSAGES_MAX / 8];
    uint64_t value = words_of(s, host)[word], successes = 0, tries = 0;

    memset(seen, 0, sizeof(seen));
    for (uint32_t i = 0; i < s->num_messages; i++) {
        const struct swarm_message *m = &s->message[i];
        bool adds = m->opcode == MRD_WR_ATOMIC_FETCH_AND_ADD;

        if (!is_of_word(s, m, host, word))
            continue;
        tries += adds && may_have_run(m);
        if (!m->sent || m->status != MRD_WC_SUCCESS)
            continue;
        successes += adds;
        if (m->answer == NO_VALUE)
            continue;
        swarm_check(s, m->answer <= value && (!adds || m->answer < value),
                    "message %u answered %llu of word %u of host %u, which is %llu at the end", i,
                    (unsigned long long)m->answer, word, host, (unsigned long long)value);
        if (!adds)
            continue;
        swarm_check(s, !(seen[m->answer / 8] & 1 << m->answer % 8),
                    "message %u: two adds answered %llu", i, (unsigned long long)m->answer);
        seen[m->answer / 8] |= (uint8_t)(1 << m->answer % 8);
    }
    swarm_check(s, value >= successes && value <= tries,
                "word %u of host %u is %llu after %llu adds that succeeded, of %llu", word, host,
                (unsigned long long)value, (unsigned long long)successes,
                (unsigned long long)tries);
}

void swarm_judge_words(struct swarm *s)
{
    for (uint32_t host = 0; host < s->config.sim.hosts; host++) {
        for (uint32_t word = 0; word < SWARM_WORDS; word++)
            judge_word(s, host, word);
    }
}
