#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# mrd_perf_bw.sh MRD_PERF: tests in both directions, asleep between completions, and in several threads, over the
# loopback interface. What is counted must be what was sent; how fast it was is not asserted.

set -euo pipefail

perf=$1
if ! command -v jq >/dev/null; then
    echo 'tool_mrd_perf_bw: skipped: jq is not there'
    exit 77
fi
# shellcheck source=tests/tool/scratch.sh
source "$(dirname "${BASH_SOURCE[0]}")/scratch.sh"

# run WORD...: such a run ends well, with its report in out.
run()
{
    status=0
    timeout 120 "$perf" "$@" --local -F --out_json >out 2>err || status=$?
    ((status == 0)) || fail "exit $status: $*"
}

# holds FILTER WORD...: the report of that run is as jq's filter says.
holds()
{
    jq -e "$1" out >/dev/null || fail "not so: $1: ${*:2}"
}

# both N WORD...: each direction moves N messages, and the rates are sums.
both()
{
    run "${@:2}" -b -n "$1"
    holds "(.directions | length) == 2 and
           all(.directions[]; .messages_sent == $1 and .messages_received == $1) and
           ((.directions | map(.msg_rate_mps) | add) - .msg_rate_mps | fabs) <= .msg_rate_mps / 1e4 and
           ((.directions | map(.bw_gbps) | add) - .bw_gbps | fabs) <= .bw_gbps / 1e4" "${@:2}"
}

both 2000 send_bw
both 3000 send_bw -s 64 -q 3 -l 16
both 2000 write_bw
both 3000 write_bw -s 64 -Q 1
both 3000 write_bw -s 3000 --write_with_imm
both 2000 read_bw -q 2
both 3000 atomic_bw
both 3000 send_bw -s 0
# So many that each run sends some hundred packets at least, small messages share them: of 50 none may be lost.
while read -r n words; do
    # shellcheck disable=SC2086 # a list
    both "$n" $words --verify --drop 0.02
    holds '.verified and .packets_retransmitted > 0' "$words"
done <<'END'
6000 send_bw -s 3000 -q 3
2000 send_bw -s 3000 --order msg -t 7
600 write_bw -s 100000
20000 write_bw -s 0
4000 read_bw -s 5000 -q 2
20000 atomic_bw -q 2
END
# For a time, as long as the client; the server's messages count, too.
run send_bw -b -D 1 -s 1000
holds '.iterations == .directions[0].messages_sent and
       all(.directions[]; .messages_sent > 0 and .messages_sent == .messages_received)' '-D'
run write_bw -n 1000
holds '.directions == null' 'one direction'
# What is lost of a ceiling is not repeated, but both ends send all.
run send_bw -b -n 2000 --transport raw-udp
holds 'all(.directions[]; .messages_sent == 2000 and .messages_received > 0)' raw-udp
# The name of perftest's, and its option.
ln -s "$perf" ib_send_bw
timeout 60 ./ib_send_bw --bidirectional -n 500 --local -F --out_json >out 2>err || fail 'ib_send_bw'
holds '.test == "send_bw" and .directions[1].messages_received == 500' ib_send_bw
# Only transports that can are compared.
timeout 120 "$perf" compare send_bw -b -n 500 --repeat 1 --local -F --out_json >out 2>err || fail 'compare -b'
holds 'map(.transport) == ["mrd-udp", "raw-udp"] and .[0].directions[1].messages_received == 500' 'compare -b'

# events N END WORD...: such a run of N messages sleeps until completions come, at both ends or at the client alone, and
# moves all.
events()
{
    run "${@:3}" -e -n "$1"
    holds ".iterations == $1 and .events.client > 0 and (.events.server > 0) == (\"$2\" == \"both\")" "${@:3}"
}

events 2000 both send_bw
events 2000 both write_bw
events 9000 client write_bw -s 64
events 2000 both write_bw -s 3000 --write_with_imm
events 2000 client read_bw
events 3000 client atomic_bw
events 2000 both send_bw -b
events 300 both send_lat
events 300 both write_lat --write_with_imm
events 300 client read_lat
events 300 client atomic_lat
# So many that the run is longer than a time slice of a busy machine: in one nobody ever has to wait.
for words in 'send_bw -s 3000 -q 3 -b' 'write_bw -s 100000' 'read_bw -s 5000' 'send_lat -s 64' 'write_lat -s 64'; do
    # shellcheck disable=SC2086 # a list
    run $words -e -n 3000 --verify --drop 0.02
    holds '.verified and .events.client > 0' "$words"
done
run send_bw -n 1000
holds '.events == null' 'without -e'
for words in 'send_bw -D 1' 'send_lat -D 1'; do
    # shellcheck disable=SC2086 # a list
    run $words -e
    holds '.iterations > 0 and .events.client > 0' "$words"
done

# threads COUNT N WORD...: each of so many threads sends its share of N messages, and all arrive.
threads()
{
    run "${@:3}" --threads "$1" -n "$2"
    holds ".iterations == $2 and (.threads | length) == $1 and (.threads | map(.messages_sent) | add) == $2 and
           all(.threads[]; (.messages_sent - $2 / $1 | fabs) < 1 and
                           (.messages_received == .messages_sent or .messages_received == null))" "${@:3}"
}

threads 3 2000 send_bw
holds 'all(.threads[]; .messages_received != null)' 'messages of send_bw'
threads 2 2000 write_bw
threads 4 5001 write_bw -s 64
threads 3 3000 write_bw -s 3000 --write_with_imm -l 8
threads 3 1000 read_bw
threads 3 3000 atomic_bw
threads 3 1000 send_bw -e
holds '.events.client > 0 and .events.server > 0' 'events of threads'
threads 2 1000 write_bw --wait sleep
threads 7 5 send_bw
for words in 'send_bw -s 3000 --order msg' 'write_bw -s 100000' 'read_bw -s 5000' 'atomic_bw'; do
    # shellcheck disable=SC2086 # a list
    threads 3 600 $words --verify --drop 0.02
    holds '.verified' "$words"
done
run send_bw -D 1 --threads 2
holds '(.threads | map(.messages_sent) | add) == .iterations and all(.threads[]; .messages_sent == .messages_received)' \
    'threads for a time'
run send_bw -n 1000 --threads 1
holds '.threads == null' 'one thread'

# A server that is gone ends all threads of the client.
port=$((20000 + $$ % 10000))
"$perf" send_bw -F -p $port --bind-address 127.0.0.1 >/dev/null 2>server &
server=$!
for ((i = 0; i < 300; i++)); do
    ! grep -q 'waiting for a client' server || break
    sleep 0.1
done
"$perf" send_bw -F -p $port --threads 3 -D 50 127.0.0.1 >out 2>err &
client=$!
# Its threads are there when the test runs.
for ((i = 0; i < 300; i++)); do
    (($(find "/proc/$client/task" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l) < 3)) || break
    sleep 0.1
done
# Waiting keeps the shell from telling of its death.
{ kill -9 $server; wait $server; } 2>/dev/null || true
status=0
wait $client || status=$?
((status == 1)) || fail "exit $status of a client without its server"
grep -q 'the server 127.0.0.1 is gone' err || fail 'that the server is gone is not said'
