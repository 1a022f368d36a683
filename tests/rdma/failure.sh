#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# failure.sh MRD_PERF: a peer that dies, or that nothing reaches any more, ends a run with an error that names it.

# shellcheck source=tests/rdma/lib.sh
source "$(dirname "$0")/lib.sh"

readonly perf=$1

# interrupted FAULT: a run that is meant to last until FAULT, a function, has happened. Sets code.
interrupted()
{
    local running first now

    code=0
    start_server 4894 server "$perf" write_bw -d "${devices[0]}" -p 4894 "${server_core[@]}"
    read -r first </sys/class/net/vb/statistics/tx_packets
    timeout 60 "$perf" write_bw -d "${devices[1]}" -p 4894 "${client_core[@]}" -s 65536 -D 50 127.0.0.1 >client 2>&1 &
    running=$!
    for now in $(seq 400); do
        read -r now </sys/class/net/vb/statistics/tx_packets
        ((now - first < 1000)) || break
        sleep 0.02
    done
    ((now - first >= 1000)) || fail 'nothing is sent'
    "$1"
    wait $running || code=$?
    note "$(tail -n 1 client)"
    ((code == 1)) || fail "the client's exit status is $code instead of 1"
}

kill_server()
{
    kill -KILL "$server"
}

cut_network()
{
    tc qdisc replace dev va root netem loss 100%
    tc qdisc replace dev vb root netem loss 100%
}

peer_killed()
{
    interrupted kill_server
    grep -q '127\.0\.0\.1' client || fail 'the message does not name the peer'
}

# The control connection lives on: it is the transport that must notice. The first end to do so tells the other.
peer_unreachable()
{
    local server_code=0

    interrupted cut_network
    grep -Eq '10\.99\.0\.[12]' client || fail 'the message does not name the peer'
    wait "$server" || server_code=$?
    ((server_code == 1)) || fail "the server's exit status is $server_code instead of 1"
}

in_machine veth "$@"
run_case 'the peer is killed' peer_killed
run_case 'nothing reaches the peer' peer_unreachable
tc qdisc del dev va root
tc qdisc del dev vb root
serve_all "$perf"
run_case 'afterwards all is well' transfer "$perf" write_bw 65536 100
finish
