#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# doctor.sh MRD_PERF: what mrd_perf doctor says of fabrics that have something wrong, one after the other: a cap on each
# flow, one spine that loses, a router that clears ECN bits, links of a small MTU with and without ICMP, firewalls.

# shellcheck source=tests/net/lib.sh
source "$(dirname "$0")/lib.sh"

readonly perf=$1

for tool in jq ss nft; do
    command -v $tool >/dev/null || skip "no $tool"
done

# doctor NAME: its report is in $scratch/json then.
doctor()
{
    local server client_status=0 name=$1

    ip netns exec "${prefix}h1_0" timeout 100 "$perf" doctor >"$scratch/server" 2>&1 &
    server=$!
    wait_for_server
    on 0 0 timeout 90 "$perf" doctor -F --out_json 10.1.0.2 >"$scratch/json" 2>"$scratch/client" || client_status=$?
    ((client_status == 0)) || { cat "$scratch/client" >&2; fail "$name: exit $client_status"; }
    wait $server || fail "$name: the server's exit $?"
    echo "$name: $(jq -c '[.findings[].name]' "$scratch/json")"
}

# finds NAME...: these findings, each with text and advice. What a busy host adds may be there.
finds()
{
    local name

    for name; do
        jq -e --arg name "$name" 'any(.findings[]; .name == $name and (.text | length) > 10 and (.advice | length) > 10)' \
            "$scratch/json" >/dev/null || { cat "$scratch/client" >&2; fail "$name is not found"; }
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

readonly of_networks=(no_udp_there no_udp_back ports_blocked loss_on_some ecn_bleached mtu_path mtu_silent mtu_small)

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

# A link that loses a third: the flows that it carries stand out.
nft_in "${prefix}s1" forward 'numgen random mod 100 < 33 drop'
doctor 'one spine loses'
finds loss_on_some
finds_no ports_blocked ecn_bleached
cure

nft_in "${prefix}l0" forward 'oifname "up*" ip ecn set not-ect'
doctor 'a router clears the ECN bits'
finds ecn_bleached
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
cure

# One that lets no answers to ephemeral ports in; and the cure that is advised.
nft_in "${prefix}h0_0" input 'udp dport 32768-60999 drop'
doctor 'a firewall before the client'
finds no_udp_back
cure
nft_in "${prefix}h1_0" input 'meta l4proto udp drop'
doctor 'a firewall before the server'
finds no_udp_there
cure
fabric down

fabric up -S 4 -R 160 --flow-cap 20
doctor 'flows are capped'
finds flow_cap
