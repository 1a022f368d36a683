/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/ect.h"

#include "core/limits.h"

enum {
    SILENT_PROBES = 2,  /* the third packet that nobody answers is the first without ECT */
    WAIT_SHIFT = 2,     /* each test waits four times as long as the one before it, */
    WAIT_DOUBLINGS = 22 /* up to 4194 s */
};
#define RELAPSE_NS (64 * MRD_SEC) /* silence that comes so soon after a test counts against it */

static uint64_t wait_ns(const struct mrd_ect *x)
{
    unsigned doublings = x->failed ? (x->failed - 1u) * WAIT_SHIFT : 0;

    if (!x->failed)
        return 0;
    return MRD_MSEC << (doublings < WAIT_DOUBLINGS ? doublings : WAIT_DOUBLINGS);
}

static void count_failure(struct mrd_ect *x)
{
    if (x->failed < UINT8_MAX)
        x->failed++;
}

bool mrd_ect_silent(struct mrd_ect *x, uint32_t unanswered, uint64_t now_ns)
{
    if (x->off || unanswered < SILENT_PROBES)
        return false;
    x->off = true;
    if (x->test_ns && now_ns - x->test_ns < RELAPSE_NS)
        count_failure(x);
    else
        x->failed = 0;
    x->test_ns = 0;
    return true;
}

bool mrd_ect_tests(struct mrd_ect *x, uint32_t psn, bool fresh, bool answers, uint64_t now_ns)
{
    if (x->testing) {
        if (psn == x->test_psn) { /* lost */
            x->testing = false;
            count_failure(x);
            x->test_ns = now_ns + wait_ns(x);
        }
        return false;
    }
    if (!fresh || !answers)
        return false;
    if (!x->test_ns)
        x->test_ns = now_ns + wait_ns(x);
    if (now_ns < x->test_ns)
        return false;
    x->testing = true;
    x->test_psn = psn;
    return true;
}

void mrd_ect_passed(struct mrd_ect *x, uint64_t now_ns)
{
    x->off = x->testing = false;
    x->test_ns = now_ns;
}
