#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Checks tests/mutate.sh: every mutation applies to the core, the turns reach all of them, and wrong
# options and lists are refused; and how tests/mutations/apply.awk finds what is to be replaced.

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

# A tree with one source, whose mutations each case below writes anew.
tree=$scratch/tree
mkdir -p "$tree/core" "$tree/tests/mutations"
cp "$script" "$tree/tests"
cp "$(dirname "$script")/mutations/apply.awk" "$tree/tests/mutations"
cat >"$tree/core/part.c" <<'SOURCE'
static bool is_late(const struct part *p, int limit);

static const int limits[] = {1, 2};

static bool
is_early(const struct part *p, int limit)
{
    if (p->at > limit) /* limit < p->at */
        return false;
    return p->at < limit;
}

static bool is_late(const struct part *p,
                    int limit)
{
    if (p->limit < limit) // not p->at
        limit--;
    limit--;
    return p->at /* since */ <
           limit;
}
SOURCE

# mutation: the only one is that of stdin.
mutation()
{
    { printf 'name the_one\nrule It holds.\n'; cat; } >"$tree/tests/mutations/list.txt"
}

# changes LINE...: of the source, these become those, which begin with - and + as in a diff.
changes()
{
    "$tree/tests/mutate.sh" --list >/dev/null || fail "does not apply: $(<"$tree/tests/mutations/list.txt")"
    sed '1,2d' "$tree/tests/mutations/list.txt" >"$scratch/edits"
    awk -v edits="$scratch/edits" -v source="$tree/core/part.c" -f "$tree/tests/mutations/apply.awk" >"$scratch/part.c"
    diff <(printf '%s\n' "$@") <(diff "$tree/core/part.c" "$scratch/part.c" | sed -n 's/^</-/p; s/^>/+/p') ||
        fail "replaced otherwise: $(<"$tree/tests/mutations/list.txt")"
}

# does_not_apply TEXT
does_not_apply()
{
    script=$tree/tests/mutate.sh refused "$1" --list
}

mutation <<<'in core/part.c:is_late
- p->at<limit
+ true'
changes '-     return p->at /* since */ <' '-            limit;' '+     return true;'
mutation <<<'in core/part.c:is_late
- #2 limit--;'
changes '-     limit--;' '+     '
mutation <<<'in core/part.c:limits
- 1,
+ 0,

in core/part.c:is_early
- if (p->at > limit)
-     return false;

- p->at < limit
+ !(p->at < limit)'
changes '- static const int limits[] = {1, 2};' '+ static const int limits[] = {0, 2};' \
    '-     if (p->at > limit) /* limit < p->at */' '-         return false;' '-     return p->at < limit;' \
    '+     ' '+     return !(p->at < limit);'
mutation <<<'in core/part.c
- p->limit < limit
+ false'
changes '-     if (p->limit < limit) // not p->at' '+     if (false) // not p->at'

mutation <<<'in core/part.c:is_late
- limit--;'
does_not_apply "mutate.sh: the_one: \`limit--;\` is 2 times in core/part.c:is_late"
mutation <<<'in core/part.c:is_early
- limit--;'
does_not_apply 'is 0 times in core/part.c:is_early'
mutation <<<'in core/part.c:is_late
- #3 limit--;'
does_not_apply 'is 2 times in core/part.c:is_late'
mutation <<<'in core/part.c:is_late
- >at < limit'
does_not_apply 'is 0 times in core/part.c:is_late'
mutation <<<'in core/part.c
- p->at < limit'
does_not_apply 'at < limit` is 2 times in core/part.c'
mutation <<<'in core/part.c:late
- limit--;'
does_not_apply 'there is no core/part.c:late'
mutation <<<'in core/parts.c:is_late
- limit--;'
does_not_apply 'there is no core/parts.c'
mutation <<<'in core/part.c:is_late'
does_not_apply 'the_one: it changes nothing'
mutation <<<'in core/part.c:is_late
- p->at < limit
in core/other.c:is_late
- p->at < limit'
does_not_apply 'the_one is in two files'
mutation <<<'- limit--;'
does_not_apply 'the_one has no rule, or is in no file'
mutation <<<'limit--;'
does_not_apply "what is 'limit--;'?"
echo 'mutate.sh: all well'
