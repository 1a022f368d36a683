#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# ecn.sh MRD_PERF: verified writes through networks that drop UDP packets with ECT(0), both ways or one way. Each goes through, and costs few packets; none where the environment turns ECT off.

# shellcheck source=tests/net/lib.sh
source "$(dirname "$0")/lib.sh"

readonly perf=$1

for tool in jq ss nft; do
    command -v $tool >/dev/null || skip "no $tool"
done

# drop_ect LEAF: what comes from its host with ECT(0) is dropped, and counted.
drop_ect()
{
    ip netns exec "${prefix}l$1" nft -f - <<'RULES'
table inet ill {
    counter dropped { }
    chain ill {
        type filter hook forward priority -10; policy accept;
        oifname "up*" meta l4proto udp ip ecn ect0 counter name dropped drop
    }
}
RULES
}

# dropped LEAF: packets so far; the rule goes.
dropped()
{
    ip netns exec "${prefix}l$1" nft -j list counters table inet ill | jq '[.nftables[].counter?.packets // 0] | add'
    ip netns exec "${prefix}l$1" nft delete table inet ill
}

# transfer NAME
transfer()
{
    local server

    on 1 0 timeout 100 "$perf" write_bw "${server_core[@]}" >"$scratch/server" 2>&1 &
    server=$!
    wait_for_server
    on 0 0 timeout 100 "$perf" write_bw "${client_core[@]}" -s 65536 -n 500 --verify 10.1.0.2 >"$scratch/client" 2>&1 ||
        { cat "$scratch/client" "$scratch/server" >&2; fail "$1: the client exits with $?"; }
    wait $server || fail "$1: the server exits with $?"
}

both()
{
    drop_ect 0
    drop_ect 1
}

# few NAME NUMBER MOST: so many were dropped, some of them.
few()
{
    echo "$1: $2 packets were dropped"
    (($2 > 0 && $2 <= $3)) || fail "$1: $2 packets were dropped, expected 1 to $3"
}

fabric_up -S 2

both
transfer 'both ways'
few 'both ways, there' "$(dropped 0)" 20
few 'both ways, back' "$(dropped 1)" 20

drop_ect 0
transfer 'there only'
few 'there only' "$(dropped 0)" 20

# Only acks go that way.
drop_ect 1
transfer 'back only'
few 'back only' "$(dropped 1)" 200

both
MRD_ECN=off transfer 'ECT is off'
(($(dropped 0) + $(dropped 1) == 0)) || fail 'ECT is off: packets with ECT were dropped'
