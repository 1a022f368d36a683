#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# sources.sh TALK: hosts with several addresses. Every message is answered, none is executed twice, and all of a context's
# packets come from one address.

# shellcheck source=tests/net/two_hosts.sh
source "$(dirname "$0")/two_hosts.sh" "$1"

for family in 4 6; do
    # A route with two next hops, each with an address of its own.
    set_up
    route_both $family
    start_server
    start_client "$(to $family lo)" 6000 64 0 16
    finish "IPv$family, two next hops" 1

    # Asymmetric: b answers by the other link.
    set_up
    if [[ $family == 4 ]]; then
        ip -n "$a" route add 10.9.0.9 via 10.1.0.2
        ip -n "$b" route add 10.1.0.1 via 10.2.0.1
    else
        ip -n "$a" route add fd09::9 via fd01::2
        ip -n "$b" route add fd01::1 via fd02::1
    fi
    start_server
    start_client "$(to $family lo)" 1000 16 0 8
    finish "IPv$family, asymmetric" 1

    # Several addresses on a link, of which the server is asked at the second, while lone messages go to the first.
    set_up
    if [[ $family == 4 ]]; then
        ip -n "$b" addr add 10.1.0.7/24 dev l1
        asked=10.1.0.7:$port
    else
        ip -n "$b" addr add fd01::7/64 dev l1 nodad
        asked="[fd01::7]:$port"
    fi
    start_server
    ip netns exec "$a" "$talk" ask "$(to $family first)" 1000000 1 0 8 >"$scratch/lone" 2>&1 &
    lone=$!
    for ((try = 0; try < 1200 && $(grep -c answered "$scratch/lone") < 5; try++)); do
        sleep 0.05
    done
    start_client "$asked" 100 1 0 8
    wait "$client" || { show; fail "IPv$family: the server's second address does not answer"; }
    kill "$lone"
    wait "$lone" || true
    start_client "$asked" 1000 16 0 8
    finish "IPv$family, the server's second address" 1

    # Two default routes, of which the first is preferred.
    set_up
    if [[ $family == 4 ]]; then
        ip -n "$a" route add default via 10.1.0.2 metric 1
        ip -n "$a" route add default via 10.2.0.2 metric 2
    else
        ip -n "$a" route add default via fd01::2 metric 1
        ip -n "$a" route add default via fd02::2 metric 2
    fi
    start_server
    start_client "$(to $family lo)" 1000 16 0 8
    finish "IPv$family, two default routes" 1

    # Policy routing: what comes from an address leaves by its link.
    set_up
    route_both $family
    if [[ $family == 4 ]]; then
        for i in 1 2; do
            ip -n "$a" rule add from 10.$i.0.1 lookup 10$i
            ip -n "$a" route add 10.9.0.9 via 10.$i.0.2 dev l$i table 10$i
        done
    else
        for i in 1 2; do
            ip -n "$a" -6 rule add from fd0$i::1 lookup 10$i
            ip -n "$a" route add fd09::9 via fd0$i::2 dev l$i table 10$i
        done
    fi
    start_server
    start_client "$(to $family lo)" 3000 64 0 16
    finish "IPv$family, policy routing" 1
done
