#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# mtu.sh MRD_PERF: hosts with an MTU of 9000, and spines that take less: what a packet carries is found out, and no
# fragment is ever made. The last transfer's path shrinks on the way.

# shellcheck source=tests/net/lib.sh
source "$(dirname "$0")/lib.sh"

readonly perf=$1 size=65536
iterations=4000

for tool in jq ss; do
    command -v $tool >/dev/null || skip "no $tool"
done

# Fragments made, and fragments received, in all namespaces.
fragments()
{
    local ns

    for ns in $(fabric names); do
        # shellcheck disable=SC2016
        ip netns exec "$ns" awk '$1 == "Ip:" && !n { n = split($0, name); next }
            $1 == "Ip:" { for (i = 2; i <= n; i++) if (name[i] ~ /^(FragCreates|ReasmReqds)$/) print $i }' /proc/net/snmp
    done | awk '{ sum += $1 } END { print sum + 0 }'
}

# transfer NAME [FAULT]: verified writes; FAULT is a function to call in their middle. Then $payload: of a packet, mean.
transfer()
{
    local server client code=0

    on 1 0 timeout 60 "$perf" write_bw "${server_core[@]}" >"$scratch/server" 2>&1 &
    server=$!
    wait_for_server
    on 0 0 timeout 60 "$perf" write_bw "${client_core[@]}" -s $size -n $iterations --verify --out_json 10.1.0.2 \
        >"$scratch/json" 2>"$scratch/client" &
    client=$!
    if (($# > 1)); then
        $2
    fi
    wait $client || code=$?
    ((code == 0)) || fail "$1: the client ended with $code: $(cat "$scratch/client")"
    wait $server || fail "$1: the server failed: $(cat "$scratch/server")"
    [[ $(jq -r .verified "$scratch/json") == true ]] || fail "$1: not verified"
    payload=$(jq -r '.bytes_sent / .packets_sent | floor' "$scratch/json")
    echo "$1: $payload bytes a packet, $(jq -r .packets_retransmitted "$scratch/json") of" \
        "$(jq -r .packets_sent "$scratch/json") packets sent again"
}

# Bytes that the first host has sent.
sent()
{
    # shellcheck disable=SC2016
    on 0 0 awk '$1 == "eth0:" { print $10 }' /proc/net/dev
}

# Once a tenth is sent. The links are set one after the other, and meanwhile data flow on.
shrink()
{
    local before

    before=$(sent)
    until (($(sent) - before > size * iterations / 10)) || ! kill -0 "$client" 2>/dev/null; do
        sleep 0.01
    done
    set_mtu 1400
}

fabric_up -S 2 -m 9000
# Jumbo frames; a cloud's; a tunnel of a cloud; the least of IPv6. And what a packet must carry there on average: nearly
# what fits, as the first few carry less.
while read -r mtu least most; do
    set_mtu "$mtu"
    transfer "MTU $mtu"
    ((payload >= least && payload <= most)) || fail "MTU $mtu: $payload bytes a packet, not $least to $most"
done <<'TABLE'
9000 7500 8192
8900 7500 8192
1500 1280 1344
1400 1160 1216
1280 1080 1152
TABLE
set_mtu 9000
iterations=8000
transfer 'MTU 9000, then 1400' shrink
((payload < 8000)) || fail "the path did not shrink in time: $payload bytes a packet"
(($(fragments) == 0)) || fail "$(fragments) fragments"
