#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# link_down.sh TALK: the first of two links goes down, and the address that packets leave from stays. The host finds the
# other one: every message is answered in the end, and none is executed twice.

# shellcheck source=tests/net/two_hosts.sh
source "$(dirname "$0")/two_hosts.sh" "$1"

# Of two routes the first is preferred, while its link has a carrier. Addresses stay without one. That a new link has one
# is known a moment later.
set_up_two_routes()
{
    local ns to=10.9.0.9 try

    set_up
    for ns in "$a" "$b"; do
        ip netns exec "$ns" sysctl -qw net.ipv4.conf.all.ignore_routes_with_linkdown=1 \
            net.ipv6.conf.all.ignore_routes_with_linkdown=1 net.ipv6.conf.all.keep_addr_on_down=1
    done
    if [[ $1 == 4 ]]; then
        ip -n "$a" route add 10.9.0.9 via 10.1.0.2 metric 1
        ip -n "$a" route add 10.9.0.9 via 10.2.0.2 metric 2
    else
        ip -n "$a" route add fd09::9 via fd01::2 metric 1
        ip -n "$a" route add fd09::9 via fd02::2 metric 2
        to=fd09::9
    fi
    for ((try = 0; try < 200; try++)); do
        ! ip -n "$a" route get $to 2>/dev/null | grep -q 'dev l1 ' || return 0
        sleep 0.05
    done
    fail "the route to $to does not leave by the first link"
}

# Switched off by the host, and cut off at the other end.
switch_off() { ip -n "$a" link set l1 down; }
cut_off() { ip -n "$b" link set l1 down; }

for family in 4 6; do
    for lose in switch_off cut_off; do
        set_up_two_routes $family
        start_server
        start_client "$(to $family lo)" 20 1 300 4
        wait_for_answers 3
        $lose
        finish "IPv$family, $lose, idle" 2

        set_up_two_routes $family
        start_server
        start_client "$(to $family lo)" 120000 64 0 2
        wait_for_answers 100
        $lose
        finish "IPv$family, $lose, busy" 2
    done
done
