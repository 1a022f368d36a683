#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check_circles.sh OBJECT...: no object file uses a symbol of another that uses one of its own, be it by others between.

set -euo pipefail

# Pairs for tsort from the output of `nm -A`: a file, and one whose symbols it uses.
uses()
{
    sed -E 's/^([^:]*): *[0-9a-f]* /\1 /' | awk '
        $2 ~ /^[TDRBVWC]$/ { owner[$3] = $1 }
        $2 == "U" { file[++n] = $1; symbol[n] = $3 }
        END {
            for (i = 1; i <= n; i++)
                if (symbol[i] in owner && owner[symbol[i]] != file[i])
                    print file[i], owner[symbol[i]]
        }'
}

# The check finds a circle: two files call each other, with a third between.
circle=$(printf '%s\n' 'a.o:0 T a' 'a.o: U b' 'b.o:0 T b' 'b.o: U c' 'c.o:0 T c' 'c.o: U a' | uses)
! tsort <<<"$circle" >/dev/null 2>&1 || { echo 'FAILED: no circle is found' >&2; exit 1; }

pairs=$(nm -A "$@" | uses)
(($(wc -l <<<"$pairs") > 10)) || { echo 'FAILED: too few calls between the files' >&2; exit 1; }
tsort <<<"$pairs" >/dev/null || { echo 'FAILED: these files call each other in a circle' >&2; exit 1; }
