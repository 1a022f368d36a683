#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# forward_limits.sh MRD_FORWARD STREAMS: 'mrd_forward serve' with no descriptor left: whoever asks for a stream is refused, be it
# a near end that it knows or one that comes only now, and there is one again when a stream ends.

set -euo pipefail

forward=$1 streams=$2
# shellcheck source=tests/tool/forward_lib.sh
source "$(dirname "$0")/forward_lib.sh"

for tool in ss curl; do
    command -v $tool >/dev/null || { echo "forward_limits: skipped: no $tool"; exit 77; }
done

readonly files=100 driver_rests=9 # of enum deed in streams.c

files_open()
{
    find "/proc/$server_pid/fd" -mindepth 1 -maxdepth 1 | wc -l
}

is_full()
{
    (($(files_open) >= files)) # some may be inherited
}

# refused NAME PORT: a connection through that near end, whose log says why. A request that is dropped would be given up
# after 60 s.
refused()
{
    local status=0

    curl -s -m 30 "http://127.0.0.1:$2/" >out 2>err || status=$?
    # 7: the reset came before curl looked whether it was connected.
    [[ $status =~ ^(7|52|55|56)$ ]] || fail_with "$1" "a request at the limit: curl ends with $status"
    grep -q 'through 127.0.0.1:4802: Too many open files' "$1" || fail_with "$1" 'the near end is not told why'
}

start target "$streams" serve 127.0.0.1 7000
wait_until 10 listens 7000 || fail_with target 'the target does not listen'
(
    ulimit -n $files
    exec "$forward" serve --listen 127.0.0.1:4802 --allow '127.0.0.1:7000' --verbose >server.out 2>server
) &
server_pid=$!
wait_until 10 grep -q 'no encryption' server || fail_with server 'mrd_forward does not start'
start_forward known connect -L 6000:127.0.0.1:7000 127.0.0.1:4802
"$streams" drive 127.0.0.1 6000 1 $files 1 $driver_rests >resting.out 2>resting &
resting_pid=$!
wait_until 40 is_full || fail_with server "$(files_open) files are open, not $files"
refused known 6000
is_full || fail "the limit is not reached any more"
start_forward newcomer connect -L 6001:127.0.0.1:7000 127.0.0.1:4802
refused newcomer 6001
start_forward newest connect -L 6002:127.0.0.1:7000 127.0.0.1:4802
refused newest 6002

kill "$resting_pid"
wait "$resting_pid" || true
is_empty()
{
    (($(files_open) < files / 2))
}
wait_until 40 is_empty || fail_with server 'streams that ended keep their files'
timeout 60 "$streams" drive 127.0.0.1 6001 2 10 1 0 >out 2>err || fail_with server "below the limit: $(cat out err)"
stop server
