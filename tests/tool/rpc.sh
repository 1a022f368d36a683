#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# rpc.sh RPC: the example's server answers many clients, with and without a progress thread, and ends when it is told.

set -euo pipefail

rpc=$1
scratch=$(mktemp -d)
trap 'jobs -p | xargs -r kill 2>/dev/null; rm -rf "$scratch"' EXIT
cd "$scratch"

fail()
{
    printf 'FAILED: %s\n' "$*" >&2
    cat server clients >&2
    exit 1
}

# calls OPTION...: clients call a server with these options.
calls()
{
    local server try name

    : >server
    "$rpc" -B 127.0.0.1 "$@" >server 2>&1 &
    server=$!
    for ((try = 0; try < 600; try++)); do
        [[ ! -s server ]] || break
        sleep 0.1
    done
    read -r name <server
    timeout 300 "$rpc" -B 127.0.0.1 -c 50 -t 1 "$name" >clients 2>&1 || fail "the clients, exit $?: $*"
    grep -q '^50 clients: .* all answers right$' clients || fail "what the clients say: $*"
    kill -INT $server
    wait $server || fail "the server, exit $?: $*"
    grep -q '^[1-9][0-9]* calls answered$' server || fail "what the server says: $*"
}

calls
calls --manual
status=0
"$rpc" nonsense >clients 2>&1 || status=$?
((status == 2)) || fail "exit $status of a wrong address"
grep -q 'expected ADDRESS/QPN' clients || fail 'a wrong address is not named'
