#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
Draw what tools/demo.sh measured: goodput over time, TCP beside mrd, one panel a scenario.

usage: demo-plot.sh DIRECTORY OUT.svg

DIRECTORY is what demo.sh -k kept. Needs gnuplot (Debian: gnuplot-nox) and jq.
USAGE
}

# shellcheck source=tools/plot.sh
source "$(dirname "${BASH_SOURCE[0]}")/plot.sh"
plot_begin 2 2 "$@"
plot_need "$input/clean-mrd.json" 'demo.sh -k'

# Medians of five 10 ms samples: a sample of a shared machine now and then falls between two time slices.
mrd_samples()
{
    jq -r '.samples as $s | range(2; ($s | length) - 2; 5)
        | "\($s[.].t_ms / 1000) \([$s[. - 2:. + 3][].bw_gbps] | sort | .[2])"' "$1"
}

# The server's lines, such as "[  5]   0.10-0.20   sec  11.3 MBytes   948 Mbits/sec": without those of the whole run, and
# without the last one where it stands for a few milliseconds only.
tcp_samples()
{
    sed -nE 's@.* ([0-9.]+)-([0-9.]+) +sec .* ([0-9.]+) Mbits/sec.*@\1 \2 \3@p' "$1" |
        awk '$2 - $1 > 0.05 && $2 - $1 < 0.2 { print $2, $3 / 1000 }'
}

for name in clean loss death; do
    mrd_samples "$input/$name-mrd.json" >"$scratch/$name-mrd"
    tcp_samples "$input/$name-tcp.txt" >"$scratch/$name-tcp"
done

seconds=$(jq '.samples[-1].t_ms / 1000 | round' "$input/clean-mrd.json")
plot_draw "$out" 900 330 <<PLOT
set multiplot layout 1,3 margins screen 0.06,0.99,0.28,0.88 spacing screen 0.03
set xrange [0:$seconds]
set yrange [0:4.2]
set xtics 1
set ytics 1
set xlabel "time [s]" offset 0,0.3
unset key
set title "clean"
set ylabel "goodput [Gb/s]"
plot "$scratch/clean-mrd" with lines @mrd, "$scratch/clean-tcp" with lines @tcp
unset ylabel
set ytics format ""
set key at screen 0.52, screen 0.06 center horizontal maxrows 1
set title "1% of packets lost"
plot "$scratch/loss-mrd" with lines @mrd title "mrd", \
     "$scratch/loss-tcp" with lines @tcp title "TCP"
unset key
set title "one of four spines dies"
plot "$scratch/death-mrd" with lines @mrd, "$scratch/death-tcp" with lines @tcp
unset multiplot
PLOT
