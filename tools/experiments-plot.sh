#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
Draw what tools/experiments.sh measured, several transports in one picture.

usage: experiments-plot.sh RESULTS PICTURES

RESULTS is a directory with the JSON of each measurement, PICTURES one for the SVG files. The same results make the
same bytes. Needs gnuplot (Debian: gnuplot-nox) and jq.
USAGE
}

if (($# != 2)); then
    usage >&2
    exit 2
fi
readonly results=$1 pictures=$2
for tool in gnuplot jq; do
    command -v $tool >/dev/null || { echo "experiments-plot.sh: no $tool" >&2; exit 1; }
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The colours of tools/sim/plot.c (Okabe and Ito, 2008), which the colour-blind can tell apart.
readonly style='
set encoding utf8
set border 3 lc rgb "#444444"
set tics nomirror
set grid lc rgb "#dddddd" lt 1 lw 1
mrd = "#0072b2"; rc = "#d55e00"; irn = "#009e73"; dcqcn = "#cc79a7"
rr = "#e69f00"; reps = "#56b4e9"; single = "#000000"; random = "#888888"'

# draw NAME WIDTH HEIGHT: the commands on standard input become a picture.
draw()
{
    {
        echo "set terminal svg size $2,$3 dynamic noenhanced font 'sans-serif,13' background '#ffffff'"
        echo "$style"
        cat
    } | (cd "$scratch" && gnuplot -d -) >"$scratch/$1.svg"
    cp "$scratch/$1.svg" "$pictures/$1.svg"
}

# points MEASUREMENT FILTER [X Y]: a line "x y low high" for each value of Y, of its mean and confidence interval.
points()
{
    jq -r "$2 | . as \$run | (.mean // .) as \$m | (.ci95 // {}) as \$c
        | [(\$m | $3), (\$m | $4), (\$m | $4) - ((\$c | $4) // 0), (\$m | $4) + ((\$c | $4) // 0)]
        | select(.[1] != null) | map(tostring) | join(\" \")" "$results/$1.json" >"$scratch/$1-${5-line}"
}

# How gnuplot draws such a file, with its intervals.
readonly with='with linespoints lw 2 ps 0.6'
# shellcheck disable=SC2016 # gnuplot's columns
readonly bars='using 1:3:(0):($4-$3) with vectors heads size screen 0.004,90 lw 1'

# ------------------------------------------------------------------------------------------------------------ run

for name in single rr random reps adaptive irn rc dcqcn; do
    jq -r '.ideal_us as $ideal | .fct_us_percentiles | to_entries[] | select(.value != null)
        | "\(.value / $ideal) \(.key)"' "$results/run_$name.json" >"$scratch/run-$name"
done
# paths FILES HOW: each transport and policy, from the files that begin so.
paths()
{
    local separator=plot name width title

    while read -r name width title; do
        printf '%s "%s-%s" %s lw %s lc rgb %s title "%s"' "$separator" "$1" "$name" "$2" "$width" \
            "${name/adaptive/mrd}" "$title"
        separator=,
    done <<'NAMES'
adaptive 3 mrd, adaptive
reps 2 mrd, reps
rr 2 mrd, rr
random 2 mrd, random
single 2 mrd, single
irn 2 irn
rc 2 rc
dcqcn 2 rc, DCQCN
NAMES
    echo
}

{
    cat <<'PLOT'
set title "A permutation of all hosts: how many flows have ended"
set xlabel "time over the ideal completion time"
set ylabel "flows that have ended [%]"
set logscale x
set xtics (1, 1.2, 1.5, 2, 3, 4, 5, 6, 8, 10)
set xrange [0.95:*]
set yrange [0:100]
set key outside right top vertical Left reverse samplen 2
PLOT
    paths run 'with steps'
} | draw run 800 420

# ------------------------------------------------------------------------------------------------------ collision

for name in single rr random reps adaptive irn rc dcqcn; do
    file=collision
    [[ $name != irn && $name != dcqcn ]] || file=collision_$name
    jq -r --arg policy "${name/dcqcn/rc}" 'select(.policy == $policy) | [.links[].share] | sort | length as $n
        | to_entries[] | "\(100 * (.key + 0.5) / $n) \(.value)"' "$results/$file.json" >"$scratch/collision-$name"
done
{
    cat <<'PLOT'
set title "Utilisation of the links between switches under a permutation"
set xlabel "links from a leaf to a spine, from the least to the most used [%]"
set ylabel "share of the link's rate, until the last flow has ended"
set xrange [0:100]
set yrange [0:1]
set key outside right top vertical Left reverse samplen 2
PLOT
    paths collision 'with lines'
} | draw collision 800 420

# ----------------------------------------------------------------------------------------------------------- loss

for name in mrd irn rc; do
    # A logarithmic axis has no 0: it stands left of the least loss.
    points loss_$name 'select(.size_bytes == 16777216)' '(if .loss > 0 then .loss * 100 else 0.0015 end)' .goodput_gbps
done
draw loss 800 420 <<PLOT
set title "Goodput against packet loss, messages of 16 MiB"
set xlabel "loss of data packets and acks, end to end [%]"
set ylabel "goodput [Gb/s]"
set logscale x
set xtics ("none" 0.0015, "0.01" 0.01, "0.1" 0.1, "1" 1, "5" 5)
set yrange [0:100]
set key below center horizontal Left reverse samplen 2
plot "loss_mrd-line" $with pt 7 lc rgb mrd title "mrd", "" $bars lc rgb mrd notitle, \
     "loss_irn-line" $with pt 9 lc rgb irn title "irn", "" $bars lc rgb irn notitle, \
     "loss_rc-line" $with pt 5 lc rgb rc title "rc", "" $bars lc rgb rc notitle
PLOT

# --------------------------------------------------------------------------------------------------------- incast

for name in mrd irn rc dcqcn; do
    points incast_$name . .senders .max_over_ideal slowest
    points incast_$name . .senders .victim_over_lone victim
done
{
    cat <<'PLOT'
set multiplot layout 1,2
set xlabel "senders to one host"
set logscale x 2
set yrange [0:*]
set key top left Left reverse samplen 2
PLOT
    for panel in slowest victim; do
        if [[ $panel == slowest ]]; then
            echo 'set title "The slowest of the senders"; set ylabel "completion time over the ideal"'
        else
            echo 'set title "A victim to the host beside it"; set ylabel "completion time over that of a lone flow"'
        fi
        cat <<PLOT
plot "incast_mrd-$panel" $with pt 7 lc rgb mrd title "mrd", "" $bars lc rgb mrd notitle, \
     "incast_irn-$panel" $with pt 9 lc rgb irn title "irn", "" $bars lc rgb irn notitle, \
     "incast_rc-$panel" $with pt 5 lc rgb rc title "rc", "" $bars lc rgb rc notitle, \
     "incast_dcqcn-$panel" $with pt 11 lc rgb dcqcn title "rc, DCQCN", "" $bars lc rgb dcqcn notitle
PLOT
    done
} | draw incast 960 400

# -------------------------------------------------------------------------------------------------------- failure

# Over one base RTT, four samples; every other one of them, and only around the failure.
for name in mrd irn rc; do
    for kind in blackhole down flap degrade; do
        jq -rn --arg kind $kind 'first(inputs | select(.failure_kind == $kind)) | .failure_at_us as $at
            | [.samples[] | .t_us -= $at | select(.t_us > -60 and .t_us < 160)] as $s
            | range(3; $s | length; 2) | "\($s[.].t_us) \([$s[. - 3:. + 1][].gbps] | add / 4)"' \
            "$results/failure_$name.json" >"$scratch/failure-$name-$kind"
    done
done
{
    cat <<'PLOT'
set multiplot layout 2,2
set xlabel "time since the failure [us]"
set ylabel "goodput over one RTT [Gb/s]"
set xrange [-40:160]
set yrange [0:110]
set key at graph 0.98, graph 0.5 samplen 2
set arrow from 0,0 to 0,110 nohead dt 2 lc rgb "#444444"
PLOT
    while read -r kind title; do
        cat <<PLOT
set title "$title"
plot "failure-irn-$kind" with lines lw 2 lc rgb irn title "irn", \
     "failure-rc-$kind" with lines lw 2 dt 2 lc rgb rc title "rc", \
     "failure-mrd-$kind" with lines lw 2 lc rgb mrd title "mrd"
PLOT
    done <<'KINDS'
blackhole blackhole: nobody is told
down down: both switches know
flap flap: down for 100 us of each 200 us
degrade degrade: a tenth of its rate
KINDS
} | draw failure 960 640

# ---------------------------------------------------------------------------------------------------- collectives

# collective NAME-OF-PICTURE PANELS WIDTH, with lines "MEASUREMENT TITLE" on standard input.
collective()
{
    local measurement title transport

    {
        cat <<PLOT
set multiplot layout 1,$2
set xlabel "size of a host's buffer [MiB]"
set ylabel "bus bandwidth [Gb/s]"
set logscale x 2
set yrange [0:105]
set key bottom right Left reverse samplen 2
PLOT
        while read -r measurement title; do
            for transport in mrd irn rc; do
                points "${measurement}_$transport" . '(.size_bytes / 1048576)' .busbw_gbps
            done
            points "${measurement}_mrd" . '(.size_bytes / 1048576)' .ideal_busbw_gbps ideal
            cat <<PLOT
set title "$title"
plot "${measurement}_mrd-ideal" using 1:2 with lines lw 1 lc rgb "#444444" title "ideal", \
     "${measurement}_mrd-line" $with pt 7 lc rgb mrd title "mrd", "" $bars lc rgb mrd notitle, \
     "${measurement}_irn-line" $with pt 9 lc rgb irn title "irn", "" $bars lc rgb irn notitle, \
     "${measurement}_rc-line" $with pt 5 lc rgb rc title "rc", "" $bars lc rgb rc notitle
PLOT
        done
    } | draw "$1" "$3" 400
}

collective allreduce 1 640 <<<'allreduce Ring all-reduce'
collective alltoall 2 960 <<'PANELS'
alltoall All-to-all, one peer after the other
alltoall_at_once All-to-all, all peers at once
PANELS
