#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# loss.sh MRD_PERF: whatever share of the packets is lost, and however they are reordered, every byte arrives.

# shellcheck source=tests/rdma/lib.sh
source "$(dirname "$0")/lib.sh"

readonly perf=$1

# netem OPTION...: on both sides' way out. A new one counts from 0.
netem()
{
    local link

    for link in va vb; do
        tc qdisc replace dev $link root handle "$((++netem_handle)):" netem limit 20000 "$@"
    done
}

dropped()
{
    tc -s qdisc show | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p' | awk '{ sum += $1 } END { print sum + 0 }'
}

# lossy SHARE TEST OPTION...
lossy()
{
    local lost

    transfer "$perf" "${@:2}"
    lost=$(dropped)
    get_figure packets_retransmitted
    note "lost $lost, resent $figure"
    if [[ $1 == 0 ]]; then
        ((lost == 0)) || fail "netem lost $lost packets without being told to"
    elif [[ $1 == [15]% ]]; then
        ((lost > 0)) || fail 'netem lost nothing'
    fi
}

netem_handle=1
in_machine veth "$@"
serve_all "$perf"
for share in 0 0.1% 1% 5%; do
    for way in '' 'delay 200us reorder 75%'; do
        # shellcheck disable=SC2086 # words
        netem loss $share $way
        run_case "loss $share ${way:-in order}: writes" lossy $share write_bw 65536 150
        # shellcheck disable=SC2086
        netem loss $share $way
        run_case "loss $share ${way:-in order}: ordered sends" lossy $share send_bw 4096 1000 --order=msg
        # shellcheck disable=SC2086
        netem loss $share $way
        run_case "loss $share ${way:-in order}: reads" lossy $share read_bw 65536 100
        # shellcheck disable=SC2086
        netem loss $share $way
        run_case "loss $share ${way:-in order}: atomics" lossy $share atomic_lat 8 1000
    done
done
finish
