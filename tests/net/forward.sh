#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# forward.sh MRD_FORWARD STREAMS: thousands of connections through mrd_forward over four spines, every byte compared at both
# ends: clean, with loss, while a spine dies, while both ends stand still, and after the server was killed. What is
# asserted are bytes and counts.

# shellcheck source=tests/net/lib.sh
source "$(dirname "$0")/lib.sh"

readonly forward=$1 streams=$2

command -v ss >/dev/null || skip 'no ss'

# wait_for HOST FILTER: until something listens there, as ss(8) filters.
wait_for()
{
    local try

    for ((try = 0; try < 200; try++)); do
        [[ -z $(on "$1" 0 ss -Hlnut "sport = :$2") ]] || return 0
        sleep 0.05
    done
    tail -n 20 "$scratch"/*.log >&2
    fail "nobody listens at port $2 of host $1"
}

# Not by on(): what is started is what is stopped and killed.
start_server()
{
    ip netns exec "${prefix}h1_0" "$forward" serve --listen 10.1.0.2 --allow '10.1.0.2:*' --peer-timeout 5 >>"$scratch/server.log" 2>&1 &
    server=$!
    wait_for 1 4793
}

# drive NAME CONNECTIONS SECONDS [FAULT]: all ends well; FAULT is a function to call in the middle.
drive()
{
    local driver status=0 before_bytes

    before_bytes=$(sum_of "$(column bytes)")
    on 0 0 timeout 300 "$streams" drive 127.0.0.1 6000 "$RANDOM" "$2" "$3" >"$scratch/drive.out" 2>"$scratch/drive.log" &
    driver=$!
    if [[ -n ${4-} ]]; then
        sleep 2
        "$4"
    fi
    wait $driver || status=$?
    if ((status != 0)); then
        head -n 20 "$scratch/drive.log" "$scratch/drive.out" >&2
        tail -n 5 "$scratch"/*.log >&2
        fail "$1: streams ends with $status"
    fi
    echo "$1: $(<"$scratch/drive.out")"
    (($(sum_of "$(column bytes)") > before_bytes)) || fail "$1: nothing crossed the spines"
}

sum_of()
{
    # shellcheck disable=SC2086
    sum $1
}

kill_spine()
{
    fabric blackhole all 1 on
}

stand_still()
{
    kill -STOP "$server" "$client"
    sleep 3
    kill -CONT "$server" "$client"
}

fabric_up -S 4
on 1 0 "$streams" serve 10.1.0.2 7000 >"$scratch/target.out" 2>"$scratch/target.log" &
target=$!
wait_for 1 7000
start_server
ip netns exec "${prefix}h0_0" "$forward" connect -L 6000:10.1.0.2:7000 --peer-timeout 5 10.1.0.2 >"$scratch/client.log" 2>&1 &
client=$!
wait_for 0 6000

drive '1,000 connections' 1000 60
fabric loss 10000
drive '1% lost' 300 8
fabric loss 0
drive 'a spine dies' 300 8 kill_spine
fabric blackhole all 1 off
drive 'both ends stand still for 3 s' 300 8 stand_still

# How many connections the server has to the target.
connections()
{
    on 1 0 ss -Hnt state established '( sport = :7000 )' | wc -l
}

readonly driver_rests=9 # of enum deed in streams.c: such connections stay open until they break

# kill_under CONNECTIONS SECONDS [DEED]: the server is killed after two seconds of that, or once all that rest are open, and
# starts again.
kill_under()
{
    local try

    on 0 0 timeout 100 "$streams" drive 127.0.0.1 6000 1 "$@" >"$scratch/drive.out" 2>"$scratch/drive.log" &
    driver=$!
    sleep 2
    for ((try = 0; try < 100; try++)); do
        if [[ ${3-} != "$driver_rests" ]] || (($(connections) >= $1)); then
            break
        fi
        sleep 0.1
    done
    kill -9 "$server"
    wait "$server" || true
    start_server
    wait $driver || true
    echo "a killed server: $(<"$scratch/drive.out")"
    [[ -s $scratch/drive.out ]] || fail 'a killed server: streams does not end'
    # Nobody takes the break for an orderly end.
    ! grep -vE 'Connection reset by peer|Broken pipe' "$scratch/drive.log" >&2 || fail 'connections of the killed server were not reset'
}

# All 50 are open when the server is killed: they end no sooner.
kill_under 50 1 "$driver_rests"
grep -q '^50 connections, 50 broken, .* 50 wrong' "$scratch/drive.out" || fail 'a connection outlived its server'
grep -q '10.1.0.2:4793 .* streams reset' "$scratch/client.log" || fail 'the log does not name the server that died'
kill_under 50 8
drive 'after the server was restarted' 300 4

kill "$client" "$server"
wait "$client" || fail "the near end exits with $?"
wait "$server" || fail "the far end exits with $?"
kill "$target"
wait "$target" || true # of the killed server's connections some ended early
! grep -qE 'wrong byte|too many|stuck' "$scratch/target.log" || fail "the target: $(grep -m1 -E 'wrong byte|too many|stuck' "$scratch/target.log")"
