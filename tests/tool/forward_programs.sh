#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# forward_programs.sh MRD_FORWARD: programs that know nothing of mrd, through it: iperf3, curl and a web server, rsync,
# Redis, PostgreSQL. Each that is not installed is left out, and named.

set -euo pipefail

forward=$1
# shellcheck source=tests/tool/forward_lib.sh
source "$(dirname "$0")/forward_lib.sh"

readonly file_bytes=$((1 << 30)) tree_files=10000
left_out=()

for tool in ss curl jq; do
    command -v $tool >/dev/null || { echo "forward_programs: skipped: no $tool"; exit 77; }
done

# have PROGRAM...: all there? Else they are named at the end.
have()
{
    local program

    for program; do
        type -P "$program" >/dev/null || { left_out+=("$program"); return 1; }
    done
}

mkdir near
start_forward server serve --listen 127.0.0.1:4802 --allow '127.0.0.1:*' --allow "$scratch/pg/.s.PGSQL.5432"
start_forward client connect -L 6001:127.0.0.1:5201 -L 6002:127.0.0.1:8000 -L 6003:127.0.0.1:8730 -L 6004:127.0.0.1:6379 \
    -L "$scratch/near/.s.PGSQL.5432:$scratch/pg/.s.PGSQL.5432" -D 6010 127.0.0.1:4802
chmod 777 near/.s.PGSQL.5432 # as PostgreSQL's own

# measure NAME OPTION...: an iperf3 run whose JSON is in out.
measure()
{
    timeout 60 iperf3 -c 127.0.0.1 -p 6001 -J "${@:2}" >out 2>err || fail "iperf3 $1: exit $?"
    [[ $(jq '.error' out) == null ]] || fail "iperf3 $1"
    # What was received is what was sent, but for what is on the way at the end.
    jq -e '.end.sum_received.bytes > 10e6 and .end.sum_received.bytes <= .end.sum_sent.bytes' out >/dev/null ||
        fail "iperf3 $1: bytes"
}

if have iperf3; then
    start iperf iperf3 -s -p 5201
    wait_until 10 listens 5201 || fail_with iperf 'iperf3 does not listen'
    measure 'one stream' -t 2
    measure '16 streams' -t 2 -P 16
    measure 'reverse' -t 2 -R
    measure 'both ways' -t 2 --bidir
    measure 'so many bytes' -n 300M
    # UDP is not forwarded, and says so at once: nobody is at that port.
    status=0
    timeout 20 iperf3 -c 127.0.0.1 -p 6001 -u -t 2 >out 2>err || status=$?
    ((status == 1)) || fail "iperf3 over UDP ends with $status"
    grep -qi 'refused' out err || fail 'iperf3 over UDP: no sentence'
fi

if have lighttpd sha256sum; then
    mkdir www
    # Incompressible enough, and made fast.
    head -c $((1 << 24)) /dev/urandom >part
    for ((i = 0; i < file_bytes >> 24; i++)); do cat part; done >www/file
    printf 'server.document-root = "%s"\nserver.port = 8000\nserver.bind = "127.0.0.1"\n' "$scratch/www" >lighttpd.conf
    start web lighttpd -D -f lighttpd.conf
    wait_until 10 listens 8000 || fail_with web 'the web server does not listen'
    sum=$(sha256sum <www/file)
    [[ $(timeout 200 curl -sS http://127.0.0.1:6002/file 2>err | sha256sum) == "$sum" ]] || fail 'curl: another file came'
    [[ $(timeout 200 curl -sS --socks5-hostname 127.0.0.1:6010 http://127.0.0.1:8000/file 2>err | sha256sum) == "$sum" ]] ||
        fail 'curl through SOCKS: another file came'
    rm -rf www part
fi

if have rsync; then
    mkdir tree copy
    for ((i = 0; i < tree_files; i++)); do
        ((i % 100)) || mkdir "tree/$((i / 100))"
        printf '%*d' $((i % 3000)) "$i" >"tree/$((i / 100))/$i"
    done
    printf 'use chroot = no\nuid = %s\ngid = %s\n[tree]\npath = %s\n' "$(id -u)" "$(id -g)" "$scratch/tree" >rsyncd.conf
    start rsync rsync --daemon --no-detach --config rsyncd.conf --port 8730 --address 127.0.0.1
    wait_until 10 listens 8730 || fail_with rsync 'rsync does not listen'
    timeout 200 rsync -a rsync://127.0.0.1:6003/tree/ copy/ >out 2>err || fail "rsync: exit $?"
    diff -r tree copy >out || fail 'rsync: the copy differs'
    rm -rf tree copy
fi

if have redis-server redis-benchmark; then
    start redis redis-server --port 6379 --bind 127.0.0.1 --save '' --dir "$scratch"
    wait_until 10 listens 6379 || fail_with redis 'Redis does not listen'
    timeout 200 redis-benchmark -p 6004 -n 20000 -c 50 -t set,get,lpush,lrange_100 --csv >out 2>err || fail "redis-benchmark: exit $?"
    (($(grep -c '^"' out) >= 5)) || fail 'redis-benchmark: results are missing'
    timeout 100 redis-benchmark -p 6004 -n 20000 -c 50 -P 16 -d 4000 -t set,get --csv >out 2>err || fail "redis-benchmark, pipelined: exit $?"
    kill "$redis_pid"
fi

# Through unix sockets, as a user of its own, for which the directories must be open.
pg=$(compgen -G '/usr/lib/postgresql/*/bin/initdb' | tail -n 1 || true)
if [[ -n $pg && $(id -u) == 0 ]] && id postgres >/dev/null 2>&1; then
    pg=$(dirname "$pg")
    chmod 755 "$scratch"
    mkdir pg data
    chown postgres pg data
    as() { setpriv --reuid postgres --regid postgres --clear-groups "$@"; }
    as "$pg/initdb" -D "$scratch/data" >out 2>err || fail 'initdb'
    start postgres as "$pg/postgres" -D "$scratch/data" -h '' -k "$scratch/pg"
    wait_until 20 test -S pg/.s.PGSQL.5432 || fail_with postgres 'PostgreSQL does not listen'
    wait_until 20 as psql -h "$scratch/near" -c 'select 1' postgres || fail_with postgres 'psql through the forwarder'
    as "$pg/pgbench" -h "$scratch/near" -i -s 2 postgres >out 2>err || fail 'pgbench -i'
    as timeout 100 "$pg/pgbench" -h "$scratch/near" -c 8 -T 3 postgres >out 2>err || fail "pgbench: exit $?"
    grep -q 'number of failed transactions: 0' out || fail 'pgbench: transactions failed'
else
    left_out+=('PostgreSQL, or root')
fi

stop client
stop server
((${#left_out[@]} == 0)) || echo "forward_programs: left out, as they are not installed: ${left_out[*]}"
