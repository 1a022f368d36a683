/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * May packets to a peer be marked (ECT)? Networks exist that drop packets which say so.
 *
 * mrd_ect_silent() when probes to the peer go unanswered: from then on packets leave unmarkable.
 * Silence has other causes, so once the peer has answered, mrd_ect_may_mark() lets one packet leave
 * with ECT as a test. mrd_ect_passed() says that it was acked; sent again, it did not come, and the
 * next test waits longer. RFC 9000, section 13.4.2, validates a path likewise.
 */
#ifndef MRD_CORE_ECT_H
#define MRD_CORE_ECT_H

#include <stdbool.h>
#include <stdint.h>

/* Of a peer; zeroed at first. */
struct mrd_ect {
    uint64_t
        test_ns; /* off: when to test next, 0: to be computed; on: when a test passed, 0: none */
    uint32_t test_psn;
    uint8_t failed; /* tests that failed, and those that passed before silence came again */
    bool off;       /* packets to the peer leave without ECT */
    bool testing;   /* but that of test_psn did with it, and nothing is known of it yet */
    bool acks_off;  /* the peer's own packets came without: acks leave without, too */
};

/* `unanswered` probes in a row. Returns true if packets leave unmarkable from now on, only. */
bool mrd_ect_silent(struct mrd_ect *x, uint32_t unanswered, uint64_t now_ns);
/*
 * A packet leaves: shall it carry ECT? `fresh`: it leaves for the first time; `answers`: the peer
 * has answered, and no probe since then waits for its ack.
 */
bool mrd_ect_tests(struct mrd_ect *x, uint32_t psn, bool fresh, bool answers, uint64_t now_ns);
static inline bool mrd_ect_may_mark(struct mrd_ect *x, uint32_t psn, bool fresh, bool answers,
                                    uint64_t now_ns)
{
    return !x->off || mrd_ect_tests(x, psn, fresh, answers, now_ns);
}
/* test_psn was acked. Packets carry ECT again. */
void mrd_ect_passed(struct mrd_ect *x, uint64_t now_ns);

#endif
