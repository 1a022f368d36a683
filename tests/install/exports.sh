#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# exports.sh LIBRARY HEADER...: the shared library exports what the public headers declare with MRD_EXPORT, each in a
# node of a release, and nothing else. include/mrd.abi tells in which.

set -euo pipefail

readonly library=$1
shift

exported()
{
    nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sed -E 's/@@MRD_[0-9]+\.[0-9]+$/@@MRD_release/' | sort
}

# Comments go, so that only declarations are left; then the name before the first parenthesis after MRD_EXPORT.
declared()
{
    cat "$@" | tr '\n' ' ' | sed -E 's@/\*([^*]|\*+[^*/])*\*+/@@g' | tr ';' '\n' |
        sed -nE 's/.*MRD_EXPORT[^(]*[ *](mrd_[a-z0-9_]+)\(.*/\1@@MRD_release/p' | sort
}

declared=$(declared "$@")
(($(wc -l <<<"$declared") > 40)) || { echo "only these declarations were found: $declared" >&2; exit 1; }
diff <(echo "$declared") <(exported) && exit
echo 'FAILED: < is declared and not exported, > is exported and not declared' >&2
exit 1
