#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check_headers.sh SOURCE_DIR [CC]: checks that every header compiles by itself.

set -euo pipefail

cd "$1"
readonly cc=${2:-cc}
failed=0
count=0
verbs=yes
"$cc" -fsyntax-only -x c - <<<'#include <infiniband/verbs.h>' 2>/dev/null || verbs=no

# shellcheck disable=SC2044 # our names have no spaces
for header in $(find include core transport tests tools -name '*.h'); do
    [[ $verbs == no && $header == *ibv* ]] && continue # not built without libibverbs
    # Compile a file that includes it: for a header itself cc warns of unused static functions.
    printf '#include "%s"\n' "$header" |
        "$cc" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -I. -Iinclude -fsyntax-only -x c - ||
        { echo "FAILED: $header does not compile alone" >&2; failed=1; }
    count=$((count + 1))
done
((count > 20)) || { echo "FAILED: only $count headers were found" >&2; exit 1; }
exit $failed
