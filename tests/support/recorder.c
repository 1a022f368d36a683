/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/support/recorder.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "tests/support/check.h"
#include "tests/support/payload.h"

enum { PAYLOADS_MAX = ARRIVALS_MAX };

static void record(struct recorder *r, const struct mrd_rx_packet *rx)
{
    assert_true(r->num_arrivals < ARRIVALS_MAX);

    struct arrival *arrival = &r->arrivals[r->num_arrivals++];

    *arrival = (struct arrival){.at_ns = mrd_sim_now(r->sim),
                                .hash = XXH3_64bits(rx->data, rx->len),
                                .len = rx->len + rx->placed_len,
                                .from = rx->from.port - 1,
                                .source = rx->from,
                                .to = rx->to,
                                .ecn = rx->ecn,
                                .placed = rx->placed};
    memcpy(arrival->data, rx->data,
           rx->len < sizeof(arrival->data) ? rx->len : sizeof(arrival->data));
}

static void recorder_progress(void *arg)
{
    struct recorder *r = arg;
    struct mrd_rx_packet packets[8];
    bool more = true;

    r->turns++;
    r->turn_at_ns = mrd_sim_now(r->sim);
    while (more) {
        unsigned n = r->b->ops->rx_burst(r->b, packets, 8, &more, r->plan, r->plan_arg);

        for (unsigned i = 0; i < n; i++)
            record(r, &packets[i]);
        r->b->ops->rx_return(r->b);
    }
    r->num_cookies += r->b->ops->tx_reap(r->b, r->cookies + r->num_cookies, 64 - r->num_cookies);
    if (r->deadline_ns <= r->b->ops->now_ns(r->b))
        r->deadline_ns = UINT64_MAX;
}

static uint64_t recorder_deadline(void *arg)
{
    return ((struct recorder *)arg)->deadline_ns;
}

void recorder_open(struct recorder *r, struct mrd_sim *sim, uint32_t host)
{
    int error = 0;

    *r = (struct recorder){.sim = sim, .deadline_ns = UINT64_MAX};
    r->b = mrd_sim_ops.open(mrd_sim_device(sim, host), NULL, &error);
    assert_non_null(r->b);
    mrd_sim_attach(r->b, recorder_progress, recorder_deadline, r);
}

static void destroy_pair(void *object)
{
    struct recorder_pair *f = object;

    for (uint32_t i = 0; i < 2; i++)
        f->host[i].b->ops->close(f->host[i].b);
    free(f);
}

struct recorder_pair *recorder_pair_create(const struct mrd_sim_attr *attr)
{
    struct recorder_pair *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->sim = test_sim(attr);
    for (uint32_t i = 0; i < 2; i++)
        recorder_open(&f->host[i], f->sim, i);
    kit_own(f, destroy_pair);
    return f;
}

static void destroy_fabric(void *object)
{
    struct recorder_fabric *f = object;

    for (uint32_t i = 0; i < f->num_hosts; i++)
        f->host[i].b->ops->close(f->host[i].b);
    free(f->host);
    free(f->payloads);
    free(f);
}

struct recorder_fabric *recorder_fabric_create(const struct mrd_sim_attr *attr)
{
    struct recorder_fabric *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->sim = test_sim(attr);
    while (mrd_sim_device(f->sim, f->num_hosts))
        f->num_hosts++;
    f->host = calloc(f->num_hosts, sizeof(f->host[0]));
    f->payloads = malloc((size_t)PAYLOADS_MAX * PACKET_BYTES);
    assert_true(f->host && f->payloads);
    for (uint32_t i = 0; i < f->num_hosts; i++)
        recorder_open(&f->host[i], f->sim, i);
    kit_own(f, destroy_fabric);
    return f;
}

void recorder_fabric_send(struct recorder_fabric *f, uint32_t from, uint32_t to, uint16_t path,
                          unsigned n)
{
    struct mrd_backend *b = f->host[from].b;

    for (unsigned i = 0; i < n; i++) {
        assert_true(f->num_sent < PAYLOADS_MAX);

        uint8_t *payload = f->payloads + (size_t)f->num_sent * PACKET_BYTES;
        struct mrd_tx_packet packet = packet_to_1(path, payload, PACKET_BYTES);

        payload_fill(payload, PACKET_BYTES, 1, f->num_sent);
        payload[0] = (uint8_t)f->num_sent;
        payload[1] = (uint8_t)(f->num_sent >> 8);
        f->num_sent++;
        packet.to = mrd_sim_addr(to);
        while (b->ops->tx_burst(b, &packet, 1) == 0)
            mrd_sim_run_until(f->sim, mrd_sim_host_idle_ns((struct mrd_sim_host *)b));
    }
}

uint32_t recorder_link(const struct mrd_sim *sim, const char *name)
{
    char found[64];

    for (uint32_t link = 0; link < mrd_sim_num_links(sim); link++) {
        assert_int_equal(mrd_sim_link_name(sim, link, found, sizeof(found)), 0);
        if (strcmp(found, name) == 0)
            return link;
    }
    fail_msg("no link is named \"%s\"", name);
    return 0;
}

struct mrd_sim_stats recorder_link_stats(const struct mrd_sim *sim, const char *name)
{
    struct mrd_sim_stats stats;

    assert_int_equal(mrd_sim_query_link(sim, recorder_link(sim, name), NULL, &stats), 0);
    return stats;
}

struct mrd_tx_packet packet_to_1(uint16_t path, const uint8_t *payload, uint32_t len)
{
    static uint8_t no_header[1];
    struct mrd_tx_packet packet = {.to = mrd_sim_addr(1),
                                   .head = no_header,
                                   .cookie = MRD_TX_COOKIE_NONE,
                                   .path = path,
                                   .flags = MRD_TX_ECT,
                                   .num_iov = 1,
                                   .len = len};

    packet.iov[0] = (struct iovec){(void *)(uintptr_t)payload, len};
    return packet;
}

void recorder_send(struct recorder_pair *f, uint16_t path, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        uint8_t payload[PACKET_BYTES] = {(uint8_t)i};
        struct mrd_tx_packet packet = packet_to_1(path, payload, sizeof(payload));

        assert_int_equal(f->host[0].b->ops->tx_burst(f->host[0].b, &packet, 1), 1);
    }
}

void recorder_expect(struct recorder_pair *f, uint64_t at_ns, unsigned num_arrivals)
{
    mrd_sim_run_until(f->sim, at_ns);
    assert_int_equal(f->host[1].num_arrivals, num_arrivals);
}

struct mrd_sim_stats recorder_stats(struct recorder_pair *f, int link)
{
    struct mrd_sim_stats stats;

    assert_int_equal(mrd_sim_link_stats(f->sim, 0, 1, link, &stats), 0);
    return stats;
}
