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

if (($# != 2)); then
    usage >&2
    exit 2
fi
readonly directory=$1 out=$2
for tool in gnuplot jq; do
    command -v $tool >/dev/null || { echo "demo-plot.sh: no $tool" >&2; exit 1; }
done
[[ -r $directory/clean-mrd.json ]] || { echo "demo-plot.sh: $directory holds no results of demo.sh -k" >&2; exit 1; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for name in clean loss death; do
    # Medians of five 10 ms samples: a sample of a shared machine now and then falls between two time slices.
    jq -r '.samples[] | "\(.t_ms / 1000) \(.bw_gbps)"' "$directory/$name-mrd.json" |
        awk '{ t[NR] = $1; v[NR] = $2 }
            END { for (i = 3; i <= NR - 2; i += 5) { split(v[i-2] " " v[i-1] " " v[i] " " v[i+1] " " v[i+2], w, " ");
                for (a = 1; a < 5; a++) for (b = a + 1; b <= 5; b++) if (w[b] + 0 < w[a] + 0) { x = w[a]; w[a] = w[b]; w[b] = x }
                print t[i], w[3] } }' >"$scratch/$name-mrd"
    # The server's lines: "[  5]   0.10-0.20   sec  11.3 MBytes   948 Mbits/sec"
    awk '$3 ~ /^[0-9.]+-[0-9.]+$/ && $NF == "Mbits/sec" { split($3, t, "-"); if (t[2] - t[1] < 0.2) print t[2], $(NF-1) / 1000 }
        $2 ~ /^[0-9.]+-[0-9.]+$/ && /Mbits\/sec/ { split($2, t, "-"); if (t[2] - t[1] < 0.2) for (i = 3; i < NF; i++) if ($(i+1) == "Mbits/sec") print t[2], $i / 1000 }' \
        "$directory/$name-tcp.txt" >"$scratch/$name-tcp"
done

gnuplot <<PLOT
set terminal svg size 900,300 font "sans,12" noenhanced background "white"
set output "$out"
set multiplot layout 1,3
set yrange [0:4.3]
set ytics 1
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror
set xlabel "time [s]"
set ylabel "goodput [Gb/s]"
set key bottom right
do for [i = 1:3] {
    set title word("clean 1%_lost a_spine_dies", i)[1:*]
    name = word("clean loss death", i)
    plot "$scratch/".name."-mrd" with lines lw 2 lc rgb "#1f6fb4" title "one mrd transfer", \
         "$scratch/".name."-tcp" with lines lw 2 lc rgb "#c4622d" title "one TCP flow"
}
unset multiplot
PLOT
sed -i '1a <!-- SPDX-License-Identifier: BSD-2-Clause -->' "$out"
sed -i 's/1%_lost/1% of packets lost/; s/a_spine_dies/one of four spines dies/' "$out"
