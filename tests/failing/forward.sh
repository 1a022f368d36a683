#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# forward.sh MRD_FORWARD PRELOAD STREAMS: allocations, descriptors and threads of mrd_forward fail, one after the other and
# in storms. Whoever cannot go on says why; who can goes on, and what follows succeeds.

set -euo pipefail

forward=$1 preload=$2 streams=$3
# shellcheck source=tests/tool/forward_lib.sh
source "$(dirname "$0")/../tool/forward_lib.sh"

# failing PLAN COMMAND...: see preload.c. Who failed is in `tell`.
failing()
{
    rm -f tell
    timeout 20 env "FAILING=$1" FAILING_TELL="$PWD/tell" LD_PRELOAD="$preload" "${@:2}"
}

# sweep CALLS ERRNO WORDS LEAST: a pipe whose n-th call fails, for all n, which are at least so many, either
# carries all, or says one of the words.
sweep()
{
    local first=0 status failed

    for (( ; ; first++)); do
        kill -0 "${listener_pid:-none}" 2>/dev/null ||
            start_forward listener pipe --listen 127.0.0.1:4801 --receive-only --verbose
        status=0
        failing "$1:$2:$first:1:0" "$forward" pipe --peer-timeout 5 127.0.0.1:4801 <data 2>err || status=$?
        ((status <= 1)) || fail_with err "a pipe of which call $first fails ($(cat tell)) ends with $status"
        [[ -e tell ]] || fail_with err "a pipe of which call $first fails dies"
        failed=$(cat tell)
        if ((status)); then
            grep -qiE "$3" err || fail_with err "no cause is named where call $first fails ($failed)"
        else
            wait "$listener_pid" || fail_with listener "the listening pipe ends with $? after $failed"
            listener_pid=
            cmp data listener.out || fail "other bytes arrive where $failed fails"
        fi
        [[ $failed != 0* ]] || break
    done
    echo "$1: $first calls"
    ((first >= $4)) || fail "only $first calls of $1"
}

head -c 300000 /dev/urandom >data
sweep memory 12 memory 30
sweep socket,eventfd,open,fopen,epoll_create1,timerfd_create,pipe2 24 'descriptor|open files' 5

# A server that does not answer is looked up again, by a thread.
status=0
failing pthread_create:11:0:0:0 "$forward" pipe --peer-timeout 1 localhost:4803 <data 2>err || status=$?
((status == 1)) || fail "a pipe to nobody without threads ends with $status"
[[ $(cat tell) != 0* ]] || fail 'no thread was to be made'
grep -q 'temporarily unavailable' err || fail 'no thread can be made: nobody says so'

# The same of the side that listens, which may end at its start, or at the first peer.
first=0
while :; do
    start listener timeout 20 env FAILING="memory:12:$first:1:0" FAILING_TELL="$PWD/told" LD_PRELOAD="$preload" \
        "$forward" pipe --listen 127.0.0.1:4801 --receive-only --verbose
    until grep -q 'no encryption' listener || ! kill -0 "$listener_pid" 2>/dev/null; do sleep 0.02; done
    rm -f told
    status=0
    # Of a stream that it cannot take, it tells the other one, which may try again.
    for ((try = 0; try < 3; try++)); do
        kill -0 "$listener_pid" 2>/dev/null || break
        timeout 20 "$forward" pipe --peer-timeout 2 127.0.0.1:4801 <data 2>err && break
    done
    wait "$listener_pid" || status=$?
    ((status <= 1)) || fail_with listener "a listening pipe of which call $first fails ends with $status"
    ((status)) && { grep -qi memory listener || fail_with listener "no cause is named where call $first fails"; }
    ((status)) || cmp data listener.out || fail 'other bytes arrive'
    [[ ! -e told || $(cat told) != 0* ]] || break
    first=$((first + 1))
done
echo "listener: $first calls"

# storm NAME PLAN: one side of many connections is in need for a while. Whatever breaks, no byte is wrong, and once that is
# over all succeed.
storm()
{
    local try plan_server=none plan_client=none

    printf -v "plan_$1" %s "$2"
    start server env FAILING="$plan_server" FAILING_TELL="$PWD/told_server" LD_PRELOAD="$preload" "$forward" serve --listen 127.0.0.1:4802 \
        --allow 'localhost:7000' --allow '127.0.0.1:7000' --verbose
    wait_until 10 grep -q 'no encryption' server || fail_with server 'the server does not start'
    start client env FAILING="$plan_client" FAILING_TELL="$PWD/told_client" LD_PRELOAD="$preload" "$forward" connect -L 6000:localhost:7000 --verbose \
        127.0.0.1:4802
    wait_until 10 listens 6000 || fail_with client 'the client does not start'
    for ((try = 0; try < 20; try++)); do
        timeout 90 "$streams" drive 127.0.0.1 6000 $((try + 1)) 8 1 0 >out 2>&1 && break
        if grep '^streams:' out | grep -qvE 'reset by peer|Broken pipe|refused'; then
            cat server client >&2
            fail "a connection does not end, or carries something else, in a storm of $2 at the $1"
        fi
        # shellcheck disable=SC2154 # start() sets both
        kill -0 "$server_pid" || fail_with server "the server dies in a storm of $2"
        # shellcheck disable=SC2154
        kill -0 "$client_pid" || fail_with client "the client dies in a storm of $2"
    done
    ((try < 20)) || { cat server client >&2; fail "after a storm of $2 at the $1 nothing works"; }
    stop client
    stop server
    echo "storm of $2 at the $1: $try tries failed; calls that failed, and the last: $(cat "told_$1")"
    [[ $(cat "told_$1") != 0* ]] || fail "no call failed in a storm of $2 at the $1"
}

start target "$streams" serve 127.0.0.1 7000
for who in server client; do
    storm $who memory:12:70:40:2
    storm $who socket,eventfd,pipe2,epoll_create1,pthread_create:24:40:40:2
done
