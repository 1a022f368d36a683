#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
Draw what mrd_perf scale measured: memory a peer and messages a second, by the number of peers.

usage: scale-plot.sh REPORT.json OUT.svg

REPORT.json is what mrd_perf scale --out_json wrote. Needs gnuplot (Debian: gnuplot-nox) and jq.
USAGE
}

# shellcheck source=tools/plot.sh
source "$(dirname "${BASH_SOURCE[0]}")/plot.sh"
plot_begin 2 2 "$@"
plot_need "$input" 'mrd_perf scale --out_json'

# Peers; bytes idle, with a path, with all, of RC; messages a second with a path, with all, with all and few outstanding.
# "?" is no value.
jq -r '.[] | [.peers, .idle.peer_bytes, .one_path.peer_bytes, .all_paths.peer_bytes, .rc_peer_bytes,
    .one_path.msg_rate_mps, .all_paths.msg_rate_mps, .all_paths.even.msg_rate_mps] | map(. // "?" | tostring) | join(" ")' "$input" >"$scratch/rows"
paths=$(jq '[.[].all_paths.paths | values][0] // 0' "$input")
# What is nowhere known is not in the legend either.
rc=$(jq -r 'if any(.[]; .rc_peer_bytes) then "1:5" else "(NaN):(NaN)" end' "$input")
rc_title=$(jq -r 'if any(.[]; .rc_peer_bytes) then "title \"RC queue pair\"" else "notitle" end' "$input")

plot_draw "$out" 900 380 <<PLOT
set multiplot layout 1,2 margins screen 0.09,0.97,0.16,0.9 spacing screen 0.12
set datafile missing "?"
set logscale x
set xtics format "%.0s%c"
set xlabel "peers" offset 0,0.3
set logscale y
set title "memory of the context, a peer"
set ytics format "%.0s %cB"
unset ylabel
set key inside top right vertical maxrows 9
set style data linespoints
set pointsize 0.6
plot "$scratch/rows" using 1:2 @random pt 7 title "idle", "" using 1:3 @reps pt 7 title "active, 1 path", \
     "" using 1:4 @mrd pt 7 title "active, $paths paths", "" using $rc @rc pt 7 $rc_title
unset logscale y
set ytics format "%g"
set yrange [0:*]
set offsets 0, 0, graph 0.3, 0
set title "messages to all of them in turn"
set ylabel "million a second"
plot "$scratch/rows" using 1:6 @reps pt 7 title "1 path", "" using 1:7 @mrd pt 7 title "$paths paths", \
     "" using 1:8 lw 2 dt 2 pt 7 lc rgb mrd_colour title "$paths paths, one message a peer"
unset multiplot
PLOT
