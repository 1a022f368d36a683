#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
Count the instructions of the engine for fixed workloads, and compare them with bounds.txt.

usage: cost.sh [--program FILE] [--top N] [--keep DIRECTORY] [--write] [WORKLOAD...]

  --program FILE    what is counted (default: build/tests/perf/engine_cost)
  --top N           print the N functions that cost most, too, of each workload and end
  --keep DIRECTORY  keep callgrind's files there, for callgrind_annotate or kcachegrind
  --write           write bounds.txt anew, from what was counted
  WORKLOAD...       only these: bulk, bulk_1408, lossy, peers64, small, latency

A line for each workload and end: instructions of mrd a packet and a message; those of libraries
(memcpy(), XXH3), which vary with the processor and are not bounded; packets a message; the bound,
and by how much the instructions a message differ from it. Packets are those of the sender.

Exit status: 0 if all is within 3% of the bounds or below, 1 if something costs more or a run fails,
2 for a wrong option, 77 if nothing can be compared here: without valgrind, or with another compiler
than that of the bounds. Half a minute on one core.
USAGE
}

readonly more_percent=3 # than the bound is too much; less than it by so much is worth a note
bounds=$(dirname "${BASH_SOURCE[0]}")/bounds.txt
readonly bounds

die()
{
    printf 'cost.sh: %s\n' "$*" >&2
    exit 1
}

wrong()
{
    printf 'cost.sh: %s\n' "$*" >&2
    exit 2
}

skip()
{
    printf 'cost.sh: skipped: %s\n' "$*"
    exit 77
}

# count WORKLOAD END: callgrind's file is $scratch/WORKLOAD.END.callgrind, and what the program printed
# $scratch/WORKLOAD.END.moved.
count()
{
    local name=$scratch/$1.$2

    valgrind --tool=callgrind --collect-atstart=no --compress-strings=no --compress-pos=no \
        --callgrind-out-file="$name.callgrind" "$program" "$1" "$2" \
        >"$name.moved" 2>"$name.log" || {
        cat "$name.log" >&2
        die "$1 $2: the run fails"
    }
}

# functions FILE: self cost, object, function and source file of each function, tab-separated. The
# line after calls= is the cost of the function that is called. Functions of tests/perf/ are left
# out: they cost a little, between the calls of the engine.
functions()
{
    awk '
        function base(path) { sub(/.*\//, "", path); return path }
        /^ob=/ { object = base(substr($0, 4)); next }
        /^fl=/ { path = substr($0, 4); next }
        /^fn=/ { name = substr($0, 4); next }
        /^calls=/ { getline; next }
        /^[0-9]/ && path !~ /\/tests\/perf\// {
            cost[object "\t" name "\t" base(path)] += $2
        }
        END {
            for (key in cost)
                printf "%.0f\t%s\n", cost[key], key
        }' "$1" | sort -k1,1nr -k2
}

# summary WORKLOAD END: instructions of mrd, of libraries; messages, packets.
summary()
{
    local messages packets

    read -r _ messages _ packets _ <"$scratch/$1.$2.moved"
    functions "$scratch/$1.$2.callgrind" |
        awk -F '\t' -v object="${program##*/}" -v messages="$messages" -v packets="$packets" '
            $2 == object { own += $1 }
            $2 != object { other += $1 }
            END { printf "%.0f %.0f %d %d\n", own, other, messages, packets }'
}

print_top()
{
    functions "$scratch/$1.$2.callgrind" |
        awk -F '\t' -v object="${program##*/}" -v messages="$4" -v packets="$5" -v top="$3" '
            NR <= top {
                printf "    %11.1f %12.1f  %s (%s)\n", $1 / packets, $1 / messages,
                    $3, $2 == object ? $4 : $2
            }'
}

# compare WORKLOAD END OWN OTHER MESSAGES PACKETS BOUND: a line of the table. The last word is the
# verdict: ok, low, HIGH or NEW.
compare()
{
    awk -v name="$1" -v end="$2" -v own="$3" -v other="$4" -v messages="$5" -v packets="$6" \
        -v bound="$7" -v limit="$more_percent" 'BEGIN {
            if (bound > 0) {
                change = (own / messages / bound - 1) * 100
                verdict = change > limit ? "HIGH" : change < -limit ? "low" : "ok"
                difference = sprintf("%+.2f%%", change)
            } else {
                bound = difference = "-"
                verdict = "NEW"
            }
            printf "%-10s %-9s %10.1f %12.1f %10.1f %11.3f %9s %9s  %s\n", name, end,
                own / packets, own / messages, other / packets, packets / messages, bound,
                difference, verdict
        }'
}

write_bounds()
{
    cat <<HEAD
# SPDX-License-Identifier: BSD-2-Clause
# Written by cost.sh --write: workload, end, and instructions of mrd a message. They hold for code of
# this compiler, and this version of what it inlines:
build $build
HEAD
    cat "$scratch/bounds"
}

program=$(dirname "${BASH_SOURCE[0]}")/../../build/tests/perf/engine_cost top=0 keep='' write=no

options=$(getopt -n cost.sh -o h -l program:,top:,keep:,write,help -- "$@") || exit 2
eval set -- "$options"
while [[ $1 != -- ]]; do
    case $1 in
    --program) program=$2; shift 2 ;;
    --top)
        [[ $2 =~ ^[0-9]{1,4}$ ]] || wrong "--top takes a number, not '$2'"
        top=$((10#$2))
        shift 2
        ;;
    --keep) keep=$2; shift 2 ;;
    --write) write=yes; shift ;;
    *) usage; exit 0 ;;
    esac
done
shift
[[ $write == no || $# == 0 ]] || wrong '--write writes the bounds of all workloads'

command -v valgrind >/dev/null || skip 'no valgrind (tools/install-deps.sh test)'
[[ $program != none ]] || skip 'no valgrind/callgrind.h when this was configured (Debian: valgrind)'
[[ -x $program ]] || wrong "no program $program: build it first"
program=$(realpath "$program")
build=$("$program" build)
bounds_build=$(sed -n 's/^build //p' "$bounds" 2>/dev/null || true)
[[ $write == yes || $build == "$bounds_build" ]] ||
    skip "the bounds are of $bounds_build, this is $build"
mapfile -t workloads < <("$program" workloads)
for workload; do
    [[ " ${workloads[*]} " == *" $workload "* ]] || wrong "the workloads are ${workloads[*]}, not '$workload'"
done
(($# == 0)) || workloads=("$@")
[[ -z $keep ]] || mkdir -p "$keep"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

printf '%-10s %-9s %10s %12s %10s %11s %9s %9s\n' '' '' 'mrd' 'mrd' 'libraries' 'packets' '' '' \
    workload end 'a packet' 'a message' 'a packet' 'a message' bound differs
for workload in "${workloads[@]}"; do
    for end in sender receiver; do
        count "$workload" $end
        read -r own other messages packets < <(summary "$workload" $end)
        bound=$(sed -n "s/^$workload $end //p" "$bounds" 2>/dev/null || true)
        compare "$workload" $end "$own" "$other" "$messages" "$packets" "${bound:-0}" |
            tee -a "$scratch/table"
        echo "$workload $end $(((own + messages / 2) / messages))" >>"$scratch/bounds"
        ((top == 0)) || print_top "$workload" $end "$top" "$messages" "$packets"
        [[ -z $keep ]] || cp "$scratch/$workload.$end.callgrind" "$keep"
    done
    cmp -s "$scratch/$workload".{sender,receiver}.moved ||
        die "$workload moved other packets in its second run: it must not depend on anything else"
done

if [[ $write == yes ]]; then
    write_bounds >"$scratch/bounds.txt"
    cp "$scratch/bounds.txt" "$bounds"
    echo "written: $bounds"
    exit
fi
if grep -q ' low$' "$scratch/table"; then
    echo "Some cost less than their bounds by more than $more_percent%: write new ones (cost.sh --write)."
fi
if grep -qE ' (HIGH|NEW)$' "$scratch/table"; then
    cat >&2 <<WHY
cost.sh: some cost more than their bounds by more than $more_percent%, or have none. See by --top 20 which
functions do, and make them cheaper; or, if what they do is worth it, write new bounds (cost.sh
--write) and say why in the commit.
WHY
    exit 1
fi
