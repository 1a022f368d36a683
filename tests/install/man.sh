#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# man.sh SOURCE_DIR: the man pages are formatted without a warning; every public call has its page, where it is declared
# as in its header; every counter is explained, and none that is gone.

set -euo pipefail

command -v man >/dev/null && command -v groff >/dev/null || { echo 'man: skipped: no man or no groff'; exit 77; }

cd "$1"
failed=0

fail()
{
    printf 'FAILED: %s\n' "$*" >&2
    failed=1
}

# The section of a page under a heading, on one line, without the markup that our synopses use.
section()
{
    awk -v heading=".SH $1" '$0 == heading { inside = 1; next } /^\.SH / { inside = 0 } inside' "$2" |
        sed -E 's/^\.B +//; s/^"(.*)"$/\1/; s/\\-/-/g' | tr '\n' ' ' | tr -s ' '
}

# The declarations of a header, one a line, as section() gives them.
declarations()
{
    sed '/^#/d' "$1" | tr '\n' ' ' | sed -E 's@/\*([^*]|\*+[^*/])*\*+/@@g' | tr ';' '\n' |
        sed -nE 's/.*MRD_EXPORT +(.*[^ ]) *$/\1;/p' | sed -E 's/ MRD_MUST_CHECK;$/;/' | tr -s ' ' |
        sed 's/\* /*/g'
}

count=0
for page in include/man/*.[1-9] tools/man/*.[1-9]; do
    [[ -e $page ]] || continue
    warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=100 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
    [[ -z $warnings ]] || fail "$page: $warnings"
    count=$((count + 1))
done
((count > 1)) || fail "only $count man pages were found"

names='' synopses=''
for page in include/man/*.3; do
    names+=" $(section NAME "$page" | sed 's/ - .*//; s/,/ /g') "
    synopses+=" $(section SYNOPSIS "$page") "
done

calls=0
for header in include/mrd/*.h; do
    while read -r declaration; do
        [[ $declaration =~ (mrd_[a-z0-9_]+)\( ]] || { fail "$header: what is \"$declaration\"?"; continue; }
        name=${BASH_REMATCH[1]}
        [[ $names == *" $name "* ]] || fail "$name of $header is in no man page's NAME"
        [[ $synopses == *" $declaration "* ]] || fail "no man page declares: $declaration"
        calls=$((calls + 1))
    done < <(declarations "$header")
done
((calls > 40)) || fail "only $calls calls were found"
# shellcheck disable=SC2086 # split on purpose
[[ $(printf '%s\n' $names | sort -u | wc -l) -eq $calls ]] || fail "man pages name calls that there are not:$names"

# Counters of the engine, and of the context around it.
counters=$(
    sed -nE 's/^ *X\(([a-z_]+), *"([a-z]+)".*/\1 \2/p' core/stats.h
    tr '\n' ' ' <transport/api_query.c | grep -oE '\{\.name = "[a-z_]+", *\.unit = "[a-z]+"' |
        sed -E 's/.*name = "([a-z_]+)".*unit = "([a-z]+)"/\1 \2/'
)
explained=$(sed -nE 's/^\.BR ([a-z_]+) " \(([a-z]+)\)"$/\1 \2/p' include/man/mrd.7)
(($(wc -l <<<"$counters") > 40)) || fail "only these counters were found: $counters"
diff <(sort <<<"$counters") <(sort <<<"$explained") || fail '< is counted and not in mrd.7, > the other way round'

exit $failed
