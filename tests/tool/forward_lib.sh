# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by the tests of mrd_forward: a loopback interface of their own, so that ports are theirs; servers that are started,
# waited for and stopped. $forward is the program, $scratch a directory that goes with all that still runs.

if [[ -z ${FORWARD_OWN_NET-} ]]; then
    export FORWARD_OWN_NET=1
    command -v ip >/dev/null || { echo "$(basename "$0"): skipped: no ip (package iproute2)"; exit 77; }
    if unshare -n true 2>/dev/null; then
        exec unshare -n "$0" "$@"
    elif unshare -rn true 2>/dev/null; then
        exec unshare -rn "$0" "$@"
    fi
    echo "$(basename "$0"): skipped: no network namespaces may be made here"
    exit 77
fi
ip link set lo up

# shellcheck source=tests/tool/scratch.sh
source "$(dirname "${BASH_SOURCE[0]}")/scratch.sh"
: >out
: >err

# wait_until SECONDS COMMAND...: as long as it fails.
wait_until()
{
    local try tries=$(($1 * 20))

    shift
    for ((try = 0; try < tries; try++)); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.05
    done
    return 1
}

# start NAME COMMAND...: in the background; $NAME_pid, and what it says in the file NAME.
start()
{
    : >"$1" # now: what an earlier one said is no sign of this one
    "${@:2}" <&0 >"$1.out" 2>"$1" &
    printf -v "$1_pid" %s $!
}

# start_forward NAME MODE...: the same, until it is ready.
start_forward()
{
    start "$1" "$forward" "${@:2}"
    wait_until 10 grep -qE 'no encryption|sealed: ' "$1" || fail_with "$1" "mrd_forward ${*:2} does not start"
}

# fail_with FILE WHAT: and what the file says.
fail_with()
{
    tail -n 30 "$1" >&2
    fail "$2"
}

listens()
{
    [[ -n $(ss -Hltn "sport = :$1") ]]
}

listens_unix()
{
    [[ $(ss -Hlxn src "unix:$1") == *LISTEN* ]]
}

# stop NAME: and it must end well.
stop()
{
    local pid=$1_pid status=0

    kill "${!pid}"
    wait "${!pid}" || status=$?
    ((status == 0)) || fail_with "$1" "$1 ends with $status"
}

# expect STATUS TEXT ARGUMENT...: of the program, which says that.
expect()
{
    local status=0

    timeout 60 "$forward" "${@:3}" >out 2>err </dev/null || status=$?
    ((status == $1)) || fail "exit status $status, not $1: ${*:3}"
    grep -qF -- "$2" out err || fail "'$2' is not said: ${*:3}"
}
