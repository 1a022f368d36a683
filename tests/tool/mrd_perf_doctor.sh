#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# mrd_perf_doctor.sh MRD_PERF: doctor where an end dies, stops or is busy, and where its report is lost. Over the loopback
# interface; tests/net/doctor.sh has networks with something wrong.

set -euo pipefail

perf=$(realpath "$1")
scratch=$(mktemp -d)
readonly perf scratch
server='' port=$((20000 + $$ % 10000))

clean_up()
{
    [[ -z $server ]] || kill -9 "$server" 2>/dev/null || true
    rm -rf "$scratch"
}
trap clean_up EXIT
cd "$scratch"

fail()
{
    echo "mrd_perf_doctor: FAILED: $*" >&2
    tail -n 20 err server >&2 || true
    exit 1
}

# serve [OPTION...]: in the background.
serve()
{
    local try

    : >server
    "$perf" doctor -F -p "$port" --bind-address 127.0.0.1 "$@" >server 2>&1 &
    server=$!
    for ((try = 0; try < 200; try++)); do
        ! grep -q '^mrd_perf: waiting for a client' server || return 0
        sleep 0.05
    done
    fail 'the server does not listen'
}

# client EXIT: its exit is this one.
client()
{
    local status=0

    timeout 60 "$perf" doctor -F --out_json -p "$port" 127.0.0.1 >out 2>err || status=$?
    ((status == $1)) || fail "exit $status, not $1"
}

# when_first_rate COMMAND...: once the server has shown the figures of a first run.
when_first_rate()
{
    local try

    for ((try = 0; try < 1200; try++)); do
        ! grep -q '^ *mrd-udp  *262144' server || break
        sleep 0.05
    done
    "$@"
}

# The server dies in the middle: what was measured is told, and that it is not all.
serve
when_first_rate kill -9 "$server" &
client 1
wait "$server" 2>/dev/null || true
server=''
grep -q '^mrd_perf: mrd-udp write_bw: ' err || fail 'that the server died is not said'
for word in '"name": "run_failed"' '"latency"' '"mtu_through"' '"bw_gbps"'; do
    grep -qF "$word" out || fail "of what was measured before, no $word"
done

# The client is interrupted in the middle: the server serves the next one.
serve --forever
"$perf" doctor -F -p "$port" 127.0.0.1 >/dev/null 2>&1 &
interrupted=$!
when_first_rate kill $interrupted # SIGINT means nothing to a background job of a script
wait $interrupted 2>/dev/null || true
client 0
grep -qF '"udp_back": true' out || fail 'after a client that was interrupted: no report'

# It is stopped, or has another client: that is said.
kill -STOP "$server"
client 1
grep -q 'does not answer: .*busy with another client' err || fail 'a server that is busy is taken for something else'
kill -CONT "$server"
sleep 0.1

# A report that is lost is a failure: on a full disk, at a reader that has gone, in a directory that does not exist.
lost()
{
    local status=0

    timeout 60 "$perf" doctor -F -p "$port" "$@" 127.0.0.1 2>err || status=$?
    echo $status >code
}
lost --out_json >/dev/full
(($(cat code) == 1)) || fail "exit $(cat code) on a full disk"
grep -q '^mrd_perf: cannot write to stdout: No space' err || fail 'a full disk is not said'
{ lost --out_json || true; } | true
for ((try = 0; try < 600; try++)); do
    [[ ! -s code || $(cat code) == '' ]] || break
    sleep 0.1
done
(($(cat code) == 1)) || fail "exit $(cat code), though nobody reads"
lost --out_json_file="$scratch/none/json" >out
(($(cat code) == 1)) || fail "exit $(cat code) without a file"
grep -q 'cannot write .*/none/json' err || fail 'that there is no file is not said'
grep -q 'largest MTU' out || fail 'the table is lost with the file'
