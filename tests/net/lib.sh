# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# Shared by the tests of the fabric: source it, then fabric_up. Each test has its own prefix, and takes its fabric
# down however it ends.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
test_name=$(basename "$0" .sh)
prefix="mrd_${test_name}_$$_"
scratch=$(mktemp -d)

# For mrd_perf. Both ends poll: on one core each would wait for the other's time slice.
# shellcheck disable=SC2034 # the tests use them
server_core=() client_core=()
if (($(nproc) > 1)); then
    # shellcheck disable=SC2034
    server_core=(--bind 1) client_core=(--bind 0)
fi

skip()
{
    echo "$test_name: skipped: $*"
    exit 77
}

fail()
{
    echo "$test_name: FAILED: $*" >&2
    exit 1
}

fabric()
{
    "$root/tools/fabric.sh" -P "$prefix" "$@"
}

# on LEAF HOST COMMAND...: run it on that host.
on()
{
    ip netns exec "${prefix}h$1_$2" "${@:3}"
}

clean_up()
{
    local ns

    for ns in $(fabric names); do
        ip netns pids "$ns" | xargs -r kill -9 2>/dev/null || true
    done
    fabric down
    rm -rf "$scratch"
}

fabric_up()
{
    local why

    why=$(fabric check 2>&1) || skip "$why"
    trap clean_up EXIT
    trap 'exit 1' INT TERM
    fabric up "$@"
}

# wait_for_server: until mrd_perf listens on host 0 of leaf 1; its output is in $scratch/server.
wait_for_server()
{
    local try

    for ((try = 0; try < 100; try++)); do
        [[ -z $(on 1 0 ss -Hltn 'sport = :4793') ]] || return 0
        sleep 0.1
    done
    cat "$scratch/server" >&2
    fail 'the server does not listen'
}

# set_mtu BYTES: of the links between leaves and spines.
set_mtu()
{
    local ns link l

    for ns in $(fabric names); do
        for link in $(ip -n "$ns" -o link show | sed -nE 's/^[0-9]+: ((up|dn)[0-9]+)[@:].*/\1/p'); do
            ip -n "$ns" link set "$link" mtu "$1"
        done
    done
    # What the hosts' kernels learnt of the last one.
    for l in 0 1; do
        on $l 0 ip route flush cache
    done
}

# column NAME [LEAF]: that figure of each spine for what came from the leaf, in one line.
column()
{
    fabric counters | awk -v name="$1" -v leaf="${2:-0}" '
        BEGIN { split("spine leaf packets bytes tcp lost eaten", names); for (i in names) at[names[i]] = i }
        $2 == leaf { printf "%s ", $at[name] }'
}

# sum of numbers
sum()
{
    local total=0 number

    for number; do
        total=$((total + number))
    done
    echo "$total"
}

# minus "A..." "B...": element by element
minus()
{
    paste <(tr ' ' '\n' <<<"$1") <(tr ' ' '\n' <<<"$2") | awk 'NF == 2 { printf "%d ", $1 - $2 }'
}
