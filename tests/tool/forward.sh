#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# forward.sh MRD_FORWARD STREAMS: what mrd_forward promises, over the loopback interface: options and exit codes, each kind
# of end, refusals, half-closes, a server that dies, stops and comes back, many connections, little at rest.

set -euo pipefail

forward=$1 streams=$2
# shellcheck source=tests/tool/forward_lib.sh
source "$(dirname "$0")/forward_lib.sh"

for tool in ss curl; do
    command -v $tool >/dev/null || { echo "forward: skipped: no $tool"; exit 77; }
done

# ------------------------------------------------------------------------------------------ the command line

expect 0 'There is no encryption' --help
expect 0 'mrd_forward 0.' --version
expect 2 'serve, connect or pipe' --stats
expect 2 "'bogus' is none of" bogus
expect 2 'serve needs --allow' serve
expect 2 "expected HOST:PORT" serve --allow nonsense
expect 2 'connect needs -L or -D' connect localhost
expect 2 'which server?' connect -L 1:h:1
expect 2 'expected [BIND:]PORT:HOST:PORT' connect -L 1:2 localhost
expect 2 'UDP is not forwarded' connect -L 53:dns:53/udp localhost
expect 2 'without authentication' connect -D 0.0.0.0:1080 localhost
expect 2 'without authentication' connect -D 127.0.0.1.example:1080 localhost
expect 2 'is too much' connect -L 1:h:1 localhost more
expect 2 '--memory: expected a whole number from 33554432' serve --allow '*:*' --memory 1K
expect 2 '--window: expected a whole number from 65536' serve --allow '*:*' --window 64M
expect 2 '--listen is of serve and pipe' connect -L 1:h:1 --listen 127.0.0.1 localhost
expect 2 'leave out --bind' pipe --listen 127.0.0.1:4801 --bind 127.0.0.1
expect 2 '--allow is of serve' connect -L 1:h:1 --allow a:1 localhost
expect 2 'there is no option -z' serve --allow '*:*' -z
for port in 0x12b9 1e3 80.0 0 65536 +80 ''; do
    expect 2 'expected ADDR[:PORT]' serve --allow '*:*' --listen "127.0.0.1:$port"
done
expect 1 'no.such.host.invalid' pipe no.such.host.invalid h:1
expect 1 'there is no user' serve --listen 127.0.0.1:5999 --allow '*:*' --user no-such-user
expect 1 'it does not answer' pipe --peer-timeout 1 127.0.0.1:5998

# ------------------------------------------------------------------------------------------ pipes

head -c 50000000 /dev/urandom >data
start_forward listener pipe --listen 127.0.0.1:4801 --verbose </dev/null
timeout 60 "$forward" pipe 127.0.0.1:4801 <data || fail_with listener 'a pipe from a file'
wait "$listener_pid" || fail_with listener "the listening pipe ends with $?"
cmp data listener.out || fail 'a pipe from a file carries something else'

# Both ways at once, through pipes that others hold.
start_forward listener pipe --listen 127.0.0.1:4801 --verbose < <(cat data)
cat data | timeout 60 "$forward" pipe 127.0.0.1:4801 | cat >back || fail_with listener 'a pipe, both ways'
wait "$listener_pid" || fail_with listener "the listening pipe ends with $?"
cmp data listener.out && cmp data back || fail 'a pipe both ways carries something else'

# Whoever writes learns that the reader went.
start listener bash -c '"$1" pipe --listen 127.0.0.1:4801 --verbose --receive-only | head -c 1000 >/dev/null' - "$forward"
wait_until 10 grep -q 'no encryption' listener || fail_with listener 'the listening pipe does not start'
status=0
timeout 60 "$forward" pipe 127.0.0.1:4801 <data 2>err || status=$?
((status == 1)) || fail "a pipe whose reader went ends with $status"
grep -q '127.0.0.1:4801' err || fail 'a pipe whose reader went names nobody'
wait "$listener_pid" || true

# Closed standard streams: nothing else is taken for them. Without input it fails; output is not needed by a sender.
status=0
timeout 30 "$forward" pipe 127.0.0.1:4801 <&- 2>err || status=$?
((status == 1)) || fail "a pipe without standard input ends with $status"
start_forward listener pipe --listen 127.0.0.1:4801 --verbose --receive-only
status=0
timeout 30 "$forward" pipe 127.0.0.1:4801 <data >&- 2>err || status=$?
((status == 0)) || fail "a pipe without standard output ends with $status"
wait "$listener_pid" || fail_with listener "the listening pipe ends with $?"
cmp data listener.out || fail 'a pipe without standard output carries something else'

# ------------------------------------------------------------------------------------------ targets

start target "$streams" serve 127.0.0.1 7000
mkdir www
printf 'hello\n' >www/file
start_forward server serve --listen 127.0.0.1:4802 --allow '127.0.0.1:*' --allow "$scratch/echo.sock" --allow 'localhost:7000' \
    --connect-timeout 2 --peer-timeout 3 --verbose
start_forward client connect -L 6000:127.0.0.1:7000 -L 6001:127.0.0.1:7001 -L 6002:192.0.2.1:80 -L "6003:$scratch/echo.sock" \
    -L "$scratch/near.sock:127.0.0.1:7000" -L '[::1]:6004:localhost:7000' -L 6005:no.such.invalid:7000 -D 6010 --stats \
    -L 6006:127.0.0.1:7002 --peer-timeout 3 --verbose 127.0.0.1:4802
# Half-closed connections whose near end broke: the target is told within a second or two.
settled()
{
    [[ -z $(ss -Htn state fin-wait-2 'dport = :7000') ]]
}
drive()
{
    timeout 120 "$streams" drive 127.0.0.1 "$@" >out 2>err || fail "streams drive $*"
    wait_until 10 settled || fail "the target is not told of breaks: streams drive $*"
}
drive 6000 1 50 2
grep -q ' 0 wrong' out || fail 'bytes were wrong'

# refused PORT WHY: a connection there is reset, and the log says why.
refused()
{
    local status=0

    timeout 20 curl -s "http://127.0.0.1:$1/" >out 2>err || status=$?
    ((status == 7 || status == 52 || status == 55 || status == 56)) || fail "a refused connection: curl ends with $status"
    wait_until 5 grep -q "$2" client || fail_with client "'$2' is not said at the near end"
}
refused 6001 'through 127.0.0.1:4802: Connection refused'
refused 6002 'not among the targets'
refused 6003 'No such file or directory'
grep -q '127.0.0.1:.* to 192.0.2.1:80: refused: not among' server || fail_with server 'a refusal is not said at the far end'
# A UDP datagram finds nobody.
[[ -z $(ss -Hlun 'sport = :6000') ]] || fail 'UDP is listened for'

# SOCKS: by address and by name, and what is refused. curl says which code it got.
status=0
timeout 20 curl -s --socks5 127.0.0.1:6010 http://127.0.0.1:7001/ >out 2>err || status=$?
((status == 97)) || fail "SOCKS to a closed port: curl ends with $status"
status=0
timeout 20 curl -s --socks5-hostname 127.0.0.1:6010 http://no.such.invalid:7000/ >out 2>err || status=$?
((status == 97)) || fail "SOCKS to a target that is not allowed: curl ends with $status"
wait_until 5 grep -q 'no.such.invalid:7000 through' client || fail_with client 'SOCKS: the target is not named'

# ask HOST PORT [BEFORE BYTES]: a thousand bytes of the target come, after so many others, to who sends all at once: BEFORE,
# and the head of a connection of streams.c, orderly, with nothing up.
ask()
{
    exec 5<>"/dev/tcp/$1/$2"
    # shellcheck disable=SC2059
    printf "${3-}"'\2\0\0\0\0\0\0\0''\0\0\0\0\0\0\0\0''\xe8\3\0\0\0\0\0\0''\0\0\0\0\0\0\0\0''\0\0\0\0''\x7a\xda\x57\x7e' >&5
    timeout 10 cat <&5 >out 2>err || fail "what $1 port $2 gives does not end"
    exec 5<&-
    (($(wc -c <out) == 1000 + ${4-0})) || fail "$1 port $2 gives $(wc -c <out) bytes"
}
ask 127.0.0.1 6000
ask ::1 6004
# A SOCKS client that sends greeting, request and data in one segment.
ask 127.0.0.1 6010 '\5\1\0''\5\1\0\1\x7f\0\0\1\x1b\x58' 12

# A target whose backlog is full is waited for, as long as for any other. Its socket is a file before it listens.
if echo 2 2>/dev/null >/proc/sys/net/core/somaxconn; then
    start slow "$streams" serve "$scratch/echo.sock" -
    wait_until 10 listens_unix "$scratch/echo.sock" || fail_with slow 'no unix socket'
    echo 4096 >/proc/sys/net/core/somaxconn
    kill -STOP "$slow_pid"
    timeout 60 "$streams" drive 127.0.0.1 6003 18 20 1 0 >out 2>err &
    drive=$!
    sleep 1
    kill -CONT "$slow_pid"
    wait $drive || fail_with server 'a target whose backlog was full'
    kill -STOP "$slow_pid"
    for ((i = 0; i < 5; i++)); do
        exec {fd}<>/dev/tcp/127.0.0.1/6003
    done
    wait_until 10 grep -q "to unix:$scratch/echo.sock: refused: Connection timed out" server || fail_with server 'a full backlog is waited for too long'
    kill -CONT "$slow_pid"
    for ((; i > 0; i--, fd--)); do
        exec {fd}<&-
    done
    stop slow
    rm -f echo.sock

    # A server that is stopped while the target answers is late, and the target is not: it is connected all the same.
    echo 2 >/proc/sys/net/core/somaxconn
    start slow "$streams" serve 127.0.0.1 7003
    wait_until 10 listens 7003 || fail_with slow 'the target with a short backlog does not listen'
    echo 4096 >/proc/sys/net/core/somaxconn
    start_forward late serve --listen 127.0.0.1:4803 --allow '127.0.0.1:*' --connect-timeout 4 --verbose
    start_forward to_late connect -L 6007:127.0.0.1:7003 127.0.0.1:4803
    kill -STOP "$slow_pid"
    for ((i = 0; i < 3; i++)); do
        exec {fd}<>/dev/tcp/127.0.0.1/7003
    done
    ask 127.0.0.1 6007 &
    ask=$!
    asked() # the first SYN is dropped; the next ones come after one second and three
    {
        [[ -n $(ss -Htn state syn-sent 'dport = :7003') ]]
    }
    wait_until 10 asked || fail_with late 'a full backlog takes a connection'
    kill -STOP "$late_pid"
    kill -CONT "$slow_pid"
    sleep 4.2
    kill -CONT "$late_pid"
    wait $ask || fail_with late 'a target that answered while the server was stopped'
    for ((; i > 0; i--, fd--)); do
        exec {fd}<&-
    done
    stop to_late
    stop late
    stop slow
fi

# A SOCKS client that goes, one that talks nonsense, and one that does not wait for the answer.
printf '\x05' >/dev/tcp/127.0.0.1/6010
exec 5<>/dev/tcp/127.0.0.1/6010
printf 'GET / HTTP/1.0\r\n\r\n' >&5
timeout 10 cat <&5 >out || true
exec 5<&-
wait_until 5 grep -q 'does not speak SOCKS 5' client || fail_with client 'nonsense is not named'

# ------------------------------------------------------------------------------------------ ends

# Whoever closes when all is sent loses nothing, whether by TCP or by a unix socket, and however late the target reads.
drive 6000 11 20 2 5
timeout 120 "$streams" drive "$scratch/near.sock" - 12 20 2 5 >out 2>err || fail 'a unix socket that closes when all is sent'
grep -q ' 0 wrong' out || fail 'bytes were wrong through a unix socket'
# A connection that is half-closed, silent, and then reset: the target is told.
drive 6000 13 1 1 6

# Whoever closes with input unread, which TCP tells by a reset, is heard to the end.
for deed in 7 8; do
    drive 6000 14 20 2 $deed
    timeout 120 "$streams" drive "$scratch/near.sock" - 15 20 2 $deed >out 2>err || fail "a unix socket that breaks, deed $deed"
done

# What was sent before a break waits for its reader, but not for ever.
is_idle()
{
    local end

    kill -USR1 "$server_pid" "$client_pid"
    sleep 0.1
    for end in server client; do
        grep ' streams now; ' "$end" | tail -n 1 | grep -q '^mrd_forward: 0 streams' || return 1
    done
}
start breaker "$streams" serve 127.0.0.1 7002
wait_until 10 listens 7002 || fail_with breaker 'the target that will break does not listen'
# A head of streams.c: 64 MiB down, and the server does not read.
exec 5<>/dev/tcp/127.0.0.1/6006
printf '\2\0\0\0\0\0\0\0''\0\0\0\0\0\0\0\0''\0\0\0\4\0\0\0\0''\0\0\0\0\0\0\0\0''\7\0\0\0''\x7a\xda\x57\x7e' >&5
printf 'not to be read' >&5
sleep 1
kill -9 "$breaker_pid"
wait "$breaker_pid" || true
sleep 1
! is_idle || fail_with client 'what came before a break is not kept for its reader'
wait_until 20 is_idle || fail_with client 'a stream waits for ever for a reader that sleeps'
grep -q 'nobody read what came before a reset' client || fail_with client 'no sentence of a reader that sleeps'
status=0
timeout 20 cat <&5 >out 2>err || status=$?
((status == 1)) || fail "a reader that slept through a break ends with $status"
exec 5<&-

# ------------------------------------------------------------------------------------------ at rest

# A connection that is open and silent, and next to no wake-ups.
exec 5<>/dev/tcp/127.0.0.1/6000
sleep 1
switches()
{
    awk '/^voluntary_ctxt/ { print $2 }' "/proc/$1/status"
}
before=$(switches "$server_pid")
sleep 3
woken=$(($(switches "$server_pid") - before))
((woken < 60)) || fail "a server with one silent connection woke up $woken times in three seconds"
exec 5<&-

# ------------------------------------------------------------------------------------------ stops and deaths

gone()
{
    [[ -z $(ss -Htn state established 'dport = :7000') ]]
}

# Both ends stopped for longer than a round trip, less than the timeout: nothing happens.
timeout 60 "$streams" drive 127.0.0.1 6000 2 100 6 >out 2>err &
drive=$!
sleep 1
kill -STOP "$server_pid" "$client_pid"
sleep 2
kill -CONT "$server_pid" "$client_pid"
wait "$drive" || fail 'streams through a stop of both ends'
wait_until 10 settled || fail 'the target is not told of breaks'

# The server dies: connections are reset within the timeout; a new one is found again.
exec 5<>/dev/tcp/127.0.0.1/6000
sleep 0.5
kill -9 "$server_pid"
wait "$server_pid" || true
began=$SECONDS
status=0
timeout 30 cat <&5 >out 2>err || status=$?
((status == 1)) || fail "the reader of a connection whose server died ends with $status"
grep -q 'Connection reset by peer' err || fail 'the reader is not told of a reset'
((SECONDS - began <= 7)) || fail 'a dead server is noticed late'
exec 5<&-
grep -q '127.0.0.1:4802 does not answer: 1 streams reset' client || fail_with client 'the dead server is not named'
start_forward server serve --listen 127.0.0.1:4802 --allow '127.0.0.1:*' --peer-timeout 3 --verbose
drive 6000 3 50 1
# It is restarted while connections are open: they are reset, new ones work.
exec 5<>/dev/tcp/127.0.0.1/6000
sleep 0.3
kill -9 "$server_pid"
wait "$server_pid" || true
start_forward server serve --listen 127.0.0.1:4802 --allow '127.0.0.1:*' --peer-timeout 3 --verbose
drive 6000 4 50 1
status=0
timeout 20 cat <&5 >out 2>err || status=$?
((status == 1)) || fail "the reader of a connection to the server before ends with $status"
exec 5<&-

# Stopped for longer than the timeout, with a connection that is silent: the other end gives it up, and whoever
# goes on is told.
gives_up() # for the time that the machine leaves it no processor, it waits longer
{
    (($(grep -c 'does not answer' "$other") > told))
}
for end in client server; do
    exec 5<>/dev/tcp/127.0.0.1/6000
    sleep 0.5
    pid=${end}_pid
    [[ $end == client ]] && other=server || other=client
    told=$(grep -c 'does not answer' $other || true)
    kill -STOP "${!pid}"
    wait_until 60 gives_up || fail_with $other "the $end is stopped, and not given up"
    kill -CONT "${!pid}"
    status=0
    timeout 20 cat <&5 >out 2>err || status=$?
    ((status == 1)) || fail "the $end was stopped: the reader of a silent connection ends with $status"
    exec 5<&-
    wait_until 20 gone || fail_with server "the $end was stopped: the target's connection stays"
    drive 6000 6 20 1
done

# The server is restarted, and then dies for good: its new connections are watched as well.
exec 5<>/dev/tcp/127.0.0.1/6000
sleep 0.3
kill -9 "$server_pid"
wait "$server_pid" || true
start_forward server serve --listen 127.0.0.1:4802 --allow '127.0.0.1:*' --peer-timeout 3 --verbose
exec 6<>/dev/tcp/127.0.0.1/6000
connected()
{
    [[ -n $(ss -Htn state established 'dport = :7000') ]]
}
wait_until 10 connected || fail_with server 'a restarted server is not found'
kill -9 "$server_pid"
wait "$server_pid" || true
status=0
timeout 20 cat <&6 >out 2>err || status=$?
((status == 1)) || fail "the server died for good: the reader ends with $status"
exec 5<&- 6<&-
start_forward server serve --listen 127.0.0.1:4802 --allow '127.0.0.1:*' --peer-timeout 3 --verbose

# The client dies: the target sees its connections go.
exec 5<>/dev/tcp/127.0.0.1/6000
sleep 0.3
[[ -n $(ss -Htn 'dport = :7000') ]] || fail 'no connection to the target'
kill -9 "$client_pid"
wait "$client_pid" || true
exec 5<&-
wait_until 8 gone || fail_with server 'connections of a dead client stay open'

# ------------------------------------------------------------------------------------------ many

start_forward client connect -L 6000:127.0.0.1:7000 --stats 127.0.0.1:4802
drive 6000 5 1000 4
grep -q '^mrd_forward: [0-9]* streams, .* Gb/s there, .* paths, ' client || fail_with client 'no line of --stats'
is_empty()
{
    kill -USR1 "$server_pid"
    sleep 0.1
    grep -q '^mrd_forward: 0 streams now; ' server
}
wait_until 5 is_empty || fail_with server 'streams stay, or no report'
report=$(grep 'receive buffers free' server | tail -n 1)
[[ $report =~ ([0-9]+)\ of\ ([0-9]+)\ receive ]] || fail "the report: $report"
((BASH_REMATCH[1] == BASH_REMATCH[2])) || fail "receive buffers are missing: $report"
stop client
stop server
kill "$target_pid"
wait "$target_pid" || fail_with target 'the target saw wrong bytes'

# Memory is bounded: more connections than it has room for are refused with a sentence, and those there are live.
start target "$streams" serve 127.0.0.1 7000
start_forward server serve --listen 127.0.0.1:4802 --allow '127.0.0.1:*' --streams 20
start_forward client connect -L 6000:127.0.0.1:7000 127.0.0.1:4802
for ((i = 0; i < 30; i++)); do
    exec {fd}<>/dev/tcp/127.0.0.1/6000
done
wait_until 5 grep -q 'there are 20 streams, as many as --streams allows' client || fail_with client 'too many are not refused'
stop client
stop server

# Streams that were busy, and rest, give their windows back: others are not refused.
start_forward server serve --listen 127.0.0.1:4802 --allow '127.0.0.1:*' --memory 64M
start_forward client connect -L 6000:127.0.0.1:7000 127.0.0.1:4802
"$streams" drive 127.0.0.1 6000 17 12 1 9 >out 2>err &
drive=$!
are_free() # when all has come; as long as they were busy, three quarters of the buffers were taken
{
    kill -USR1 "$server_pid"
    sleep 0.1
    grep -qE '^mrd_forward: 12 streams now; .* 201327072 back; [345][0-9]{2} of 576 receive buffers free' server
}
wait_until 40 are_free || fail_with server 'streams that rest keep their windows'
for ((i = 0; i < 300; i++)); do
    exec {fd}<>/dev/tcp/127.0.0.1/6000
done
kill -USR1 $drive
wait $drive || fail 'streams that rest'
! grep 'there are .* streams' client || fail 'streams are refused, but for others that rest'
stop client
stop server

# A near end that stands still while there is much to tell it does not hold up another one.
ulimit -n "$(ulimit -Hn)"
start other "$streams" serve 127.0.0.1 7002
start_forward server serve --listen 127.0.0.1:4802 --allow '127.0.0.1:*'
start_forward client connect -L 6000:127.0.0.1:7000 127.0.0.1:4802
start_forward second connect -L 6006:127.0.0.1:7002 127.0.0.1:4802
for ((i = 0; i < 1500; i++)); do
    exec {fd}<>/dev/tcp/127.0.0.1/6000
done
are_open()
{
    kill -USR1 "$server_pid"
    sleep 0.1
    grep -q '^mrd_forward: 1500 streams now; ' server
}
wait_until 20 are_open || fail_with server 'there are no 1500 streams'
kill -STOP "$client_pid"
kill -9 "$target_pid"
wait "$target_pid" || true
sleep 0.5
began=$SECONDS
ask 127.0.0.1 6006
((SECONDS - began <= 2)) || fail 'a near end that stands still holds up another one'
kill -CONT "$client_pid"
stop client
stop second
stop server
