#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# abi.sh [--update] LIBRARY COMPILER INCLUDE: programs that were compiled against earlier headers still run. Compares
# the exported symbols, and the fields and enumerators of the public headers, with INCLUDE/abi.txt. What is there must
# stay; what is new must be added, by --update. Fields named `reserved` may be used up; that structs which never grow
# keep their size is asserted in transport/sized.c. Skips without pahole (package dwarves), and where the file does not
# apply: it is of x86-64.

set -euo pipefail

update=false
[[ $1 != --update ]] || { update=true; shift; }
readonly update library=$1 compiler=$2 include=$3 list=$3/abi.txt

command -v pahole >/dev/null || { echo 'skipped: pahole is not installed (package dwarves)'; exit 77; }
[[ $("$compiler" -dumpmachine) == x86_64* ]] || { echo 'skipped: the list is of x86-64'; exit 77; }
! "$compiler" --version | grep -q clang || { echo 'skipped: pahole counts otherwise in what clang writes'; exit 77; }
scratch=$(mktemp -d)
readonly scratch
trap 'rm -r "$scratch"' EXIT

# A variable of each public type has the compiler describe them all.
{
    printf '#include "mrd/%s.h"\n' mrd sim
    sed -nE 's/^(struct|enum) (mrd_[a-z0-9_]+) \{.*/\1 \2/p' "$include"/mrd/*.h | sort -u |
        tee "$scratch/types" | awk '{ print $1, $2, "v_" $2 ";" }'
} >"$scratch/types.c"
(($(wc -l <"$scratch/types") > 40)) || { echo "only these types were found:"; cat "$scratch/types"; exit 1; } >&2
"$compiler" -gdwarf-4 -I "$include" -c "$scratch/types.c" -o "$scratch/types.o"

# "struct NAME: TYPE FIELD offset OFFSET size BYTES" and "enum NAME: ENUMERATOR = VALUE", in any order.
{
    nm -D --defined-only "$library" | awk '$2 != "A" { print "symbol", $3 }'
    pahole -C "$(awk '{ print $2 }' "$scratch/types" | paste -sd,)" "$scratch/types.o" | awk '
        /^(struct|enum) mrd_/ { type = $1 " " $2; next }
        /\/\* +[0-9]+ +[0-9]+ \*\// {
            offset = $(NF - 2); size = $(NF - 1)
            sub(/; *\/\*.*/, "")
            name = $NF
            sub(/^[*]*/, "", name)
            if (name !~ /^(reserved|v_)/ && name != "}") {
                $1 = $1
                print type ": " $0 " offset " offset " size " size
            }
            next
        }
        type ~ /^enum/ && / = / { sub(/,$/, ""); $1 = $1; print type ": " $0 }'
} | LC_ALL=C sort -u >"$scratch/now"
missing=$(grep -c . <(awk '{ print $1, $2 ":" }' "$scratch/types" | while read -r type; do
    grep -qF "$type " "$scratch/now" || echo "$type"; done) || true)
((missing == 0)) || { echo "pahole described all but $missing types"; exit 1; } >&2

if $update; then
    { echo '# SPDX-License-Identifier: BSD-2-Clause'
      echo '# What programs on x86-64 rely on: see tests/install/abi.sh, which writes this file.'
      cat "$scratch/now"; } >"$list"
    exit
fi
grep -v '^#' "$list" >"$scratch/before"
gone=$(LC_ALL=C comm -23 "$scratch/before" "$scratch/now")
new=$(LC_ALL=C comm -13 "$scratch/before" "$scratch/now")
if [[ $gone ]]; then
    printf 'FAILED: programs that run today would break. Gone, moved or changed:\n%s\nnow:\n%s\n' "$gone" "$new" >&2
    exit 1
fi
if [[ $new ]]; then
    printf 'FAILED: not in include/abi.txt yet; add it by tests/install/abi.sh --update:\n%s\n' "$new" >&2
    exit 1
fi
