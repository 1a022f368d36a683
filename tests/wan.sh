#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
Run mrd, mrd_forward and one TCP connection over long ways, with real sockets, and compare them.

usage: wan.sh [--build DIRECTORY]

  --build DIRECTORY  where all was built (default: build)
  --help             print this text

The way is a link between two network namespaces (tests/net/slow_link.c). Each line that is printed has what came
through in 10 s, slow start included: TCP alone (the kernel's congestion control, by iperf3), mrd_perf's writes, TCP
through mrd_forward, and mrd_perf and TCP at the same time. Four minutes. Needs root, namespaces, /dev/net/tun, iperf3
and jq. Exit status: 0 if mrd_perf and mrd_forward each had the share of TCP's rate that is wanted of them, 1 if not,
77 if something is missing here, 2 for a wrong option.
USAGE
}

build=build
options=$(getopt -n wan.sh -o h -l build:,help -- "$@") || exit 2
eval set -- "$options"
while [[ $1 != -- ]]; do
    case $1 in
    --build) build=$2; shift 2 ;;
    *) usage; exit ;;
    esac
done
shift
(($# == 0)) || { echo "wan.sh: what is '$1'?" >&2; exit 2; }
build=$(realpath -m "$build")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/common.sh
source tools/common.sh
die_status=77
need iperf3 jq ip
for program in tools/mrd_perf tools/mrd_forward tests/net/slow_link; do
    [[ -x $build/$program ]] || die "no $build/$program: build it first"
done

readonly near="mrd_wan_$$_near" far="mrd_wan_$$_far" far_address=10.77.0.2
scratch=$(mktemp -d)
failed=0

# What runs in the namespaces, and the link.
end_all()
{
    local netns

    for netns in "$near" "$far"; do
        ip netns pids "$netns" 2>/dev/null | xargs -r kill 2>/dev/null || true
    done
    [[ -z ${link-} ]] || kill "$link" 2>/dev/null || true
    link=''
    wait
    for netns in "$near" "$far"; do
        ip netns del "$netns" 2>/dev/null || true
    done
}
trap 'end_all; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# way DELAY_MS KBIT QUEUE_BYTES [LOSS]: of each way.
way()
{
    local netns

    end_all
    for netns in "$near" "$far"; do
        ip netns add "$netns" 2>/dev/null || die 'no network namespaces here'
        ip -n "$netns" link set lo up
    done
    "$build/tests/net/slow_link" "$near" "$far" "$@" 2>"$scratch/link.log" &
    link=$!
    sleep 0.5
    kill -0 $link 2>/dev/null || die "no link: $(<"$scratch/link.log")"
    ip -n "$near" addr add 10.77.0.1/24 dev slow
    ip -n "$far" addr add $far_address/24 dev slow
    for netns in "$near" "$far"; do
        ip -n "$netns" link set slow mtu 1500 txqueuelen 10000 up
    done
    ip netns exec "$far" iperf3 -s >"$scratch/iperf3.log" 2>&1 &
    ip netns exec "$far" "$build/tools/mrd_perf" write_bw -D 10 --forever --bind-address $far_address \
        >"$scratch/perf-server.log" 2>&1 &
    ip netns exec "$far" "$build/tools/mrd_forward" serve --listen $far_address:4900 --allow "$far_address:*" \
        >"$scratch/serve.log" 2>&1 &
    ip netns exec "$near" "$build/tools/mrd_forward" connect -L 6000:$far_address:5201 $far_address:4900 \
        >"$scratch/connect.log" 2>&1 &
    sleep 1
}

# Each prints Mb/s.
tcp()
{
    ip netns exec "$near" iperf3 -J -t 10 "$@" 2>/dev/null | jq '(.end.sum_received.bits_per_second // 0) / 1e6 | floor'
}

direct()
{
    ip netns exec "$near" "$build/tools/mrd_perf" write_bw -D 10 -s 65536 -t 1024 --out_json --bind-address 10.77.0.1 \
        $far_address 2>"$scratch/perf.log" | jq '.bw_gbps * 1000 | floor'
}

# at_least WHAT MBIT LEAST
at_least()
{
    (($2 >= $3)) && return
    echo "wan.sh: $1: $2 Mb/s, and at least $3 are wanted" >&2
    failed=1
}

# row NAME LEAST_DIRECT LEAST_FORWARD, in percent of TCP alone
row()
{
    local alone mrd through beside mrd_beside

    alone=$(tcp -c $far_address)
    mrd=$(direct)
    through=$(tcp -c 127.0.0.1 -p 6000)
    direct >"$scratch/beside" &
    beside=$(tcp -c $far_address)
    wait $! || true
    mrd_beside=$(<"$scratch/beside")
    printf '%-44s TCP %4d  mrd %4d  through mrd_forward %4d  together: TCP %4d, mrd %4d Mb/s\n' "$1" "$alone" "$mrd" \
        "$through" "$beside" "$mrd_beside"
    at_least "$1, mrd" "$mrd" $((alone * $2 / 100))
    at_least "$1, mrd_forward" "$through" $((alone * $3 / 100))
}

way 10 300000 750000
row '300 Mb/s, 20 ms, queue 1 BDP' 85 80
way 40 300000 3000000
row '300 Mb/s, 80 ms, queue 1 BDP' 80 75
way 15 600000 2250000
row '600 Mb/s, 30 ms, queue 1 BDP' 85 75
way 10 300000 750000 0.001
row '300 Mb/s, 20 ms, queue 1 BDP, 0.1% lost' 70 60
way 10 300000 150000
row '300 Mb/s, 20 ms, queue 0.2 BDP' 75 70
exit $failed
