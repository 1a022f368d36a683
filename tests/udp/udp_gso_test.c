/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending where superpackets are refused, by this kernel or by one that is made to. The receiver's
 * count of received messages tells which left whole.
 */
#include "tests/kit/kit.h"
#include "tests/udp/udp_fail.h"
#include "tests/udp/udp_fixture.h"

#include <errno.h>

static uint64_t groups(const struct mrd_backend *b)
{
    return ((const struct mrd_udp *)b)->rx.count.plain;
}

/* With and without superpackets at either end: the same packets, the same bytes. */
TEST_F(movers, mrd_udp_tx_burst__fallbacks)
{
    for (unsigned i = 0; i < 8; i++) {
        unsigned tx_without = i & 1 ? MRD_UDP_WITHOUT_GSO : 0;
        unsigned rx_without = i & 2 ? MRD_UDP_WITHOUT_GRO : 0;
        struct mrd_backend *tx = fixture_open(NULL, tx_without);
        struct mrd_backend *rx = fixture_open(NULL, rx_without);
        struct mrd_addr to = fixture_addr("127.0.0.1", rx);

        self->num_sent = self->num_received = 0;
        self->plan.segments_max = 64;
        fixture_send_equal(self, tx, &to, 0, 4160, 15);
        fixture_send_equal(self, tx, &to, 0, 500, 20);
        fixture_arrive(self, rx, 35, i & 4);
        uint64_t received = groups(rx) + mrd_udp_of(rx)->rx.count.straight;
        assert_true(tx_without || rx_without ? received >= 15 : received == 2);
        fixture_close(tx);
        fixture_close(rx);
    }
}

/* The kernel refuses superpackets of a socket that leaves out checksums: packets go singly, from
 * then on. */
TEST_F(movers, mrd_udp_tx_burst__kernel_refuses_gso)
{
    struct mrd_udp *udp = mrd_udp_of(self->a);
    int on = 1;

    assert_int_equal(setsockopt(udp->tx.paths[0].fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)), 0);
    fixture_send_equal(self, self->a, &self->to_b, 0, 1000, 20);
    fixture_arrive(self, self->b, 20, false);
    assert_int_equal(udp->tx.num_no_gso, 1);
    assert_int_equal(fail.calls, 1 + 20);

    fixture_send_equal(self, self->a, &self->to_b, 0, 1000, 10);
    assert_int_equal(fail.calls, 1 + 20 + 1); /* sendmmsg of ten, no second try */
    fixture_arrive(self, self->b, 30, false);
    assert_int_equal(udp->tx.lost, 0);
}

/* Each of the errors by which kernels refuse superpackets; other destinations keep them. */
TEST_F(movers, mrd_udp_tx_burst__gso_errors)
{
    static const int errors[] = {EINVAL, EIO, ENOPROTOOPT, EOPNOTSUPP};

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        struct mrd_backend *tx = fixture_open(NULL, 0);
        struct mrd_addr other = fixture_addr("127.0.0.2", self->b);

        self->num_sent = self->num_received = 0;
        fail.error = errors[i];
        fail.superpackets = fail.once = true;
        fixture_send_equal(self, tx, &self->to_b, 3, 2000, 10);
        assert_int_equal(fail.error, 0);
        fixture_send_equal(self, tx, &self->to_b, 3, 2000, 10);
        fixture_receive(self, self->b, 20, false);
        uint64_t before = groups(self->b);
        fixture_send_equal(self, tx, &other, 3, 2000, 10);
        fixture_arrive(self, self->b, 30, false);
        assert_int_equal(mrd_udp_of(tx)->tx.num_no_gso, 1);
        assert_int_equal(groups(self->b) - before, 1);
        fixture_close(tx);
    }
}

/* More refusing destinations than are kept: then nobody gets superpackets. */
TEST_F(movers, mrd_udp_tx_burst__gso_refused_by_many)
{
    struct mrd_udp *udp = mrd_udp_of(self->a);

    fail.error = EIO;
    fail.superpackets = true;
    for (unsigned i = 0; i <= MRD_UDP_NO_GSO_MAX; i++) {
        struct mrd_addr to = self->to_b;

        assert_true(udp->tx.gso);
        to.ip[15] = (uint8_t)(1 + i);
        fixture_send_equal(self, self->a, &to, 0, 1000, 2);
    }
    assert_false(udp->tx.gso);
    fail.error = 0;
    fixture_arrive(self, self->b, self->num_sent, false);
}
