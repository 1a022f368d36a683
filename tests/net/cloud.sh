#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# cloud.sh MRD_PERF MRD_FORWARD: tools/cloud.sh in short: its table, its picture, a page, what it keeps, and that it leaves
# nothing behind. That flows add up is asserted, not how fast they are.

# shellcheck source=tests/net/lib.sh
source "$(dirname "$0")/lib.sh"

export PERF=$1 FORWARD=$2

trap 'rm -rf "$scratch"' EXIT
missing=$("$root/tools/install-deps.sh" -n build demo 2>&1) || true
[[ -z $missing ]] || skip "it would install what is missing: $missing"
command -v ss >/dev/null || skip 'no ss'
why=$(fabric check 2>&1) || skip "$why"

# cloud EXIT OPTION...: into the files out and err of $scratch; its exit is this one, and its fabric is gone.
cloud()
{
    local status=0

    timeout 300 "$root/tools/cloud.sh" "${@:2}" >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
    ((status == $1)) || { cat "$scratch/err" >&2; fail "exit $status, not $1: ${*:2}"; }
    ! ip netns list | grep '^mrd_cloud_' >&2 || fail "namespaces are left: ${*:2}"
}

# is FILTER: true of what it sums up.
is()
{
    jq -e "$1" "$scratch/kept/summary.json" >/dev/null || fail "not so: $1 of $(jq -c . "$scratch/kept/summary.json")"
}

for wrong in '-t 0' '-n 100' '-c x' '-l 65' '-t' '--page' 'word'; do
    # shellcheck disable=SC2086 # these are words
    cloud 2 $wrong
done

printf 'before\n<!-- cloud -->\nold\n<!-- /cloud -->\nafter\n' >"$scratch/page"
cloud 0 -t 1 -n 1 -c 20 -l 8 -k "$scratch/kept" --page "$scratch/page" -o "$scratch/cloud.svg"

is '(keys | sort) == ["forwarded", "mrd", "tcp", "tcp8"] and all(.[]; .least > 0 and .least <= .mbps and .mbps <= .most)'
is '.mrd.lost >= 0 and .forwarded.lost >= 0 and .tcp.lost == null'
# One flow has one cap, of which the link holds eight.
is '.mrd.mbps > 2 * .tcp.mbps'
(($(find "$scratch/kept" -name '*-0.json' | wc -l) == 4)) || fail 'what it measured is not all kept'
(($(grep -c '^| one\|^| eight' "$scratch/out") == 4)) || { cat "$scratch/out" >&2; fail 'the table lacks rows'; }
grep -q '^| flows capped at 20 Mb/s, a link of 160 Mb/s |' "$scratch/out" || fail 'the head does not name cap and link'
{ echo before && echo '<!-- cloud -->' && cat "$scratch/out" && echo '<!-- /cloud -->' && echo after; } |
    cmp - "$scratch/page" || fail 'the page is another one'
grep -q '</svg>' "$scratch/cloud.svg" || fail 'no picture'

# A program that fails is a failure, whose cause is told.
PERF=/bin/false cloud 1 -t 1 -n 1 -c 20
