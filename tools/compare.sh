#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
Compare mrd with RC queue pairs and raw UD on real verbs devices, and write the page about it: COMPARE.md, with its
picture beside it.

usage: compare.sh [--quick] [-o DIRECTORY] [-p MRD_PERF] [-k DIRECTORY | --from DIRECTORY]

  --quick           one short run of each, two minutes; what the page claims is not checked
  -o DIRECTORY      where the page goes, and compare.svg (default: tools)
  -p MRD_PERF       the binary to run; without it, one is built in build/
  -k DIRECTORY      keep the results there
  --from DIRECTORY  do not measure: write the page of results that were kept

The devices are software ones in a virtual machine (tools/vmlab.sh). The page is tools/compare.md.in with its figures
filled in by jq. A sentence that the figures do not support is an error, and then nothing is written. About ten minutes
on two cores that have nothing else to do. Needs qemu, jq and gnuplot.
USAGE
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/common.sh
source tools/common.sh
# shellcheck source=tools/page.sh
source tools/page.sh

readonly size=65536 depth=32
readonly losses=(0 0.1 1)

# ------------------------------------------------------------------------------------- measuring, in the machine

# run NAME TRANSPORT TEST OPTION...: its report into NAME.json, the command into commands.
run()
{
    local name=$1 transport=$2
    local command=("$3" --transport "$transport" --local -d rxe0,rxe1 "${@:4}")

    printf '%s\tmrd_perf %s\n' "$name" "${command[*]}" >>"$VMLAB_OUT/commands.$VMLAB_NET"
    if ! "$perf" "${command[@]}" --out_json -F >"$VMLAB_OUT/report" 2>"$VMLAB_OUT/log"; then
        tail -n 3 "$VMLAB_OUT/log" >&2
        return 1
    fi
    cat "$VMLAB_OUT/report" >>"$VMLAB_OUT/$name.json"
}

# Lose a share of the packets, in percent, both ways. None, too, by that queue, which costs a twentieth of the goodput
# itself.
lose()
{
    local device

    for device in va vb; do
        tc qdisc del dev $device root 2>/dev/null || true
        tc qdisc add dev $device root netem loss "$1%" limit 10000
    done
}

measure_veth()
{
    local turn loss transport mtu

    for ((turn = 1; turn <= repeat; turn++)); do
        # What is compared follows one another: the machine has fast and slow minutes.
        for mtu in 1024 4096; do
            for transport in raw-ud mrd-ibv rc; do
                for loss in "${losses[@]}"; do
                    [[ $transport != raw-ud || $loss == 0 ]] || continue
                    lose "$loss"
                    run "bw_${mtu}_${loss}_$transport" $transport write_bw -m $mtu -s $size -t $depth -D "$seconds" ||
                        die "$transport failed at a loss of $loss%"
                done
            done
        done
        lose 0
        for transport in raw-ud mrd-ibv rc; do
            run "lat_$transport" $transport send_lat -m 1024 -s 64 -n "$exchanges" || die "$transport failed"
        done
        echo "turn $turn of $repeat done after $SECONDS s" >&2
    done
    for transport in mrd-ibv rc; do
        "$perf" state -d rxe0 --peers "$peers" --out_json $transport >"$VMLAB_OUT/report" ||
            die "the state of $peers peers of $transport"
        jq '.[]' "$VMLAB_OUT/report" >"$VMLAB_OUT/state_$transport.json"
        printf 'state_%s\tmrd_perf state -d rxe0 --peers %s %s\n' $transport "$peers" $transport \
            >>"$VMLAB_OUT/commands.$VMLAB_NET"
    done
}

# Bytes that left by each of the two paths, until killed: a line each tenth of a second. Without a fork, which is slow
# there.
sample_paths()
{
    # shellcheck disable=SC2016 # expanded there
    exec ip netns exec R2 bash -c '
        exec {never}<> <(:)
        while :; do
            read -r up _ </proc/uptime
            read -r p0 </sys/class/net/p0/statistics/tx_bytes
            read -r p1 </sys/class/net/p1/statistics/tx_bytes
            echo "$up $p0 $p1"
            read -r -t 0.1 -u $never || true
        done'
}

# The path that has carried more since the first sample.
busier()
{
    awk 'NF == 3 { if (!n++) { p0 = $2; p1 = $3 } d0 = $2 - p0; d1 = $3 - p1 }
        END { print (d0 >= d1 ? "p0" : "p1") }' "$1"
}

# Until data flows: to start takes seconds there.
await_traffic()
{
    local tries

    for ((tries = 0; tries < 60; tries++)); do
        awk 'NF == 3 { if (!n++) start = $2 + $3; now = $2 + $3 } END { exit !(now - start > 1000000) }' "$1" && return
        sleep 0.5
    done
    die 'no data flows'
}

measure_ecmp()
{
    local transport sampler runner path

    for transport in mrd-ibv rc; do
        sample_paths >"$VMLAB_OUT/cut_$transport.samples" &
        sampler=$!
        run "cut_$transport" $transport write_bw -m 1024 -s $size -t $depth -D "$cut_seconds" &
        runner=$!
        await_traffic "$VMLAB_OUT/cut_$transport.samples"
        sleep "$cut_at"
        path=$(busier "$VMLAB_OUT/cut_$transport.samples")
        tc -n R1 qdisc add dev "$path" root netem loss 100%
        tc -n R2 qdisc add dev "$path" root netem loss 100%
        read -r at _ </proc/uptime
        # A connection that died is a result.
        wait $runner && ended=true || ended=false
        kill $sampler
        tc -n R1 qdisc del dev "$path" root
        tc -n R2 qdisc del dev "$path" root
        jq -Rn --arg path "$path" --argjson at "$at" --argjson ended $ended --rawfile log "$VMLAB_OUT/log" \
            '{path: $path, at_s: $at, ended: $ended, log: (if $ended then null else $log end),
              samples: [inputs | split(" ") | map(tonumber) | select(length == 3)]}' \
            "$VMLAB_OUT/cut_$transport.samples" >"$VMLAB_OUT/path_$transport.json"
    done
}

# ------------------------------------------------------------------------------------------------------ the page

# in_machine NETWORK: measure there.
in_machine()
{
    echo "measuring in the machine, network $1, $SECONDS s" >&2
    tools/vmlab.sh run -n "$1" -t 1800 -m 2048 -o "$scratch" -- tools/compare.sh --measure "$1" "$quick" "$perf" ||
        die 'a measurement failed'
}

write_page()
{
    cat "$scratch"/commands.* >"$scratch/commands"
    page_write tools/compare.md.in tools/compare.jq "$scratch" COMPARE.md --argjson quick "$quick" \
        --argjson repeat "$repeat" --argjson peers "$peers" --argjson cut_at "$cut_at" --argjson size $size \
        --arg commit "$(page_commit core transport include tools/perf)" --arg version "$("$perf" --version)" \
        --arg host "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores" ||
        die 'the page cannot be written, or the figures do not support a claim of it'
}

set_sizes()
{
    repeat=9 seconds=2 exchanges=5000 peers=1000 cut_at=4 cut_seconds=12
    [[ $quick == false ]] || repeat=1 seconds=1 exchanges=200 peers=50 cut_at=2 cut_seconds=6
}

out=tools perf='' quick=false keep='' from=''
if [[ ${1-} == --measure ]]; then
    quick=$3 perf=$4
    set_sizes
    "measure_$2"
    exit
fi
while (($# > 0)); do
    case $1 in
    --quick) quick=true ;;
    -o | -p | -k | --from)
        (($# > 1)) || { usage >&2; exit 2; }
        case $1 in
        -o) out=$2 ;;
        -p) perf=$2 ;;
        -k) keep=$2 ;;
        --from) from=$2 ;;
        esac
        shift
        ;;
    -h | --help) usage; exit ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done
need jq gnuplot

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

[[ -n $perf ]] || { build "$scratch" mrd_perf -- -DMRD_IBV=ON; perf=build/tools/mrd_perf; }
perf=$(realpath "$perf")
[[ -x $perf ]] || die "no $perf"
set_sizes
if [[ -n $from ]]; then
    cp -r "$from/." "$scratch"
else
    tools/vmlab.sh setup
    in_machine veth
    in_machine ecmp
    rm -f "$scratch"/{log,report}
fi
if [[ -n $keep ]]; then
    mkdir -p "$keep"
    cp -r "$scratch/." "$keep"
fi
tools/compare-plot.sh "$scratch" "$scratch/compare.svg"
write_page
mkdir -p "$out"
cp "$scratch/compare.svg" "$scratch/COMPARE.md" "$out"
printf '%3d s  %s\n' $SECONDS "$out/COMPARE.md" >&2
