#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# forward_pipe.sh MRD_FORWARD: the standard streams of 'mrd_forward pipe' belong to others, too: whether their open files
# block is at the end as it was.

set -euo pipefail

forward=$1
# shellcheck source=tests/tool/forward_lib.sh
source "$(dirname "$0")/forward_lib.sh"

readonly nonblock=04000 # of octal flags, as /proc has them

# is_nonblocking FD: of this shell.
is_nonblocking()
{
    local flags

    flags=$(awk '/^flags/ { print $2 }' "/proc/$$/fdinfo/$1")
    ((flags & nonblock))
}

echo 'some data' >data
: >got

# Each open file is one that this shell has, too. dd sets the flag and leaves it.
exec 5<data 6>>got
dd count=0 iflag=nonblock <&5 2>err
dd count=0 oflag=nonblock >&6 2>err
is_nonblocking 5 && is_nonblocking 6 || fail 'the test does not make descriptors that do not block'
exec 7<data 8>>got
for pair in '5 6' '7 8'; do
    read -r in out <<<"$pair"
    start_forward listener pipe --listen 127.0.0.1:4801 --verbose </dev/null
    timeout 60 "$forward" pipe 127.0.0.1:4801 <&"$in" >&"$out" 2>err || fail_with listener 'a pipe'
    wait "$listener_pid" || fail_with listener "the listening pipe ends with $?"
    cmp data listener.out || fail 'a pipe carries something else'
done
is_nonblocking 5 || fail 'an input that did not block does now'
is_nonblocking 6 || fail 'an output that did not block does now'
! is_nonblocking 7 || fail 'an input that blocked does not any more'
! is_nonblocking 8 || fail 'an output that blocked does not any more'

# Input and output are one open file: as long as one of them is in use, it does not block.
mkfifo more
exec 5<>data 9<>more
start_forward listener pipe --listen 127.0.0.1:4801 --verbose <more 9<&-
"$forward" pipe 127.0.0.1:4801 <&5 >&5 2>err 9<&- &
pipe=$!
in_is_closed()
{
    [[ ! -e /proc/$pipe/fd/0 ]]
}
wait_until 30 in_is_closed || fail_with listener 'an input that has ended stays open'
is_nonblocking 5 || fail 'an output blocks since the input of the same open file has ended'
exec 9<&-
wait $pipe || fail "a pipe from and to one file ends with $?"
wait "$listener_pid" || fail_with listener "the listening pipe ends with $?"
! is_nonblocking 5 || fail 'an open file that blocked does not any more'
