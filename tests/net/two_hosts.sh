# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# Two hosts with several links, between which talk.c's messages and answers go: source it with the program; then
# set_up, start_server, start_client, and finish.

# shellcheck source=tests/net/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly talk=$1 a="${prefix}a" b="${prefix}b" port=7000

ip netns add "$a" 2>/dev/null || skip 'no network namespace to be had'
trap 'take_down; rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM

take_down()
{
    local ns

    for ns in "$a" "$b"; do
        ip netns pids "$ns" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
        ip netns del "$ns" 2>/dev/null || true
    done
}

# carries ADDRESS LINK: a waits until b answers for the address by that link. A new link loses the first packets; a lost
# question who has the address is asked again after 1 s only, which to a client is a link that is down.
carries()
{
    local try

    for ((try = 0; try < 100; try++)); do
        ip netns exec "$a" bash -c "echo >/dev/udp/$1/9" 2>/dev/null || true
        ! ip -n "$a" neigh show "$1" dev "$2" | grep -q REACHABLE || return 0
        sleep 0.05
    done
    fail "$1 does not answer by $2"
}

# Two hosts with two links, each with IPv4 and IPv6: 10.1.0.1 - 10.1.0.2 and 10.2.0.1 - 10.2.0.2, fd01::1 - fd01::2 and so
# on. b also has 10.9.0.9 and fd09::9, which are on no link.
set_up()
{
    local ns i

    take_down
    for ns in "$a" "$b"; do
        ip netns add "$ns"
        ip -n "$ns" link set lo up
        ip netns exec "$ns" sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 \
            net.ipv4.fib_multipath_hash_policy=1 net.ipv6.fib_multipath_hash_policy=1
    done
    for i in 1 2; do
        ip -n "$a" link add l$i type veth peer name l$i netns "$b"
        ip -n "$a" addr add 10.$i.0.1/24 dev l$i
        ip -n "$b" addr add 10.$i.0.2/24 dev l$i
        ip -n "$a" addr add fd0$i::1/64 dev l$i nodad
        ip -n "$b" addr add fd0$i::2/64 dev l$i nodad
        ip -n "$a" link set l$i up
        ip -n "$b" link set l$i up
    done
    ip -n "$b" addr add 10.9.0.9/32 dev lo
    ip -n "$b" addr add fd09::9/128 dev lo
    for i in 1 2; do
        carries 10.$i.0.2 l$i
        carries fd0$i::2 l$i
    done
}

# start_server: talk serve at b.
start_server()
{
    local try

    MRD_LOG=info ip netns exec "$b" "$talk" serve $port 300 >"$scratch/server" 2>"$scratch/server.log" &
    server=$!
    for ((try = 0; try < 200; try++)); do
        ! grep -q ready "$scratch/server" || return 0
        sleep 0.05
    done
    fail 'the server does not begin'
}

# start_client ADDRESS MESSAGES WINDOW PAUSE_MS PATHS: talk ask at a.
start_client()
{
    MRD_LOG=info ip netns exec "$a" timeout 250 "$talk" ask "$@" >"$scratch/client" 2>"$scratch/client.log" &
    client=$!
}

# wait_for_answers NUMBER
wait_for_answers()
{
    local try

    for ((try = 0; try < 1200; try++)); do
        (($(grep -c '^answered' "$scratch/client") < $1)) || return 0
        kill -0 "$client" 2>/dev/null || break
        sleep 0.05
    done
    show
    fail "no $1 answers"
}

show()
{
    tail -n 15 "$scratch/client" "$scratch/client.log" "$scratch/server" "$scratch/server.log" >&2
}

# finish NAME [SENDERS]: all is answered, nothing came twice; from so many addresses.
finish()
{
    local senders

    wait "$client" || { show; fail "$1: not all was answered"; }
    kill "$server"
    wait "$server" || { show; fail "$1: executed twice"; }
    senders=$(sed -n 's/^came .* senders //p' "$scratch/server")
    echo "$1: $(tail -n 1 "$scratch/client"), $(tail -n 1 "$scratch/server")"
    if [[ -n ${2-} && $senders != "$2" ]]; then
        show
        fail "$1: the server heard from $senders addresses, not $2"
    fi
}

# to FAMILY WORD: the address of b that is so called.
to()
{
    case $1$2 in
    4lo) echo 10.9.0.9:$port ;;
    6lo) echo "[fd09::9]:$port" ;;
    4second) echo 10.2.0.2:$port ;;
    6second) echo "[fd02::2]:$port" ;;
    4first) echo 10.1.0.2:$port ;;
    6first) echo "[fd01::2]:$port" ;;
    esac
}

# route_both FAMILY: from a to b's address on lo, by both links; and back to where there is no link.
route_both()
{
    if [[ $1 == 4 ]]; then
        ip -n "$a" route add 10.9.0.9 nexthop via 10.1.0.2 dev l1 nexthop via 10.2.0.2 dev l2
    else
        ip -n "$a" route add fd09::9 nexthop via fd01::2 dev l1 nexthop via fd02::2 dev l2
    fi
}
