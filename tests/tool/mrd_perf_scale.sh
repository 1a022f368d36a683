#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# mrd_perf_scale.sh MRD_PERF PLOT: what mrd_perf scale prints of a few peers, and its picture. How large the figures are
# is not asserted.

set -euo pipefail

command -v jq >/dev/null || { echo 'mrd_perf_scale: skipped: no jq'; exit 77; }
unshare -n true 2>/dev/null || unshare -rn true 2>/dev/null ||
    { echo 'mrd_perf_scale: skipped: no network namespace can be made here'; exit 77; }

perf=$1 plot=$2
# shellcheck source=tests/tool/scratch.sh
source "$(dirname "${BASH_SOURCE[0]}")/scratch.sh"

# run WORD...: into the files out and err, and $status.
run()
{
    status=0
    timeout 300 "$perf" scale "$@" -D 1 -F >out 2>err || status=$?
}

# is FILTER: the filter is true of the JSON.
is()
{
    jq -e "$1" out >/dev/null || fail "not so: $1"
}

# 10 peers are made at once; of 40 that are idle some come later.
run 10 40 --paths 3 --out_json
((status == 0)) || fail "exit $status"
is 'map(.peers) == [10, 40]'
is 'all(.[]; keys == ["all_paths", "even_ratio_to_first", "idle", "one_path", "peers", "rate_ratio_to_first", "rc_peer_bytes", "size_bytes",
    "transport", "tx_depth"])'
is 'all(.[].idle; keys == ["at_once", "context_bytes", "empty_context_bytes", "handle_bytes", "next_peer_bytes",
    "peer_bytes"])'
is 'all(.[] | .one_path, .all_paths; keys == ["context_bytes", "cpu_us_per_message", "disturbed",
    "empty_context_bytes", "even", "handle_bytes", "messages", "msg_rate_mps", "packets_per_message", "packets_retransmitted",
    "paths", "peer_bytes", "receiver_peer_bytes", "seconds", "server_cpu_us_per_message"])'
is 'all(.[]; .one_path.paths == 1 and .all_paths.paths == 3)'
is 'all(.[] | .one_path, .all_paths; .messages > 0 and .msg_rate_mps > 0 and .receiver_peer_bytes > 0)'
# shellcheck disable=SC2016 # jq's variable
is 'all(.[] | .peers as $n | .idle, .one_path, .all_paths
    | .context_bytes > .empty_context_bytes and (.peer_bytes - .context_bytes / $n | fabs) <= 1; .)'
is '.[0].idle.next_peer_bytes == null and .[1].idle.next_peer_bytes >= 0'
is 'all(.[].all_paths.even; keys == ["cpu_us_per_message", "messages", "msg_rate_mps", "packets_per_message",
    "packets_retransmitted", "seconds", "server_cpu_us_per_message", "tx_depth"] and .tx_depth == 10 and .messages > 0)'
is '.[0] | .rate_ratio_to_first == 1 and .even_ratio_to_first == 1'
is 'all(.[]; .size_bytes == 64 and .tx_depth == 128)'
# A dash without queue pairs beside it has a sentence, once.
if jq -e 'all(.[]; .rc_peer_bytes == null)' out >/dev/null; then
    (($(grep -c '^mrd_perf: scale: no memory of RC queue pairs beside mrd.s: ' err) == 1)) ||
        fail 'why there are no RC queue pairs is not said once'
fi
# The table is on standard error: its head, and a line for each number.
(($(grep -c '^  mrd-udp ' err) == 2)) || fail 'no line for each number of peers'
mv out scale.json

# Other sizes and depths count; without --out_json the table is on standard output. Losses are repaired.
run 10 -s 200 -t 8 --drop 0.01 --out_json_file file.json
((status == 0)) || fail "exit $status"
grep -q '^ #transport .* idle' out || fail 'no table on standard output'
mv file.json out
is 'length == 1 and .[0].size_bytes == 200 and .[0].tx_depth == 8'
is '.[0].all_paths.even.tx_depth == 8'
is '.[0] | .one_path.packets_retransmitted > 0 and .all_paths.paths >= 1'

# Writes of many packets, to one peer and to several in turn: each arrives once, which mrd_perf checks.
run 1 5 -s 64K -m 4096 -t 16 --write_with_imm --drop 0.001 --out_json
((status == 0)) || fail "exit $status"
is 'map(.peers) == [1, 5] and all(.[]; .size_bytes == 65536)'
is 'all(.[].all_paths; .messages > 0 and .packets_per_message >= 16)'
# A context of each peer takes more memory than one of all. Each gets its share, or messages would fail.
run 20 --paths 2 --out_json
((status == 0)) || fail "exit $status"
shared=$(jq '.[0].all_paths.receiver_peer_bytes' out)
run 20 --paths 2 --contexts --out_json
((status == 0)) || fail "exit $status"
is ".[0].all_paths | .messages > 0 and .receiver_peer_bytes > 2 * $shared"

status=0
timeout 300 "$perf" scale 10 -D 1 -F >/dev/full 2>err || status=$?
((status == 1)) || fail "exit $status, though the table is lost"

command -v gnuplot >/dev/null || { echo 'mrd_perf_scale: the picture is not tested: no gnuplot'; exit 0; }
"$plot" scale.json scale.svg >out 2>err || fail 'the picture cannot be drawn'
tail -c 20 scale.svg | grep -q '</svg>' || fail 'the picture is not whole'
status=0
"$plot" scale.json >out 2>err || status=$?
((status == 2)) || fail "exit $status without a name for the picture"
