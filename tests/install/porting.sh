#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# porting.sh SOURCE_DIR: the tests that include/PORTING.md names are in the tree, and run; each row of a table with the
# column "shown by" names one, or says "none: " and why. The page names each call and each flag, opcode, status and
# event of mrd/mrd.h.

set -euo pipefail

cd "$1"
readonly page=include/PORTING.md
# shellcheck disable=SC2016 # backticks of markdown
names=$(grep -oE '`[a-z0-9_]+__[a-z0-9_]+`' $page | tr -d '`' | sort -u)
count=$(wc -w <<<"$names")
failed=0

fail()
{
    echo "FAILED: $*" >&2
    failed=1
}

running=$(grep -rhoE '^TEST[A-Z_]*\(([a-z_]+, )?[a-z0-9_]+__[a-z0-9_]+[,)]' tests --include='*.c' | sed -E 's/.*[( ]//; s/.$//' | sort -u)
for name in $(comm -23 <(echo "$names") <(echo "$running")); do
    fail "$page names the test $name, which does not run"
done
((count >= 90)) || fail "only $count tests are found in $page"

# Rows of such tables, without their heads.
rows=$(awk -F' *\\| *' '
    !/^\|/ { shown = 0 }
    /^\|/ && $(NF - 1) == "shown by" { shown = 1; getline; next }
    shown { print $2 "\t" $(NF - 1) }' $page)
(($(wc -l <<<"$rows") >= 70)) || fail "only $(wc -l <<<"$rows") rows with tests are found in $page"
while IFS=$'\t' read -r row shown; do
    [[ $shown == *__* || $shown == none:\ * ]] || fail "$page: no test shows the row: $row"
done <<<"$rows"

# A call of verbs stands for the one of the same name.
calls=$(sed -nE "s/^ *<elf-symbol name='(mrd_[a-z0-9_]+)' .*/\1/p" include/mrd.abi | grep -vE '^mrd_sim_|_sized$')
for call in $calls; do
    grep -qE "\b(mrd|ibv)_${call#mrd_}\b" $page || fail "$page does not name $call"
done
((${#calls} > 800)) || fail 'only these calls are found in include/mrd.abi:' "$calls"
enums='access_flags|send_flags|wr_opcode|wc_opcode|wc_status|wc_flags|event_type|qp_attr_mask|qp_state'
values=$(sed -nE "/<enum-decl name='mrd_($enums)'/,/<\/enum-decl>/ s/^ *<enumerator name='(MRD_[A-Z0-9_]+)' .*/\1/p" include/mrd.abi)
(($(wc -l <<<"$values") >= 40)) || fail 'only these flags are found in include/mrd.abi:' "$values"
for name in $values; do
    grep -q "\b$name\b" $page || fail "$page does not name $name"
done

((failed)) || echo "porting: all $count tests run"
exit $failed
