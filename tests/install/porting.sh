#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# porting.sh SOURCE_DIR: the tests that include/PORTING.md names are in the tree, and run.

set -euo pipefail

cd "$1"
# shellcheck disable=SC2016 # backticks of markdown
names=$(grep -oE '`[a-z0-9_]+__[a-z0-9_]+`' include/PORTING.md | tr -d '`' | sort -u)
count=$(wc -w <<<"$names")
failed=0

for name in $names; do
    grep -rqE "^ +[A-Za-z_]+\(${name}[,)]" tests --include='*.c' ||
        { echo "FAILED: include/PORTING.md names the test $name, which does not run" >&2; failed=1; }
done
((count >= 30)) || { echo "FAILED: only $count tests are found in include/PORTING.md" >&2; failed=1; }
((failed)) || echo "porting: all $count tests run"
exit $failed
