/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of messages and memory after the faults, and at the end. */
#include <inttypes.h>

#include "tests/support/payload.h"
#include "tests/support/swarm.h"

enum { GUARD_BYTES = 64, NAMED_BYTES = 8, UNSETTLED_TOLD = 4, LOOKS = 8, COUNTERS_MAX = 128 };

static bool has_succeeded(const struct swarm_message *m)
{
    return m->implied || (m->sent && m->status == MRD_WC_SUCCESS);
}

/*
 * Short messages without immediate data may look alike. If one that succeeded seems not to have
 * arrived, another that looks the same, and arrived without having succeeded, stands for it: the
 * two change their roles.
 */
static bool take_double(struct swarm *s, struct swarm_message *m)
{
    if (m->opcode != MRD_WR_SEND || m->len >= NAMED_BYTES)
        return false;
    for (uint32_t i = 0; i < s->num_messages; i++) {
        struct swarm_message *other = &s->message[i];

        if (other->received && !has_succeeded(other) && other->opcode == MRD_WR_SEND &&
            swarm_is_for(s, other, m->to_qp) &&
            s->qp[other->from_qp].num == s->qp[m->from_qp].num && other->len == m->len) {
            other->received = false;
            m->received = true;
            return true;
        }
    }
    return false;
}

bool swarm_match_arrived(struct swarm *s, struct swarm_message *m)
{
    return m->opcode == MRD_WR_RDMA_WRITE || swarm_is_request(m) || m->received ||
           take_double(s, m);
}

void swarm_check_arrived(struct swarm *s, uint32_t to_qp)
{
    for (uint32_t i = 0; i < s->num_messages; i++) {
        struct swarm_message *m = &s->message[i];

        if (m->to_qp == to_qp && has_succeeded(m))
            swarm_check(s, swarm_match_arrived(s, m),
                        "message %u succeeded, and was not received by QP %u", i, to_qp);
    }
}

/* ----------------------------------------------------------------------------------- settlement */

/* Can the target no longer tell whether a message without a completion arrived? */
static bool is_untold(const struct swarm *s, const struct swarm_message *m)
{
    const struct swarm_qp *to = &s->qp[m->to_qp];
    const struct swarm_host *h = &s->host[to->host];

    return !to->qp || to->error || to->memory_gone || (m->target && !h->window[m->window].mr);
}

/*
 * Is it known what became of the message, and did it arrive if it should? false: *why is a reason.
 */
static bool is_settled(struct swarm *s, struct swarm_message *m, const char **why)
{
    if ((m->sent && m->status != MRD_WC_SUCCESS) ||
        ledger_get(&s->ledger, m->wr_id)->state == LEDGER_ABANDONED)
        return true;
    *why = "a signaled send is not complete";
    if (m->signaled && !m->sent)
        return false;
    if (!has_succeeded(m) && is_untold(s, m))
        return true;
    *why = "a send succeeded and was not received";
    if (m->opcode != MRD_WR_RDMA_WRITE)
        return swarm_match_arrived(s, m);
    *why = "an unsignaled write neither failed nor is in place";
    if (!m->sent && !m->taken && !m->placed && mrd_sim_now(s->sim) >= m->look_ns) {
        m->placed = swarm_holds(s, m, m->target);
        m->look_ns = mrd_sim_now(s->sim) + (mrd_sim_now(s->sim) - m->posted_ns) / LOOKS + USEC_NS;
    }
    return m->sent || m->taken || m->placed;
}

bool swarm_is_settled(struct swarm *s)
{
    const char *why = NULL;

    while (s->settled < s->num_messages && is_settled(s, &s->message[s->settled], &why))
        s->settled++;
    return s->settled == s->num_messages;
}

bool swarm_is_settled_from(struct swarm *s, uint32_t first)
{
    const char *why = NULL;

    for (uint32_t i = first; i < s->num_messages; i++) {
        if (!is_settled(s, &s->message[i], &why))
            return false;
    }
    return true;
}

static const char *state_of(const struct swarm_qp *qp)
{
    return !qp->qp ? " (destroyed)" : qp->error ? " (error)" : "";
}

/* Prints how far the sender of a message gets with its peer. */
static void describe_peer(const struct swarm *s, uint32_t from, uint32_t to)
{
    struct mrd_peer_attr attr;

    if (!s->host[from].context || mrd_query_peer(s->host[from].ah[to], &attr, sizeof(attr)) != 0) {
        print_error("    host %u knows nothing of host %u\n", from, to);
        return;
    }
    print_error("    host %u to host %u: window %" PRIu64 ", in flight %" PRIu64
                " bytes; srtt %.1f us; %" PRIu64 " packets sent, %" PRIu64 " again, %" PRIu64
                " timeouts, %" PRIu64 " received\n",
                from, to, attr.cwnd_bytes, attr.inflight_bytes, (double)attr.srtt_ns / 1e3,
                attr.packets_sent, attr.packets_retransmitted, attr.timeouts,
                attr.packets_received);
}

/* Prints a host's counters if the seed is traced. */
static void tell_counters(const struct swarm *s, uint32_t host)
{
    struct mrd_counter counters[COUNTERS_MAX];
    int num = s->tells && s->host[host].context
                  ? mrd_query_counters(s->host[host].context, counters, COUNTERS_MAX)
                  : 0;

    for (int i = 0; i < num && i < COUNTERS_MAX; i++) {
        if (counters[i].value > 0)
            swarm_tell(s, "host %u: %s %" PRIu64, host, counters[i].name, counters[i].value);
    }
}

void swarm_describe_unsettled(struct swarm *s)
{
    const char *why = NULL;
    uint32_t unsettled = 0;

    for (uint32_t i = 0; i < s->num_messages; i++) {
        const struct swarm_message *m = &s->message[i];
        const struct swarm_qp *from = &s->qp[m->from_qp], *to = &s->qp[m->to_qp];

        if (is_settled(s, &s->message[i], &why) || unsettled++ >= UNSETTLED_TOLD)
            continue;
        print_error("  message %u (opcode %d, %u bytes, flaw %d%s%s), posted at %.3f us, from host "
                    "%u QP %u%s to host %u QP %u%s, which has %u receives: %s\n",
                    i, (int)m->opcode, m->len, (int)m->flaw, m->signaled ? "" : ", unsignaled",
                    from->order != MRD_ORDER_NONE ? ", ordered" : "", (double)m->posted_ns / 1e3,
                    from->host, m->from_qp, state_of(from), to->host, m->to_qp, state_of(to),
                    to->receives, why);
        describe_peer(s, from->host, to->host);
        describe_peer(s, to->host, from->host);
    }
    for (uint32_t host = 0; host < s->config.sim.hosts; host++)
        tell_counters(s, host);
    print_error("  %u messages are not settled\n", unsettled);
}

/* --------------------------------------------------------------------------------------- memory */

static void judge_memory(struct swarm *s, struct swarm_message *m)
{
    uint32_t number = (uint32_t)(m - s->message);

    if (!m->target)
        return;
    swarm_check(s, !m->late || (!m->implied && (m->sent || !m->placed)),
                "message %u: written after a later ordered message was delivered", number);
    if (m->taken) {
        swarm_check(s, payload_is_blank(m->target, m->len, SWARM_TAKEN),
                    "message %u: its target changed after it was done with", number);
    } else if (m->flaw != SWARM_SOUND) {
        swarm_check(s, payload_is_blank(m->target, m->len, SWARM_BLANK),
                    "message %u: written although it was refused", number);
    } else if (!s->config.straight) {
        size_t at = payload_mismatch_partial(m->target, m->len, s->seed, number, SWARM_BLANK);

        swarm_check(s, at == m->len, "message %u: byte %zu of its target is neither old nor new",
                    number, at);
    }
    swarm_check(s, payload_is_blank(m->target + m->len, GUARD_BYTES, SWARM_BLANK),
                "message %u: bytes behind its target were written", number);
}

void swarm_judge_end(struct swarm *s)
{
    for (uint32_t i = 0; i < s->num_qps; i++)
        swarm_check_arrived(s, i);
    for (uint32_t i = 0; i < s->num_messages; i++)
        judge_memory(s, &s->message[i]);
    swarm_judge_words(s);
    for (uint32_t i = 0; i < s->num_receives; i++) {
        const struct swarm_receive *r = &s->receive[i];

        swarm_check(s, r->posted || payload_is_blank(r->buf, r->used_len, SWARM_USED),
                    "host %u: a receive buffer changed after its completion", r->host);
    }
}
