#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check_rounding.sh BUILD_DIR: no file is compiled so that a product and a sum are rounded at once.
#
# Where they were, the engine would decide otherwise on processors that can do that: ARM64, and x86-64 from v3 on.
# tests/install is left out: what it compiles stands for programs of users.

set -euo pipefail

readonly commands=$1/compile_commands.json
[[ -e $commands ]] || { echo "skipped: the generator of $1 writes no compile_commands.json"; exit 77; }

num=$(grep -c '"command":' "$commands")
((num > 100)) || { echo "FAILED: only $num commands in $commands" >&2; exit 1; }
# What comes last holds.
bad=$(sed -n 's/^ *"command": //p' "$commands" | grep -v '/tests/install/' |
    grep -vE -- '-ffp-contract=off( .*)? -c ' || true)
worse=$(sed -n 's/^ *"command": //p' "$commands" |
    grep -E -- '-ffp-contract=off .*-(ffp-contract=(fast|on)|ffast-math|Ofast|funsafe-math-optimizations)' || true)
[[ -z $bad$worse ]] || { printf 'FAILED: without -ffp-contract=off:\n%s\n' "$bad$worse" >&2; exit 1; }
