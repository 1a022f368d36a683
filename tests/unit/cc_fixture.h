/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A congestion control policy by hand: a window, and the ack that it is told of next.
 *
 * It is nscc in a fabric, or what begin() says, which ends what was before; change what f->ack says; acks() and lose(); look at
 * packets().
 */
#ifndef MRD_TESTS_UNIT_CC_FIXTURE_H
#define MRD_TESTS_UNIT_CC_FIXTURE_H

#include <string.h>

#include "core/cc.h"
#include "tests/kit/kit.h"
#include "tests/unit/unit_alloc.h"

enum { PACKET = 4160, BASE_NS = 8000, CAP = 512 << 10, START = 64 << 10 };

#define MSEC_NS   UINT64_C(1000000)
#define LINK_BPS  UINT64_C(100000000000)
#define BDP_BYTES (LINK_BPS * BASE_NS / 8 / 1000000000)

/* assert_float_equal() is for float. */
#define assert_near(value, expect, epsilon)                                                        \
    assert_true((value) - (expect) <= (epsilon) && (expect) - (value) <= (epsilon))

static struct unit_alloc cc_alloc;

static const struct mrd_cc_config fabric = {
    .link_bps = LINK_BPS, .base_rtt_ns = BASE_NS, .base_rtt_max_ns = 12000};
static const struct mrd_cc_config sockets = {
    .base_rtt_ns = 50000,
    .cwnd_cap_bytes = CAP,
    .cwnd_start_bytes = START,
    .allocator = &cc_alloc.ops,
};
static const struct mrd_cc_config far_fabric = {.link_bps = LINK_BPS, .base_rtt_ns = BASE_NS};

FIXTURE(cc_fixture)
{
    struct mrd_cc cc;
    struct mrd_cc_ack ack; /* what the next ack says */
};

/* What was learnt comes back whole. */
static inline void end(struct cc_fixture *f)
{
    mrd_cc_fini(&f->cc);
    assert_int_equal(cc_alloc.live_bytes, 0);
}

static inline void begin(struct cc_fixture *f, const char *name, const struct mrd_cc_config *config)
{
    end(f);
    mrd_cc_init(&f->cc, mrd_cc_find(name), config, PACKET);
    f->ack = (struct mrd_cc_ack){.now_ns = MSEC_NS,
                                 .acked_packets = 4,
                                 .acked_bytes = 4 * PACKET,
                                 .counted_packets = 4,
                                 .rtt_ns = BASE_NS,
                                 .srtt_ns = BASE_NS,
                                 .rtt_min_ns = BASE_NS,
                                 .inflight_bytes = 1 << 20,
                                 .limited = true};
}

/* n acks, spread over `rtts` round trips. */
static inline void acks(struct cc_fixture *f, unsigned n, double rtts)
{
    for (unsigned i = 0; i < n; i++) {
        f->ack.now_ns += (uint64_t)(rtts * (double)f->ack.srtt_ns / n);
        f->cc.ops->ack(&f->cc, &f->ack);
    }
}

static inline void lose(struct cc_fixture *f, uint32_t packets)
{
    f->cc.ops->lost(&f->cc, packets, f->ack.now_ns, f->ack.srtt_ns, f->ack.rtt_min_ns);
}

static inline double packets(const struct cc_fixture *f)
{
    return f->cc.cwnd_bytes / PACKET;
}

static inline void leave_slow_start(struct cc_fixture *f, double window_packets)
{
    f->cc.slow_start = false;
    f->cc.cwnd_bytes = window_packets * PACKET;
}

/* As begin(), past slow start with this window. */
static inline void begin_with(struct cc_fixture *f, const char *name,
                              const struct mrd_cc_config *config, double window_packets)
{
    begin(f, name, config);
    leave_slow_start(f, window_packets);
}

/* The application sends less than the window allows, so that this does not grow. */
static inline void hold_back(struct cc_fixture *f)
{
    f->ack.limited = false;
    f->ack.inflight_bytes = 0;
}

/* An ack for each packet. */
static inline void ack_each(struct cc_fixture *f)
{
    f->ack.acked_packets = f->ack.counted_packets = 1;
    f->ack.acked_bytes = PACKET;
}

FIXTURE_SETUP(cc_fixture)
{
    unit_alloc_init(&cc_alloc);
    begin(self, "nscc", &fabric);
}

FIXTURE_TEARDOWN(cc_fixture)
{
    end(self);
}

#endif
