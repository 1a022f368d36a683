#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# mrd_perf.sh MRD_PERF: how the binary ends, and that what it verifies is right, over the loopback interface. What it
# measures is not asserted.

set -euo pipefail

perf=$1
# shellcheck source=tests/tool/scratch.sh
source "$(dirname "${BASH_SOURCE[0]}")/scratch.sh"

# local_run WORD...: a short run with both ends here, by `env WORD...`.
local_run()
{
    status=0
    timeout 60 env "$@" "$perf" send_lat --local -n 20 -F >out 2>err || status=$?
}

local_run
((status == 0)) || fail "exit $status"
# Whoever starts it may leave SIGCHLD ignored: how both ends ended is known all the same.
if env --ignore-signal=CHLD true 2>/dev/null; then
    local_run --ignore-signal=CHLD
    ((status == 0)) || fail "exit $status, though only SIGCHLD is ignored"
fi

# verified WORD...: such a run ends, and what it moved was checked.
verified()
{
    status=0
    timeout 120 "$perf" "$@" --local --verify -F --out_json >out 2>err || status=$?
    ((status == 0)) || fail "exit $status: $*"
    grep -q '"verified": true' out || fail "not verified: $*"
}

verified read_bw -s 100000 -n 300 --drop 0.02
verified read_bw -s 4096 -n 3000 -q 4 --order msg --drop 0.02
verified read_lat -s 64 -n 200 --drop 0.05
verified atomic_bw -n 3000 -q 3 --drop 0.05
verified atomic_lat -n 200 --drop 0.05
verified send_bw -s 3000 -n 3000 -l 64 --drop 0.02
verified write_bw -s 3000 -n 3000 -l 7 --drop 0.02
verified write_bw -s 3000 -n 3000 -q 2 --write_with_imm --drop 0.02
verified write_lat -s 64 -n 200 --write_with_imm --drop 0.02

# takes_receives BOOLEAN WORD...: each message of such a run takes a receive, or none does.
takes_receives()
{
    timeout 60 "$perf" "${@:2}" -s 64 -n 3000 --local -F --out_json >out 2>err || fail "${*:2}"
    grep -q "\"takes_receives\": $1" out || fail "not $1, that messages take receives: ${*:2}"
}

# Called by a name of perftest's, it runs that test.
for test in write_bw send_lat read_bw atomic_lat; do
    ln -s "$perf" "ib_$test"
    timeout 60 "./ib_$test" -n 100 --local -F --out_json >out 2>err || fail "ib_$test: $(cat err)"
    grep -q "\"test\": \"$test\"" out || fail "ib_$test ran another test"
done
! ./ib_write_bw write_bw host 2>err || fail 'a test twice'
grep -q "'host' is one word too many" err || fail "a test twice: $(cat err)"

# All latencies: as many as exchanges, -H sorted; the table has a line for each.
for test in send_lat read_lat; do
    for order in -H -U; do
        timeout 60 "$perf" "$test" "$order" -n 200 --local -F --out_json >out 2>err || fail "$test $order"
        jq -e '(.latencies_us | length) == 200 and .lat_us.min <= (.latencies_us | min) + 0.001 and
               .lat_us.max + 0.001 >= (.latencies_us | max)' out >/dev/null || fail "$test $order: $(cat out)"
        [[ $order == -U ]] || jq -e '.latencies_us == (.latencies_us | sort)' out >/dev/null || fail "$test -H: not sorted"
        (($(grep -cE '^  [0-9]+ +[0-9.]+$' err) == 200)) || fail "$test $order: $(cat err)"
    done
done

takes_receives true write_bw --write_with_imm
takes_receives true write_lat --write_with_imm
takes_receives false write_bw
takes_receives false write_lat
takes_receives true send_bw

# refused SENTENCE WORD...: these options are wrong, and why is said.
refused()
{
    status=0
    timeout 60 "$perf" "${@:2}" --local -F >out 2>err || status=$?
    ((status == 2)) || fail "exit $status: ${*:2}"
    grep -qF -- "$1" err || fail "not said that $1: ${*:2}"
}

refused 'tcp has no lists of work requests' write_bw -l 4 --transport tcp
refused 'raw-udp has no lists of work requests' send_bw -l 4 --transport raw-udp
refused 'tcp has no immediates' write_bw --write_with_imm --transport tcp
refused 'send_bw writes nothing' send_bw --write_with_imm
refused 'write_bw measures no latencies' write_bw -H
refused 'choose one' send_lat -H -U
refused 'latency tests post one message' send_lat -l 4
refused 'posted one by one' send_bw -l 4 -q 2 --verify
refused 'leaves no room for lists of 8' send_bw -l 8 -t 4
refused '-Q 3 is no divisor of -l 8' send_bw -l 8 -Q 3

refused 'leave out -n and -D' send_bw --run_infinitely -n 100
refused 'leave out -n and -D' send_bw --run_infinitely -D 2
refused 'leave out -a' send_bw --run_infinitely -a
refused 'leave out -H and -U' send_lat --run_infinitely -U

# endless SIGNAL LINE WORD...: such a run goes on, tells of its seconds, and ends well when the signal comes.
endless()
{
    "$perf" "${@:3}" --local -F --run_infinitely >out 2>err &
    pid=$!
    for ((i = 0; i < 600; i++)); do
        (($(grep -cE "$2" out) < 2)) || break
        kill -0 $pid 2>/dev/null || fail "it ended: ${*:3}"
        sleep 0.1
    done
    kill -"$1" $pid
    status=0
    wait $pid || status=$?
    ((status == 0)) || fail "exit $status after SIG$1: ${*:3}"
    (($(grep -cE "$2" out) >= 2)) || fail "no line a second: ${*:3}"
    grep -qE '^ +[a-z-]+ +[0-9]+ +[0-9]+ ' out || fail "no report: ${*:3}"
}
bandwidth='^[0-9]+ s: [1-9][0-9]* messages, [0-9.]+ Gb/s, [0-9.]+ M msg/s$'
latency='^[0-9]+ s: [1-9][0-9]* exchanges, us: p50 [0-9.]+, p99 [0-9.]+, max [0-9.]+$'
endless INT "$bandwidth" write_bw -s 4096 --verify
endless TERM "$latency" send_lat
endless TERM "$bandwidth" send_bw --transport tcp
endless INT "$latency" read_lat -s 64
# Without a reader it ends, too.
(timeout 60 "$perf" send_lat --local -F --run_infinitely 2>err || echo $? >code) | head -n 1 >out
(($(cat code) == 1)) || fail "exit $(cat code), though nobody reads"

# A table that is lost# A table that is lost is a failure.
lost()
{
    status=0
    timeout 60 "$perf" "$@" >/dev/full 2>err || status=$?
    ((status == 1)) || fail "exit $status, though the table is lost: $*"
    grep -q '^mrd_perf: cannot write the table to stdout' err || fail "that the table is lost is not said: $*"
}

for option in --help --version; do
    status=0
    "$perf" $option >/dev/full 2>err || status=$?
    ((status == 1)) || fail "exit $status, though what $option prints is lost"
done
lost send_lat --local -n 20 -F
lost state --peers 100 tcp -F

# What is in the way of two ends on one host: figures of all kinds are there, and datagrams come through.
timeout 120 "$perf" doctor --local -F --out_json >out 2>err || fail "doctor: exit $?"
for word in '"udp_there": true' '"udp_back": true' '"mtu_through": 9000' '"latency"' '"rates"' '"tcp"' '"findings"'; do
    grep -qF "$word" out || fail "doctor: no $word"
done
