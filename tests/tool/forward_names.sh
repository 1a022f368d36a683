#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# forward_names.sh MRD_FORWARD STREAMS: what 'mrd_forward serve' knows of names: the files of hosts and of name servers as they are
# when somebody asks, names with a dot at the end, and numbers that SOCKS clients send as names. In an /etc of its own.

set -euo pipefail

forward=$1 streams=$2
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tool/forward_lib.sh
source "$(dirname "$0")/forward_lib.sh"

for tool in ss curl; do
    command -v $tool >/dev/null || { echo "forward_names: skipped: no $tool"; exit 77; }
done
# shellcheck source=tests/tool/forward_etc.sh
source "$here/forward_etc.sh"
printf '127.0.0.1 localhost\n127.0.0.1 old.test\n' >/etc/hosts

start target "$streams" serve 127.0.0.1 7000
wait_until 10 listens 7000 || fail_with target 'the target does not listen'
start_forward server serve --listen 127.0.0.1:4802 --allow '*:*' --connect-timeout 20 --verbose
start_forward client connect -D 6010 --verbose 127.0.0.1:4802

# reaches NAME PORT [TEXT]: a SOCKS client that leaves NAME to the proxy; the far end says that it has connected, to TEXT.
reaches()
{
    timeout 2 curl -s -m 30 --socks5-hostname 127.0.0.1:6010 "http://$1:$2/" >out 2>err || true # the target speaks no HTTP
    wait_until 30 grep -qF "to ${3-$1}:$2: open" server || fail_with server "$1 is not reached"
}
reaches old.test 7000
reaches old.test. 7000
reaches LOCALHOST 7000
printf '127.0.0.1 localhost\n127.0.0.1 old.test\n127.0.0.1 new.test\n' >/etc/hosts
reaches new.test 7000
reaches new.test. 7000

# SOCKS clients that look at nothing. Nobody listens there, so the target itself refuses.
as_name()
{
    local size

    printf -v size '\\x%02x' ${#1}
    exec 5<>/dev/tcp/127.0.0.1/6010
    # shellcheck disable=SC2059
    printf "\\5\\1\\0\\5\\1\\0\\3$size$1\\x1b\\x5e" >&5 # port 7006
    timeout 30 head -c 4 <&5 >out || true
    exec 5<&-
    [[ $(od -An -tx1 -j 2 -N 2 out) == ' 05 05' ]] || fail_with client "a client that sends $1 as a name: $(od -An -tx1 out)"
}
as_name ::1
as_name '[::1]'
as_name 0:0:0:0:0:0:0:1

# A name server that is there from now on, and answers all with 127.0.0.1.
if command -v python3 >/dev/null; then
    cat >dns.py <<'PY'
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('127.0.0.53', 53))
while True:
    q, a = s.recvfrom(512)
    end = q.index(b'\0', 12) + 5
    ipv4 = struct.unpack('>H', q[end - 4:end - 2])[0] == 1
    answer = b'\xc0\x0c\0\1\0\1\0\0\0\x0a\0\4\x7f\0\0\1' if ipv4 else b''
    s.sendto(q[:2] + b'\x81\x80\0\1' + struct.pack('>H', ipv4) + b'\0\0\0\0' + q[12:end] + answer, a)
PY
    start dns python3 dns.py
    named()
    {
        [[ -n $(ss -Hlun 'sport = :53') ]]
    }
    wait_until 20 named || fail_with dns 'the name server does not start'
    printf 'nameserver 127.0.0.53\n' >/etc/resolv.conf
    reaches name.example 7000
    reaches name.example. 7000
fi
stop client
stop server
