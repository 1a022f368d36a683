#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# doctor.sh MRD_PERF SLOW_LINK: what mrd_perf doctor says of fabrics that have something wrong, one after the other: a cap on each
# flow, one spine that loses, or all, a router that clears ECN bits, links of a small MTU with and without ICMP,
# firewalls, one that drops what is ECN-capable, a slow and far link.

# shellcheck source=tests/net/lib.sh
source "$(dirname "$0")/lib.sh"

readonly perf=$1 slow_link=$2

for tool in jq ss nft; do
    command -v $tool >/dev/null || skip "no $tool"
done

# doctor NAME [ADDRESS [EXIT]]: its report is in $scratch/json then. Twice the half minute that it promises is for machines
# that are busy; what knows no bound takes longer.
doctor()
{
    local server client_status=0 server_status=0 name=$1 to=${2:-10.1.0.2} expected=${3:-0}

    ip netns exec "${prefix}h1_0" timeout 100 "$perf" doctor >"$scratch/server" 2>&1 &
    server=$!
    wait_for_server
    on 0 0 timeout 60 "$perf" doctor -F --out_json "$to" >"$scratch/json" 2>"$scratch/client" || client_status=$?
    ((client_status == expected)) || { cat "$scratch/client" >&2; fail "$name: exit $client_status"; }
    wait $server || server_status=$?
    # A run that is cut off ends the server, too: TCP's over a link that loses, for one.
    ((server_status == expected)) || found no_time || fail "$name: the server's exit $server_status"
    echo "$name: $(jq -c '[.findings[].name]' "$scratch/json")"
}

# found NAME: is there such a finding, with text and advice?
found()
{
    jq -e --arg name "$1" 'any(.findings[]; .name == $name and (.text | length) > 10 and (.advice | length) > 10)' \
        "$scratch/json" >/dev/null
}

# finds NAME...: these findings, each with text and advice. What a busy host adds may be there.
finds()
{
    local name

    for name; do
        found "$name" || { cat "$scratch/client" >&2; fail "$name is not found"; }
    done
}

finds_no()
{
    local name

    for name; do
        jq -e --arg name "$name" 'all(.findings[]; .name != $name)' "$scratch/json" >/dev/null ||
            { cat "$scratch/client" >&2; fail "$name is found"; }
    done
}

readonly of_networks=(no_udp_there no_udp_back ports_blocked loss_on_some loss_on_all ecn_bleached ecn_dropped mtu_path mtu_silent
    mtu_small run_failed)

# nft_in NAMESPACE HOOK RULE: the rule at that hook, until cure().
nft_in()
{
    local ns=$1 hook=$2 rule=$3

    ip netns exec "$ns" nft -f - <<RULES
table inet ill {
    chain ill {
        type filter hook $hook priority -10; policy accept;
        $rule
    }
}
RULES
}

cure()
{
    local ns

    for ns in $(fabric names); do
        ip netns exec "$ns" nft delete table inet ill 2>/dev/null || true
    done
}

fabric_up -S 4
doctor healthy
finds_no "${of_networks[@]}"
jq -e '.mtu_through == 9000 and (.rates | length) == 5 and all(.rates[]; .bw_gbps > 0) and .tcp.bw_gbps > 0 and
       .latency.lat_us.p50 > 0 and .facts.server.interface == "eth0" and .facts.client.mtu == 9000' "$scratch/json" >/dev/null ||
    fail 'healthy: figures are missing'

# A link that loses a third: the flows that it carries stand out. TCP's are spared: whether the control connection is one
# of them would be chance, and it may need longer then than all of it takes.
nft_in "${prefix}s1" forward 'meta l4proto udp numgen random mod 100 < 33 drop'
doctor 'one spine loses'
finds loss_on_some
finds_no ports_blocked ecn_bleached
cure

# What hits all alike is not laid on some, and one way is not taken for the other.
nft_in "${prefix}h0_0" input 'ip protocol udp numgen random mod 100 < 20 drop'
doctor 'all lose on the way back'
finds loss_on_all
finds_no loss_on_some ports_blocked
jq -e 'any(.findings[]; .name == "loss_on_all" and (.text | startswith("from the server")))
       and all(.findings[]; (.name | startswith("loss_") | not) or (.text | startswith("to the server") | not))' \
    "$scratch/json" >/dev/null ||
    fail 'all lose on the way back: the way there is path_penalized'
cure

nft_in "${prefix}l0" forward 'oifname "up*" ip ecn set not-ect'
doctor 'a router clears the ECN bits'
finds ecn_bleached
cure

# To the server on all paths, back on one of four: each way is judged by itself, and the runs find their way.
nft_in "${prefix}l0" forward 'oifname "up*" meta l4proto udp ip ecn ect0 drop'
nft_in "${prefix}s1" forward 'ip saddr 10.1.0.2 meta l4proto udp ip ecn ect0 drop'
doctor 'what is ECN-capable is dropped'
finds ecn_dropped
finds_no no_udp_there no_udp_back ports_blocked loss_on_all run_failed
jq -e '[.findings[] | select(.name == "ecn_dropped").text] | length == 2
       and (.[0] | startswith("to the server") and contains("from 32 of 32"))
       and (.[1] | startswith("from the server") and (contains("from 32 of 32") | not))' "$scratch/json" >/dev/null ||
    fail 'what is ECN-capable is dropped: other words'
jq -e '(.ports_through | length) == 32 and .mtu_through == 9000 and .latency.lat_us.p50 > 0 and all(.rates[]; .bw_gbps > 0)' \
    "$scratch/json" >/dev/null || fail 'what is ECN-capable is dropped: figures are missing'
cure

set_mtu 1400
doctor 'small MTU'
finds mtu_path mtu_small
jq -e '.mtu_through == 1400 and .probe_icmp_mtu == 1400' "$scratch/json" >/dev/null || fail 'small MTU: other sizes'
nft_in "${prefix}l0" output 'icmp type destination-unreachable drop'
doctor 'small MTU, silent'
finds mtu_silent mtu_small
finds_no mtu_path
cure
set_mtu 9000

# A firewall before the server that lets half of the source ports pass.
nft_in "${prefix}h1_0" input 'udp dport 4793 udp sport & 1 == 1 drop'
doctor 'a firewall lets some source ports pass'
finds ports_blocked
finds_no mtu_silent mtu_small loss_on_some loss_on_all
jq -e '(.ports_through | length) as $n | [.rates[].source_ports] | .[-1] <= $n and . == unique' "$scratch/json" >/dev/null ||
    fail 'a firewall lets some source ports pass: rates of ports that do not pass'
cure

# One that lets no answers to ephemeral ports in; and the cure that is advised.
nft_in "${prefix}h0_0" input 'udp dport 32768-60999 drop'
doctor 'a firewall before the client'
finds no_udp_back
MRD_PORT=4793 doctor 'a firewall before the client, and a port that it lets pass'
finds_no no_udp_back
cure
# What was found out before a run fails is not lost.
nft_in "${prefix}h1_0" input 'ip protocol tcp tcp dport != 4793 ct state new drop'
doctor 'a firewall that lets no TCP connection but the control connection pass' 10.1.0.2 1
finds run_failed
jq -e '.latency.lat_us.p50 > 0 and (.rates | length) == 5' "$scratch/json" >/dev/null || fail 'what was measured is lost'
cure
nft_in "${prefix}h1_0" input 'meta l4proto udp drop'
doctor 'a firewall before the server'
finds no_udp_there
cure

# A second of what a fast path carries takes minutes here, and so do thousands of round trips.
"$slow_link" "${prefix}h0_0" "${prefix}h1_0" 100 1000 60000 &
slow=$!
for l in 0 1; do
    for ((try = 0; try < 100; try++)); do
        ! ip -n "${prefix}h${l}_0" link set slow up 2>/dev/null || break
        sleep 0.1
    done
    ip -n "${prefix}h${l}_0" address add 10.77.0.$((l + 1))/24 dev slow
done
doctor 'a slow and far link' 10.77.0.2
finds_no "${of_networks[@]}" flow_cap
jq -e '.latency.lat_us.p50 > 100000 and (.rates | length) > 0 and .mtu_through == 1500' "$scratch/json" >/dev/null ||
    fail 'a slow and far link: figures are missing'
kill $slow
fabric down

fabric up -S 4 -R 160 --flow-cap 20
doctor 'flows are capped'
finds flow_cap
