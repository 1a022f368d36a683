#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
Draw how what tools/bench.sh measured grows: goodput with the size of messages, messages a second with the number of
peers, CPU time a packet with the bytes outstanding.

usage: bench-plot.sh BENCH.json OUT.svg

BENCH.json is what bench.sh --json wrote. Needs gnuplot (Debian: gnuplot-nox) and jq.
USAGE
}

# shellcheck source=tools/plot.sh
source "$(dirname "${BASH_SOURCE[0]}")/plot.sh"
plot_begin 2 2 "$@"
plot_need "$input" 'bench.sh --json'

# rows NAME KEYS: a line a point of what was measured, "?" where something is missing, into a file of that name.
rows()
{
    jq -r --argjson keys "$2" ".growth.$1[] as \$point | [\$keys[] | \$point[.] // \"?\" | tostring] | join(\" \")" \
        "$input" >"$scratch/$1"
}

# panel NAME CURVE...: of the points in that file. Where none was measured gnuplot would refuse.
panel()
{
    if cut -d ' ' -f 2- "$scratch/$1" | grep -q '[0-9]'; then
        printf 'plot %s\n' "${*:2}"
    else
        printf '%s\n' 'set yrange [0:1]' 'set label 1 "not measured" at graph 0.5,0.5 center' 'plot 2 notitle' \
            'unset label 1' 'set yrange [0:*]'
    fi
}

rows size '["size_bytes", "mrd-udp", "raw-udp", "tcp"]'
rows peers '["peers", "msg_rate_mps"]'
rows window '["outstanding_bytes", "cpu_ns_per_packet"]'

plot_draw "$out" 1100 340 <<PLOT
set multiplot layout 1,3 margins screen 0.06,0.98,0.27,0.88 spacing screen 0.08
set datafile missing "?"
set style data linespoints
set pointsize 0.6
set yrange [0:*]
set logscale x 2
set xtics format "%.0b %BB"
set key at screen 0.19, screen 0.06 center horizontal maxrows 1
set title "goodput of write_bw"
set xlabel "a message" offset 0,0.3
set ylabel "Gb/s"
set xrange [32:134217728]
set xtics 64, 256
$(panel size "'$scratch/size' using 1:3 @ceiling pt 7 title 'raw-udp', '' using 1:2 @mrd pt 7 title 'mrd'," \
    "'' using 1:4 @tcp pt 7 title 'TCP'")
unset key
set title "64-byte messages to all peers in turn"
set logscale x 10
set xrange [0.7:14000]
set xtics format "%.0s%c" 1, 10
set xlabel "peers" offset 0,0.3
set ylabel "million a second"
$(panel peers "'$scratch/peers' using 1:2 @mrd pt 7")
set title "CPU time a packet, both ends"
set logscale x 2
set xrange [32768:33554432]
set xtics format "%.0b %BB" 65536, 16
set xlabel "outstanding, messages of 64 KiB" offset 0,0.3
set ylabel "ns"
$(panel window "'$scratch/window' using 1:2 @mrd pt 7")
unset multiplot
PLOT
