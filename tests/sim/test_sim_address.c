/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulator by itself: hosts with several addresses, and addresses that come, go and fail. */
#include <string.h>

#include <errno.h>

#include "tests/kit/kit.h"
#include "tests/support/recorder.h"
#include "transport/movers/sim/sim_fault.h"

enum { PATHS = 64, FLIGHT_NS = 100000 };

static const struct mrd_sim_attr attr = {.hosts = 3, .paths = PATHS, .link = {.delay_ns = 100}};

/* A recorder on hosts 0 and 1. */
static struct recorder_pair *pair(void)
{
    return recorder_pair_create(&attr);
}

static void send_from(struct recorder_pair *f, uint32_t host, const struct mrd_addr *from,
                      struct mrd_addr to, uint16_t path)
{
    static const uint8_t payload[PACKET_BYTES];
    struct mrd_tx_packet tx = packet_to_1(path, payload, PACKET_BYTES);
    struct mrd_backend *b = f->host[host].b;

    if (from)
        tx.from = *from;
    tx.to = to;
    assert_int_equal(b->ops->tx_burst(b, &tx, 1), 1);
    mrd_sim_run_until(f->sim, mrd_sim_now(f->sim) + FLIGHT_NS);
}

/* Sends a packet to host 1 that names no source. Returns the id that it came from; -1: none came. */
static int send_unnamed(struct recorder_pair *f, uint16_t path)
{
    unsigned before = f->host[1].num_arrivals;

    send_from(f, 0, NULL, mrd_sim_address(1, 0), path);
    if (f->host[1].num_arrivals == before)
        return -1;
    return (int)mrd_sim_address_id(&f->host[1].arrivals[before].source);
}

static int send_named(struct recorder_pair *f, uint32_t id)
{
    unsigned before = f->host[1].num_arrivals;
    struct mrd_addr from = mrd_sim_address(0, id);

    from.port = 0; /* as the engine names it */
    send_from(f, 0, &from, mrd_sim_address(1, 0), 0);
    if (f->host[1].num_arrivals == before)
        return -1;
    return (int)mrd_sim_address_id(&f->host[1].arrivals[before].source);
}

/* Every host has its first address; who has no other is not asked. */
TEST(mrd_sim_address__first)
{
    struct recorder_pair *f = pair();
    struct mrd_addr own = mrd_sim_addr(1);

    assert_int_equal(mrd_sim_addresses_of(f->sim, 0), 1);
    assert_int_equal(send_unnamed(f, 0), 0);
    assert_int_equal(send_named(f, 0), 0);
    assert_memory_equal(&f->host[1].arrivals[0].to, &own, sizeof(own));
    send_from(f, 0, NULL, mrd_sim_address(1, 1), 0); /* nobody has that */
    assert_int_equal(mrd_sim_get_host_stats(f->sim, 0).unroutable, 1);
    assert_int_equal(f->host[1].num_arrivals, 2);
}

/* Always the first that is there, or by path: then every address is used, and a path keeps its. */
TEST(mrd_sim_set_addresses__source)
{
    struct recorder_pair *f = pair();
    int id[PATHS];
    unsigned seen = 0;

    assert_int_equal(mrd_sim_set_addresses(f->sim, 0, 3, MRD_SIM_SOURCE_FIRST), 0);
    for (uint16_t path = 0; path < PATHS; path++)
        assert_int_equal(send_unnamed(f, path), 0);
    assert_int_equal(mrd_sim_set_addresses(f->sim, 0, 3, MRD_SIM_SOURCE_HASHED), 0);
    for (uint16_t path = 0; path < PATHS; path++) {
        id[path] = send_unnamed(f, path);
        assert_in_range(id[path], 0, 2);
        seen |= 1u << id[path];
    }
    assert_int_equal(seen, 7);
    for (uint16_t path = 0; path < PATHS; path++)
        assert_int_equal(send_unnamed(f, path), id[path]);
}

/* A packet leaves from the address that it names; the one that came tells which it came to. */
TEST(mrd_sim_set_addresses__named)
{
    struct recorder_pair *f = pair();
    struct mrd_addr foreign = mrd_sim_address(2, 0), to = mrd_sim_address(1, 1);

    mrd_sim_set_addresses(f->sim, 0, 2, MRD_SIM_SOURCE_FIRST);
    mrd_sim_set_addresses(f->sim, 1, 2, MRD_SIM_SOURCE_FIRST);
    assert_int_equal(send_named(f, 0), 0);
    assert_int_equal(send_named(f, 1), 1);
    assert_int_equal(send_named(f, 2), -1);
    send_from(f, 0, &foreign, to, 0);
    assert_int_equal(mrd_sim_get_host_stats(f->sim, 0).no_source, 2);
    send_from(f, 0, NULL, to, 0);
    assert_int_equal(f->host[1].num_arrivals, 3);
    assert_memory_equal(&f->host[1].arrivals[2].to, &to, sizeof(to));
    /* The route to an own address leaves from that address. */
    send_from(f, 0, NULL, mrd_sim_address(0, 1), 0);
    assert_int_equal(f->host[0].num_arrivals, 1);
    assert_int_equal(mrd_sim_address_id(&f->host[0].arrivals[0].source), 1);
}

/* What is scheduled comes at its time, and not before. */
TEST(mrd_sim_change_address__scheduled)
{
    struct recorder_pair *f = pair();
    struct mrd_sim *sim = f->sim;

    assert_int_equal(mrd_sim_change_address(sim, 1000000, 0, 1, MRD_SIM_ADDRESS_GET), 0);
    assert_int_equal(mrd_sim_change_address(sim, 2000000, 0, 0, MRD_SIM_ADDRESS_LOSE), 0);
    assert_int_equal(mrd_sim_move_address(sim, 3000000, 0, 1, 2), 0);
    assert_int_equal(mrd_sim_change_address(sim, 4000000, 0, 2, MRD_SIM_ADDRESS_LOSE), 0);
    assert_int_equal(mrd_sim_next_event_ns(sim), 1000000);
    assert_int_equal(send_named(f, 1), -1);
    mrd_sim_run_until(sim, 1000000);
    assert_int_equal(mrd_sim_addresses_of(sim, 0), 3);
    assert_int_equal(send_named(f, 1), 1);
    assert_int_equal(send_unnamed(f, 0), 0);
    mrd_sim_run_until(sim, 2000000);
    assert_int_equal(send_named(f, 0), -1);
    assert_int_equal(send_unnamed(f, 0), 1);
    mrd_sim_run_until(sim, 3000000);
    assert_int_equal(send_unnamed(f, 0), 2);
    assert_int_equal(send_named(f, 1), -1);
    mrd_sim_run_until(sim, 4000000);
    assert_int_equal(send_unnamed(f, 0), -1); /* it has none */
    /* What goes to an address that its host has lost is lost. */
    mrd_sim_change_address(sim, 0, 1, 0, MRD_SIM_ADDRESS_LOSE);
    mrd_sim_change_address(sim, 0, 0, 0, MRD_SIM_ADDRESS_GET);
    assert_int_equal(send_unnamed(f, 0), -1);
    assert_int_equal(mrd_sim_get_host_stats(sim, 1).not_there, 1);
}

/* A dead link is chosen as before, and loses what leaves or comes by it; nothing else. */
TEST(mrd_sim_change_address__fails)
{
    struct recorder_pair *f = pair();
    struct mrd_sim *sim = f->sim;

    mrd_sim_set_addresses(sim, 0, 2, MRD_SIM_SOURCE_FIRST);
    mrd_sim_set_addresses(sim, 1, 2, MRD_SIM_SOURCE_FIRST);
    mrd_sim_change_address(sim, 1000000, 0, 0, MRD_SIM_ADDRESS_FAIL);
    mrd_sim_change_address(sim, 2000000, 0, 0, MRD_SIM_ADDRESS_MEND);
    mrd_sim_change_address(sim, 3000000, 1, 0, MRD_SIM_ADDRESS_FAIL);
    mrd_sim_run_until(sim, 1000000);
    assert_int_equal(send_unnamed(f, 0), -1);
    assert_int_equal(send_named(f, 0), -1);
    assert_int_equal(mrd_sim_get_host_stats(sim, 0).failed_source, 2);
    assert_int_equal(send_named(f, 1), 1);
    mrd_sim_run_until(sim, 2000000);
    assert_int_equal(send_unnamed(f, 0), 0);
    mrd_sim_run_until(sim, 3000000);
    assert_int_equal(send_unnamed(f, 0), -1);
    send_from(f, 0, NULL, mrd_sim_address(1, 1), 0);
    assert_int_equal(f->host[1].num_arrivals, 3);
}

/* What is not answered leaves from the next address, round the end; to others all is as before. */
TEST(mrd_sim_other_source__rotates)
{
    struct recorder_pair *f = pair();
    struct mrd_backend *b = f->host[0].b;
    struct mrd_addr to = mrd_sim_address(1, 0), other = mrd_sim_address(2, 0);

    mrd_sim_other_source(b, &to); /* a host with one address has no other */
    assert_int_equal(send_unnamed(f, 0), 0);
    mrd_sim_set_addresses(f->sim, 0, 3, MRD_SIM_SOURCE_FIRST);
    mrd_sim_other_source(b, &other);
    assert_int_equal(send_unnamed(f, 0), 0);
    for (int id = 1; id < 5; id++) {
        mrd_sim_other_source(b, &to);
        assert_int_equal(send_unnamed(f, 0), id % 3);
    }
    /* 1 is gone: the next one is chosen. */
    mrd_sim_change_address(f->sim, 0, 0, 1, MRD_SIM_ADDRESS_LOSE);
    assert_int_equal(send_unnamed(f, 0), 2);
    /* By path: all paths take one source from then on. */
    mrd_sim_set_addresses(f->sim, 0, 3, MRD_SIM_SOURCE_HASHED);
    mrd_sim_other_source(b, &to);

    int id = send_unnamed(f, 0);

    for (uint16_t path = 1; path < PATHS; path++)
        assert_int_equal(send_unnamed(f, path), id);
}

static unsigned num_strays;

static void count_stray(void *arg, const struct mrd_sim_stray *stray)
{
    struct mrd_addr to = mrd_sim_address(77, 3);
    (void)arg;

    assert_memory_equal(&stray->to, &to, sizeof(to));
    assert_int_equal(stray->from, 0);
    assert_int_equal(stray->len, PACKET_BYTES);
    num_strays++;
}

/* Whoever is no host may send from any address, and sees what is sent to nobody. */
TEST(mrd_sim_inject_from__strangers)
{
    struct recorder_pair *f = pair();
    struct mrd_addr from = mrd_sim_address(77, 3), to = mrd_sim_address(1, 0);

    assert_int_equal(mrd_sim_inject_from(f->sim, &from, &to, "abc", 3, 5000), 0);
    assert_int_equal(mrd_sim_inject_from(f->sim, &from, &from, "abc", 3, 5000), -EINVAL);
    mrd_sim_run_until(f->sim, 6000);
    assert_int_equal(f->host[1].num_arrivals, 1);
    assert_int_equal(f->host[1].arrivals[0].at_ns, 5000);
    assert_memory_equal(&f->host[1].arrivals[0].source, &from, sizeof(from));
    num_strays = 0;
    send_from(f, 0, NULL, from, 0);
    assert_int_equal(num_strays, 0);
    mrd_sim_set_stray_hook(f->sim, count_stray, NULL);
    send_from(f, 0, NULL, from, 0);
    assert_int_equal(num_strays, 1);
}

/* An address has a text, where hosts may have several. */
TEST(mrd_sim_parse_address__several)
{
    struct recorder_pair *f = pair();
    struct mrd_backend *b = f->host[0].b;
    struct mrd_addr addr, expected = mrd_sim_address(1, 4);
    static const char *const wrong[] = {"sim:1/", "sim:1/32", "sim:1/-1", "sim:1/4x", "sim:1 /4"};
    char text[32];

    assert_int_equal(b->ops->parse_address(b, "sim:1/4", &addr), -EINVAL);
    mrd_sim_set_addresses(f->sim, 0, 2, MRD_SIM_SOURCE_FIRST);
    assert_int_equal(b->ops->parse_address(b, "sim:1/4", &addr), 0);
    assert_memory_equal(&addr, &expected, sizeof(addr));
    assert_int_equal(b->ops->format_address(b, &addr, text, sizeof(text)), 0);
    assert_string_equal(text, "sim:1/4");
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(b->ops->parse_address(b, wrong[i], &addr), -EINVAL);
}
