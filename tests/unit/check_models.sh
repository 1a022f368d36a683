#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check_models.sh SOURCE_DIR LIBMRD_MODELS_A LIBRARY...: the libraries know nothing of the models of other transports.
#
# They define none of the models' functions and no symbol named after a model; their sources include nothing of tools/.

set -euo pipefail

readonly source=$1 models=$2
shift 2
failed=0

# complain WHAT LINES: the test fails if there are lines.
complain()
{
    [[ -z $2 ]] && return
    printf 'FAILED: %s:\n%s\n' "$1" "$2" >&2
    failed=1
}

# defined OPTION... FILE: the symbols, but for those of compilers.
defined()
{
    nm --defined-only "$@" 2>/dev/null | awk 'NF == 3 && $3 !~ /^__/ { print $3 }' | sort -u
}

of_models=$(defined --extern-only "$models")
(($(wc -l <<<"$of_models") > 10)) || { echo "FAILED: too few symbols in $models" >&2; exit 1; }
for library in "$@"; do
    symbols=$(defined "$library")
    (($(wc -l <<<"$symbols") > 40)) || { echo "FAILED: too few symbols in $library" >&2; exit 1; }
    complain "$library defines what a model does" "$(comm -12 <(echo "$of_models") <(echo "$symbols"))"
    complain "$library has symbols named after a model" \
        "$(grep -E '(^|_)(models?|rc|irn|dcqcn|cnp|cubic)(_|$)' <<<"$symbols" || true)"
done
complain 'the library includes what belongs to tools' \
    "$(grep -rn '#include "tools/' --include='*.[ch]' "$source"/{include,core,transport} || true)"
exit $failed
