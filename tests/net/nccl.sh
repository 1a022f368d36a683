#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# nccl.sh NCCL_RING PLUGIN: allreduce between two hosts over four spines, by the network plugin and by TCP striped as NCCL
# does it. The plugin uses all spines, loss costs it little, and a spine that dies holds it up for a moment. Rates are
# compared with rates of the same minute, taken in turn.

# shellcheck source=tests/net/lib.sh
source "$(dirname "$0")/lib.sh"

readonly ring=$1 plugin=$2 bytes=$((64 << 20)) trials=3
readonly stall_us_max=100000
# Both ways, over all spines, are more packets than a few processors carry: they would be what is measured.
rate_mbps=1000
(($(nproc) >= 8)) || rate_mbps=500

# start_ring NAME VIA SECONDS
start_ring()
{
    local rank

    rm -rf "$scratch/ring"
    mkdir "$scratch/ring"
    ranks=()
    for rank in 0 1; do
        on $rank 0 timeout 30 "$ring" "$2" "$scratch/ring" "10.$rank.0.2" $rank 2 $bytes "$3" \
            >"$scratch/rank$rank" 2>"$scratch/log$rank" &
        ranks+=($!)
    done
}

# finish_ring NAME: the figures of the slower rank, in $rate and $stall.
finish_ring()
{
    local rank code

    for rank in 0 1; do
        code=0
        wait "${ranks[rank]}" || code=$?
        ((code == 0)) || { cat "$scratch"/log* >&2; fail "$1: rank $rank exits with $code"; }
    done
    echo "$1: $(cat "$scratch/rank0")"
    rate=$(awk '{ print $2 }' "$scratch"/rank* | sort -n | head -n 1)
    stall=$(awk '{ print $4 }' "$scratch"/rank* | sort -n | tail -n 1)
}

run_ring()
{
    start_ring "$@"
    finish_ring "$1"
}

median()
{
    printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"
}

# at_least "WHAT" RATE PERCENT OTHER
at_least()
{
    (($2 * 100 >= $4 * $3)) || fail "$1: $2 bytes/s are less than $3% of $4"
}

came()
{
    # shellcheck disable=SC2046
    sum $(column packets)
}

kill_spine()
{
    local begin try

    begin=$(came)
    for ((try = 0; try < 200; try++)); do
        (($(came) - begin < 10000)) || break
        sleep 0.05
    done
    fabric blackhole all 2 on
    came_at_death=$(came)
}

fabric_up -S 4 -r $rate_mbps

for ((trial = 0; trial < trials; trial++)); do
    run_ring 'plugin' "$plugin" 1
    clean+=("$rate")
    run_ring 'TCP, 1 connection' 1 1
    tcp1+=("$rate")
    run_ring 'TCP, 8 connections' 8 1
    tcp8+=("$rate")
    fabric loss 10000
    run_ring 'plugin, loss 1%' "$plugin" 1
    lossy+=("$rate")
    fabric loss 0
done
plugin_rate=$(median "${clean[@]}")
at_least 'plugin and one connection' "$plugin_rate" 220 "$(median "${tcp1[@]}")"
at_least 'plugin and eight connections' "$plugin_rate" 100 "$(median "${tcp8[@]}")"
at_least 'plugin with loss and without' "$(median "${lossy[@]}")" 90 "$plugin_rate"

eaten=$(column eaten)
start_ring 'plugin, a spine dies' "$plugin" 2
kill_spine
finish_ring 'plugin, a spine dies'
# shellcheck disable=SC2046
(($(sum $(minus "$(column eaten)" "$eaten")) > 0)) || fail 'the spine had nothing to eat'
(($(came) > came_at_death + 10000)) || fail 'the spine died after the end'
((stall < stall_us_max)) || fail "a dead spine stalls for $stall us"
