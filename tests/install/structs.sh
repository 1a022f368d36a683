#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# structs.sh SOURCE_DIR: the table "What may grow" of include/CHANGES.md has each struct of the public headers once, and
# says of each what transport/sized.c asserts.

set -euo pipefail

cd "$1"
readonly page=include/CHANGES.md
failed=0

fail()
{
    echo "FAILED: $*" >&2
    failed=1
}

# Rows of the table whose second cell matches: the structs that they name, sorted.
# shellcheck disable=SC2016 # backticks of markdown
structs_of()
{
    awk -F' *\\| *' -v how="$1" '/^\| `mrd_/ && $3 ~ how { print $2 }' $page | grep -oE 'mrd_[a-z_]+' | sort
}

# The names that sized.c gives to a macro at the start of a line, sorted.
asserted()
{
    sed -nE "s/^$1\(([a-z_]+), .*/mrd_\1/p" transport/sized.c | sort
}

compare()
{
    diff <(echo "$2") <(echo "$3") >&2 || fail "$1: < is in $page, > is not"
}

declared=$(sed -nE 's/^struct (mrd_[a-z_]+) \{.*/\1/p' include/mrd/*.h | sort)
(($(wc -l <<<"$declared") > 30)) || fail "only these structs were found: $declared"
compare 'structs of the headers' "$(structs_of .)" "$declared"
compare 'structs whose size is told' "$(structs_of 'caller.s size')" "$(asserted SIZED)"
compare 'structs of fixed size' "$(structs_of '^never')" "$(asserted FIXED)"

# Those that a caller fills have a mask.
for struct in $(structs_of comp_mask); do
    awk -v struct="$struct" '$0 == "struct " struct " {" { getline; print }' include/mrd/*.h |
        grep -q 'uint64_t comp_mask;' || fail "struct $struct does not begin with comp_mask"
done

((failed)) || echo "structs: all $(wc -l <<<"$declared") are told of"
exit $failed
