#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
What a cap on each flow leaves of a link, as clouds have it: to one TCP connection, to eight, to one mrd transfer, and
to one TCP connection through mrd_forward. In a fabric of network namespaces.

usage: cloud.sh [-t SECONDS] [-n TURNS] [-c MBIT] [-l CAPS] [-k DIRECTORY] [-o OUT.svg] [--page FILE]

  -t SECONDS    length of each transfer (default 5)
  -n TURNS      turns, of which the medians count (default 5)
  -c MBIT       the cap of a flow (default 100)
  -l CAPS       how many of it a host's link holds (default 8)
  -k DIRECTORY  keep what the programs reported, as JSON
  -o OUT.svg    draw the table, by gnuplot
  --page FILE   replace the table in FILE that stands between the comments <!-- cloud ... --> and <!-- /cloud -->

Needs root, namespaces, iperf3 and jq; installs what is missing. Builds into build/, unless PERF and FORWARD name the
programs. Exit status 1 if something of it failed.
USAGE
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH+=:/usr/sbin:/sbin
# shellcheck source=tools/common.sh
source tools/common.sh
# shellcheck source=tools/plot.sh
source tools/plot.sh

readonly paths=32
seconds=5 turns=5 cap=100 caps=8 keep='' out='' page=''
export FABRIC_PREFIX="mrd_cloud_$$_"

fabric()
{
    tools/fabric.sh "$@"
}

# on LEAF COMMAND...: on the host of that leaf. In the background the process is the command.
on()
{
    exec ip netns exec "${FABRIC_PREFIX}h$1_0" "${@:2}"
}

clean_up()
{
    local leaf

    for leaf in 0 1; do
        ip netns pids "${FABRIC_PREFIX}h${leaf}_0" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
    done
    fabric down 2>/dev/null || true
    [[ -n $keep ]] || rm -rf "$scratch"
}

# wait_for LEAF FILTER...: until something listens there, as ss(8) filters.
wait_for()
{
    local try

    for ((try = 0; try < 200; try++)); do
        [[ -z $( (on "$1" ss -Hlnut "${@:2}") ) ]] || return 0
        sleep 0.05
    done
    die "the server at ${*:2} does not come up"
}

# ------------------------------------------------------------------------------------------ transfers
# Each writes {mbps, sent, retransmitted} to $scratch/NAME-TURN.json; sent counts packets, and is null where nobody does.

# tcp NAME TURN STREAMS [PORT ADDRESS]
tcp()
{
    (on 0 iperf3 -c "${5:-10.1.0.2}" -p "${4:-5201}" -t "$seconds" -O 1 -P "$3" -J) >"$scratch/$1-$2.iperf3" ||
        die "iperf3: $(jq -r .error "$scratch/$1-$2.iperf3")"
    jq '{mbps: (.end.sum_received.bits_per_second / 1e6), sent: null, retransmitted: .end.sum_sent.retransmits}' \
        "$scratch/$1-$2.iperf3" >"$scratch/$1-$2.json"
}

mrd()
{
    local server

    (on 1 timeout 60 "$perf" write_bw) >"$scratch/server" 2>&1 &
    server=$!
    wait_for 1 'sport = :4793'
    (on 0 timeout 60 "$perf" write_bw -s 1M -D "$seconds" --paths $paths -F --out_json 10.1.0.2) >"$scratch/mrd-$1.perf" \
        2>"$scratch/client" || die "mrd_perf: $(<"$scratch/client")"
    wait $server || die "mrd_perf: $(<"$scratch/server")"
    jq '{mbps: (.bw_gbps * 1000), sent: .packets_sent, retransmitted: .packets_retransmitted}' "$scratch/mrd-$1.perf" \
        >"$scratch/mrd-$1.json"
}

# counter NAME: of the last report of the near end.
counter()
{
    awk -v name="$1" '/receive buffers free/ { value = 0 } $1 == name { value = $2 } END { print value + 0 }' \
        "$scratch/near"
}

forwarded()
{
    local far near

    (on 1 "$forward" serve --listen 10.1.0.2 --allow 10.1.0.2:5201 --paths $paths) >"$scratch/far" 2>&1 &
    far=$!
    wait_for 1 'sport = :4793'
    (on 0 "$forward" connect -L 6201:10.1.0.2:5201 --paths $paths 10.1.0.2) >"$scratch/near" 2>&1 &
    near=$!
    wait_for 0 'sport = :6201'
    tcp forwarded "$1" 1 6201 127.0.0.1
    kill -USR1 $near
    sleep 0.3
    jq --argjson sent "$(counter tx_packets)" --argjson again "$(counter retx_packets)" \
        '.sent = $sent | .retransmitted = $again' "$scratch/forwarded-$1.json" >"$scratch/new"
    mv "$scratch/new" "$scratch/forwarded-$1.json"
    kill $near $far
    wait $near || die "mrd_forward: $(<"$scratch/near")"
    wait $far || die "mrd_forward: $(<"$scratch/far")"
}

measure()
{
    local turn iperf

    (on 1 iperf3 -s) >"$scratch/iperf3" 2>&1 &
    iperf=$!
    wait_for 1 'sport = :5201'
    for ((turn = 0; turn < turns; turn++)); do
        echo "turn $((turn + 1)) of $turns" >&2
        tcp tcp $turn 1
        tcp tcp8 $turn 8
        mrd $turn
        forwarded $turn
    done
    kill $iperf
}

# ------------------------------------------------------------------------------------------ what is told of them

# One object: medians, by name.
summary()
{
    local name

    for name in tcp tcp8 mrd forwarded; do
        jq -s --arg name $name 'def median: sort | .[length / 2 | floor];
            {($name): {mbps: (map(.mbps) | median), least: (map(.mbps) | min), most: (map(.mbps) | max),
                       lost: (if .[0].sent then map(.retransmitted / .sent) | median else null end)}}' \
            "$scratch/$name"-*.json
    done | jq -s 'add'
}

table()
{
    jq -r --argjson cap "$cap" --argjson caps "$caps" '
        def row($what; $name): .[$name] | "| \($what) | \(.mbps | round) | \(.least | round) - \(.most | round) | " +
            "\(.mbps / $cap * 100 | round / 100) | \(if .lost then "\(.lost * 10000 | round / 100)%" else "" end) |";
        "| flows capped at \($cap) Mb/s, a link of \($cap * $caps) Mb/s | Mb/s | spread | caps | sent again |",
        "|---|---:|---:|---:|---:|",
        row("one TCP connection, `iperf3`"; "tcp"),
        row("eight TCP connections, `iperf3 -P 8`"; "tcp8"),
        row("one mrd transfer, `mrd_perf write_bw`, '$paths' source ports"; "mrd"),
        row("one TCP connection through `mrd_forward`, `iperf3`"; "forwarded")' "$scratch/summary.json"
}

draw()
{
    jq -r '"1 \(.tcp.mbps) \(.tcp.least) \(.tcp.most)", "2 \(.tcp8.mbps) \(.tcp8.least) \(.tcp8.most)",
           "3 \(.mrd.mbps) \(.mrd.least) \(.mrd.most)", "4 \(.forwarded.mbps) \(.forwarded.least) \(.forwarded.most)"' \
        "$scratch/summary.json" >"$scratch/bars"
    # The number in each bar is its median; the line with two caps is the spread.
    plot_draw "$1" 760 340 <<PLOT
set bmargin 3.5
set xrange [0.4:4.6]
set yrange [0:$((cap * caps * 115 / 100))]
set ylabel "goodput [Mb/s]"
set boxwidth 0.55
set xtics ("one TCP\nconnection" 1, "eight TCP\nconnections" 2, "one mrd\ntransfer" 3, "one TCP connection\nthrough mrd_forward" 4)
set label "the link" at 0.45,$((cap * caps)) offset 0,0.5 textcolor rgb ceiling_colour
set label "the cap of a flow" at 0.45,$cap offset 0,0.5 textcolor rgb ceiling_colour
set arrow from 0.4,$((cap * caps)) to 4.6,$((cap * caps)) nohead lw 1 dt 2 lc rgb ceiling_colour
set arrow from 0.4,$cap to 4.6,$cap nohead lw 1 dt 2 lc rgb ceiling_colour
unset key
plot "$scratch/bars" using (\$1 < 3 ? \$1 : NaN):2 with boxes lc rgb tcp_colour, \
     "" using (\$1 > 2 ? \$1 : NaN):2 with boxes lc rgb mrd_colour, \
     "" using 1:(0):(sprintf("%.0f", \$2)) with labels center offset 0,0.6 textcolor rgb "#ffffff", \
     "" using 1:3:(0):(\$4-\$3) with vectors heads size screen 0.006,90 lw 1 lc rgb "#222222"
PLOT
}

# ------------------------------------------------------------------------------------------ command line

# number NAME VALUE MOST
number()
{
    [[ $2 =~ ^[1-9][0-9]{0,5}$ && $2 -le $3 ]] || { die_status=2; die "$1 is a number from 1 to $3, not '$2'"; }
}

while (($# > 0)); do
    case $1 in
    -h | --help) usage; exit ;;
    -t | -n | -c | -l | -k | -o | --page)
        (($# > 1)) || { usage >&2; exit 2; }
        case $1 in
        -t) number -t "$2" 1000; seconds=$2 ;;
        -n) number -n "$2" 99; turns=$2 ;;
        -c) number -c "$2" 10000; cap=$2 ;;
        -l) number -l "$2" 64; caps=$2 ;;
        -k) mkdir -p "$2"; keep=$(realpath "$2") ;;
        -o) out=$(realpath "$2") ;;
        --page) page=$(realpath "$2") ;;
        esac
        shift
        ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done
why=$(fabric check 2>&1) || { echo "cloud.sh: $why" >&2; exit 77; }
scratch=${keep:-$(mktemp -d)}
trap clean_up EXIT
trap 'exit 130' INT TERM
tools/install-deps.sh build demo || echo 'going on without' >&2
need iperf3 jq ss
if [[ -z ${PERF-} || -z ${FORWARD-} ]]; then
    build "$scratch" mrd_perf mrd_forward
fi
perf=${PERF:-$PWD/build/tools/mrd_perf} forward=${FORWARD:-$PWD/build/tools/mrd_forward}

fabric up -S 4 -R $((cap * caps)) --flow-cap "$cap"
measure
summary >"$scratch/summary.json"
table | tee "$scratch/table.md"
[[ -z $out ]] || draw "$out"
[[ -z $page ]] || put_table cloud "$scratch/table.md" "$page"
