#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Checks tests/mutate.sh: every mutation applies to the core, the turns reach all of them, and wrong
# options are refused.

set -euo pipefail

script=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../mutate.sh")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail()
{
    printf 'FAILED: %s\n' "$*" >&2
    exit 1
}

# refused TEXT ARGUMENT...: the script must refuse these arguments, with a message that has TEXT.
refused()
{
    local status=0

    "$script" "${@:2}" >"$scratch/out" 2>&1 || status=$?
    ((status == 2)) || fail "${*:2}: exit status $status, not 2"
    grep -qF -- "$1" "$scratch/out" || { cat "$scratch/out" >&2; fail "${*:2}: no '$1'"; }
}

"$script" --list >"$scratch/all" || fail 'one does not apply'
num=$(wc -l <"$scratch/all")
((num >= 64)) || fail "only $num mutations"

turns=$(((num + 29) / 30))
for ((turn = 7; turn < 7 + turns; turn++)); do
    "$script" --list --sample 30 --turn $turn >"$scratch/turn"
    (($(wc -l <"$scratch/turn") <= 30)) || fail "turn $turn has more than its sample"
    cat "$scratch/turn"
done | sort >"$scratch/reached"
diff <(sort "$scratch/all") "$scratch/reached" || fail 'the turns do not reach each once'

[[ $("$script" --list --only psn_twice) == 'psn_twice: '* ]] || fail 'one by name'
refused 'there is no such_thing' --only such_thing
refused 'takes a number' --jobs many
refused 'takes a number' --sample 0
refused 'what is' stray
refused 'unrecognized' --none
"$script" --help | grep -q 'usage: mutate.sh' || fail 'no help'
echo 'mutate.sh: all well'
