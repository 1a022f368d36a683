#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
Show what mrd does: install what is missing, build, run, and print a small table.

usage: demo.sh [-t SECONDS] [-k DIRECTORY] [-l]

  -t SECONDS    length of each transfer (default 4)
  -k DIRECTORY  keep what iperf3 and mrd_perf reported, as JSON and text, in this directory
  -l            the loopback even if a fabric is possible

As root: a fabric of network namespaces, two hosts with four spines of 1 Gb/s between them. One TCP flow, then one
mrd transfer, each over the whole fabric: clean, then with 1% of the packets lost at every crossing, then with one
spine that silently dies in the middle. Otherwise: one mrd transfer over the loopback, clean and with 1% lost.
Lines of transfers during which others used the machine say so: their figures are worth little.
USAGE
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH+=:/usr/sbin:/sbin

readonly spines=4 message_bytes=65536 loss_ppm=10000 port=4793
readonly busy_percent=10 stolen_percent=3 # of all processors, from which on figures are worth little
readonly perf=$PWD/build/tools/mrd_perf
export FABRIC_PREFIX="mrd_demo_$$_"
seconds=4
keep=''
server_core=() client_core=()
loopback=no

# Both ends poll: on one core, as the scheduler may have it, each would wait for the other's time slice.
if (($(nproc) > 1)); then
    server_core=(--bind 1) client_core=(--bind 0)
fi

say()
{
    printf '%s\n' "$*" >&2
}

die()
{
    say "demo.sh: $*"
    exit 1
}

fabric()
{
    tools/fabric.sh "$@"
}

# Everything that still runs on the hosts.
stop_hosts()
{
    local leaf

    for leaf in 0 1; do
        ip netns pids "${FABRIC_PREFIX}h${leaf}_0" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
    done
}

clean_up()
{
    if [[ $loopback == no ]]; then
        stop_hosts
        fabric down 2>/dev/null || true
    fi
    [[ -z ${scratch:-} || -n $keep ]] || rm -rf "$scratch"
}

# ------------------------------------------------------------------------------------------ build

build()
{
    local generator=()

    tools/install-deps.sh build demo || say 'going on without'
    if [[ ! -e build/CMakeCache.txt ]] && command -v ninja >/dev/null; then
        generator=(-G Ninja)
    fi
    say 'building'
    if ! { cmake -S . -B build "${generator[@]}" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DMRD_TOOLS=ON &&
        cmake --build build --parallel "$(nproc)" --target mrd_perf; } >"$scratch/build.log" 2>&1; then
        tail -n 30 "$scratch/build.log" >&2
        die 'the build failed'
    fi
    [[ -x $perf ]] || die "the build made no $perf"
}

# ------------------------------------------------------------------------------------------ the fabric

# on LEAF COMMAND...: on the host of that leaf.
on()
{
    ip netns exec "${FABRIC_PREFIX}h$1_0" "${@:2}"
}

# What follows up to kill_spine() happens during a transfer that needs all cores: it starts no program.

# Packets that came to each spine by now: from the sender's leaf, and TCP's from either leaf.
declare -A packets=() tcp=()

read_counters()
{
    local spine leaf came of_tcp

    echo counters >&"${COPROC[1]}"
    while read -r -u "${COPROC[0]}" spine leaf came _ of_tcp _ && [[ $spine != . ]]; do
        ((leaf != 0)) || packets[$spine]=$came
        tcp[$spine,$leaf]=$of_tcp
    done
}

# Sets dead: the spine that carries most of a TCP flow's data.
spine_of_tcp()
{
    local spine most=0

    for ((spine = 0; spine < spines; spine++)); do
        if ((packets[$spine] - packets[$spine,before] > most)); then
            most=$((packets[$spine] - packets[$spine,before])) dead=$spine
        fi
    done
}

# Sets dead: a spine that mrd_perf's control connection, itself TCP, does not use. Both ends have to hear that the
# transfer is over.
spine_without_tcp()
{
    local spine

    for ((spine = spines - 1; spine >= 0; spine--)); do
        ((tcp[$spine,0] + tcp[$spine,1] > tcp[$spine,before])) || dead=$spine
    done
}

wait_for_server()
{
    local try

    for ((try = 0; try < 100; try++)); do
        [[ -z $(on 1 ss -Hltn "sport = :$1") ]] || return 0
        sleep 0.05
    done
    die "the server at port $1 does not come up"
}

# kill_spine HOW-TO-CHOOSE: in the middle of a transfer. Sets dead.
kill_spine()
{
    dead=''
    sleep $((seconds / 2)).$((seconds % 2 * 5))
    read_counters
    "$1"
    [[ -n $dead ]] || die 'the control connection uses every spine; try again'
    echo "blackhole all $dead on" >&"${COPROC[1]}"
}

# ------------------------------------------------------------------------------------------ the machine

# Sets ticks: of all processors so far; those that took others than this script's children; those that the hypervisor
# took. The kernel's work on packets is in none but the first.
read_ticks()
{
    local user nice system idle iowait irq softirq steal own

    read -r _ user nice system idle iowait irq softirq steal _ </proc/stat
    read -ra own </proc/$$/stat
    ticks=($((user + nice + system + idle + iowait + irq + softirq + steal))
        $((user + nice + system - own[13] - own[14] - own[15] - own[16])) "$steal")
}

# Prints what others took of the machine since the ticks that are given, if it is enough to spoil figures.
busy_since()
{
    local all others stolen

    read_ticks
    all=$((ticks[0] - $1)) others=$((100 * (ticks[1] - $2) / all)) stolen=$((100 * (ticks[2] - $3) / all))
    if ((others >= busy_percent || stolen >= stolen_percent)); then
        echo "BUSY MACHINE: others took $((others > 0 ? others : 0))%, its hypervisor $stolen%"
    fi
}

# ------------------------------------------------------------------------------------------ one transfer

begin_transfer()
{
    local spine

    read_counters
    for ((spine = 0; spine < spines; spine++)); do
        packets[$spine,before]=${packets[$spine]}
        tcp[$spine,before]=$((tcp[$spine,0] + tcp[$spine,1]))
    done
    read_ticks
    ticks_before=("${ticks[@]}")
}

# end_transfer NAME
end_transfer()
{
    local spine

    busy_since "${ticks_before[@]}" >"$scratch/$1.busy"
    read_counters
    for ((spine = 0; spine < spines; spine++)); do
        echo $((packets[$spine] - packets[$spine,before]))
    done >"$scratch/$1.packets"
}

# run_tcp NAME [DIES]: goodput as the receiver prints it, as the sender's report does not come through a dead spine.
run_tcp()
{
    local log=$scratch/$1-tcp.txt server client

    begin_transfer
    on 1 iperf3 -s -1 -f m -i 0.1 --forceflush >"$log" 2>&1 &
    server=$!
    wait_for_server 5201
    on 0 iperf3 -c 10.1.0.2 -t "$seconds" >"$scratch/$1-tcp-client.txt" 2>&1 &
    client=$!
    if [[ -n ${2-} ]]; then
        kill_spine spine_of_tcp
        sleep $((seconds - seconds / 2))
        stop_hosts # the client would wait for its dead connection
    fi
    wait $client 2>/dev/null || [[ -n ${2-} ]] || { cat "$scratch/$1-tcp-client.txt" >&2; die 'iperf3 failed'; }
    wait $server 2>/dev/null || true
    end_transfer "$1-tcp"
    tcp_gbps "$log" 0 >"$scratch/$1-tcp.gbps"
}

# tcp_gbps LOG FROM: mean goodput from second FROM of the run on.
tcp_gbps()
{
    awk -v from="$2" -v to="$seconds" '
        / Mbits\/sec/ && !/sender|receiver/ {
            for (i = 1; i <= NF; i++) {
                if ($i ~ /^[0-9.]+-[0-9.]+$/) split($i, t, "-")
                if ($i == "Mbits/sec") rate = $(i - 1)
            }
            if (t[1] >= from && t[1] < to) mbit += rate * (t[2] - t[1])
        }
        END { printf "%.2f\n", mbit / 1000 / (to - from) }' "$1"
}

# run_mrd NAME [DIES]
run_mrd()
{
    local server client code=0

    begin_transfer
    on 1 timeout $((seconds + 30)) "$perf" write_bw "${server_core[@]}" >"$scratch/$1-server.txt" 2>&1 &
    server=$!
    wait_for_server $port
    on 0 timeout $((seconds + 30)) "$perf" write_bw "${client_core[@]}" -s $message_bytes -D "$seconds" --verify --out_json 10.1.0.2 \
        >"$scratch/$1-mrd.json" 2>"$scratch/$1-client.txt" &
    client=$!
    [[ -z ${2-} ]] || kill_spine spine_without_tcp
    wait $client || code=$?
    ((code == 0)) || { cat "$scratch/$1-client.txt" "$scratch/$1-server.txt" >&2; die "mrd_perf exits with $code"; }
    wait $server || die 'the server of mrd_perf failed'
    end_transfer "$1-mrd"
    jq -r '.bw_gbps * 100 | round / 100' "$scratch/$1-mrd.json" >"$scratch/$1-mrd.gbps"
}

# ------------------------------------------------------------------------------------------ what is printed

head_line()
{
    local s

    printf '\n%-16s %-9s %6s ' fabric transfer Gb/s
    for ((s = 0; s < spines; s++)); do
        printf ' %10s' "spine $s"
    done
    printf '\n'
}

# line LABEL NAME tcp|mrd [DEAD-SPINE]
line()
{
    local packets mark note='' spine=0 transfer=${3/tcp/TCP}

    printf '%-16s %-9s %6.2f ' "$1" "$transfer" "$(cat "$scratch/$2-$3.gbps")"
    while read -r packets; do
        mark=''
        [[ ${4-} != "$spine" ]] || mark='*'
        printf ' %10s' "$packets$mark"
        spine=$((spine + 1))
    done <"$scratch/$2-$3.packets"
    if [[ $3 == mrd ]]; then
        note=$(jq -r 'if .verified then "verified, " else "NOT VERIFIED, " end
            + "\(.packets_retransmitted) sent again"' "$scratch/$2-mrd.json")
    fi
    [[ ! -s $scratch/$2-$3.busy ]] || note+="${note:+, }$(<"$scratch/$2-$3.busy")"
    printf '  %s\n' "$note"
}

ratio()
{
    awk -v a="$(cat "$scratch/$1-mrd.gbps")" -v b="$(cat "$scratch/$1-tcp.gbps")" \
        'BEGIN { if (b > 0) printf "%.1f", a / b; else printf "infinity" }'
}

# By the receiver's samples: how long goodput was below 90% of what three spines carry, a spine being what TCP got of
# it. The death is taken to be the first sample below that; back is the first that is not, with the 4 after it in the mean.
recovery()
{
    jq -r --argjson spine "$(cat "$scratch/clean-tcp.gbps")" --argjson from_ms $((seconds * 500 - 300)) '
        (0.9 * 3 * $spine) as $enough
        | [.samples[] | select(.t_ms >= $from_ms)] as $s
        | ([range($s | length)] | map(select($s[.].bw_gbps < $enough)) | first) as $down
        | if $down == null then "never below"
          else ([range($down; ($s | length) - 4)] | map(select($s[.].bw_gbps >= $enough and ([$s[.:. + 5][].bw_gbps] | add / 5) >= $enough)) | first)
              as $up
              | if $up == null then "not back" else "back after \($s[$up].t_ms - $s[$down].t_ms | round) ms" end
          end' "$scratch/death-mrd.json"
}

after_death()
{
    jq -r --argjson from_ms $((seconds * 500 + 200)) '
        [.samples[] | select(.t_ms >= $from_ms) | .bw_gbps] | .[:-2]
        | if length > 0 then add / length * 100 | round / 100 else "?" end' "$scratch/death-mrd.json"
}

summary()
{
    printf '\nmrd / TCP: clean %s, with loss %s, with a dying spine %s\n' "$(ratio clean)" "$(ratio loss)" \
        "$(ratio death)"
    printf 'After a spine (*) died: TCP, which was on it, %s Gb/s; mrd %s Gb/s, against 90%% of three spines %s\n' \
        "$(tcp_gbps "$scratch/death-tcp.txt" $((seconds / 2)).8)" "$(after_death)" "$(recovery)"
    if [[ -n $(cat "$scratch"/*.busy) ]]; then
        echo 'Others used this machine meanwhile: the figures say how busy it was, not what mrd or TCP can do.'
    fi
}

demo_fabric()
{
    local dead

    fabric up -H 1 -L 2 -S $spines -r 1000
    coproc fabric console
    echo "Two hosts, $spines spines of 1 Gb/s each. One transfer of $seconds s at a time; packets that came to each spine:"
    head_line
    run_tcp clean
    line clean clean tcp
    run_mrd clean
    line '' clean mrd

    fabric loss $loss_ppm
    run_tcp loss
    line '1% loss' loss tcp
    run_mrd loss
    line '' loss mrd
    fabric loss 0

    run_tcp death dies
    line 'a spine dies' death tcp "$dead"
    fabric blackhole all "$dead" off
    run_mrd death dies
    line '' death mrd "$dead"
    summary
}

demo_loopback()
{
    local drop

    for drop in 0 0.01; do
        echo "mrd over the loopback, share of packets lost on purpose: $drop"
        "$perf" write_bw --local -s 1048576 -D "$seconds" --verify --drop $drop --out_json_file "$scratch/drop-$drop.json"
    done
}

while getopts :t:k:lh option; do
    case $option in
    t) seconds=$OPTARG ;;
    k) keep=$OPTARG ;;
    l) loopback=yes ;;
    h) usage; exit ;;
    *) say "demo.sh: option -$OPTARG is unknown or lacks its value"; usage >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[[ $seconds =~ ^[0-9]+$ && $seconds -ge 3 && $seconds -le 60 ]] || { say "demo.sh: -t is a number from 3 to 60"; exit 2; }
(($# == 0)) || { usage >&2; exit 2; }

trap clean_up EXIT
trap 'exit 130' INT TERM
if [[ -n $keep ]]; then
    mkdir -p "$keep"
    scratch=$(cd "$keep" && pwd)
else
    scratch=$(mktemp -d)
fi

build
[[ $loopback == yes ]] || why=$(fabric check 2>&1) || { say "$why"; loopback=yes; }
for tool in iperf3 jq ss; do
    [[ $loopback == yes ]] || command -v $tool >/dev/null || { say "no $tool: no fabric"; loopback=yes; }
done
if [[ $loopback == yes ]]; then
    demo_loopback
else
    demo_fabric
fi
