/* SPDX-License-Identifier: BSD-2-Clause */
/* Work that waits for long, while nothing is sent: the peer must not forget its space. */
#include "core/engine/state.h"
#include "tests/support/world.h"

static struct sim_world *create(uint32_t rnr_retry, uint64_t rnr_timer_ns)
{
    return sim_fabric_world(&(struct sim_options){.rnr_limited = true,
                                                  .rnr_retry = rnr_retry,
                                                  .rnr_timer_ns = rnr_timer_ns,
                                                  .recv_bytes = 100,
                                                  .no_receives = true});
}

/* Retries for ever, each after twice the delay; the longest outlasts what is known of a space. */
TEST(sim_long_silence__a_message_that_waits_for_a_receive_for_long)
{
    struct sim_world *w = create(MRD_RNR_RETRY_FOREVER, 500 * MSEC_NS);

    sim_send(w, HOST_0, HOST_1, 100);
    for (unsigned i = 0; i < 100 && !w->messages[0].sent; i++)
        sim_run(w, SEC_NS);
    test_check(w->options.seed, !w->messages[0].sent, "failed after %llu ms, status %u",
               (unsigned long long)(w->messages[0].sent_ns / MSEC_NS), w->messages[0].status);
    sim_post_recvs(w, HOST_1, 0, 1, 100);
    sim_all_arrive(w, 100 * SEC_NS);
    test_check(w->options.seed, w->messages[0].status == MRD_WC_SUCCESS, "status %u",
               w->messages[0].status);
}

/*
 * A peer was refused once for want of a receive, and gave up. Much later a receive is posted, and a
 * message to that peer: READY must not go, and take the message with it, under an epoch that the
 * peer forgot.
 */
TEST(sim_long_silence__ready_for_a_peer_that_was_silent_for_long)
{
    struct sim_world *w = create(0, 0);

    sim_send(w, HOST_0, HOST_1, 100);
    sim_run_until_complete(w, SEC_NS);
    assert_int_equal(w->messages[0].status, MRD_WC_RNR_RETRY_EXC_ERR);
    sim_run(w, 30 * SEC_NS);
    sim_post_recvs(w, HOST_0, 0, 1, 100);
    sim_post_recvs(w, HOST_1, 0, 1, 100);
    uint32_t index = sim_send(w, HOST_1, HOST_0, 100);
    sim_run_until_complete(w, SEC_NS);
    test_check(w->options.seed, w->messages[index].status == MRD_WC_SUCCESS,
               "status %u, restarts %u", w->messages[index].status, w->node[HOST_1].restarted);
    assert_int_equal(w->node[HOST_1].restarted, 0);
}
