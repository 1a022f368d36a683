#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check_core.sh LIBMRD_CORE_A CORE_DIRECTORY: the engine is sans-I/O, stands in floors, and its parts are a star.
#
# Sans-I/O: what the archive leaves undefined is a short list of functions that touch nothing but memory.
# Floors: a file of core/engine/ uses only files on floors below its own (floors.txt), and parts, and includes no
# headers but those of files below, and its own. So there are no circles.
# A star: the parts, core/*.c, use only themselves and what allowed() lists, and include nothing of
# core/engine/.

set -euo pipefail

readonly archive=$1 core=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

awk '/:$/ { inside = $0 == "core/engine:"; next } inside && NF' "$(dirname "${BASH_SOURCE[0]}")/floors.txt" \
    >"$scratch/floors"

fail()
{
    printf 'FAILED: %s\n' "$@" >&2
    exit 1
}

diff <(tr ' ' '\n' <"$scratch/floors" | sort) <(cd "$core/engine" && printf '%s\n' *.c | sort) >&2 ||
    fail 'the list of floors (<) and the files of core/engine/ (>) differ'
! grep -n '#include "core/engine/' "$core"/*.[ch] >&2 || fail 'a part includes the engine'

# A header is on the floor of its source. Those without one have no functions: they are the ground.
declare -A floor_of=()
floor=0
while read -r -a names; do
    ((++floor))
    for name in "${names[@]}"; do
        floor_of[${name%.c}]=$floor
    done
done <"$scratch/floors"
while IFS=: read -r file header; do
    ((${floor_of[$header]:-0} < ${floor_of[${file%.[ch]}]:-1})) || [[ $header == "${file%.[ch]}" ]] ||
        fail "core/engine/$file includes $header.h, which is not below it"
done < <(cd "$core/engine" && grep -H '#include "core/engine/' ./*.[ch] | sed -E 's,^\./([^:]*):.*core/engine/(.*)\.h"$,\1:\2,')

# OBJECT TYPE SYMBOL, a line each; the object by the name of its source.
nm -A "$archive" | sed -E 's/^[^:]*:([^:]*)\.o: *([0-9a-f]+)? */\1 /' | awk '$2 ~ /^[UTDBRVWCuvwGSAi]$/' >"$scratch/symbols"
[[ $(awk '$2 == "T"' "$scratch/symbols" | wc -l) -gt 50 ]] || fail "too few symbols in $archive"
if grep -qE ' U (__asan_|__tsan_|__ubsan_|__msan_|__gcov|__llvm_prof)' "$scratch/symbols"; then
    echo 'skipped: an instrumented build calls its runtime'
    exit 77
fi

awk '
    # What the compiler itself may call, and what only computes on memory that it is given.
    function sans_io(symbol)
    {
        return symbol ~ /^(mem(cpy|move|set|cmp|chr)|bcmp|__mem(cpy|move|set)_chk|strcmp|strlen|XXH[0-9A-Za-z_]*|abort)$/ ||
            symbol ~ /^(__assert_fail|__cpu_model|__stack_chk_fail|__stack_chk_guard|_GLOBAL_OFFSET_TABLE_)$/ ||
            symbol ~ /^__aarch64_(cas|swp|ld(add|clr|eor|set))[0-9]+_[a-z_]+$/ || # atomics, of libgcc
            symbol ~ /^__(u?(div|mod)|mul|neg|ash[lr]|lshr|float|fix|popcount|clz|ctz|u?cmp)[a-z]*[0-9]*$/
    }

    # May the file `from` use `symbol` of the file `to`?
    function allowed(from, to, symbol)
    {
        if (from == to)
            return 1
        if (from in floor)
            return !(to in floor) || floor[to] < floor[from]
        if (to == "pool.c" || to == "tune.c" || to == "secret.c")
            return 1
        if (from == "wire.c")
            return to == "check.c"
        if (from == "seal.c")
            return to == "wire.c" || to == "hash.c"
        if (from == "qp.c")
            return to == "recvq.c" && symbol ~ /_(init|bytes)$/
        if (from == "loss.c")
            return to == "sent.c"
        if (from ~ /^spray/ && to == "path.c")
            return 1
        if (from == "spray.c")
            return to ~ /^spray_/ && symbol ~ /^mrd_spray_/
        if (from == "cc_nscc.c" && to ~ /^cc_nscc_/)
            return 1
        if (from == "cc.c")
            return to ~ /^cc_/ && symbol ~ /^mrd_cc_/
        if (from ~ /^cc_/ && to == "elastic.c")
            return 1
        if (from ~ /^(spray|cc)_/)
            return to == substr(from, 1, index(from, "_") - 1) ".c"
        if (from == "peer.c")
            return to ~ /^(path|sent|rcv|loss|cc|spray|ids|slot)\.c$/ && symbol ~ /_(init|fini)$/
        return 0
    }

    function complain(what) { print "FAILED: " what; bad = 1 }

    FILENAME ~ /floors$/ { for (i = 1; i <= NF; i++) floor[$i] = FNR; next }
    !second { if ($2 != "U" && $2 != "w" && $2 != "v") home[$3] = $1; next }
    $2 == "U" || $2 == "w" || $2 == "v" {
        if (!($3 in home)) {
            if (!sans_io($3))
                complain($1 " calls " $3 ", which is not sans-I/O")
        } else if (!allowed($1, home[$3], $3)) {
            complain($1 " uses " $3 " of " home[$3])
        }
    }
    END { exit bad }' "$scratch/floors" "$scratch/symbols" second=1 "$scratch/symbols"
