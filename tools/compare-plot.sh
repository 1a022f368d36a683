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

# shellcheck source=tools/plot.sh
source "$(dirname "${BASH_SOURCE[0]}")/plot.sh"
plot_begin 2 2 "$@"
plot_need "$input/path_rc.json" compare.sh

# Medians in MiB/s: a line a loss, a column a transport.
for loss in 0 0.1 1; do
    printf '"%s%%"' $loss
    for transport in raw-ud mrd-ibv rc; do
        # Raw UD repeats nothing: there is no goodput to speak of with loss.
        if [[ ! -e $input/bw_1024_${loss}_$transport.json ]]; then
            printf ' 0'
            continue
        fi
        printf ' %s' "$(jq -s 'map(.bw_gbps) | sort | .[length / 2 | floor] * 1e9 / 8 / 1048576' \
            "$input/bw_1024_${loss}_$transport.json")"
    done
    echo
done >"$scratch/loss"
# Rates between samples, half a second apart, MiB/s; time 0 is the cut.
for transport in mrd-ibv rc; do
    jq -r '. as $all | [.samples | to_entries[] | select(.key % 5 == 0) | .value] as $s
        | range(1; $s | length) | [$s[. - 1], $s[.]] | select(.[1][0] > .[0][0])
        | "\(.[1][0] - $all.at_s) \((.[1][1] + .[1][2] - .[0][1] - .[0][2]) / (.[1][0] - .[0][0]) / 1048576)"' \
        "$input/path_$transport.json" >"$scratch/$transport"
done

plot_draw "$out" 900 350 <<PLOT
set multiplot layout 1,2 margins screen 0.07,0.98,0.27,0.88 spacing screen 0.09
set yrange [0:*]
set title "goodput of 64 KiB messages, MTU 1024"
set xlabel "packets lost, each way" offset 0,0.3
set ylabel "MiB/s"
set style data histograms
set style histogram cluster gap 1
set boxwidth 0.9
set xtics scale 0
unset key
# Above each bar with loss: its share of the bar without. The two labels of a group are moved apart.
stats "$scratch/loss" using 3 every ::0::0 name "whole_mrd" nooutput
stats "$scratch/loss" using 4 every ::0::0 name "whole_rc" nooutput
kept(value, whole) = sprintf("%.0f%%", 100 * value / whole)
plot "$scratch/loss" using 2:xtic(1) lc rgb ceiling_colour, \
     "" using 3 lc rgb mrd_colour, "" using 4 lc rgb rc_colour, \
     "" every ::1 using (\$0 + 1):3:(kept(\$3, whole_mrd_max)) with labels center offset -0.3,0.5 font ",10" notitle, \
     "" every ::1 using (\$0 + 1.25):4:(kept(\$4, whole_rc_max)) with labels center offset 0.4,0.5 font ",10" notitle
set style data lines
set xtics scale 1
set title "two paths, one of them cut"
set xrange [-5:8]
set xlabel "time after the cut [s]"
set ylabel "on the wire [MiB/s]"
set arrow from 0, graph 0 to 0, graph 1 @event
set key at screen 0.52, screen 0.06 center horizontal maxrows 1
plot NaN with lines lw 8 lc rgb ceiling_colour title "raw UD", \
     "$scratch/mrd-ibv" @mrd title "mrd", "$scratch/rc" @rc title "RC"
unset multiplot
PLOT
