/* SPDX-License-Identifier: BSD-2-Clause */
/* What resets, challenges and peers without room tell of a space of ours. */
#include "core/engine/contact.h"
#include "tests/unit/engine_hand.h"

enum { AT = 0, BYTES = 64, PIECES = 3 };

/* A message of three packets is on its way; its sender's entry. */
static struct mrd_peer *send_some(struct pair *p)
{
    pair_post(p, AT, MRD_WR_RDMA_WRITE, 0, PIECES * PAIR_PAYLOAD);
    pair_tx_lost(p, AT);
    return mrd_peer_find(&p->end[AT].e->peers, &p->end[1 - AT].addr);
}

static struct mrd_peer *begin(struct pair *p)
{
    pair_begin(p);
    return send_some(p);
}

/* The same, but while both ends may just have opened: an empty packet goes first. */
static struct mrd_peer *begin_young(struct pair *p)
{
    pair_begin_wary(p);
    return send_some(p);
}

/* A reset or challenge about the peer's send state. */
static struct mrd_wire_head about(const struct pair *p, const struct mrd_peer *peer, uint8_t type)
{
    struct mrd_wire_head head = hand_head(p, AT, type);

    head.epoch = peer->tx->contact.epoch;
    head.echo_stamp = mrd_wire_stamp(p->now);
    return head;
}

static void tell(struct pair *p, const struct mrd_wire_head *head)
{
    struct mrd_engine *e = p->end[AT].e;
    const struct mrd_addr *from = &p->end[1 - AT].addr;

    if (head->type == MRD_WIRE_RESET)
        mrd_contact_reset(e, head, from);
    else if (head->type == MRD_WIRE_CHALLENGE)
        mrd_contact_challenge(e, head, &(struct mrd_rx_packet){.from = *from});
    else
        mrd_contact_busy(e, head, from);
}

static void expect_failed(struct pair *p)
{
    pair_expect(p, AT, MRD_WC_RETRY_EXC_ERR);
}

static void expect_going_on(struct pair *p, const struct mrd_peer *peer)
{
    pair_expect_nothing(p, AT);
    assert_false(mrd_list_empty(&peer->msgs));
}

/* The restarts that the user is told of. */
static unsigned events(struct pair *p)
{
    struct mrd_engine_event event;
    unsigned num = 0;

    for (; !mrd_engine_get_event(p->end[AT].e, &event); num++)
        assert_int_equal(event.type, MRD_EVENT_PEER_RESTARTED);
    return num;
}

/*
 * For another life of ours, about another space, from another life; and one that is busy from whom we
 * are not bound to, or too late: dropped.
 */
static void dropped_if_it_does_not_match(struct pair *p, uint8_t type)
{
    for (unsigned flaw = 0; flaw < (type == MRD_WIRE_BUSY ? 5 : 3); flaw++) {
        struct mrd_peer *peer = begin(p);
        struct mrd_tx_contact *contact = &peer->tx->contact;
        struct mrd_wire_head head = about(p, peer, type);

        head.dst_inc += flaw == 0;
        head.epoch += flaw == 1;
        head.src_inc += flaw == 2;
        contact->acked_once = flaw == 3;
        contact->inc = flaw == 4 ? 0 : pair_inc(p, 1 - AT);
        tell(p, &head);
        assert_int_equal(p->end[AT].e->stats.rx_drop_reset, 1);
        assert_false(contact->has_cookie || contact->busy);
        expect_going_on(p, peer);
        assert_int_equal(events(p), 0);
    }
}

/* --------------------------------------------------------------------------------------- resets */

TEST_F(pair, mrd_contact_reset__that_does_not_match)
{
    dropped_if_it_does_not_match(self, MRD_WIRE_RESET);
}

/* Nothing but an empty packet went out: the work goes on under the next epoch, for a while. */
TEST_F(pair, mrd_contact_reset__before_the_first_contact)
{
    struct mrd_peer *peer = begin_young(self);
    struct mrd_send_state *tx = peer->tx;

    assert_int_equal(tx->sent.next, 1);
    for (uint32_t i = 0; i < MRD_RENEWALS_MAX; i++) {
        struct mrd_wire_head head = about(self, peer, MRD_WIRE_RESET);

        tell(self, &head);
        assert_ptr_equal(peer->tx, tx);
        assert_int_equal(tx->contact.epoch, head.epoch + 1);
        assert_int_equal(tx->sent.next, 0);
        assert_true(tx->contact.hello && tx->probes.silence_due);
        expect_going_on(self, peer);
        assert_int_equal(pair_tx_lost(self, AT), 1);
    }
    struct mrd_wire_head head = about(self, peer, MRD_WIRE_RESET);
    tell(self, &head);
    assert_null(peer->tx);
    expect_failed(self);
}

/* ----------------------------------------------------------------------------------- challenges */

TEST_F(pair, mrd_contact_challenge__that_does_not_match)
{
    dropped_if_it_does_not_match(self, MRD_WIRE_CHALLENGE);
}

/* The challenger took nothing: all is sent again, with the cookie, and no path is to blame. */
TEST_F(pair, mrd_contact_challenge__repeats_everything)
{
    struct mrd_peer *peer = begin(self);
    struct mrd_wire_head head = about(self, peer, MRD_WIRE_CHALLENGE);

    peer->tx->probes.unanswered = 3;
    peer->given_up = true;
    head.cookie = 99;
    head.up_usec = 1;
    tell(self, &head);
    assert_int_equal(self->end[AT].e->stats.rx_challenges, 1);
    assert_int_equal(peer->tx->contact.inc, pair_inc(self, 1 - AT));
    assert_int_equal(peer->tx->probes.unanswered, 0); /* somebody is there */
    assert_false(peer->given_up);
    assert_int_equal(self->end[AT].e->stats.retx_challenge, PIECES);
    assert_int_equal(peer->tx->sent.lost.num, PIECES);
    assert_int_equal(peer->tx->paths.num_out, 0);
    for (uint32_t psn = 0; psn < PIECES; psn++)
        assert_true(mrd_sent_get(&peer->tx->sent, psn)->deliberate);
    assert_int_equal(pair_tx(self, AT), PIECES);
    for (unsigned i = 0; i < PIECES; i++) {
        head = pair_head(&self->end[1 - AT].inbox[i]);
        assert_true(head.flags & MRD_WIRE_COOKIE);
        assert_int_equal(head.cookie, 99);
        assert_int_equal(head.dst_inc, pair_inc(self, 1 - AT));
    }
}

/* Each packet that went out was challenged: the first answer serves all of them. */
TEST_F(pair, mrd_contact_challenge__answered_already)
{
    struct mrd_peer *peer = begin(self);
    struct mrd_wire_head head = about(self, peer, MRD_WIRE_CHALLENGE);

    head.cookie = 99;
    head.up_usec = 1;
    tell(self, &head);
    pair_tx(self, AT);
    tell(self, &head);
    assert_int_equal(self->end[AT].e->stats.rx_challenges, 1);
    assert_int_equal(peer->tx->sent.lost.num, 0);
    head.cookie++;
    tell(self, &head);
    assert_int_equal(self->end[AT].e->stats.rx_challenges, 2);
}

enum outcome { REPEATED, FAILED, NOTHING };

/*
 * An epoch that is older than its challenger may have been executed by an earlier life: its work
 * fails. In doubt nothing is done.
 */
TEST_F(pair, mrd_contact_challenge__age_of_the_epoch)
{
    static const struct {
        uint64_t age_ns,
            flight_ns;    /* since the first packet left; of the challenged one and back */
        uint32_t up_usec; /* of the challenger */
        enum outcome outcome;
    } rows[] = {
        {MRD_MSEC, 0, 1001, REPEATED},             /* it was up before we began */
        {MRD_MSEC, 0, 500, FAILED},                /* it was not */
        {MRD_MSEC, 31187 * 16, 500, FAILED},       /* nor when it challenged, by more than 1 us */
        {MRD_MSEC, 31188 * 16, 500, NOTHING},      /* who knows */
        {MRD_MSEC, 1100 * 1000, 500, NOTHING},     /* the stamp is of an earlier time */
        {5000 * MRD_SEC, 0, UINT32_MAX, REPEATED}, /* that time is saturated */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct mrd_peer *peer = begin(self);

        pair_pass(self, AT, rows[i].age_ns);
        struct mrd_wire_head head = about(self, peer, MRD_WIRE_CHALLENGE);
        head.echo_stamp = mrd_wire_stamp(self->now - rows[i].flight_ns);
        head.up_usec = rows[i].up_usec;
        tell(self, &head);
        assert_int_equal(self->end[AT].e->stats.rx_challenges, rows[i].outcome == REPEATED);
        assert_int_equal(self->end[AT].e->stats.rx_resets, rows[i].outcome == FAILED);
        assert_int_equal(peer->tx == NULL, rows[i].outcome == FAILED);
        if (peer->tx)
            assert_int_equal(peer->tx->contact.has_cookie, rows[i].outcome == REPEATED);
    }
}

/* Where the life that is spoken to was known from the start, the epoch is younger than it. */
TEST_F(pair, mrd_contact_challenge__by_a_life_that_was_known)
{
    struct mrd_peer *peer = begin(self);

    peer->tx->contact.knew_inc = true;
    pair_pass(self, AT, MRD_MSEC);
    struct mrd_wire_head head = about(self, peer, MRD_WIRE_CHALLENGE);
    tell(self, &head);
    assert_int_equal(self->end[AT].e->stats.rx_challenges, 1);
}

/* ---------------------------------------------------------------------------------------- busy */

TEST_F(pair, mrd_contact_busy__that_does_not_match)
{
    dropped_if_it_does_not_match(self, MRD_WIRE_BUSY);
}

/* Who watches the peer is told that the watch is over; and whoever loses receives, of that. */
TEST_F(pair, mrd_contact_busy__ends_a_watch)
{
    for (unsigned lost = 0; lost < 2; lost++) {
        struct mrd_peer *peer = begin(self);
        struct mrd_engine *e = self->end[AT].e;
        struct mrd_wire_head head = about(self, peer, MRD_WIRE_BUSY);

        peer->tx->contact.inc = pair_inc(self, 1 - AT);
        tell(self, &head);
        pair_expect_event(self, AT, MRD_EVENT_PEER_BUSY);
        peer->watch.users = !lost;
        if (lost) {
            mrd_peer_rx_begin(&e->peers, peer, e->config.mover.tracker);
            peer->space.inc = pair_inc(self, 1 - AT);
        }
        head = about(self, peer, MRD_WIRE_RESET);
        head.live_epoch = peer->space.epoch + lost;
        tell(self, &head);
        expect_failed(self);
        pair_expect_event(self, AT, lost ? MRD_EVENT_PEER_RESTARTED : MRD_EVENT_PEER_UNREACHABLE);
        pair_expect_no_event(self, AT);
        assert_false(peer->watch.users);
    }
}
