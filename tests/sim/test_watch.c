/* SPDX-License-Identifier: BSD-2-Clause */
/* Watched peers: an event tells when they go away or come back as others, without any work to them. */
#include <errno.h>
#include <string.h>

#include "core/limits.h"
#include "tests/support/world.h"

enum { TIMEOUT_MS = 400, SETTLE_MS = 20 };

#define TIMEOUT_NS (TIMEOUT_MS * MSEC_NS)
/* The question comes after a quarter of the timeout, and the answer is waited for as long as that. */
#define TOLD_NS (TIMEOUT_NS + TIMEOUT_NS / 4 + TIMEOUT_NS / 4)

static struct sim_world *begin(const struct sim_options *options)
{
    struct sim_options o = *options;

    if (!o.peer_timeout_ns)
        o.peer_timeout_ns = TIMEOUT_NS;
    return sim_fabric_world(&o);
}

static void watch(struct sim_world *w, uint32_t host, uint32_t peer, int on)
{
    assert_int_equal(mrd_watch_peer(w->node[host].ah[peer], on), 0);
}

/* The two talk, and one watches the other. */
static struct sim_world *begin_watched(const struct sim_options *options)
{
    struct sim_world *w = begin(options);

    sim_write_complete(w, HOST_0, HOST_1, 5000, 10 * MSEC_NS);
    watch(w, HOST_0, HOST_1, 1);
    sim_run(w, SETTLE_MS * MSEC_NS);
    return w;
}

static void expect(const struct sim_world *w, uint32_t host, uint32_t unreachable,
                   uint32_t restarted)
{
    test_check(w->options.seed,
               w->node[host].unreachable == unreachable && w->node[host].restarted == restarted,
               "host %u: %u unreachable, %u restarted, expected %u and %u", host,
               w->node[host].unreachable, w->node[host].restarted, unreachable, restarted);
}

/* Of host 0, and so much later. */
static void expect_after(struct sim_world *w, uint64_t ns, uint32_t unreachable, uint32_t restarted)
{
    sim_run(w, ns);
    expect(w, HOST_0, unreachable, restarted);
}

static uint64_t packets(const struct sim_world *w)
{
    struct mrd_sim_stats stats;

    assert_int_equal(mrd_sim_link_stats(w->sim, -1, -1, -1, &stats), 0);
    return stats.packets;
}

/* A server dies after it acked its request. Nobody else would learn of it. */
TEST(watch__tells_of_a_death)
{
    struct sim_world *w = begin_watched(&(struct sim_options){.hosts = 3});

    sim_write_complete(w, HOST_2, HOST_1, 5000, 10 * MSEC_NS);
    mrd_sim_stop_host(w->sim, HOST_1, 1);
    expect_after(w, TIMEOUT_NS, 0, 0);
    expect_after(w, TOLD_NS - TIMEOUT_NS, 1, 0);
    expect(w, HOST_2, 0, 0);
    sim_run(w, 4 * TIMEOUT_NS); /* once */
    expect(w, HOST_0, 1, 0);
    watch(w, HOST_0, HOST_1, 1); /* it is still dead */
    expect_after(w, TOLD_NS, 2, 0);
    mrd_sim_stop_host(w->sim, HOST_1, 0);
    sim_run(w, SETTLE_MS * MSEC_NS);
    watch(w, HOST_0, HOST_1, 1);
    expect_after(w, 4 * TIMEOUT_NS, 2, 0);
}

/* One direction is enough. */
TEST(watch__tells_of_a_dead_direction)
{
    for (unsigned back = 0; back < 2; back++) {
        struct sim_world *w = begin_watched(&(struct sim_options){0});

        sim_links(w, back ? "host1>host0*" : "host0>host1*", "blackhole", "on");
        expect_after(w, TOLD_NS, 1, 0);
    }
}

/* Nobody ever was there. */
TEST(watch__tells_of_an_address_without_peer)
{
    struct sim_world *w = begin(&(struct sim_options){0});

    sim_close(w, HOST_1);
    watch(w, HOST_0, HOST_1, 1);
    expect_after(w, TOLD_NS, 1, 0);
    sim_open(w, HOST_1);
}

/* The peer begins later: it is waited for like work that was posted. */
TEST(watch__peer_that_opens_in_time)
{
    struct sim_world *w = begin(&(struct sim_options){0});

    sim_close(w, HOST_1);
    watch(w, HOST_0, HOST_1, 1);
    sim_run(w, TIMEOUT_NS / 2);
    sim_open(w, HOST_1);
    expect_after(w, 4 * TIMEOUT_NS, 0, 0);
    mrd_sim_stop_host(w->sim, HOST_1, 1);
    expect_after(w, TOLD_NS, 1, 0);
    mrd_sim_stop_host(w->sim, HOST_1, 0);
}

TEST(watch__tells_of_a_restart)
{
    struct sim_world *w = begin_watched(&(struct sim_options){0});

    sim_run(w, 2 * TIMEOUT_NS);
    sim_restart(w, HOST_1);
    expect_after(w, TIMEOUT_NS, 0, 1);
    expect_after(w, 4 * TIMEOUT_NS, 0, 1);
    watch(w, HOST_0, HOST_1, 1); /* the new one */
    expect_after(w, 4 * TIMEOUT_NS, 0, 1);
    sim_restart(w, HOST_1);
    expect_after(w, TIMEOUT_NS, 0, 2);
}

/* The new life speaks first. */
TEST(watch__tells_of_a_restart_that_speaks_first)
{
    struct sim_world *w = begin_watched(&(struct sim_options){0});

    sim_restart(w, HOST_1);
    sim_write_complete(w, HOST_1, HOST_0, 5000, 100 * MSEC_NS);
    expect(w, HOST_0, 0, 1);
    expect_after(w, 4 * TIMEOUT_NS, 0, 1);
}

TEST(watch__tells_of_a_close)
{
    struct sim_world *w = begin_watched(&(struct sim_options){0});

    sim_close(w, HOST_1);
    sim_run(w, 2 * TOLD_NS);
    assert_int_equal(w->node[HOST_0].unreachable + w->node[HOST_0].restarted, 1);
    sim_open(w, HOST_1);
}

/*
 * The watcher itself was stopped, for longer than the peer keeps what it knows. Its own absence is
 * no news; that the peer is another is.
 */
TEST(watch__watcher_was_stopped)
{
    static const uint64_t stops_ns[] = {TIMEOUT_NS, 5 * SEC_NS, 30 * SEC_NS};

    for (unsigned i = 0; i < 3; i++) {
        for (unsigned restarts = 0; restarts < 2; restarts++) {
            struct sim_world *w = begin_watched(&(struct sim_options){0});

            mrd_sim_stop_host(w->sim, HOST_0, 1);
            sim_run(w, stops_ns[i] / 2);
            if (restarts)
                sim_restart(w, HOST_1);
            sim_run(w, stops_ns[i] / 2);
            mrd_sim_stop_host(w->sim, HOST_0, 0);
            expect_after(w, 4 * TOLD_NS, 0, restarts);
        }
    }
}

/* A peer that is there raises no event, is not forgotten, and costs a few packets a second. */
TEST(watch__costs_little)
{
    struct sim_world *w = begin_watched(&(struct sim_options){.peer_timeout_ns = 8 * SEC_NS});
    uint64_t before = packets(w);

    expect_after(w, 100 * SEC_NS, 0, 0);
    test_check(w->options.seed, packets(w) - before <= 2 * 50 + 2, "%u packets in 100 s",
               (unsigned)(packets(w) - before));
    watch(w, HOST_0, HOST_1, 0);
    sim_run(w, 5 * SEC_NS);
    before = packets(w);
    sim_run(w, 100 * SEC_NS);
    assert_int_equal(packets(w), before);
    mrd_sim_stop_host(w->sim, HOST_1, 1);
    expect_after(w, 30 * SEC_NS, 0, 0);
    mrd_sim_stop_host(w->sim, HOST_1, 0);
}

/* Several users watch the same peer: who ends a watch ends no other's, and the event ends all. */
TEST(watch__is_counted)
{
    struct sim_world *w = begin_watched(&(struct sim_options){0});
    struct mrd_ah *other = mrd_create_ah(w->node[HOST_0].pd, "sim:1");

    assert_non_null(other);
    assert_int_equal(mrd_watch_peer(other, 1), 0);
    assert_int_equal(mrd_destroy_ah(other), 0);
    watch(w, HOST_0, HOST_1, 1);
    watch(w, HOST_0, HOST_1, 0);
    watch(w, HOST_0, HOST_1, 0);
    mrd_sim_stop_host(w->sim, HOST_1, 1);
    expect_after(w, TOLD_NS, 1, 0);
    mrd_sim_stop_host(w->sim, HOST_1, 0);
    watch(w, HOST_0, HOST_1, 1);
    sim_run(w, SETTLE_MS * MSEC_NS);
    watch(w, HOST_0, HOST_1, 0);
    watch(w, HOST_0, HOST_1, 0); /* one that there is not */
    mrd_sim_stop_host(w->sim, HOST_1, 1);
    expect_after(w, 10 * TIMEOUT_NS, 1, 0);
    mrd_sim_stop_host(w->sim, HOST_1, 0);
}

/* Both watch each other, with losses, for long; nobody is taken for dead. */
TEST(watch__lossy_network)
{
    struct sim_world *w =
        begin(&(struct sim_options){.loss_ppm = 200000, .jitter_ns = 1 * MSEC_NS});

    watch(w, HOST_0, HOST_1, 1);
    watch(w, HOST_1, HOST_0, 1);
    expect_after(w, 60 * SEC_NS, 0, 0);
    expect(w, HOST_1, 0, 0);
}

/* A watched peer keeps its place in the table; the call that finds none says so. */
TEST(watch__table_of_peers)
{
    struct sim_world *w =
        begin(&(struct sim_options){.hosts = 4, .max_peers = 2, .peer_timeout_ns = SEC_NS});
    uint32_t id;

    watch(w, HOST_0, HOST_1, 1);
    watch(w, HOST_0, HOST_2, 1);
    sim_run(w, 60 * SEC_NS);
    assert_int_equal(mrd_watch_peer(w->node[HOST_0].ah[HOST_3], 1), -EAGAIN);
    assert_non_null(strstr(mrd_last_error(), "max_peers"));
    assert_int_equal(mrd_watch_peer(w->node[HOST_0].ah[HOST_3], 0), 0);
    assert_int_equal(
        sim_try_post(w, &(struct sim_post){.from = HOST_0, .to = HOST_3, .len = 8}, &id), -EAGAIN);
    /* After a stop both seem to be idle for long. */
    sim_stop_for(w, HOST_0, 60 * SEC_NS);
    assert_int_equal(
        sim_try_post(w, &(struct sim_post){.from = HOST_0, .to = HOST_3, .len = 8}, &id), -EAGAIN);
    watch(w, HOST_0, HOST_2, 0);
    sim_run(w, 60 * SEC_NS);
    sim_write(w, HOST_0, HOST_3, 8); /* takes the place of the one that is not watched any more */
    sim_run_until_complete(w, 100 * MSEC_NS);
    expect(w, HOST_0, 0, 0);
    mrd_sim_stop_host(w->sim, HOST_1, 1);
    expect_after(w, 4 * SEC_NS, 1, 0);
    mrd_sim_stop_host(w->sim, HOST_1, 0);
}
