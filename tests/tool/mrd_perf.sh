#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# mrd_perf.sh MRD_PERF: how the binary ends, and that what it verifies is right, over the loopback interface. What it
# measures is not asserted.

set -euo pipefail

perf=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail()
{
    printf 'FAILED: %s\n' "$*" >&2
    cat out err >&2
    exit 1
}

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

# A table that is lost is a failure.
lost()
{
    status=0
    timeout 60 "$perf" "$@" >/dev/full 2>err || status=$?
    ((status == 1)) || fail "exit $status, though the table is lost: $*"
    grep -q '^mrd_perf: cannot write the table to stdout' err || fail "that the table is lost is not said: $*"
}

lost send_lat --local -n 20 -F
lost state --peers 100 tcp -F
