#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# vrf.sh TALK: a program that "ip vrf exec" starts, in a VRF with two links, whose routes no socket outside of it sees. It
# speaks and is spoken to over both families, by one address; and goes on over the other link when one fails. It needs
# no device, but a kernel that has VRFs.

# shellcheck source=tests/rdma/lib.sh
source "$(dirname "$0")/lib.sh"

readonly talk=$1

in_machine none "$@"

in_vrf=(ip vrf exec red)
outside=(ip netns exec outside)

set_up()
{
    local i

    modprobe vrf
    mount -t cgroup2 none /sys/fs/cgroup
    ip netns add outside
    ip -n outside link set lo up
    ip -n outside addr add 10.9.0.9/32 dev lo
    ip -n outside addr add fd09::9/128 dev lo nodad
    ip link add red type vrf table 100
    ip link set red up
    for i in 1 2; do
        ip link add l$i type veth peer name l$i netns outside
        ip link set l$i master red
        ip link set l$i up
        ip -n outside link set l$i up
        ip addr add 10.$i.0.1/24 dev l$i
        ip -n outside addr add 10.$i.0.2/24 dev l$i
        ip addr add fd0$i::1/64 dev l$i nodad
        ip -n outside addr add fd0$i::2/64 dev l$i nodad
    done
    sysctl -qw net.ipv4.fib_multipath_hash_policy=1 net.ipv6.fib_multipath_hash_policy=1
    ip route add 10.9.0.9 table 100 nexthop via 10.1.0.2 nexthop via 10.2.0.2
    ip -6 route add fd09::9 table 100 nexthop via fd01::2 nexthop via fd02::2
}

# serve COMMAND...: talk serve, started by that command. Sets server.
serve()
{
    local try

    "$@" "$talk" serve 7000 200 >server 2>&1 &
    server=$!
    for ((try = 0; try < 400; try++)); do
        ! grep -q ready server || return 0
        sleep 0.05
    done
    fail 'the server does not begin'
}

# ask ADDRESS MESSAGES WINDOW PAUSE_MS COMMAND...
ask()
{
    timeout 90 "${@:5}" "$talk" ask "$1" "$2" "$3" "$4" 8 >client 2>&1 || fail "no answers from $1"
    grep -q "^answered $2 anew 0\$" client || fail "some messages to $1 were sent anew"
}

# none_twice SENDERS: so many addresses were spoken from.
none_twice()
{
    kill -TERM "$server"
    wait "$server" || true
    note "$(tail -n 1 server)"
    grep -q " twice 0 senders $1\$" server || fail 'the server says otherwise'
}

out_of_it()
{
    serve "${outside[@]}"
    ask "$1" 1000 16 0 "${in_vrf[@]}"
    none_twice 1
}

into_it()
{
    serve "${in_vrf[@]}"
    ask "$1" 1000 16 0 "${outside[@]}"
    none_twice 1
}

# Whichever of its two links it speaks by.
link_fails()
{
    local i

    serve "${outside[@]}"
    for i in 1 2; do
        (sleep 1; ip link set l$i down) &
        ask 10.9.0.9:7000 150 4 20 "${in_vrf[@]}"
        ip link set l$i up
        ip route replace 10.9.0.9 table 100 nexthop via 10.1.0.2 nexthop via 10.2.0.2
    done
    kill -TERM "$server"
    wait "$server" || true
    grep -q ' twice 0 ' server || fail 'a message was executed twice'
}

set_up
for to in 10.1.0.2 10.9.0.9 '[fd01::2]' '[fd09::9]'; do
    run_case "out of the VRF to $to" out_of_it "$to:7000"
done
for to in 10.1.0.1 10.2.0.1 '[fd02::1]'; do
    run_case "into the VRF to $to" into_it "$to:7000"
done
run_case 'a link of the VRF fails' link_fails
finish
