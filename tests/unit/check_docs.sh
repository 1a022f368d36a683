#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check_docs.sh SOURCE_DIR: each function that a page (*.md) names, as in `mrd_poll_cq()`, is defined in the sources.
#
# A static function has a short name, which the tools or tests may have as well: a page of core/ names those of core/ and
# transport/.

set -euo pipefail

cd "$1"
# Functions of the system that pages name.
readonly system='MPI_Comm_split_type memcpy poll sendmmsg'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

fail()
{
    echo "FAILED: $*" >&2
    failed=1
}

# Functions and macros that the sources in these folders define, with those that tables of functions have.
# defined FOLDER...
defined()
{
    find "$@" -name '*.[ch]' -exec sed -nE \
        -e '/^(extern|typedef)/d' \
        -e '/^[A-Za-z_].*;$/!s/^([A-Za-z_][A-Za-z0-9_ *]*[ *]+)?([A-Za-z_][A-Za-z0-9_]*)\(.*/\2/p' \
        -e 's/^# *define +([A-Za-z_][A-Za-z0-9_]*)\(.*/\1/p' \
        -e 's/^ .*\(\*(const )?([A-Za-z_][A-Za-z0-9_]*)\)\(.*/\2/p' {} +
    find "$@" -name '*.sh' -exec sed -nE 's/^([A-Za-z_][A-Za-z0-9_]*)\(\).*/\1/p' {} +
    tr ' ' '\n' <<<"$system"
}

# Functions that pages name, as PAGE:NAME: name(), and in examples mrd_name(argument). mrd_perf(1) is a manual page.
# named PAGE...
named()
{
    grep -oHE '\b([A-Za-z_][A-Za-z0-9_]*\(\)|mrd_[a-z0-9_]+\(([^0-9]|[0-9]+[^0-9)]|$))' "$@" | sed 's/(.*//' | sort -u
}

# Those of them that are not defined.
dead()
{
    awk -F: 'FILENAME != "-" { known[FILENAME, $1]; next }
        { where = $1 ~ /^core\// && $2 !~ /^(mrd|swarm|sim|udp|test)_/ ? ARGV[1] : ARGV[2] } # a long name is of one folder
        !((where, $2) in known)' "$scratch/engine" "$scratch/all" -
}

defined core transport >"$scratch/engine"
{
    cat "$scratch/engine"
    defined include tools tests examples
} >"$scratch/all"
(($(wc -l <"$scratch/engine") > 1000)) || fail "only $(wc -l <"$scratch/engine") functions were found in core and transport"

# The check finds what is wrong.
mkdir -p "$scratch/pages/core"
cat >"$scratch/pages/core/PAGE.md" <<'PAGE'
A page, see `mrd_sim(1)`, with `mrd_poll_cq()` and a static function, `owe_ack()`, of the engine, `ops->tx_burst()` and
mrd_no_such_call(cq, 1), `no_such_function()`, and `simx_measure()` of a tool.
PAGE
found=$(cd "$scratch/pages" && named core/PAGE.md | dead | paste -sd ' ')
[[ $found == 'core/PAGE.md:mrd_no_such_call core/PAGE.md:no_such_function core/PAGE.md:simx_measure' ]] ||
    fail "made-up names: found '$found'"

# shellcheck disable=SC2046 # our names have no spaces
named $(find README.md core include transport tools tests examples -name '*.md' -o -name '*.md.in') >"$scratch/names"
while IFS=: read -r page name; do
    fail "$page names $name(), which is defined nowhere"
done < <(dead <"$scratch/names")
count=$(wc -l <"$scratch/names")
((count > 200)) || fail "only $count names were found"

((failed)) || echo "docs: all $count names of functions are defined"
exit $failed
