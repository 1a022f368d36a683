#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
Run all experiments of mrd_sim and write the page about them: EXPERIMENTS.md, with its pictures beside it.

usage: experiments.sh [--quick] [--only EXPERIMENT]... [-o DIRECTORY] [-s MRD_SIM]

  --only EXPERIMENT
                only this one: its section and its picture change in the page that is there, whose end still
                tells of the versions that made the others
  --quick       tiny fabrics, a few seconds; what the page claims is not checked
  -o DIRECTORY  where the page goes, and experiments/ with the pictures and input files (default: tools)
  -s MRD_SIM    the binary to run; without it, one is built in build/

The page is tools/experiments.md.in with its figures filled in by jq. A sentence that the figures do not support is an
error, and then nothing is written. About three minutes on two cores. Needs jq and gnuplot.
USAGE
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/common.sh
source tools/common.sh
# shellcheck source=tools/page.sh
source tools/page.sh

out=tools
sim=''
quick=false
seeds=10
few_seeds=5
chosen=() # experiments

# ------------------------------------------------------------------------------------------------- measuring

# measure NAME EXPERIMENT OPTION...: results into NAME.json; the command, as the page shows it, into commands.
measure()
{
    local name=$1 status=0

    shift
    printf '%s\tmrd_sim %s\n' "$name" "$*" >>"$scratch/commands"
    printf '%3d s  mrd_sim %s\n' $SECONDS "$*" >&2
    (cd "$scratch" && "$sim" "$@" --quiet --json) >>"$scratch/$name.json" 2>"$scratch/log" || status=$?
    # Without a way flows of one path never end, which is a result; it ends with 1 then.
    if ((status != 0)) && [[ $name != failure_* || $status != 1 ]]; then
        tail -n 3 "$scratch/log" >&2
        die "mrd_sim $* exits with $status"
    fi
}

# The fabrics are those of the experiments' defaults; --quick has smaller ones.
set_sizes()
{
    flow_bytes=2097152
    fat_tree=(--tiers 3 --leaf-hosts 4)
    fat_tree_hosts=128
    leaf_spine=() loss=() skew=() failure=(--limit 0.03) scale=() collective=() narrow=() wan=()
    if [[ $quick == true ]]; then
        seeds=2
        few_seeds=1
        flow_bytes=131072
        fat_tree=(--tiers 3 --hosts 16 --leaf-hosts 2)
        fat_tree_hosts=16
        leaf_spine=(--hosts 16 --leaf-hosts 4 --size 256K)
        loss=(--hosts 8 --leaf-hosts 4 --payload 8192)
        skew=(--hosts 8 --leaf-hosts 4 --size 16M)
        failure=(--hosts 8 --leaf-hosts 4 --size 4M --at 100 --limit 0.001)
        scale=(--peers 8 --size 1K)
        collective=(--hosts 8 --leaf-hosts 4 --size 1M)
        narrow=(--duration 0.02)
        wan=(--duration 0.1)
    fi
}

# transport NAME: the options that make it so.
transport()
{
    case $1 in
    mrd) ;;
    dcqcn) echo --transport rc --cc dcqcn ;;
    *) echo --transport "$1" ;;
    esac
}

readonly experiments=(run collision loss incast failure skew scale allreduce alltoall fairness wan)

measure_run()
{
    local name

    permutation $fat_tree_hosts $flow_bytes >"$scratch/permutation.cm"
    for name in adaptive reps rr random single; do
        measure run_$name run -tm permutation.cm "${fat_tree[@]}" --spray $name "${many[@]}"
    done
    # shellcheck disable=SC2046 # options are words
    for name in irn rc dcqcn; do
        measure run_$name run -tm permutation.cm "${fat_tree[@]}" $(transport $name) "${many[@]}"
    done
}

measure_collision()
{
    local name

    # shellcheck disable=SC2046
    for name in irn dcqcn; do
        measure collision_$name collision "${leaf_spine[@]}" $(transport $name) "${many[@]}"
    done
    measure collision collision "${leaf_spine[@]}" "${many[@]}"
}

measure_loss()
{
    local name

    # shellcheck disable=SC2046
    for name in mrd irn rc; do
        measure loss_$name loss "${loss[@]}" "${few[@]}" $(transport $name)
    done
}

measure_incast()
{
    local name

    # shellcheck disable=SC2046
    for name in mrd irn rc dcqcn; do
        measure incast_$name incast --victim "${leaf_spine[@]}" $(transport $name) "${many[@]}"
    done
}

measure_failure()
{
    local name seed

    # Each seed of its own: of a time that one of them never reaches there is no mean.
    # shellcheck disable=SC2046
    for name in mrd irn rc; do
        for ((seed = 1; seed <= seeds; seed++)); do
            measure failure_$name failure "${failure[@]}" $(transport $name) --seed $seed
        done
    done
}

measure_skew()
{
    measure skew skew "${skew[@]}" "${many[@]}"
}

measure_scale()
{
    measure scale scale "${scale[@]}"
    # Each message is a queue pair of its own there: with the usual timeout all would time out while
    # they wait for each other in the host.
    measure scale_rc scale "${scale[@]}" --transport rc --set rc.rto_us=100000
}

measure_allreduce()
{
    local name

    # shellcheck disable=SC2046
    for name in mrd irn rc; do
        measure allreduce_$name allreduce "${collective[@]}" $(transport $name) "${few[@]}"
    done
}

measure_alltoall()
{
    local name

    # shellcheck disable=SC2046
    for name in mrd irn rc; do
        measure alltoall_$name alltoall "${collective[@]}" $(transport $name) "${few[@]}"
        measure alltoall_at_once_$name alltoall --at-once "${collective[@]}" $(transport $name) "${few[@]}"
    done
}

measure_fairness()
{
    local name options

    while read -r name options; do
        # shellcheck disable=SC2086 # options are words
        measure "fairness_$name" fairness $options "${narrow[@]}" "${few[@]}"
    done <<'POINTS'
nscc
many --flows 32 --stagger 0
fabric --knows fabric
swift --cc swift
ecn --ecn 0.2,0.8
dctcp --cc dctcp --ecn 0.2,0.8
dcqcn --transport rc --cc dcqcn --ecn 0.2,0.8
tcp --flows 2 --tcp 2
tcp_first --flows 2 --tcp 2 --tcp-first
tcp_deep --flows 2 --tcp 2 --buffer 4
POINTS
}

measure_wan()
{
    measure wan wan "${wan[@]}"
}

# ---------------------------------------------------------------------------------------------------- the page

# What the simulation cannot tell: the bytes of a queue pair of RC, as the other page has measured them.
rc_peer_bytes()
{
    sed -nE 's/^\| RC, [0-9]+ queue pairs .* ([0-9]+) \|$/\1/p' tools/COMPARE.md
}

# write_from TEMPLATE PAGE: PAGE in $scratch.
write_from()
{
    page_write "$1" tools/experiments.jq "$scratch" "$2" \
        --argjson quick $quick --argjson seeds "$seeds" --argjson flow_bytes $flow_bytes \
        --argjson rc_peer_bytes "$(cat "$scratch/rc_peer_bytes")" \
        --arg commit "$(page_commit core transport include tools/sim/models)" \
        --arg version "$("$sim" --version)" --arg gnuplot "$(gnuplot --version)" --arg jq "$(jq --version)" ||
        die 'the page cannot be written, or the figures do not support a claim of it'
}

# part FILE HEADING: the section of a page or template that begins with this line; '': what is above the first one.
part()
{
    awk -v heading="$2" 'BEGIN { inside = heading == "" } /^## / { inside = $0 == heading } inside' "$1"
}

# Only the chosen sections are new; all others are those of the page that is there.
write_some()
{
    local heading new
    local template=tools/experiments.md.in old=$out/EXPERIMENTS.md

    [[ -r $old ]] || die "there is no $old to change: --only needs it"
    for new in "${chosen[@]}"; do
        part $template "$(grep "^## $new: " $template)"
    done >"$scratch/some.md.in"
    write_from "$scratch/some.md.in" some.md
    sed -i '$d' "$scratch/some.md" # the newline that jq adds
    part "$old" '' >"$scratch/EXPERIMENTS.md"
    while read -r heading; do
        new=${heading#\#\# }
        new=${new%%:*}
        [[ " ${chosen[*]} " == *" $new "* ]] && new=$scratch/some.md || new=$old
        part "$new" "$heading" >"$scratch/part"
        [[ -s $scratch/part ]] || die "$old has no section '$heading': make the whole page"
        cat "$scratch/part" >>"$scratch/EXPERIMENTS.md"
    done < <(grep '^## ' $template)
}

while (($# > 0)); do
    case $1 in
    --quick) quick=true ;;
    -o | -s | --only)
        (($# > 1)) || { usage >&2; exit 2; }
        case $1 in
        -o) out=$2 ;;
        -s) sim=$2 ;;
        --only) chosen+=("$2") ;;
        esac
        shift
        ;;
    -h | --help) usage; exit ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done
for name in "${chosen[@]}"; do
    [[ " ${experiments[*]} " == *" $name "* ]] || die "--only: expected one of ${experiments[*]}, found '$name'"
done
need jq gnuplot

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

[[ -n $sim ]] || { build "$scratch" mrd_sim; sim=build/tools/mrd_sim; }
sim=$(realpath "$sim")
[[ -x $sim ]] || die "no $sim"
set_sizes
many=(--seeds "$seeds") few=(--seeds "$few_seeds") # few: where each run is an average already
rc_peer_bytes >"$scratch/rc_peer_bytes"
[[ -s $scratch/rc_peer_bytes ]] || die "tools/COMPARE.md does not tell of the state of RC"
measured=("${chosen[@]}")
((${#measured[@]})) || measured=("${experiments[@]}")
for name in "${measured[@]}"; do
    "measure_$name"
done
tools/experiments-plot.sh "$scratch" "$scratch" "${measured[@]}"
if ((${#chosen[@]})); then
    write_some
else
    write_from tools/experiments.md.in EXPERIMENTS.md
fi
mkdir -p "$out/experiments"
cp "$scratch"/*.svg "$out/experiments"
[[ ! -e $scratch/permutation.cm ]] || cp "$scratch/permutation.cm" "$out/experiments"
cp "$scratch/EXPERIMENTS.md" "$out"
printf '%3d s  %s\n' $SECONDS "$out/EXPERIMENTS.md" >&2
