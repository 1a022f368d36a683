#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
Run many seeds of the swarm (tests/support/swarm.h), each in a process of its own.

usage: swarm.sh [--seeds N] [--from S] [--jobs N] [--cpu SECONDS] [--binary FILE] [--keep DIRECTORY]

  --seeds N         number of seeds (default: 600)
  --from S          the first seed (default: 1)
  --jobs N          seeds that run at a time (default: the number of cores)
  --cpu SECONDS     a seed that takes more processor time counts as hanging (default: 60)
  --binary FILE     the test program (default: build/tests/sim/test_swarm)
  --keep DIRECTORY  keep the output of failing seeds there, one file each
  --help            print this text

Prints one line for each failing seed: the command that repeats it, and why it failed. A seed that
crashes or hangs fails; the others go on. Exit status: 0 if no seed failed, 1 if some did, 2 for a
wrong option.
USAGE
}

die()
{
    printf 'swarm.sh: %s\n' "$*" >&2
    exit 2
}

# number OPTION TEXT: the option's value must be a number.
number()
{
    [[ $2 =~ ^[0-9]{1,18}$ ]] || die "$1 takes a number, not '$2'"
}

seeds=600 from=1 jobs=$(nproc) cpu=60 binary='' keep=''

options=$(getopt -n swarm.sh -o h -l seeds:,from:,jobs:,cpu:,binary:,keep:,help -- "$@") || exit 2
eval set -- "$options"
while [[ $1 != -- ]]; do
    case $1 in
    --seeds | --from | --jobs | --cpu)
        number "$1" "$2"
        printf -v "${1#--}" '%d' "$((10#$2))"
        shift 2
        ;;
    --binary | --keep)
        printf -v "${1#--}" '%s' "$2"
        shift 2
        ;;
    *)
        usage
        exit 0
        ;;
    esac
done
shift
(($# == 0)) || die "what is '$1'?"
((jobs > 0)) || die '--jobs takes at least 1'
((cpu > 0)) || die '--cpu takes at least 1'
[[ -n $binary ]] || binary=$(dirname "${BASH_SOURCE[0]}")/../build/tests/sim/test_swarm
[[ -x $binary ]] || die "no program $binary: build it first"
binary=$(realpath --relative-to=. "$binary")
[[ $binary == */* ]] || binary=./$binary
[[ -z $keep ]] || mkdir -p "$keep"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# one SEED: runs it and prints one line, "ok SEED" or "failed SEED PROFILE: WHY".
one()
{
    local seed=$1 log=$scratch/$1 status=0 why

    exec 2>/dev/null # the shell reports signals there; the exit status tells them, too

    (
        ulimit -c 0
        ulimit -t "$cpu"
        MRD_SWARM_ONCE=1 MRD_TEST_SEED=$seed exec "$binary"
    ) >"$log" 2>&1 || status=$?
    if ((status == 0)); then
        rm "$log"
        printf 'ok %s\n' "$seed"
        return
    fi
    # The last line that names the seed; else that of a crash or a failed assertion of the engine.
    why=$(sed -n "s/^ERROR: //; s/^\[ *ERROR *\] --- //; s/ (MRD_TEST_SEED=$seed)//p" "$log" |
        tail -n 1)
    [[ -n $why ]] || why=$(grep -m 1 -E 'Assertion|ERROR: |runtime error' "$log" || true)
    ((status != 137 && status != 152)) || why="more than $cpu s of processor time"
    [[ -n $why ]] || why="exit status $status"
    # The seed's profile is in a line "swarm (depth) at ...".
    printf 'failed %s %s: %s\n' "$seed" \
        "$(sed -n 's/^.*swarm (\([^)]*\)) at .*/\1/p' "$log" | head -n 1)" "${why:0:200}"
    [[ -z $keep ]] || mv "$log" "$keep/$seed"
}
export -f one
export scratch cpu binary keep

done=0 failed=0
while read -r result seed why; do
    ((++done))
    if [[ $result == failed ]]; then
        ((++failed))
        [[ ! -t 2 ]] || printf '\r\033[K' >&2
        printf 'MRD_TEST_SEED=%s %s  # %s\n' "$seed" "$binary" "$why"
    fi
    [[ ! -t 2 ]] || printf '\r%d of %d seeds, %d failed' "$done" "$seeds" "$failed" >&2
# shellcheck disable=SC2016
done < <(((seeds == 0)) || seq "$from" $((from + seeds - 1)) |
    xargs -P "$jobs" -n 1 bash -c 'one "$1"' swarm)
[[ ! -t 2 ]] || printf '\r\033[K' >&2
printf '%d seeds from %d: %d failed\n' "$seeds" "$from" "$failed"
((done == seeds)) || die "only $done of $seeds seeds were run"
((failed == 0))
