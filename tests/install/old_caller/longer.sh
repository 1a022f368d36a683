#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# longer.sh HEADER SIZED_C: a public header as a later version may have it, on stdout: each struct that grows, as the
# list of transport/sized.c says, has one field more.

set -euo pipefail

kinds=$(sed -nE 's/^SIZED\(([a-z_]+), .*/\1/p' "$2" | paste -sd'|')
[[ $kinds ]] || { echo "no struct that grows in $2" >&2; exit 1; }
readonly grow="^struct mrd_($kinds) \\{"

awk -v grow="$grow" '
    $0 ~ grow { inside = 1 }
    inside && /^};/ { print "    uint64_t later[4];"; inside = 0; grown++ }
    { print }
    END { exit grown == 0 }' "$1"
