#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
Draw what tools/experiments.sh measured, several transports in one picture.

usage: experiments-plot.sh RESULTS PICTURES EXPERIMENT...

RESULTS is a directory with the JSON of each measurement, PICTURES one for the SVG files. Each
EXPERIMENT has a picture of its own. The same results make the same bytes. Needs gnuplot (Debian:
gnuplot-nox) and jq.
USAGE
}

# shellcheck source=tools/plot.sh
source "$(dirname "${BASH_SOURCE[0]}")/plot.sh"
plot_begin 3 99 "$@"
plot_need "$input/commands" experiments.sh

# points MEASUREMENT FILTER X Y FILE: a line "x y low high" for each value of Y, of its mean and
# confidence interval.
points()
{
    jq -r "$2 | (.mean // .) as \$m | (.ci95 // {}) as \$c
        | [(\$m | $3), (\$m | $4), (\$m | $4) - ((\$c | $4) // 0), (\$m | $4) + ((\$c | $4) // 0)]
        | select(.[1] != null) | map(tostring) | join(\" \")" "$input/$1.json" >"$scratch/$5"
}

# curves PREFIX NAME...: plot the files PREFIX-NAME, with their intervals, each as its transport.
curves()
{
    local name prefix=$1 separator=plot
    local -A mark=([mrd]=7 [irn]=9 [rc]=5 [dcqcn]=11) title=([dcqcn]='rc, DCQCN')

    for name in "${@:2}"; do
        printf '%s "%s" with linespoints @%s pt %d ps 0.6 title "%s"' "$separator" \
            "$scratch/$prefix-$name" "$name" "${mark[$name]}" "${title[$name]-$name}"
        # shellcheck disable=SC2016 # gnuplot's columns
        printf ', "" using 1:3:(0):($4-$3) with vectors heads size screen 0.004,90 lw 1 lc rgb %s_colour notitle' \
            "$name"
        separator=,
    done
    echo
}

# The legend of a picture, outside of it: on its right, or one below all panels.
readonly key_right='set key outside right top vertical Left reverse samplen 2'
readonly key_below='set key at screen 0.5, screen 0.045 center vertical maxrows 1'

# ------------------------------------------------------------------------------- run and collision

# paths PREFIX HOW: each transport and policy, from the files that begin so.
paths()
{
    local separator=plot name title

    while read -r name title; do
        printf '%s "%s-%s" %s @%s title "%s"' "$separator" "$scratch/$1" "$name" "$2" \
            "${name/adaptive/mrd}" "$title"
        separator=,
    done <<'NAMES'
reps mrd, reps
rr mrd, rr
random mrd, random
single mrd, single
irn irn
rc rc
dcqcn rc, DCQCN
adaptive mrd, adaptive
NAMES
    echo
}

draw_run()
{
    local name

    for name in single rr random reps adaptive irn rc dcqcn; do
        jq -r '.ideal_us as $ideal | .fct_us_percentiles | to_entries[] | select(.value != null)
            | "\(.value / $ideal) \(.key)"' "$input/run_$name.json" >"$scratch/run-$name"
    done
    {
        cat <<'PLOT'
set title "A permutation of all hosts: share of completed flows over time"
set xlabel "time over the ideal completion time"
set ylabel "completed flows [%]"
set logscale x
set xtics (1, 1.2, 1.5, 2, 3, 4, 5, 6, 8, 10)
set xrange [0.95:*]
set yrange [0:100]
PLOT
        echo "$key_right"
        paths run 'with steps'
    } | plot_draw "$out/run.svg" 800 420
}

draw_collision()
{
    local name file

    for name in single rr random reps adaptive irn rc dcqcn; do
        file=collision
        [[ $name != irn && $name != dcqcn ]] || file=collision_$name
        jq -r --arg policy "${name/dcqcn/rc}" 'select(.policy == $policy) | [.links[].share] | sort | length as $n
            | to_entries[] | "\(100 * (.key + 0.5) / $n) \(.value)"' "$input/$file.json" >"$scratch/collision-$name"
    done
    {
        cat <<'PLOT'
set title "Utilisation of the links between switches under a permutation"
set xlabel "links from a leaf to a spine, from the least to the most used [%]"
set ylabel "share of the link's rate, until the last flow has ended"
set xrange [0:100]
set yrange [0:1]
PLOT
        echo "$key_right"
        paths collision 'with lines'
    } | plot_draw "$out/collision.svg" 800 420
}

# -------------------------------------------------------------------------------------------- loss

draw_loss()
{
    local name

    for name in mrd irn rc; do
        # A logarithmic axis has no 0: it stands left of the least loss.
        points loss_$name 'select(.size_bytes == 16777216)' '(if .loss > 0 then .loss * 100 else 0.0015 end)' \
            .goodput_gbps loss-$name
    done
    {
        cat <<'PLOT'
set title "Goodput against packet loss, messages of 16 MiB"
set xlabel "loss of data packets and acks, end to end [%]"
set ylabel "goodput [Gb/s]"
set logscale x
set xtics ("none" 0.0015, "0.01" 0.01, "0.1" 0.1, "1" 1, "5" 5)
set yrange [0:100]
PLOT
        echo "$key_right"
        curves loss mrd irn rc
    } | plot_draw "$out/loss.svg" 800 420
}

# ------------------------------------------------------------------------------------------ incast

draw_incast()
{
    local name

    for name in mrd irn rc dcqcn; do
        points incast_$name . .senders .max_over_ideal slowest-$name
        points incast_$name . .senders .victim_over_lone victim-$name
    done
    {
        cat <<'PLOT'
set multiplot layout 1,2 margins screen 0.085,0.98,0.25,0.9 spacing screen 0.1
set xlabel "senders to one host"
set logscale x 2
set yrange [0:*]
unset key
set title "The slowest sender"
set ylabel "completion time over the ideal"
PLOT
        curves slowest mrd irn rc dcqcn
        echo "$key_below"
        echo 'set title "The victim: a flow to the neighbouring host"; set ylabel "completion time over that of a lone flow"'
        curves victim mrd irn rc dcqcn
    } | plot_draw "$out/incast.svg" 960 420
}

# ----------------------------------------------------------------------------------------- failure

# failing KIND COLUMN: that column of each transport.
failing()
{
    local name separator=plot

    for name in irn rc mrd; do
        printf '%s "%s" using 1:%d with lines @%s title "%s"' "$separator" "$scratch/$1-$name" "$2" $name $name
        separator=,
    done
    echo
}

draw_failure()
{
    local name kind row column range label

    # Each value over one base RTT, four samples, every other one of them, around the failure: goodput, the share of what the
    # leaf sent upwards that went to the failing link, and what waited there.
    for name in mrd irn rc; do
        for kind in blackhole degrade; do
            jq -rn --arg kind $kind 'first(inputs | select(.failure_kind == $kind)) | . as $run
                | [.samples[] | .t_us -= $run.failure_at_us | select(.t_us > -40 and .t_us < 121)] as $s
                | range(3; $s | length; 2) | $s[. - 3:. + 1] as $w | $w[3].packets as $is_after
                | ([$w[].packets // 0] | add) as $all | ([$w[].failing_packets // 0] | add) as $failing
                | [$w[3].t_us, ([$w[].gbps] | add / 4),
                   if $is_after == null then 100 * $run.share_before
                   elif $all > 0 then 100 * $failing / $all else "NaN" end,
                   ([$w[].queue_bytes // 0] | add / 4000)]
                | map(tostring) | join(" ")' "$input/failure_$name.json" >"$scratch/$kind-$name"
        done
    done

    {
        cat <<'PLOT'
set multiplot layout 3,2 margins screen 0.08,0.98,0.13,0.95 spacing screen 0.08,0.06
set xrange [-30:120]
set arrow from 0, graph 0 to 0, graph 1 @event
unset key
PLOT
        row=0
        while read -r column range label; do
            for kind in blackhole degrade; do
                echo "set yrange $range; unset title; unset xlabel; unset ylabel"
                case $row-$kind in
                2-blackhole) # where nothing waits; the label of the axis stands above
                    echo 'set multiplot next'
                    continue
                    ;;
                0-blackhole) echo 'set title "blackhole: the link drops everything silently"' ;;
                0-degrade) echo 'set title "degrade: the link has a tenth of its rate"' ;;
                1-blackhole | 2-*) echo 'set xlabel "time since the failure [us]"' ;;
                esac
                [[ $kind == degrade && $row != 2 ]] || echo "set ylabel \"$label\""
                [[ $row-$kind != 2-degrade ]] || echo 'set key at screen 0.28, screen 0.22 center vertical maxrows 1'
                failing $kind "$column"
            done
            row=$((row + 1))
        done <<'ROWS'
2 [0:105] goodput [Gb/s]
3 [0:105] sent to that link [%]
4 [0:*<130] queue of that link [kB]
ROWS
    } | plot_draw "$out/failure.svg" 960 760
}

# -------------------------------------------------------------------------------------------- skew

draw_skew()
{
    local value

    for value in spurious_share spurious_share_after_16_rtt; do
        points skew . .spread_rtts "(.$value * 100)" "skew-$value"
    done
    plot_draw "$out/skew.svg" 800 420 <<PLOT
set title "Retransmissions of packets that were only late"
set xlabel "delay of the slowest path above the fastest one's [base RTT]"
set ylabel "spurious retransmissions [% of packets]"
set key inside top left vertical Left reverse samplen 2
set yrange [0:*]
plot "$scratch/skew-spurious_share" with linespoints @mrd pt 7 ps 0.6 title "mrd, whole flow", \
     "" using 1:3:(0):(\$4-\$3) with vectors heads size screen 0.004,90 lw 1 lc rgb mrd_colour notitle, \
     "$scratch/skew-spurious_share_after_16_rtt" with linespoints lw 2 dt 2 lc rgb mrd_colour pt 6 ps 0.6 \
         title "mrd, after 16 round trips"
PLOT
}

# ------------------------------------------------------------------------------------------- scale

draw_scale()
{
    points scale . .peers .active_peer_bytes scale-active
    points scale . .peers .idle_peer_bytes scale-idle
    points scale . .peers .goodput_gbps rate-mrd
    points scale_rc . .peers .goodput_gbps rate-rc
    jq -r '"\(.peers) \($bytes)"' --argjson bytes "$(cat "$input/rc_peer_bytes")" \
        "$input/scale.json" >"$scratch/scale-rc"
    {
        cat <<PLOT
set multiplot layout 1,2 margins screen 0.07,0.98,0.25,0.9 spacing screen 0.09
set xlabel "peers"
set logscale x 2
set title "Memory of a peer at one end [bytes]"
set logscale y
set yrange [100:100000]
$key_below
plot "$scratch/scale-active" with linespoints @mrd pt 7 ps 0.6 title "mrd", \
     "$scratch/scale-idle" with linespoints lw 2 dt 2 lc rgb mrd_colour pt 6 ps 0.6 title "mrd, idle", \
     "$scratch/scale-rc" with linespoints @rc pt 5 ps 0.6 title "rc (bytes: of rdma_rxe)"
unset key
unset logscale y
set title "Messages of 64 KiB, round robin"
set ylabel "goodput [Gb/s]"
set yrange [0:105]
PLOT
        curves rate mrd rc
    } | plot_draw "$out/scale.svg" 960 420
}

# ------------------------------------------------------------------------------------- collectives

# collective PICTURE PANELS LEFT-MARGIN WIDTH, with lines "MEASUREMENT TITLE" on standard input.
collective()
{
    local measurement title name ideal

    {
        cat <<PLOT
set multiplot layout 1,$2 margins screen $3,0.97,0.25,0.9 spacing screen 0.08
set xlabel "size of a host's buffer [MiB]"
set ylabel "bus bandwidth [Gb/s]"
set logscale x 2
set yrange [0:105]
$key_below
PLOT
        while read -r measurement title; do
            for name in mrd irn rc; do
                points "${measurement}_$name" . '(.size_bytes / 1048576)' .busbw_gbps "$measurement-$name"
            done
            ideal=$measurement-ideal
            points "${measurement}_mrd" . '(.size_bytes / 1048576)' .ideal_busbw_gbps "$ideal"
            echo "set title \"$title\""
            curves "$measurement" mrd irn rc | tr -d '\n'
            echo ", \"$scratch/$ideal\" using 1:2 with lines @ceiling title \"ideal, mrd\""
            echo 'unset key; unset ylabel'
        done
    } | plot_draw "$out/$1.svg" "$4" 420
}

draw_allreduce()
{
    collective allreduce 1 0.12 640 <<<'allreduce Ring all-reduce'
}

draw_alltoall()
{
    collective alltoall 2 0.085 960 <<'PANELS'
alltoall All-to-all, one peer after the other
alltoall_at_once All-to-all, all peers at once
PANELS
}

# ---------------------------------------------------------------------------------------- fairness

# sharers MEASUREMENT TITLE COLOUR...: the share of each flow over time, the mean of two steps, in these colours.
sharers()
{
    local colour names separator=plot column=2

    jq -r '.samples | range(1; length; 2) as $i | [.[$i].t_us / 1000,
        ([.[$i - 1].shares, .[$i].shares] | transpose[] | add / 2 * 1000 | round / 1000)]
        | map(tostring) | join(" ")' "$input/$1.json" >"$scratch/$1"
    mapfile -t names < <(jq -r '.names[] | sub("(?<n>[0-9]+) (?<what>.*)"; "\(.what), \(.n)")' "$input/$1.json")
    echo "set title \"$2\""
    for colour in "${@:3}"; do
        printf '%s "%s" using 1:%d with lines lw 1.5 lc rgb %s_colour title "%s"' "$separator" "$scratch/$1" \
            $column "$colour" "${names[column - 2]}"
        separator=,
        column=$((column + 1))
    done
    echo
}

draw_fairness()
{
    {
        cat <<'PLOT'
set multiplot layout 1,3 margins screen 0.065,0.98,0.14,0.9 spacing screen 0.035
set xlabel "time [ms]"
set ylabel "share of the link's rate"
set yrange [0:1]
set key inside top right vertical Left reverse samplen 2
PLOT
        sharers fairness_nscc 'Four flows of mrd' mrd reps single random
        echo 'unset ylabel'
        sharers fairness_tcp 'Two flows of mrd, then two of TCP' mrd reps tcp dcqcn
        sharers fairness_tcp_first 'Two flows of TCP, then two of mrd' tcp dcqcn mrd reps
    } | plot_draw "$out/fairness.svg" 1200 400
}

# --------------------------------------------------------------------------------------------- wan

# far LOSS TITLE: against the RTT.
far()
{
    local key

    for key in goodput cubic bbr; do
        points wan "select(.loss == $1)" .rtt_ms ".${key}_gbps" "far-$1-$key"
    done
    cat <<PLOT
set title "$2"
plot "$scratch/far-$1-bbr" with lines @ceiling title "BBR, by formula", \
     "$scratch/far-$1-cubic" with linespoints @tcp pt 5 ps 0.6 title "CUBIC, by formula", \
     "$scratch/far-$1-goodput" with linespoints @mrd pt 7 ps 0.6 title "mrd"
PLOT
}

draw_wan()
{
    {
        cat <<PLOT
set multiplot layout 2,2 margins screen 0.11,0.98,0.17,0.94 spacing screen 0.07,0.1
set logscale xy
set xrange [0.8:100]
set yrange [0.001:1.5]
set xtics (1, 5, 20, 80)
$key_below
set ylabel "goodput [Gb/s]"
PLOT
        far 0 'Nothing is lost'
        echo 'unset key; unset ylabel'
        far 0.0001 '0.01% lost'
        echo 'set xlabel "RTT [ms]"; set ylabel "goodput [Gb/s]"'
        far 0.001 '0.1% lost'
        echo 'unset ylabel'
        far 0.01 '1% lost'
    } | plot_draw "$out/wan.svg" 800 640
}

for picture in "${@:3}"; do
    draw_"$picture"
done
