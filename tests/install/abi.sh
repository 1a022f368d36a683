#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# abi.sh [--update] [COMPILER]: programs that were compiled against earlier headers still run. abidiff compares the
# calls, structs and enums of the public headers with include/mrd.abi. --update writes that file anew: for additions
# that include/CHANGES.md allows under "What may grow".
#
# What is compared is not the library, whose debug information depends on how it is built, but one made of the headers:
# each call has an empty body, and a variable points to each type, so that those which no call names are there, too.
# That the library exports the same calls is for exports.sh to check; that it defines them alike, for its compiler.
#
# Skips without abidiff (package abigail-tools), and where the file does not apply: it is of x86-64.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
update=false
[[ ${1-} != --update ]] || { update=true; shift; }
readonly update compiler=${1-cc} stored=include/mrd.abi

command -v abidiff >/dev/null || { echo 'skipped: abidiff is not installed (package abigail-tools)'; exit 77; }
[[ $("$compiler" -dumpmachine) == x86_64* ]] || { echo "skipped: $stored is of x86-64"; exit 77; }
scratch=$(mktemp -d)
readonly scratch
trap 'rm -r "$scratch"' EXIT

# A line for each call, the declarations before it on the same; and the variable.
source_of_headers()
{
    printf '#include "mrd/%s.h"\n' mrd sim | "$compiler" -E -P -I include -x c - | tr '\n' ' ' |
        sed -E 's/__attribute__\(\(warn_unused_result\)\)//g
            s/(__attribute__\(\(visibility\("default"\)\)\)[^;]*);/\1 { __builtin_trap(); }\n/g'
    echo 'union all_types {'
    sed -nE 's/^(struct|enum) (mrd_[a-z0-9_]+) \{.*/\1 \2 *\2;/p' include/mrd/*.h
    echo '} all_types;'
}

# build NAME: NAME.so of NAME.c
build()
{
    { cat transport/mrd.map; echo 'TYPES { global: all_types; };'; } >"$scratch/map"
    (cd "$scratch" && "$compiler" -g -O0 -w -fPIC -shared -Wl,--version-script=map "$1.c" -o "$1.so")
}

# changes NAME: prints how NAME.so differs from the stored file. Fails if it does, or cannot be compared.
changes()
{
    abidiff --no-default-suppression --harmless --no-show-locs "$stored" "$scratch/$1.so"
}

source_of_headers >"$scratch/mrd.c"
calls=$(grep -c __builtin_trap "$scratch/mrd.c" || true)
types=$(grep -cE '^(struct|enum) mrd_[a-z0-9_]+ \*' "$scratch/mrd.c" || true)
((calls > 80 && types > 55)) || { echo "only $calls calls and $types types were found" >&2; exit 1; }
build mrd

if $update; then
    abidw --no-corpus-path --no-comp-dir-path --no-elf-needed --no-show-locs --no-parameter-names \
        --type-id-style hash "$scratch/mrd.so" |
        sed '1a <!-- SPDX-License-Identifier: BSD-2-Clause -->' >"$stored" # abidiff knows a file by its first line
    exit
fi
if ! changes mrd >"$scratch/changes" 2>&1; then
    cat "$scratch/changes" >&2
    echo "FAILED: the headers differ from $stored. What is there must stay, or programs that run today break." >&2
    echo 'After an addition that include/CHANGES.md allows: tests/install/abi.sh --update' >&2
    exit 1
fi

# noticed SED-EXPRESSION WORDS: such a change of the headers must be reported, in these words.
noticed()
{
    sed -E "$1" "$scratch/mrd.c" >"$scratch/broken.c"
    build broken
    if changes broken >"$scratch/changes" 2>&1 || ! grep -qF "$2" "$scratch/changes"; then
        cat "$scratch/changes" >&2
        echo "FAILED: abidiff does not report '$2' after $1" >&2
        exit 1
    fi
}

noticed 's/\bmrd_poll_cq\(/other(/' '1 Removed function'
noticed 's/(struct mrd_sge \{)/\1 int before;/' 'int before'
noticed 's/(mrd_poll_cq\([^,]*,) int /\1 long /' "from 'int' to 'long int'"
noticed 's/(MRD_SEND_FENCE = )1/\116/' "'mrd_send_flags::MRD_SEND_FENCE' from value '1' to '16'"
echo "abi: $calls calls and $types types are as stored"
