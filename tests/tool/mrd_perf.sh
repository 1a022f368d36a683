#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# mrd_perf.sh MRD_PERF: how the binary ends, over the loopback interface. What it measures is not asserted.

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
