/* SPDX-License-Identifier: BSD-2-Clause */
/* What callers ask: events, counters, figures of peers and paths, sentences about errors. */
#include "core/engine/peer_state.h"
#include "core/engine/query.h"

#include <errno.h>

#include "tests/unit/engine_hand.h"

enum { AT = 0, BYTES = 64 };

/* Events come out in the order in which they went in, also around the ring. */
TEST_F(pair, mrd_engine_get_event__oldest_first)
{
    struct mrd_engine_event event;

    struct mrd_engine *e = self->end[AT].e;
    struct mrd_peer *peer = mrd_peer_open(e, &self->end[1].addr);
    e->events.head = e->events.tail = UINT32_MAX;
    mrd_event_add(e, peer, MRD_EVENT_PEER_UNREACHABLE);
    mrd_event_add(e, peer, MRD_EVENT_PEER_RESTARTED);
    assert_int_equal(mrd_engine_get_event(e, &event), 0);
    assert_int_equal(event.type, MRD_EVENT_PEER_UNREACHABLE);
    assert_int_equal(event.peer_id, peer->id);
    assert_int_equal(mrd_engine_get_event(e, &event), 0);
    assert_int_equal(event.type, MRD_EVENT_PEER_RESTARTED);
    assert_int_equal(mrd_engine_get_event(e, &event), -EAGAIN);
}

/* Each counter by its name and unit; no more than there is room for, but how many there are. */
TEST_F(pair, mrd_engine_query_counters__by_name)
{
    struct mrd_counter counters[200] = {{0}};

    struct mrd_engine *e = self->end[AT].e;
    int num = (int)(sizeof(e->stats) / sizeof(uint64_t));
    for (int i = 0; i < num; i++)
        ((uint64_t *)(void *)&e->stats)[i] = 1000 + (uint64_t)i;
    assert_int_equal(mrd_engine_query_counters(e, counters, 3), num);
    assert_int_equal(counters[2].value, 1002);
    assert_null(counters[3].name);
    assert_int_equal(mrd_engine_query_counters(e, NULL, 0), num);
    assert_int_equal(mrd_engine_query_counters(e, counters, 200), num);
    assert_null(counters[num].name);
    for (int i = 0; i < num; i++)
        assert_int_equal(counters[i].value, 1000 + i);
    assert_string_equal(counters[0].name, "tx_packets");
    assert_string_equal(counters[0].unit, "packets");
    assert_string_equal(counters[num - 1].name, "events_lost");
}

/* Of a peer to which nothing goes there are counts only; of a stranger nothing. */
TEST_F(pair, mrd_engine_query_peer__with_and_without_a_half)
{
    struct mrd_peer_attr attr;

    struct mrd_engine *e = self->end[AT].e;
    assert_int_equal(mrd_engine_query_peer(e, &self->end[1].addr, &attr), -ENOENT);
    struct mrd_peer *peer = mrd_peer_open(e, &self->end[1].addr);
    peer->count = (struct mrd_peer_count){.packets_sent = 1,
                                          .packets_retransmitted = 2,
                                          .packets_spurious = 3,
                                          .packets_received = 4,
                                          .bytes_sent = 5,
                                          .bytes_received = 6,
                                          .lost_by_order = 7,
                                          .lost_by_rack = 8,
                                          .probes_tail = 9,
                                          .timeouts = 10};
    memset(&attr, 0xff, sizeof(attr));
    assert_int_equal(mrd_engine_query_peer(e, &self->end[1].addr, &attr), 0);
    assert_int_equal(attr.peer_id, peer->id);
    assert_int_equal(attr.packets_sent, 1);
    assert_int_equal(attr.packets_retransmitted, 2);
    assert_int_equal(attr.packets_spurious, 3);
    assert_int_equal(attr.packets_received, 4);
    assert_int_equal(attr.bytes_sent, 5);
    assert_int_equal(attr.bytes_received, 6);
    assert_int_equal(attr.lost_by_path_order, 7);
    assert_int_equal(attr.lost_by_rack, 8);
    assert_int_equal(attr.probes_tail, 9);
    assert_int_equal(attr.timeouts, 10);
    assert_int_equal(
        attr.paths + attr.srtt_ns + attr.cwnd_bytes + attr.inflight_bytes + attr.payload_bytes, 0);

    pair_post(self, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
    pair_tx(self, AT);
    mrd_loss_rtt(&peer->tx->loss, 12345, self->now);
    assert_int_equal(mrd_engine_query_peer(e, &self->end[1].addr, &attr), 0);
    assert_int_equal(attr.paths, 8);
    assert_int_equal(attr.srtt_ns, 12345);
    assert_int_equal(attr.min_rtt_ns, 12345);
    assert_true(attr.cwnd_bytes > 0 && attr.inflight_bytes > BYTES);
    assert_int_equal(attr.payload_bytes, PAIR_PAYLOAD);
    mrd_engine_tx_too_big(e, &self->end[1].addr, 600);
    assert_int_equal(mrd_engine_query_peer(e, &self->end[1].addr, &attr), 0);
    assert_int_equal(attr.payload_bytes, 576); /* a multiple of 64 */
}

/* A path by its index, below the number of paths of a peer with a send state. */
TEST_F(pair, mrd_engine_query_path__by_index)
{
    struct mrd_path_attr attr;

    struct mrd_engine *e = self->end[AT].e;
    assert_int_equal(mrd_engine_query_path(e, &self->end[1].addr, 0, &attr), -ENOENT);
    struct mrd_peer *peer = mrd_peer_open(e, &self->end[1].addr);
    assert_int_equal(mrd_engine_query_path(e, &self->end[1].addr, 0, &attr), -ENOENT);
    mrd_send_state_open(e, peer);
    assert_int_equal(mrd_engine_query_path(e, &self->end[1].addr, 8, &attr), -ENOENT);
    struct mrd_path *path = &peer->tx->paths.path[7];
    *path =
        (struct mrd_path){.packets = 1, .lost = 2, .ce = 3, .srtt_ns = 4, .rtt_min_ns = 5, .ev = 6};
    assert_int_equal(mrd_engine_query_path(e, &self->end[1].addr, 7, &attr), 0);
    assert_int_equal(attr.packets, 1);
    assert_int_equal(attr.lost, 2);
    assert_int_equal(attr.ce, 3);
    assert_int_equal(attr.srtt_ns, 4);
    assert_int_equal(attr.min_rtt_ns, 5);
    assert_int_equal(attr.port, 6);
    assert_int_equal(attr.state, MRD_PATH_GOOD);
}

/* A path that no packet took yet is there all the same, and good. */
TEST_F(pair, mrd_engine_query_path__not_used_yet)
{
    struct mrd_path_attr attr = {.packets = 7};

    pair_config(self);
    self->config.paths = self->config.mover.paths = 32;
    pair_open(self);
    struct mrd_engine *e = self->end[AT].e;
    mrd_send_state_open(e, mrd_peer_open(e, &self->end[1].addr));
    assert_int_equal(mrd_engine_query_path(e, &self->end[1].addr, 31, &attr), 0);
    assert_int_equal(attr.port, 31);
    assert_int_equal(attr.state, MRD_PATH_GOOD);
    assert_int_equal(attr.packets, 0);
    assert_int_equal(mrd_engine_query_path(e, &self->end[1].addr, 32, &attr), -ENOENT);
}

TEST_F(pair, mrd_engine_peer_addr__by_id)
{
    struct mrd_addr addr = {.port = 9};
    struct mrd_peer *peer = mrd_peer_open(self->end[AT].e, &self->end[1].addr);

    assert_int_equal(mrd_engine_peer_addr(self->end[AT].e, peer->id + 1, &addr), -ENOENT);
    assert_int_equal(addr.port, 9); /* set on success only */
    assert_int_equal(mrd_engine_peer_addr(self->end[AT].e, peer->id, &addr), 0);
    assert_memory_equal(&addr, &self->end[1].addr, sizeof(addr));
}

/* The default policies have names, too. */
TEST_F(pair, mrd_engine_spray_name__of_the_policies)
{
    assert_string_equal(mrd_engine_spray_name(self->end[AT].e), mrd_spray_find(NULL)->name);
    assert_string_equal(mrd_engine_cc_name(self->end[AT].e), mrd_cc_find(NULL)->name);
    pair_config(self);
    self->config.spray = "rr";
    self->config.cc = "dctcp";
    pair_open(self);
    assert_string_equal(mrd_engine_spray_name(self->end[AT].e), "rr");
    assert_string_equal(mrd_engine_cc_name(self->end[AT].e), "dctcp");
}

/* The last sentence stays, cut to what there is room for; the error is handed on. */
TEST_F(pair, mrd_error_keep__cuts_long_sentences)
{
    char sentence[200];

    struct mrd_engine *e = self->end[AT].e;
    memset(sentence, 'x', sizeof(sentence));
    for (size_t len = sizeof(e->objects.error) - 1; len <= sizeof(e->objects.error); len++) {
        sentence[len] = 0;
        assert_int_equal(mrd_error_keep(e, -EBUSY, sentence), -EBUSY);
        assert_int_equal(strlen(mrd_engine_error(e)), sizeof(e->objects.error) - 1);
        sentence[len] = 'x';
    }
    mrd_error_keep(e, 0, "short");
    assert_string_equal(mrd_engine_error(e), "short");
}

/* Everything that the user made and did not give back. */
TEST_F(pair, mrd_engine_objects__counts_each_kind)
{
    assert_int_equal(mrd_engine_objects(self->end[AT].e), 5); /* a PD, a CQ, a QP, an MR, an AH */
    struct mrd_qp *kept = hand_swap_qp(self, AT, MRD_ORDER_NONE);
    struct mrd_pd *pd = mrd_engine_alloc_pd(self->end[AT].e, NULL);
    assert_int_equal(mrd_engine_objects(self->end[AT].e), 7);
    hand_restore_qp(self, AT, kept);
    assert_int_equal(mrd_engine_dealloc_pd(self->end[AT].e, pd), 0);
    assert_int_equal(mrd_engine_objects(self->end[AT].e), 5);
}
