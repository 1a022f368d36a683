/* SPDX-License-Identifier: BSD-2-Clause */
/* Do losses follow the window? Against a policer, against random loss, and against both. */
#include "core/elastic.h"
#include "core/rng.h"
#include "tests/kit/kit.h"

/* A window in packets, sent once a round; the policer stops some, and a share of the rest goes. */
struct network {
    struct mrd_elastic x;
    struct mrd_rng rng;
    double cwnd, most;     /* window, and what the policer lets through in a round; 0: all */
    uint32_t lost_ppm;     /* random loss */
    uint32_t outage_every; /* rounds: all of one is lost; 0: never */
    double grows;          /* times the window in a round in which nothing holds it, up to: */
    double cap;
    bool one_at_a_time; /* its round is many round trips */
    double sent, lost;  /* since the beginning */
    uint32_t cuts, restores;
    double cwnd_least; /* after a cut */
};

/* The end of a round. */
static void tell(struct network *n, uint32_t sent, uint32_t lost)
{
    switch (mrd_elastic_end_round(&n->x, &mrd_tune_default.elastic, sent, lost, n->cwnd,
                                  n->one_at_a_time ? n->cwnd + 1 : 0)) {
    case MRD_ELASTIC_CUT:
        n->cwnd *= n->x.factor;
        n->cuts++;
        if (n->cwnd < n->cwnd_least)
            n->cwnd_least = n->cwnd;
        break;
    case MRD_ELASTIC_RESTORE:
        n->cwnd = n->x.cwnd_bytes;
        n->restores++;
        break;
    case MRD_ELASTIC_NONE:
        if (!n->x.testing && !n->x.wait)
            n->cwnd *= n->x.gain > 0 ? 1 + n->x.growth : n->grows;
        if (n->cwnd > n->cap)
            n->cwnd = n->cap;
        break;
    }
}

static void network_run(struct network *n, uint32_t rounds)
{
    for (uint32_t i = 0; i < rounds; i++) {
        uint32_t sent = (uint32_t)n->cwnd > 0 ? (uint32_t)n->cwnd : 1, lost = 0;

        if (n->most > 0 && sent > n->most)
            lost = sent - (uint32_t)n->most;
        for (uint32_t k = lost; k < sent; k++)
            lost += mrd_rng_below(&n->rng, 1000000) < n->lost_ppm;
        if (n->outage_every && i % n->outage_every == 0)
            lost = sent;
        n->sent += sent;
        n->lost += lost;
        tell(n, sent, lost);
    }
}

static struct network network(double cwnd, double most, uint32_t lost_ppm, double grows)
{
    struct network n = {.cwnd = cwnd,
                        .most = most,
                        .lost_ppm = lost_ppm,
                        .grows = grows,
                        .cap = 1e6,
                        .cwnd_least = cwnd};

    mrd_rng_init(&n.rng, 1);
    return n;
}

TEST(elastic_policer__window_stays_near_its_rate)
{
    static const double most[] = {5, 20, 100, 1000};

    for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
        struct network n = network(10 * most[i], most[i], 0, 1.25);

        network_run(&n, 300);
        assert_true(n.x.gain > 0);
        n.sent = n.lost = 0;
        network_run(&n, 5000);
        assert_true(n.lost < 0.05 * n.sent);
        assert_true(n.sent > 0.8 * 5000 * most[i]);
    }
}

/* A cut does not change random loss: the window comes back, and no test follows soon. */
TEST(elastic_random__window_is_restored)
{
    static const uint32_t ppm[] = {15000, 50000, 100000};

    for (size_t i = 0; i < sizeof(ppm) / sizeof(ppm[0]); i++) {
        struct network n = network(64, 0, ppm[i], 1.05);

        n.cap = 64;

        network_run(&n, 10000);
        assert_true(n.restores >= 1);
        assert_true(n.x.gain == 0);
        assert_true(n.sent > 0.9 * 10000 * 64);
        assert_true(n.cwnd_least > 64.0 / 5);
    }
}

TEST(elastic_little_loss__is_never_looked_into)
{
    struct network n = network(64, 0, 3000, 1);

    network_run(&n, 10000);
    assert_int_equal(n.cuts, 0);
}

/* The rate of the policer rises: slow growth becomes faster, and ends. */
TEST(elastic_policer_goes__grows_as_usual)
{
    struct network n = network(100, 20, 0, 1.25);

    network_run(&n, 1000);
    assert_true(n.x.gain > 0);
    n.most = 0;
    network_run(&n, 400);
    assert_true(n.x.gain == 0);
    assert_true(n.cwnd > 200);
}

TEST(elastic_policer_and_random__stays_near_its_rate)
{
    struct network n = network(1000, 100, 20000, 1.25);

    network_run(&n, 300);
    n.sent = n.lost = 0;
    network_run(&n, 10000);
    assert_true(n.lost < 0.15 * n.sent);
    assert_true(n.sent > 0.6 * 10000 * 100);
}

/*
 * Windows of about a packet: what follows a loss waits until a tail probe has repaired it, so that
 * the share lost tells little of how far the rate is above the policer's.
 */
TEST(elastic_stalls__cut_until_it_shows)
{
    enum { STALL_ROUNDS = 10, BUCKET = 180, ROUNDS = 40000 };
    struct network n = network(2.5, 0, 0, 1.25);
    double tokens = 0, due = 0, sent = 0, lost = 0;
    uint32_t silent = 0;

    n.cap = 3; /* greater windows do not stall */
    n.one_at_a_time = true;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t told = 0;
        bool drops = false;

        tokens = tokens < BUCKET ? tokens + 1 : BUCKET;
        if (silent) {
            silent--;
            continue;
        }
        due += n.cwnd;
        for (; due >= 1 && !drops; due--) {
            drops = tokens < 1;
            tokens -= !drops;
            sent += i >= ROUNDS / 2;
            lost += drops && i >= ROUNDS / 2;
            told++;
        }
        silent = drops ? STALL_ROUNDS : 0;
        due = drops ? 0 : due;
        tell(&n, told, drops);
    }
    assert_true(lost < 0.035 * sent);
    assert_true(sent > 0.8 * ROUNDS / 2);
}

/* All that is lost in a while is lost at once: one event, which tells nothing of the window. */
TEST(elastic_outages__window_stays)
{
    for (uint32_t every = 10; every <= 1000; every *= 10) {
        struct network n = network(400, 0, 0, 1.02);

        n.cap = 400;
        n.outage_every = every;
        network_run(&n, 1000);
        for (int i = 0; i < 20; i++) {
            network_run(&n, 100);
            assert_true(n.cwnd >= 40);
        }
    }
}

TEST(elastic_reset__ends_a_test)
{
    struct network n = network(1000, 100, 0, 1.25);

    while (!n.x.testing)
        network_run(&n, 1);
    mrd_elastic_reset(&n.x);
    assert_false(n.x.testing);
    assert_true(n.x.gain == 0 && n.x.excess == 0 && n.x.wait == 0);
}
