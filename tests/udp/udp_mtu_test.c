/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes with small MTUs: payload sizes, packets that do not fit any more.
 *
 * The process moves into a network namespace of its own, where it may change lo.
 */
#include "tests/kit/kit.h"
#include "tests/udp/udp_fixture.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void set_lo(int mtu)
{
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    request.ifr_mtu = mtu;
    assert_int_equal(ioctl(fd, SIOCSIFMTU, &request), 0);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &request), 0);
    close(fd);
}

void kit_before_each(void)
{
    set_lo(1500);
}

/* Only lo is there: nowhere else to go. Sending there is loss, not a full socket. */
TEST_F(movers, mrd_udp_payload_bytes__no_route)
{
    struct mrd_addr to;

    assert_int_equal(self->a->ops->parse_address(self->a, "192.0.2.1:1", &to), 0);
    assert_int_equal(self->a->ops->payload_bytes(self->a, &to), -EHOSTUNREACH);
    assert_non_null(strstr(mrd_last_error(), "192.0.2.1:1"));
    assert_false(self->a->ops->one_way(self->a, &to));
    fixture_send_equal(self, self->a, &to, 0, 1000, 5);
    assert_int_equal(mrd_udp_of(self->a)->tx.lost, 5);
    assert_int_equal(self->a->ops->parse_address(self->a, "[2001:db8::1]:1", &to), 0);
    assert_int_equal(self->a->ops->payload_bytes(self->a, &to), -EHOSTUNREACH);
    fixture_send_equal(self, self->a, &to, 0, 1000, 5);
    assert_int_equal(mrd_udp_of(self->a)->tx.lost, 10);
}

TEST_F(movers, mrd_udp_self_address__loopback_only)
{
    struct mrd_addr own;

    assert_int_equal(self->a->ops->self_address(self->a, &own), 0);
    assert_memory_equal(&own, &self->to_a, sizeof(own));
}

/* Bridges that are listed first, and an interface that the default route leads over. */
TEST_F(movers, mrd_udp_self_address__of_the_default_route)
{
    struct mrd_addr own, expected;

    if (system("ip link add mrd_d0 type veth peer name mrd_p0 2>/dev/null") ||
        system(
            "ip addr add 172.17.0.1/16 dev mrd_d0 && ip link set mrd_d0 up &&"
            "ip link add mrd_d1 type veth peer name mrd_p1 && ip addr add 10.9.8.7/24 dev mrd_d1 &&"
            "ip link set mrd_d1 up"))
        skip();
    /* Without a route the first of them. */
    assert_int_equal(self->a->ops->self_address(self->a, &own), 0);
    expected = fixture_addr("172.17.0.1", self->a);
    assert_memory_equal(&own, &expected, sizeof(own));
    assert_int_equal(system("ip route add default via 10.9.8.1"), 0);
    assert_int_equal(self->a->ops->self_address(self->a, &own), 0);
    expected = fixture_addr("10.9.8.7", self->a);
    assert_memory_equal(&own, &expected, sizeof(own));
    assert_int_equal(system("ip link del mrd_d0 && ip link del mrd_d1"), 0);
}

/* IPv4 is routed, but no interface has an IPv4 address. */
TEST_F(movers, mrd_udp_self_address__route_without_address)
{
    struct mrd_addr own, expected;

    if (system("ip link add mrd_d0 type veth peer name mrd_p0 2>/dev/null") ||
        system("ip link set mrd_d0 up && ip -6 addr add 2001:db8:5::7/64 dev mrd_d0 nodad && "
               "ip route add default dev mrd_d0"))
        skip();
    assert_int_equal(self->a->ops->self_address(self->a, &own), 0);
    expected = fixture_addr("2001:db8:5::7", self->a);
    assert_memory_equal(&own, &expected, sizeof(own));
    assert_int_equal(system("ip link del mrd_d0"), 0);
}

/* Superpackets of small segments pass an MTU of 1,500 as they are. */
TEST_F(movers, mrd_udp_tx_burst__small_mtu)
{
    fixture_send_equal(self, self->a, &self->to_b, 0, 1344 + 96, 45);
    fixture_arrive(self, self->b, 45, false);
    assert_int_equal(mrd_udp_of(self->b)->rx.count.plain, 1);
    assert_int_equal(mrd_udp_of(self->a)->tx.lost, 0);
}

/*
 * The MTU of the interface shrinks: packets cut before are lost and told, once; superpackets are not
 * taken for refused. A short last packet still fits.
 */
TEST_F(movers, mrd_udp_tx_burst__mtu_shrinks)
{
    static const char *const ips[] = {"127.0.0.1", "::1"};
    static const uint32_t payloads[] = {1152, 1088};
    static const uint32_t lens[] = {1440, 1440, 1440, 500};
    uint32_t payload;

    for (unsigned i = 0; i < 2; i++) {
        struct mrd_addr to = fixture_addr(ips[i], self->b), told;

        set_lo(1500);
        self->num_sent = self->num_received = 0;
        fixture_send(self, self->a, &to, 1, lens, 4);
        fixture_arrive(self, self->b, 4, false);

        set_lo(1280);
        self->num_sent = self->num_received = 0;
        fixture_send(self, self->a, &to, 1, lens, 4);
        assert_true(self->a->ops->too_big(self->a, &told, &payload));
        assert_memory_equal(&told, &to, sizeof(to));
        assert_int_equal(payload, payloads[i]);
        assert_false(self->a->ops->too_big(self->a, &told, &payload));
        fixture_receive(self, self->b, 1, false);
        assert_int_equal(self->num_received, 1);
        assert_int_equal(self->received[0].number, 3);
        assert_int_equal(mrd_udp_of(self->a)->tx.num_no_gso, 0);
    }
}

int kit_before_all(void)
{
    if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
        fprintf(stderr, "skipped: no network namespace to be had: %s\n", strerror(errno));
        return KIT_SKIPPED;
    }
    return 0;
}
