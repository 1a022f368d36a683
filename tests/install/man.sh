#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# man.sh SOURCE_DIR: the man pages are formatted without a warning.

set -euo pipefail

command -v man >/dev/null && command -v groff >/dev/null || { echo 'man: skipped: no man or no groff'; exit 77; }

failed=0
count=0
for page in "$1"/include/man/*.[1-9] "$1"/tools/man/*.[1-9]; do
    [[ -e $page ]] || continue
    warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=100 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
    [[ -z $warnings ]] || { printf 'FAILED: %s\n%s\n' "$page" "$warnings" >&2; failed=1; }
    count=$((count + 1))
done
((count > 0)) || { echo 'FAILED: there are no man pages' >&2; exit 1; }
exit $failed
