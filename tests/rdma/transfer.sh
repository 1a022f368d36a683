#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# transfer.sh MRD_PERF: each test of mrd_perf, in both orders, of messages of many sizes, by every way to make paths.
# Bytes are verified, so what is asserted is that they are.

# shellcheck source=tests/rdma/lib.sh
source "$(dirname "$0")/lib.sh"

readonly perf=$1

on_devices "$@"
serve_all "$perf"

# several TEST ORDER BYTES:ITERATIONS...
several()
{
    local bytes

    for bytes in "${@:3}"; do
        run_case "$1 of ${bytes%:*}, order $2" \
            transfer "$perf" "$1" "${bytes%:*}" "${bytes#*:}" --order="$2"
    done
}

transfer_rc()
{
    transfer "$perf" "$@" --transport rc
}

several send_bw none 64:2000 4096:1000 1048576:8
several write_bw none 64:2000 4096:1000 1048576:8
several send_lat none 64:100 4096:100 1048576:5
several write_lat none 64:100 4096:100 1048576:5
several send_bw msg 64:2000 4096:1000 1048576:8
several write_bw msg 4096:1000
several send_lat msg 64:100
several write_lat msg 1048576:5
several read_bw none 64:2000 4096:1000 1048576:8
several read_bw msg 4096:1000
several read_lat none 64:100 1048576:5
several atomic_bw none 8:2000
several atomic_lat msg 8:100
run_case 'reads of rc' transfer_rc read_bw 4096 1000
run_case 'atomics of rc' transfer_rc atomic_bw 8 1000
run_case 'latency of reads of rc' transfer_rc read_lat 64 100
run_case 'latency of atomics of rc' transfer_rc atomic_lat 8 100
for test in send_bw write_bw read_bw; do
    run_case "$test both ways" transfer "$perf" $test 4096 500 -b
    run_case "$test of rc both ways" transfer_rc $test 4096 500 -b
done
for test in send_bw send_lat read_lat; do
    run_case "$test with events" transfer "$perf" $test 4096 200 -e
    run_case "$test of rc with events" transfer_rc $test 4096 200 -e
done
for test in send_bw write_bw read_bw; do
    run_case "$test in threads" transfer "$perf" $test 4096 200 --threads 2
    run_case "$test of rc in threads" transfer_rc $test 4096 200 --threads 2
done
run_case 'atomics both ways' transfer "$perf" atomic_bw 8 500 -b
for entropy in qp ah qpair; do
    run_case "entropy $entropy" transfer "$perf" write_bw 65536 100 --entropy $entropy
done
run_case 'many queue pairs' transfer "$perf" send_bw 4096 1000 -q 8
finish
