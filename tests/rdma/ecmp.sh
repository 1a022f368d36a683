#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# ecmp.sh MRD_PERF: one queue pair uses both paths of a fabric, where a reliable connection uses one, and goes on when
# one of them silently loses everything.

# shellcheck source=tests/rdma/lib.sh
source "$(dirname "$0")/lib.sh"

readonly perf=$1

# Packets that left R2 by each path: the client is behind it. Sets on_path.
count_paths()
{
    read -ra on_path <<<"$(ip netns exec R2 sh -c 'cat /sys/class/net/p[01]/statistics/tx_packets' | xargs)"
}

# take_paths COMMAND...: sets on_path to what went by each during the command.
take_paths()
{
    local before

    count_paths
    before=("${on_path[@]}")
    "$@"
    count_paths
    on_path=($((on_path[0] - before[0])) $((on_path[1] - before[1])))
    note "packets by path ${on_path[*]}"
}

# sets lesser and greater
order_paths()
{
    lesser=$((on_path[0] < on_path[1] ? on_path[0] : on_path[1]))
    greater=$((on_path[0] + on_path[1] - lesser))
}

both_paths()
{
    take_paths transfer "$perf" "$@"
    order_paths
    # With 32 paths, 3 of them on one side would be one in a million.
    ((lesser * 20 > greater)) || fail 'one of the two paths is left out'
}

reliable_connection()
{
    start_server 4894 server ib_write_bw -d "${devices[0]}" -x 1 -p 4894 -s 65536 -n 200 -F
    ib_write_bw -d "${devices[1]}" -x 1 -p 4894 -s 65536 -n 200 -F 127.0.0.1 >client 2>&1
    wait "$server"
}

one_path()
{
    take_paths reliable_connection
    order_paths
    # The routers' own: ARP.
    ((greater > 1000 && lesser < 20)) || fail 'a connection is expected to use one path'
}

# wait_for_packets NUMBER: until so many left the client's side. No program is started for it.
wait_for_packets()
{
    local now first

    read -r first </sys/class/net/vb/statistics/tx_packets
    for now in $(seq 400); do
        read -r now </sys/class/net/vb/statistics/tx_packets
        ((now - first < $1)) || return 0
        sleep 0.02
    done
    fail "fewer than $1 packets were sent"
}

# lose PATH SHARE: of its packets, both ways.
lose()
{
    tc -n R1 qdisc replace dev "p$1" root netem loss "$2"
    tc -n R2 qdisc replace dev "p$1" root netem loss "$2"
}

# The busier one: more than half of the queue pairs may go with it.
path_dies()
{
    local running code=0 before at_death lost dead

    lose 0 0%
    lose 1 0%
    count_paths
    before=("${on_path[@]}")
    transfer "$perf" write_bw 65536 1500 &
    running=$!
    wait_for_packets 3000
    count_paths
    dead=$((on_path[1] - before[1] > on_path[0] - before[0]))
    lose $dead 100%
    count_paths
    at_death=("${on_path[@]}")
    wait $running || code=$?
    count_paths
    lost=$(tc -n R2 -s qdisc show dev p$dead | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p' | xargs)
    lose $dead 0%
    note "path $dead died; after that $((on_path[0] - at_death[0])) and $((on_path[1] - at_death[1])), eaten ${lost:-0}"
    ((code == 0)) || fail 'the transfer did not survive'
    ((${lost:-0} > 0)) || fail 'the dead path had nothing to eat'
    ((on_path[1 - dead] - at_death[1 - dead] > 3000)) || fail 'it died after the transfer'
}

in_machine ecmp "$@"
serve_all "$perf"
run_case 'writes use both paths' both_paths write_bw 65536 200
run_case 'sends in order use both paths' both_paths send_bw 4096 2000 --order=msg
run_case 'a reliable connection uses one path' one_path
run_case 'a path dies on the way' path_dies
finish
