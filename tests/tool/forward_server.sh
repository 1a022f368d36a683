#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# forward_server.sh MRD_FORWARD STREAMS: what 'mrd_forward connect' makes of its server's name: it is looked up again when the
# server does not answer, new connections and those that wait go where it is now, and others stay where they are.

set -euo pipefail

forward=$1 streams=$2
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tool/forward_lib.sh
source "$(dirname "$0")/forward_lib.sh"

command -v ss >/dev/null || { echo "forward_server: skipped: no ss"; exit 77; }
# shellcheck source=tests/tool/forward_etc.sh
source "$here/forward_etc.sh"

readonly orderly=0 driver_rests=9 # of enum deed in streams.c

# at ADDRESS...: the server's name has these from now on.
at()
{
    { printf '127.0.0.1 localhost\n'; (($# == 0)) || printf '%s gateway.test\n' "$@"; } >hosts
    cp hosts /etc/hosts
}

# begin NAME CONNECTIONS [DEED]: so many at a time, for a second and as long as they need, in the background.
begin()
{
    start "$1" "$streams" drive 127.0.0.1 6000 "$RANDOM" "$2" 1 "${3-$orderly}"
}

# done_well NAME: they have ended, with every byte.
done_well()
{
    local pid=$1_pid

    wait "${!pid}" || { tail -n 20 client >&2; fail_with "$1" "$1: connections do not end well: $(<"$1.out")"; }
}

# calls NAME: how often that far end has connected.
calls()
{
    grep -c 'to 127.0.0.1:7000: open' "$1" || true
}

# served NAME BEFORE NUMBER: so often more than before.
served()
{
    (($(calls "$1") >= $2 + $3))
}

opening()
{
    kill -USR1 "$client_pid"
    sleep 0.2
    grep -q '127.0.0.1:7000, opening' client
}

printf 'hosts: files\n' >/etc/nsswitch.conf
start target "$streams" serve 127.0.0.1 7000
wait_until 10 listens 7000 || fail_with target 'the target does not listen'
start_server()
{
    start_forward "$1" serve --listen "$2" --allow '127.0.0.1:*' --peer-timeout 60 --verbose
}
start_client()
{
    start_forward client connect -L 6000:127.0.0.1:7000 --peer-timeout 60 --verbose gateway.test
}

at 127.0.0.2
start_server first 127.0.0.2
start_client
begin some 5
done_well some
served first 0 5 || fail_with first 'connections went elsewhere'

# The name has another address, and the first server stands still. New connections go to the second one; the one there
# was goes on when the first server does.
before=$(calls first)
begin resting 1 $driver_rests
wait_until 20 served first "$before" 1 || fail_with first 'no connection'
kill -STOP "$first_pid"
start_server second 127.0.0.3
at 127.0.0.3
begin some 5
done_well some
served second 0 5 || fail_with second 'connections went elsewhere'
(($(grep -c 'gateway.test is at 127.0.0.3:4793 now' client) == 1)) || fail_with client 'it is not said once that the server moved'
kill -CONT "$first_pid"
kill -USR1 "$resting_pid"
done_well resting

# Connections that are made before the name has another address.
kill -STOP "$second_pid"
before=$(calls first)
begin some 5
wait_until 20 opening || fail_with client 'no stream waits for an answer'
at 127.0.0.2
done_well some
served first "$before" 5 || fail_with first 'connections went elsewhere'
kill -9 "$second_pid"

# A name that is not known any more changes nothing, and is told of once; likewise one that has the same address.
kill -STOP "$first_pid"
at
begin some 5
wait_until 40 grep -q 'gateway.test: ' client || fail_with client 'it is not said that the name is not known'
sleep 5 # two more lookups
kill -CONT "$first_pid"
done_well some
(($(grep -c 'gateway.test: ' client) == 1)) || fail_with client 'what is not known is said again'
kill -STOP "$first_pid"
at 127.0.0.2
begin some 5
sleep 5
kill -CONT "$first_pid"
done_well some
(($(grep -c 'gateway.test is at' client) == 2)) || fail_with client 'the server moved to where it was'
stop client

# Of several addresses each has its turn.
at 127.0.0.4 127.0.0.2 127.0.0.5
start_client
begin some 5
done_well some
stop client
at 127.0.0.4 127.0.0.5 127.0.0.2
start_client
begin some 5
done_well some
stop client

# At the start: a name that nobody knows is an error; one that nobody can be asked about is looked up until it is known.
at
expect 1 'gateway.test' connect -L 6000:127.0.0.1:7000 gateway.test
printf 'hosts: files dns\n' >/etc/nsswitch.conf
# Where nothing says that nobody listens there, either, a lookup ends soon.
printf 'nameserver 127.0.0.99\noptions timeout:1 attempts:1\n' >/etc/resolv.conf
start_client
begin some 1
wait "$some_pid" && fail 'a connection to an unknown server is not reset'
grep -q '127.0.0.1:7000 through gateway.test' client || fail_with client 'the log does not name the unknown server'
at 127.0.0.2
wait_until 40 grep -q 'gateway.test is at 127.0.0.2:4793 now' client || {
    tail -n 3 /etc/hosts /etc/resolv.conf /etc/nsswitch.conf "/proc/$client_pid/task"/*/{comm,wchan,syscall} >&2 || true
    fail_with client 'a name that is known now is not looked up'
}
begin some 5
done_well some

# A lookup that hangs does not keep it from ending.
if command -v python3 >/dev/null; then
    start dns python3 -c 'import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.53", 53))
time.sleep(1000)'
    named()
    {
        [[ -n $(ss -Hlun 'sport = :53') ]]
    }
    looks_up()
    {
        (($(find "/proc/$client_pid/task" -mindepth 1 -maxdepth 1 | wc -l) > 1))
    }
    wait_until 20 named || fail_with dns 'the silent name server does not start'
    printf 'nameserver 127.0.0.53\noptions timeout:30 attempts:5\n' >/etc/resolv.conf
    kill -STOP "$first_pid"
    at
    begin some 1
    wait_until 40 looks_up || fail_with client 'nothing is looked up'
    kill "$client_pid"
    {
        sleep 30
        kill -9 "$client_pid"
    } &
    wait "$client_pid" || fail_with client "with a lookup under way it ends with $?"
    kill $!
    kill -CONT "$first_pid"
fi
stop first
