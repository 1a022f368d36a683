#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# transfer.sh MRD_PERF: verified writes through four spines, clean, with loss, and with a spine that dies on the way.
# What is asserted are bytes and packets; goodput is tools/demo.sh's business.

# shellcheck source=tests/net/lib.sh
source "$(dirname "$0")/lib.sh"

readonly perf=$1 size=65536 iterations=12000 paths=64
readonly payload=$((size * iterations))

for tool in jq ss; do
    command -v $tool >/dev/null || skip "no $tool"
done

# wait_for_packets NUMBER: until so many of this transfer came to the spines.
wait_for_packets()
{
    local try

    for ((try = 0; try < 200; try++)); do
        # shellcheck disable=SC2046
        (($(sum $(minus "$(column packets)" "$packets0")) < $1)) || return 0
        sleep 0.05
    done
    fail "fewer than $1 packets were sent"
}

# A spine that the control connection does not use, either way: it would die with it.
spine_without_tcp()
{
    paste <(minus "$(column tcp 0)" "$tcp0_out" | xargs -n 1) <(minus "$(column tcp 1)" "$tcp0_back" | xargs -n 1) |
        awk '$1 == 0 && $2 == 0 { print NR - 1; exit }'
}

figure()
{
    jq -r ".$1" "$scratch/json"
}

# transfer NAME [FAULT]: run one; FAULT is a function to call in its middle. Then $came, $bytes, $lost, $eaten: by spine.
transfer()
{
    local bytes0 lost0 eaten0 server client code=0

    packets0=$(column packets) bytes0=$(column bytes) lost0=$(column lost) eaten0=$(column eaten)
    tcp0_out=$(column tcp 0) tcp0_back=$(column tcp 1)
    on 1 0 timeout 60 "$perf" write_bw "${server_core[@]}" >"$scratch/server" 2>&1 &
    server=$!
    wait_for_server
    on 0 0 timeout 60 "$perf" write_bw "${client_core[@]}" -s $size -n $iterations --paths $paths --verify --out_json 10.1.0.2 \
        >"$scratch/json" 2>"$scratch/client" &
    client=$!
    [[ -z ${2-} ]] || $2
    wait $client || code=$?
    ((code == 0)) || { cat "$scratch/client" "$scratch/server" >&2; fail "$1: the client exits with $code"; }
    wait $server || fail "$1: the server exits with $?"

    came=$(minus "$(column packets)" "$packets0")
    bytes=$(minus "$(column bytes)" "$bytes0")
    lost=$(minus "$(column lost)" "$lost0")
    eaten=$(minus "$(column eaten)" "$eaten0")
    echo "$1: packets by spine $came lost $lost eaten $eaten bytes $(sum_of "$bytes"), $(figure packets_retransmitted)" \
        "retransmitted, $(figure packets_spurious) of them spurious"
    check_transfer "$1"
}

sum_of()
{
    # shellcheck disable=SC2086
    sum $1
}

# What holds whatever the faults.
check_transfer()
{
    local packets

    [[ $(figure verified) == true ]] || fail "$1: not verified"
    [[ $(figure iterations) == "$iterations" && $(figure size_bytes) == "$size" ]] || fail "$1: not all was sent"
    (($(figure bytes_sent) >= payload)) || fail "$1: fewer bytes sent than there are"
    (($(sum_of "$bytes") >= payload)) || fail "$1: fewer bytes crossed the spines than there are"
    (($(jq '.paths_used | length' "$scratch/json") == paths)) || fail "$1: not $paths paths"
    for packets in $came; do
        ((packets * 50 > $(sum_of "$came"))) || fail "$1: a spine is left out"
    done
}

# waste PERCENT NAME: bytes on the wire beyond the payload, headers and resent ones, stay below.
waste()
{
    (($(sum_of "$bytes") * 100 < payload * (100 + $1))) || fail "$2: more than $1% wasted"
}

kill_spine()
{
    wait_for_packets 60000
    victim=$(spine_without_tcp)
    [[ -n $victim ]] || fail 'the control connection uses every spine'
    fabric blackhole all "$victim" on
    came_at_death=$(sum_of "$(minus "$(column packets)" "$packets0")")
}

fabric_up -S 4 -r 1000

transfer clean
(($(sum_of "$lost") == 0 && $(sum_of "$eaten") == 0)) || fail 'clean: the fabric lost packets'
waste 8 clean

fabric loss 10000
transfer 'loss 1%'
(($(sum_of "$lost") > 0)) || fail 'loss 1%: nothing was lost'
(($(figure packets_retransmitted) >= $(sum_of "$lost") / 2)) || fail 'loss 1%: what was lost was not sent again'
waste 12 'loss 1%'
fabric loss 0

transfer 'spine dies' kill_spine
(($(sum_of "$eaten") > 0)) || fail 'spine dies: it had nothing to eat'
(($(sum_of "$came") > came_at_death + 10000)) || fail 'spine dies: it died after the transfer'
# Probes go on; the rest must have moved to the living spines.
(($(sum_of "$eaten") * 20 < $(sum_of "$came"))) || fail 'spine dies: too much is still sent into it'
waste 12 'spine dies'
