#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A leaf-spine fabric with ECMP out of network namespaces; usage() says how to use it.
#
# Hosts are single-homed to a leaf, every leaf is wired to every spine. A leaf spreads what leaves it over the spines
# by the hash of addresses and ports (fib_multipath_hash_policy=1), as a switch does; tools/bpf/leaf.bpf.c tells why
# that needs help inside one kernel. What namespaces exist is the only state: their names tell the shape.

set -euo pipefail

# Administrators' tools are not on everyone's path.
PATH+=:/usr/sbin:/sbin

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# shellcheck source=tools/fabric-up.sh
source "$here/fabric-up.sh"

usage()
{
    cat <<'USAGE'
A leaf-spine fabric with ECMP out of network namespaces. Needs root.

usage: fabric.sh [-P PREFIX] COMMAND

  up [OPTIONS]                    make it
    -H N        hosts a leaf (default 1)
    -L N        leaves (default 2)
    -S N        spines (default 4)
    -r MBIT     rate of each leaf-spine link, each way; 0: no limit (default 0)
    -R MBIT     rate of each host link, each way; 0: no limit (default 0)
    -q BYTES    queue of a limited link (default 200000)
    -b BYTES    burst of a limited link, at least the MTU (default 32000)
    -m BYTES    MTU (default 9000)
    -o on|off   segmentation offloads; off, each packet crosses links by itself (default off)
    -l PPM      loss, as by the command (default 0)
    --flow-cap MBIT, -c MBIT
                a rate that no flow exceeds, by protocol, addresses and ports, as in clouds: a leaf drops what is more,
                after a burst of a fifth of a second, at least 256 kB; 0: no limit (default 0)
    -s SEED     hash seed of leaf n is SEED + n, for the same map of ports to spines each time (Linux 6.11 on)
  down                            remove it
  loss PPM                        lose so many packets in a million at every crossing of a spine, both ways
  blackhole LEAF|all SPINE on|off the spine silently eats what comes from that leaf; links stay up
  cut LEAF SPINE                  unplug a link; that leaf notices, the others are not told
  heal LEAF SPINE                 plug it in again
  silence LEAF HOST on|off        the leaf silently eats the UDP that comes from that host and goes to it; TCP passes
  pin SPINE FIRST-LAST            TCP from and to these ports takes that spine only, so that another one may die
  counters                        a line for each spine and leaf: SPINE LEAF PACKETS BYTES TCP LOST EATEN
                                  (IP packets that came to the spine from that leaf, those that are TCP, and what it
                                  did not pass on)
  console                         do what the lines of standard input say: counters, whose answer ends with a line ".",
                                  or blackhole. It starts no program for that, so that traffic keeps the cores
  capped                          a line for each leaf: LEAF PACKETS that --flow-cap dropped
  stat                            packets and drops of every link
  names                           the namespaces
  check                           can this machine do it? Exit 77 and the reason if not

Host n of leaf l is the namespace PREFIXhL_N with address 10.L.N.2; spine s is PREFIXsS, leaf l PREFIXlL. PREFIX is
fab_ unless -P or FABRIC_PREFIX says otherwise; fabrics of different prefixes do not see each other.

  fabric.sh up -S 4 -r 1000
  ip netns exec fab_h0_0 iperf3 -c 10.1.0.2
USAGE
}

die()
{
    echo "fabric.sh: $*" >&2
    exit 1
}

bad_usage()
{
    echo "fabric.sh: $* (fabric.sh help shows the usage)" >&2
    exit 2
}

# number NAME VALUE MIN MAX
number()
{
    [[ $2 =~ ^(0|[1-9][0-9]{0,8})$ && $2 -ge $3 && $2 -le $4 ]] ||
        bad_usage "$1 is a number from $3 to $4, not '$2'"
}

on_off()
{
    [[ $2 == on || $2 == off ]] || bad_usage "$1 is on or off, not '$2'"
}

# ------------------------------------------------------------------------------------------ what there is

# namespaces KIND: those of this fabric in order; KIND is a pattern of [slh].
namespaces()
{
    ip netns list | awk '{ print $1 }' |
        awk -v prefix="$prefix" -v kind="^($1)\$" '
            index($0, prefix) == 1 && substr($0, length(prefix) + 1) ~ kind' | sort -V
}

readonly any_spine='s[0-9]+' any_leaf='l[0-9]+' any_host='h[0-9]+_[0-9]+'

everything()
{
    namespaces "$any_spine|$any_leaf|$any_host"
}

count()
{
    namespaces "$1" | wc -l
}

need_fabric()
{
    [[ -n $(everything) ]] || die "there is no fabric with prefix $prefix"
}

# need_link LEAF SPINE
need_link()
{
    need_fabric
    number LEAF "$1" 0 $(($(count "$any_leaf") - 1))
    number SPINE "$2" 0 $(($(count "$any_spine") - 1))
}

# ------------------------------------------------------------------------------------------ down

down()
{
    local ns

    # Deleting a namespace takes its veths and their peers with it.
    for ns in $(everything); do
        ip netns del "$ns"
    done
}

# ------------------------------------------------------------------------------------------ faults

# set_loss SPINE-NAMESPACE PPM
set_loss()
{
    {
        echo 'flush chain ip fabric loss'
        (($2 == 0)) || echo "add rule ip fabric loss numgen random mod 1000000 < $2 counter name iifname map @lost drop"
    } | ip netns exec "$1" nft -f -
}

loss()
{
    local ns

    (($# == 1)) || bad_usage 'loss PPM'
    number PPM "$1" 0 1000000
    need_fabric
    for ns in $(namespaces "$any_spine"); do
        set_loss "$ns" "$1"
    done
}

# blackhole_rules LEAF|all on|off LEAVES: for the spine's nft.
blackhole_rules()
{
    local l first=$1 last=$1

    if [[ $1 == all ]]; then
        first=0 last=$(($3 - 1))
    fi
    for ((l = first; l <= last; l++)); do
        # Adding first makes deleting what is not there no error.
        echo "add element ip fabric dead { dn$l }"
        [[ $2 == on ]] || echo "delete element ip fabric dead { dn$l }"
    done
}

blackhole()
{
    (($# == 3)) || bad_usage 'blackhole LEAF|all SPINE on|off'
    need_link "${1/all/0}" "$2"
    on_off 'the last word' "$3"
    blackhole_rules "$1" "$3" "$(count "$any_leaf")" | ip netns exec "${prefix}s$2" nft -f -
}

cut()
{
    (($# == 2)) || bad_usage 'cut LEAF SPINE'
    need_link "$1" "$2"
    ip -n "${prefix}s$2" link set "dn$1" down
}

heal()
{
    (($# == 2)) || bad_usage 'heal LEAF SPINE'
    need_link "$1" "$2"
    ip -n "${prefix}s$2" link set "dn$1" up
    # The kernel deleted the spine's route when the link went down.
    spine_route "$1" "$2" | ip -n "${prefix}s$2" -batch -
}

# A table of the leaf for each silent host.
silence()
{
    (($# == 3)) || bad_usage 'silence LEAF HOST on|off'
    need_fabric
    number LEAF "$1" 0 $(($(count "$any_leaf") - 1))
    number HOST "$2" 0 $(($(count "h$1_[0-9]+") - 1))
    on_off 'the last word' "$3"
    {
        # Adding first makes deleting what is not there no error.
        printf '%s table ip silent_h'"$2"'\n' add delete
        [[ $3 == off ]] || cat <<RULES
table ip silent_h$2 {
    chain transit {
        type filter hook forward priority 0; policy accept;
        iifname "h$2" meta l4proto udp drop
        oifname "h$2" meta l4proto udp drop
    }
}
RULES
    } | ip netns exec "${prefix}l$1" nft -f -
}

# ------------------------------------------------------------------------------------------ pinned ports

readonly pinned=100 # the leaves' table of routes for them

pin()
{
    local l leaves other

    (($# == 2)) || bad_usage 'pin SPINE FIRST-LAST'
    need_link 0 "$1"
    [[ $2 =~ ^[0-9]+-[0-9]+$ ]] || bad_usage "'$2' is no range of ports"
    leaves=$(count "$any_leaf")
    for ((l = 0; l < leaves; l++)); do
        {
            for ((other = 0; other < leaves; other++)); do
                ((other == l)) ||
                    echo "route replace 10.$other.0.0/16 via 100.$((64 + l)).$1.2 dev up$1 onlink table $pinned"
            done
            echo "rule add ipproto tcp sport $2 lookup $pinned"
            echo "rule add ipproto tcp dport $2 lookup $pinned"
        } | ip -n "${prefix}l$l" -batch -
    done
}

# ------------------------------------------------------------------------------------------ figures

readonly list_counters='list counters table ip fabric'

# print_counters SPINE: what nft lists on standard input, up to the end of its table. By the shell alone.
print_counters()
{
    local line key l top=0
    local -A packets=() bytes=()

    while IFS= read -r -t 10 line && [[ $line != '}' ]]; do
        if [[ $line =~ counter\ ([a-z_]+)([0-9]+) ]]; then
            key=${BASH_REMATCH[1]},${BASH_REMATCH[2]}
            ((BASH_REMATCH[2] <= top)) || top=${BASH_REMATCH[2]}
        elif [[ $line =~ packets\ ([0-9]+)\ bytes\ ([0-9]+) ]]; then
            packets[$key]=${BASH_REMATCH[1]} bytes[$key]=${BASH_REMATCH[2]}
        fi
    done
    for ((l = 0; l <= top; l++)); do
        echo "$1 $l ${packets[came,$l]} ${bytes[came,$l]} ${packets[came_tcp,$l]} ${packets[lost,$l]}" \
            "${packets[eaten,$l]}"
    done
}

counters()
{
    local ns

    need_fabric
    for ns in $(namespaces "$any_spine"); do
        ip netns exec "$ns" nft "$list_counters" | print_counters "${ns#"${prefix}s"}"
    done
}

# An nft for each spine, which waits for commands: nothing has to be started when one comes.
console()
{
    local spines leaves s answer order command leaf spine state
    local to=() from=()

    need_fabric
    spines=$(count "$any_spine") leaves=$(count "$any_leaf")
    answers=$(mktemp -d)
    trap 'rm -rf "$answers"' EXIT
    for ((s = 0; s < spines; s++)); do
        mkfifo "$answers/$s"
        exec {answer}<>"$answers/$s"
        exec {order}> >(ip netns exec "${prefix}s$s" stdbuf -oL nft -i >"$answers/$s")
        from[s]=$answer to[s]=$order
    done
    while read -r command leaf spine state; do
        case $command in
        counters)
            for ((s = 0; s < spines; s++)); do
                echo "$list_counters" >&"${to[s]}"
            done
            for ((s = 0; s < spines; s++)); do
                print_counters "$s" <&"${from[s]}"
            done
            echo .
            ;;
        blackhole) blackhole_rules "$leaf" "$state" "$leaves" >&"${to[spine]}" ;;
        *) bad_usage "the console has no command '$command'" ;;
        esac
    done
}

capped()
{
    local ns

    need_fabric
    for ns in $(namespaces "$any_leaf"); do
        echo "${ns#"${prefix}l"} $(ip netns exec "$ns" nft list counter ip fabric capped 2>/dev/null |
            awk '$1 == "packets" { print $2; n++ } END { if (!n) print 0 }')"
    done
}

stat()
{
    local ns

    need_fabric
    for ns in $(namespaces "$any_leaf|$any_spine"); do
        ip netns exec "$ns" sh -c '
            for d in /sys/class/net/*; do
                i=${d##*/}
                [ $i = lo ] || printf "%s %s rx %s tx %s txdrop %s\n" "$0" $i $(cat $d/statistics/rx_packets \
                    $d/statistics/tx_packets $d/statistics/tx_dropped)
            done' "$ns"
    done
}

# ------------------------------------------------------------------------------------------ command line

prefix=${FABRIC_PREFIX:-fab_}
if [[ ${1-} == -P ]]; then
    (($# >= 2)) || bad_usage '-P needs a prefix'
    prefix=$2
    shift 2
fi
[[ $prefix =~ ^[A-Za-z][A-Za-z0-9_-]*$ ]] || bad_usage "prefix '$prefix': a letter, then letters, digits, _ and -"

command=${1-}
(($# == 0)) || shift
case $command in
up | loss | blackhole | cut | heal | silence | pin) "$command" "$@" ;;
down | counters | console | capped | stat | check)
    (($# == 0)) || bad_usage "$command takes no arguments"
    "$command"
    ;;
names)
    (($# == 0)) || bad_usage 'names takes no arguments'
    everything
    ;;
help | -h | --help) usage ;;
'')
    usage >&2
    exit 2
    ;;
*) bad_usage "there is no command '$command'" ;;
esac
