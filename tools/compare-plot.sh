#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
Draw what tools/compare.sh measured: goodput at each loss, and traffic over time when a path is cut.

usage: compare-plot.sh DIRECTORY OUT.svg

DIRECTORY holds its results. Needs gnuplot (Debian: gnuplot-nox) and jq.
USAGE
}

if (($# != 2)); then
    usage >&2
    exit 2
fi
readonly directory=$1 out=$2
for tool in gnuplot jq; do
    command -v $tool >/dev/null || { echo "compare-plot.sh: no $tool" >&2; exit 1; }
done
[[ -r $directory/path_rc.json ]] || { echo "compare-plot.sh: $directory holds no results of compare.sh" >&2; exit 1; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Medians, MiB/s: a line a loss, a column a transport.
for loss in 0 0.1 1; do
    printf '"%s%%"' $loss
    for transport in raw-ud mrd-ibv rc; do
        # Raw UD repeats nothing: there is no goodput to speak of with loss.
        if [[ ! -e $directory/bw_1024_${loss}_$transport.json ]]; then
            printf ' 0'
            continue
        fi
        printf ' %s' "$(jq -s 'map(.bw_gbps) | sort | .[length / 2 | floor] * 1e9 / 8 / 1048576' \
            "$directory/bw_1024_${loss}_$transport.json")"
    done
    echo
done >"$scratch/loss"
# Rates between samples, half a second apart, MiB/s; time 0 is the cut.
for transport in mrd-ibv rc; do
    jq -r '. as $all | [.samples | to_entries[] | select(.key % 5 == 0) | .value] as $s
        | range(1; $s | length) | [$s[. - 1], $s[.]] | select(.[1][0] > .[0][0])
        | "\(.[1][0] - $all.at_s) \((.[1][1] + .[1][2] - .[0][1] - .[0][2]) / (.[1][0] - .[0][0]) / 1048576)"' \
        "$directory/path_$transport.json" >"$scratch/$transport"
done

gnuplot <<PLOT
set terminal svg size 900,320 font "sans,12" noenhanced background "white"
set output "$out"
set multiplot layout 1,2
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror
set yrange [0:*]
set title "goodput of 64 KiB messages, MTU 1024"
set xlabel "packets lost, each way"
set ylabel "MiB/s"
set style data histograms
set style fill solid 0.8 noborder
set boxwidth 0.9
set key top right
plot "$scratch/loss" using 2:xtic(1) lc rgb "#999999" title "raw UD", \
     "" using 3 lc rgb "#1f6fb4" title "mrd", "" using 4 lc rgb "#c4622d" title "RC"
set style data lines
set title "two paths, one of them cut"
set xlabel "time after the cut [s]"
set ylabel "on the wire [MiB/s]"
set arrow from 0, graph 0 to 0, graph 1 nohead lc rgb "#666666" dt 2
plot "$scratch/mrd-ibv" lw 2 lc rgb "#1f6fb4" title "mrd", "$scratch/rc" lw 2 lc rgb "#c4622d" title "RC"
unset multiplot
PLOT
sed -i '1a <!-- SPDX-License-Identifier: BSD-2-Clause -->' "$out"
