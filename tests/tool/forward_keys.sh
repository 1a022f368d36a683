#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# forward_keys.sh MRD_FORWARD STREAMS: mrd_forward under keys, which change while streams run: every byte arrives, and who
# has not the keys gets nothing.

set -euo pipefail

forward=$1 streams=$2
server_pid='' client_pid='' resting_pid='' plain_pid='' far_pid='' # set by start()
# shellcheck source=tests/tool/forward_lib.sh
source "$(dirname "$0")/forward_lib.sh"
unset MRD_KEY_FILE
umask 077

command -v ss >/dev/null || { echo "forward_keys: skipped: no ss"; exit 77; }

readonly orderly=0 driver_rests=9 # of enum deed in streams.c
readonly silent_s=6               # then a peer is given up

# keys FILE ID...: the file has these, in that order, from now on. Each is made once.
declare -A key_of
keys()
{
    local id

    for id in "${@:2}"; do
        [[ -n ${key_of[$id]-} ]] || key_of[$id]=$(head -c 32 /dev/urandom | base64)
        echo "key $id ${key_of[$id]}"
    done >"$1.new"
    mv "$1.new" "$1"
}

# says NAME TIMES TEXT: in so many lines by now.
says()
{
    (($(grep -c -- "$3" "$1") >= $2))
}

# reload NAME ID...: it has these keys from now on.
declare -A reloads=([server]=0 [client]=0)
reload()
{
    local pid=$1_pid

    keys "$1.key" "${@:2}"
    kill -HUP "${!pid}"
    wait_until 10 says "$1" $((++reloads[$1])) 'the keys were read again' || fail_with "$1" "$1 does not read its keys"
}

# begin NAME CONNECTIONS SECONDS [DEED]: so many at a time, in the background.
begin()
{
    start "$1" "$streams" drive 127.0.0.1 6000 "$RANDOM" "$2" "$3" "${4-$orderly}"
}

# done_well NAME: they have ended, with every byte.
done_well()
{
    local pid=$1_pid

    wait "${!pid}" || { tail -n 20 client server >&2; fail_with "$1" "$1: connections do not end well: $(<"$1.out")"; }
}

# stranger NAME KEYS...: a client with these options gets no stream.
stranger()
{
    local status=0

    start_forward "$1" connect -L 6001:127.0.0.1:7000 --peer-timeout 1 "${@:2}" 127.0.0.1
    "$streams" drive 127.0.0.1 6001 1 1 1 $orderly >"$1.out" 2>&1 || status=$?
    ((status)) || fail_with "$1" "$1 has got a stream"
    wait_until 10 grep -q 'does not answer' "$1" || fail_with "$1" "$1: not said that the server does not answer"
    stop "$1"
}

start target "$streams" serve 127.0.0.1 7000
wait_until 10 listens 7000 || fail_with target 'the target does not listen'
keys server.key 1
keys client.key 1
start_forward server serve --listen 127.0.0.1 --allow '127.0.0.1:*' --peer-timeout $silent_s --key-file server.key
MRD_KEY_FILE=client.key start_forward client connect -L 6000:127.0.0.1:7000 --peer-timeout $silent_s 127.0.0.1
for end in server client; do
    grep -q 'sealed: AES-128-GCM' "$end" || fail_with "$end" "$end: not said that it is sealed"
    ! grep -q 'no encryption' "$end" || fail_with "$end" "$end: said that it is not sealed"
done

# Streams that are there all the time, and some that come and go.
begin resting 2 1 $driver_rests
begin busy 8 $((silent_s + 12))
sleep 1

# rotate FIRST SECOND NEW OLD: both ends, one before the other, get a key to send with, and lose the old one.
rotate()
{
    reload "$1" "$3" "$4"
    sleep 0.5
    reload "$2" "$3" "$4"
    sleep 1
    reload "$1" "$3"
    reload "$2" "$3"
    sleep 0.5
}

rotate server client 2 1
rotate client server 3 2
# Nobody sends with a key before the other end has it: then it does not matter how long the ends send with different ones.
reload server 3 4
reload client 3 4
reload client 4 3
sleep $((silent_s + 2))
reload server 4 3
reload client 4
reload server 4

# A wrong file changes nothing.
echo nonsense >server.key
kill -HUP "$server_pid"
wait_until 10 grep -q 'the keys stay as they are: server.key, line 1' server || fail_with server 'not said that the file is wrong'
rm client.key
kill -HUP "$client_pid"
wait_until 10 grep -q 'the keys stay as they are: client.key' client || fail_with client 'not said that there is no file'

done_well busy
(($(cut -d ' ' -f 1 busy.out) > 100)) || fail_with client "few connections: $(<busy.out)"
kill -0 "$resting_pid" || fail_with resting 'the resting ones have ended'
kill -USR1 "$resting_pid"
done_well resting
begin late 2 1
done_well late

# Who has a key that is gone, or none, gets nothing.
keys old.key 1
keys new.key 4
stranger in_the_clear
stranger with_old_key --key-file old.key
start_forward friend connect -L 6001:127.0.0.1:7000 --key-file new.key 127.0.0.1
"$streams" drive 127.0.0.1 6001 1 2 1 $orderly >friend.out 2>&1 || fail_with friend "with the key: $(<friend.out)"
stop friend
start_forward plain connect -L 6001:127.0.0.1:7000 127.0.0.1
kill -HUP "$plain_pid"
status=0
wait "$plain_pid" || status=$?
((status == 129)) || fail_with plain "without keys SIGHUP leaves it with $status"

# Pipes.
head -c 3000000 /dev/urandom >sent
start far "$forward" pipe --listen 127.0.0.1:5000 --receive-only --verbose --key-file new.key
wait_until 10 grep -q 'sealed: ' far || fail_with far 'the listening pipe does not start'
timeout 60 "$forward" pipe --key-file new.key 127.0.0.1:5000 <sent >out 2>err || fail 'a pipe under keys'
wait "$far_pid" || fail_with far 'the listening pipe fails'
cmp sent far.out || fail 'a pipe under keys changes what it carries'

stop client
stop server
for name in none.key nonsense; do
    echo nonsense >nonsense
    expect 1 "$name" serve --allow '*:*' --listen 127.0.0.1 --key-file "$name"
done
