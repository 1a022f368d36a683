# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# How tools/fabric.sh, which sources this, makes a fabric, and finds out whether it can.

# ------------------------------------------------------------------------------------------ can it be done here

readonly tools='ip:iproute2 tc:iproute2 nft:nftables ethtool:ethtool clang:clang awk:mawk'

bpf_includes()
{
    echo "-I/usr/include/$(uname -m)-linux-gnu"
}

# The reason why not on stdout, or nothing.
obstacle()
{
    local tool missing='' probe="${prefix}probe$$"

    for tool in $tools; do
        command -v "${tool%:*}" >/dev/null || missing+=" ${tool%:*} (package ${tool#*:})"
    done
    [[ -z $missing ]] || { echo "missing:$missing"; return; }
    # shellcheck disable=SC2046
    echo '#include <bpf/bpf_helpers.h>' | clang -target bpf $(bpf_includes) -include linux/bpf.h \
        -fsyntax-only -x c - 2>/dev/null || { echo 'missing: bpf/bpf_helpers.h (package libbpf-dev)'; return; }
    [[ $(id -u) == 0 ]] || { echo 'not root: namespaces cannot be made'; return; }
    ip netns add "$probe" 2>/dev/null || { echo 'no network namespaces may be made here'; return; }
    probe_kernel "$probe" | awk 'NR == 1'
    ip netns del "$probe"
}

# attempt WHAT COMMAND...: say so if it fails.
attempt()
{
    local error

    error=$("${@:2}" 2>&1) || echo "$1: ${error%%$'\n'*}"
}

# In one namespace, everything the fabric asks of the kernel.
probe_kernel()
{
    local leaves=1

    attempt 'running in a namespace fails' ip netns exec "$1" true
    attempt 'no veth' ip -n "$1" link add veth0 type veth peer name veth1
    attempt 'no tbf queue' tc -n "$1" qdisc add dev veth0 root tbf rate 1mbit burst 10000 limit 10000
    attempt 'no BPF at ingress' attach_leaf "$1" 1 veth1
    attempt 'no nftables as needed' set_spine_rules "$1"
    attempt 'no random loss' set_loss "$1" 1
    attempt 'no routes by ports' ip -n "$1" rule add ipproto tcp dport 1-2 lookup 100
    attempt 'no multipath by ports' ip netns exec "$1" test -e /proc/sys/net/ipv4/fib_multipath_hash_policy
}

check()
{
    local why

    why=$(obstacle)
    [[ -z $why ]] || { echo "no fabric on this machine: $why" >&2; exit 77; }
}

# ------------------------------------------------------------------------------------------ up

abandon()
{
    trap - ERR EXIT INT TERM
    down
    die "up failed; what it had made is removed"
}

make_namespaces()
{
    local s l h

    for ((s = 0; s < spines; s++)); do
        ip netns add "${prefix}s$s"
    done
    for ((l = 0; l < leaves; l++)); do
        ip netns add "${prefix}l$l"
        for ((h = 0; h < hosts; h++)); do
            ip netns add "${prefix}h${l}_$h"
        done
    done
}

# up<s> of a leaf is wired to dn<l> of a spine, h<n> of a leaf to eth0 of a host.
make_links()
{
    local s l h

    for ((l = 0; l < leaves; l++)); do
        for ((s = 0; s < spines; s++)); do
            echo "link add up$s mtu $mtu netns ${prefix}l$l type veth peer name dn$l mtu $mtu netns ${prefix}s$s"
        done
        for ((h = 0; h < hosts; h++)); do
            echo "link add h$h mtu $mtu netns ${prefix}l$l type veth peer name eth0 mtu $mtu netns ${prefix}h${l}_$h"
        done
    done | ip -batch -
}

set_kernel_switches()
{
    local ns l

    for ns in $(everything); do
        ip netns exec "$ns" sh -ec '
            cd /proc/sys/net/ipv4
            echo 1 >ip_forward
            echo 1 >fib_multipath_hash_policy
            echo 1 >conf/all/ignore_routes_with_linkdown
            for f in conf/*/rp_filter; do echo 0 >$f; done
            # Router solicitations and the like would show up in the counts.
            [ ! -d ../ipv6 ] || echo 1 >../ipv6/conf/all/disable_ipv6'
    done
    [[ -z $seed ]] && return
    for ((l = 0; l < leaves; l++)); do
        ip netns exec "${prefix}l$l" sh -c "echo $((seed + l)) >/proc/sys/net/ipv4/fib_multipath_hash_seed"
    done
}

set_spine_addresses()
{
    local s=$1 l

    echo 'link set lo up'
    for ((l = 0; l < leaves; l++)); do
        echo "addr add 100.$((64 + l)).$s.2/30 dev dn$l"
        echo "link set dn$l up"
        spine_route "$l" "$s"
    done
}

# The way from spine $2 to the hosts of leaf $1.
spine_route()
{
    echo "route replace 10.$1.0.0/16 via 100.$((64 + $1)).$2.1 dev dn$1 onlink"
}

set_leaf_addresses()
{
    local l=$1 s h other

    echo 'link set lo up'
    for ((s = 0; s < spines; s++)); do
        echo "addr add 100.$((64 + l)).$s.1/30 dev up$s"
        echo "link set up$s up"
    done
    for ((h = 0; h < hosts; h++)); do
        echo "addr add 10.$l.$h.1/30 dev h$h"
        echo "link set h$h up"
    done
    for ((other = 0; other < leaves; other++)); do
        ((other != l)) || continue
        printf 'route add 10.%d.0.0/16' "$other"
        for ((s = 0; s < spines; s++)); do
            printf ' nexthop via 100.%d.%d.2 dev up%d onlink' $((64 + l)) "$s" "$s"
        done
        echo
    done
}

set_host_addresses()
{
    echo 'link set lo up'
    echo "addr add 10.$1.$2.2/30 dev eth0"
    echo 'link set eth0 up'
    echo "route add default via 10.$1.$2.1"
}

set_addresses()
{
    local s l h

    for ((s = 0; s < spines; s++)); do
        set_spine_addresses "$s" | ip -n "${prefix}s$s" -batch -
    done
    for ((l = 0; l < leaves; l++)); do
        set_leaf_addresses "$l" | ip -n "${prefix}l$l" -batch -
        for ((h = 0; h < hosts; h++)); do
            set_host_addresses "$l" "$h" | ip -n "${prefix}h${l}_$h" -batch -
        done
    done
}

# Packets that a link delivers are handled by any core, flow by flow (receive packet steering), and not all by the core
# of the program that sent them: that program would pay for the work of every switch on the way.
spread_over_cores()
{
    local ns mask cores

    cores=$(nproc)
    printf -v mask %x $(((1 << (cores < 32 ? cores : 32)) - 1))
    for ns in $(everything); do
        ip netns exec "$ns" sh -c "for f in /sys/class/net/*/queues/rx-0/rps_cpus; do echo $mask >\$f; done"
    done
}

# tbf works on whole superpackets, and slowly: without offloads each packet is queued by itself.
switch_offloads_off()
{
    local ns

    for ns in $(everything); do
        ip netns exec "$ns" sh -c '
            for d in /sys/class/net/*; do
                d=${d##*/}
                [ $d = lo ] || ethtool -K $d tso off gso off gro off tx-udp-segmentation off >/dev/null 2>&1
            done; true'
    done
}

# limit NAMESPACE RATE LINK...
limit()
{
    local ns=$1 rate=$2 link
    shift 2

    ((rate != 0)) || return 0
    for link; do
        echo "qdisc replace dev $link root tbf rate ${rate}mbit burst $burst limit $queue"
    done | tc -n "$ns" -batch -
}

links()
{
    local i

    for ((i = 0; i < $2; i++)); do
        echo "$1$i"
    done
}

set_rates()
{
    local s l h

    # shellcheck disable=SC2046
    for ((l = 0; l < leaves; l++)); do
        limit "${prefix}l$l" "$rate" $(links up "$spines")
        limit "${prefix}l$l" "$host_rate" $(links h "$hosts")
        for ((h = 0; h < hosts; h++)); do
            limit "${prefix}h${l}_$h" "$host_rate" eth0
        done
    done
    # shellcheck disable=SC2046
    for ((s = 0; s < spines; s++)); do
        limit "${prefix}s$s" "$rate" $(links dn "$leaves")
    done
}

# attach_leaf NAMESPACE CAP-MBIT LINK...: see tools/bpf/leaf.bpf.c.
attach_leaf()
{
    local ns=$1 cap=() link object failed=0
    local burst=$(($2 * 25000)) # bytes of a fifth of a second: with less TCP waits for timeouts most of the time

    ((burst > 262144)) || burst=262144
    (($2 == 0)) || cap=(-DCAP_BYTES="$(($2 * 125000))ULL" -DCAP_BURST="${burst}ULL")
    shift 2
    object=$(mktemp --suffix=.o)
    # shellcheck disable=SC2046
    clang -O2 -g -target bpf $(bpf_includes) "${cap[@]}" -c "$here/bpf/leaf.bpf.c" -o "$object" &&
        for link; do
            echo "qdisc add dev $link clsact"
            echo "filter add dev $link ingress bpf da obj $object sec tc"
        done | tc -n "$ns" -batch - || failed=1
    rm -f "$object"
    return $failed
}

attach_leaves()
{
    local l

    # shellcheck disable=SC2046
    for ((l = 0; l < leaves; l++)); do
        attach_leaf "${prefix}l$l" "$cap" $(links h "$hosts")
        ip netns exec "${prefix}l$l" nft -f - <<'RULES'
table ip fabric {
    counter capped {}
    chain transit {
        type filter hook forward priority 0; policy accept;
        meta mark 1 counter name capped drop
    }
}
RULES
    done
}

# What a spine counts and drops: all in nftables, as interface counters would include ARP.
spine_rules()
{
    local l what

    echo 'table ip fabric {'
    for what in came came_tcp lost eaten; do
        for ((l = 0; l < leaves; l++)); do
            echo "counter $what$l {}"
        done
        echo "map $what { type ifname : counter; elements = {"
        for ((l = 0; l < leaves; l++)); do
            echo "\"dn$l\" : \"$what$l\","
        done
        echo '}; }'
    done
    cat <<'RULES'
    set dead { type ifname; }
    chain loss {}
    chain transit {
        type filter hook forward priority 0; policy accept;
        counter name iifname map @came
        meta l4proto tcp counter name iifname map @came_tcp
        iifname @dead counter name iifname map @eaten drop
        jump loss
    }
}
RULES
}

set_spine_rules()
{
    spine_rules | ip netns exec "$1" nft -f -
}

set_all_spine_rules()
{
    local s

    for ((s = 0; s < spines; s++)); do
        set_spine_rules "${prefix}s$s"
    done
}

up()
{
    local hosts=1 leaves=2 spines=4 rate=0 host_rate=0 queue=200000 burst=32000 mtu=9000 offloads=off ppm=0 seed=''
    local cap=0 option OPTIND=1

    set -- "${@/#--flow-cap/-c}"
    while getopts :H:L:S:r:R:q:b:m:o:l:s:c: option; do
        case $option in
        H) number -H "$OPTARG" 1 256; hosts=$OPTARG ;;
        L) number -L "$OPTARG" 2 128; leaves=$OPTARG ;;
        S) number -S "$OPTARG" 1 128; spines=$OPTARG ;;
        r) number -r "$OPTARG" 0 999999; rate=$OPTARG ;;
        R) number -R "$OPTARG" 0 999999; host_rate=$OPTARG ;;
        q) number -q "$OPTARG" 1500 999999999; queue=$OPTARG ;;
        b) number -b "$OPTARG" 1500 999999999; burst=$OPTARG ;;
        m) number -m "$OPTARG" 576 65535; mtu=$OPTARG ;;
        o) on_off -o "$OPTARG"; offloads=$OPTARG ;;
        l) number -l "$OPTARG" 0 1000000; ppm=$OPTARG ;;
        c) number --flow-cap "$OPTARG" 0 999999; cap=$OPTARG ;;
        s) number -s "$OPTARG" 1 999999999; seed=$OPTARG ;;
        *) bad_usage "up: option -$OPTARG is unknown or lacks its value" ;;
        esac
    done
    shift $((OPTIND - 1))
    (($# == 0)) || bad_usage "up: what is '$1'?"
    ((burst >= mtu + 14)) || bad_usage "-b $burst: a burst smaller than a packet passes nothing"
    check
    [[ -z $seed || -e /proc/sys/net/ipv4/fib_multipath_hash_seed ]] ||
        die "-s: this kernel has no fib_multipath_hash_seed (Linux 6.11 on)"
    [[ -z $(everything) ]] || die "a fabric with prefix $prefix exists: fabric.sh -P $prefix down removes it"

    set -E
    trap abandon ERR INT TERM
    make_namespaces
    make_links
    set_kernel_switches
    set_addresses
    [[ $offloads == on ]] || switch_offloads_off
    spread_over_cores
    set_rates
    attach_leaves
    set_all_spine_rules
    loss "$ppm"
    trap - ERR INT TERM
}
