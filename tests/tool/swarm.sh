#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Checks tests/swarm.sh: it names the seeds that fail, crash or hang, and goes on with the others.

set -euo pipefail

script=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../swarm.sh")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail()
{
    printf 'FAILED: %s\n' "$*" >&2
    exit 1
}

# expect STATUS TEXT ARGUMENT...: runs the script; checks its exit status, and that it prints TEXT.
expect()
{
    local status=0 want=$1 text=$2

    "$script" --jobs 2 --cpu 1 --binary "$scratch/swarm" "${@:3}" >"$scratch/out" 2>&1 || status=$?
    ((status == want)) || { cat "$scratch/out" >&2; fail "${*:3}: exit status $status, not $want"; }
    grep -qF -- "$text" "$scratch/out" || { cat "$scratch/out" >&2; fail "${*:3}: no '$text'"; }
}

# A program in place of the swarm: seed 12 fails, 13 crashes, 14 hangs, all others succeed.
cat >"$scratch/swarm" <<'E2'
#!/bin/bash
case $MRD_TEST_SEED in
12)
    echo 'swarm (depth) at 17 us'
    echo "[  ERROR   ] --- two is not one (MRD_TEST_SEED=12)"
    exit 1
    ;;
13) kill -ABRT $$ ;;
14) while :; do :; done ;;
esac
E2
chmod +x "$scratch/swarm"

expect 0 '2 seeds from 10: 0 failed' --seeds 2 --from 10
expect 0 '0 seeds from 1: 0 failed' --seeds 0
expect 1 '10 seeds from 8: 3 failed' --seeds 10 --from 8 --keep "$scratch/kept"
grep -qE "^MRD_TEST_SEED=12 .*swarm  # depth: two is not one$" "$scratch/out" ||
    fail 'seed 12 is not explained'
grep -qE '^MRD_TEST_SEED=13 .*exit status 134$' "$scratch/out" || fail 'seed 13 is not explained'
grep -qE '^MRD_TEST_SEED=14 .*more than 1 s of processor time$' "$scratch/out" ||
    fail 'seed 14 is not explained'
[[ $(ls "$scratch/kept") == $'12\n13\n14' ]] || fail 'other files were kept'
expect 2 'takes a number' --seeds many
expect 2 'build it first' --binary "$scratch/none"
expect 2 'what is' --seeds 1 stray
expect 0 'usage: swarm.sh' --help
echo 'swarm.sh: all well'
