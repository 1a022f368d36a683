#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# tools/vmlab.sh does what it says: exit statuses, output, files; its devices talk to each other.

# shellcheck source=tests/rdma/lib.sh
source "$(dirname "$0")/lib.sh"

readonly vmlab=$root/tools/vmlab.sh

# expect STATUS COMMAND...: sets output and errors.
expect()
{
    local code=0

    "${@:2}" >out 2>err || code=$?
    output=$(<out) errors=$(<err)
    ((code == $1)) || fail "exit status $code instead of $1: ${*:2}: $errors"
}

wrong_options()
{
    expect 2 "$vmlab"
    expect 2 "$vmlab" frobnicate
    expect 2 "$vmlab" setup now
    expect 2 "$vmlab" run
    expect 2 "$vmlab" run -n mars -- true
    expect 2 "$vmlab" run -t 0 -- true
    expect 2 "$vmlab" run -x -- true
    expect 0 "$vmlab" --help
    expect 1 env VMLAB_CACHE="$scratch/none" "$vmlab" run -- true
    [[ $errors == *"vmlab.sh setup' first"* ]] || fail "unclear: $errors"
}

command_runs()
{
    # shellcheck disable=SC2016 # the machine's shell expands it
    expect 7 "$vmlab" run -n none -e 'WORD=two words' -o kept -t 60 -- \
        bash -c 'echo "$WORD at $PWD"; echo "to stderr" >&2; echo kept >"$VMLAB_OUT/file"; echo x >"$1"; exit 7' \
        bash "$scratch/host-file"
    [[ $output == "two words at $PWD" && $errors == 'to stderr' ]] || fail "output '$output', errors '$errors'"
    [[ $(<kept/file) == kept ]] || fail 'the file is not kept'
    [[ ! -e $scratch/host-file ]] || fail "the command wrote to the host's files"
}

limit_ends_it()
{
    expect 124 "$vmlab" run -n none -t 2 -- sleep 60
    [[ $errors == *'not done after 2 s'* ]] || fail "unclear: $errors"
}

machine_fails()
{
    expect 125 "$vmlab" run -n none -a nonsense -- true
    [[ $errors == *'invalid accelerator'* ]] || fail "unclear: $errors"
}

devices_talk()
{
    # shellcheck disable=SC2016
    expect 0 "$vmlab" run -n ecmp -t 60 -- bash -c '
        ibv_rc_pingpong -d rxe0 -g 1 -s 4096 -n 20 & sleep 1
        ibv_rc_pingpong -d rxe1 -g 1 -s 4096 -n 20 127.0.0.1 && wait $! && ibv_devinfo'
    [[ $(grep -c '20 iters' <<<"$output") == 2 ]] || fail "no ping pong: $output"
    [[ $(grep -c 'active_mtu:.*4096' <<<"$output") == 2 ]] || fail "the MTU is not 4096: $output"
}

why=$("$vmlab" check 2>&1) || skip "no RDMA devices: $why"
prepare
run_case 'wrong options' wrong_options
run_case 'a command runs' command_runs
run_case 'the limit ends it' limit_ends_it
run_case 'a machine that cannot start says why' machine_fails
run_case 'devices talk' devices_talk
finish
