#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check_floors.sh FLOORS FOLDER OBJECT...: each file of the folder calls only files on floors below its own, as FLOORS
# lists them, and each is listed.

set -euo pipefail

readonly floors=$1 folder=$2
shift 2

# The floors of one folder, a line each.
floors_of()
{
    awk -v folder="$1:" '/:$/ { inside = $0 == folder; next } inside && NF && !/^#/' "$2"
}

# Calls that do not go down, in the output of `nm -A`, by the floors in the file $1.
calls_up()
{
    sed -E 's,^([^:]*/)?([^:/]*)\.o: *[0-9a-f]* ,\2 ,' | awk '
        FILENAME != "-" { for (i = 1; i <= NF; i++) floor[$i] = FNR; next }
        $2 ~ /^[TDRBVWC]$/ { home[$3] = $1 }
        $2 == "U" { from[++n] = $1; symbol[n] = $3 }
        END {
            for (i = 1; i <= n; i++) {
                to = home[symbol[i]]
                if (to != "" && to != from[i] && floor[to] >= floor[from[i]])
                    print from[i] " uses " symbol[i] "() of " to ", which is not below it"
            }
        }' "$1" -
}

fail()
{
    printf 'FAILED: %s\n' "$@" >&2
    exit 1
}

# The check finds a call upwards, and one on the same floor.
found=$(printf '%s\n' 'x/low.c.o:0 T low' 'x/low.c.o: U high' 'x/high.c.o:0 T high' 'x/high.c.o: U low' \
    'x/beside.c.o: U high' | calls_up <(printf '%s\n' low.c 'high.c beside.c'))
[[ $found == 'low.c uses high() of high.c, which is not below it
beside.c uses high() of high.c, which is not below it' ]] || fail "calls upwards are not found: $found"

# A build without some library has fewer objects; but each is listed, and what is listed has a source.
listed=$(floors_of "$folder" "$floors" | tr ' ' '\n' | sort)
missing=$(printf '%s\n' "${@##*/}" | sed 's/\.o$//' | sort | comm -13 <(echo "$listed") -)
[[ -z $missing ]] || fail "not among the floors of $folder/: $missing"
sources=$(find "$(dirname "$floors")/../../$folder" -name '*.c' -printf '%f\n' | sort)
missing=$(comm -23 <(echo "$listed") <(echo "$sources"))
[[ -z $missing ]] || fail "among the floors of $folder/, but not there: $missing"
up=$(nm -A "$@" | calls_up <(floors_of "$folder" "$floors"))
[[ -z $up ]] || fail "$folder/: $up"
