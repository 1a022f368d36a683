#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# forward_outage.sh MRD_FORWARD STREAMS: the network carries nothing for so long that the near end gives the far end up, but not
# the other way round. Streams from before are reset at both ends; who connects as soon as the network is back is served.

# shellcheck source=tests/net/lib.sh
source "$(dirname "$0")/lib.sh"

readonly forward=$1 streams=$2 rounds=2

command -v ss >/dev/null || skip 'no ss'

# wait_until SECONDS COMMAND...: as long as it fails.
wait_until()
{
    local try

    for ((try = 0; try < $1 * 20; try++)); do
        "${@:2}" >/dev/null 2>&1 && return 0
        sleep 0.05
    done
    tail -n 20 "$scratch"/*.log >&2
    return 1
}

listens()
{
    [[ -n $(on "$1" 0 ss -Hlnut "sport = :$2") ]]
}

# connections NUMBER: the target has so many.
connections()
{
    (($(on 1 0 ss -Hnt 'sport = :7000' | wc -l) == $1))
}

given_up()
{
    (($(grep -c 'does not answer: 1 streams reset' "$scratch/client.log") == round))
}

fabric_up -S 1
on 1 0 "$streams" serve 10.1.0.2 7000 >"$scratch/target.out" 2>"$scratch/target.log" &
wait_until 20 listens 1 7000 || fail 'the target does not listen'
on 1 0 "$forward" serve --listen 10.1.0.2 --allow '10.1.0.2:*' --verbose --peer-timeout 30 >"$scratch/server.log" 2>&1 &
wait_until 20 listens 1 4793 || fail 'the far end does not listen'
on 0 0 "$forward" connect -L 6000:10.1.0.2:7000 --verbose --peer-timeout 2 10.1.0.2 >"$scratch/client.log" 2>&1 &
wait_until 20 listens 0 6000 || fail 'the near end does not listen'

for ((round = 1; round <= rounds; round++)); do
    # A connection that rests until it breaks.
    on 0 0 timeout 200 "$streams" drive 127.0.0.1 6000 $round 1 1 9 >"$scratch/drive.out" 2>&1 &
    driver=$!
    wait_until 30 connections 1 || fail 'there is no connection through the tunnel'
    sleep 1 # until what it sends is over
    fabric blackhole all 0 on
    wait_until 120 given_up || fail 'the far end is not given up'
    wait $driver || true
    fabric blackhole all 0 off
    # Half of what a near end waits for an answer, at most.
    on 0 0 timeout 30 "$streams" drive 127.0.0.1 6000 $round 1 1 0 >"$scratch/drive.out" 2>&1 ||
        fail "round $round: the first connection after an outage: $(<"$scratch/drive.out")"
    wait_until 100 connections 0 || fail "round $round: the far end keeps a connection that was reset"
done
