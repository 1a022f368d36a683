#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check_fake.sh PROGRAM...: the fake libibverbs gives all verbs that these programs call, none is left to the library.

set -euo pipefail

command -v nm >/dev/null || { echo "skipped: no nm"; exit 77; }
failed=0
for program in "$@"; do
    defined=$(nm "$program" | grep -c ' [Tt] ibv_open_device$' || true)
    ((defined == 1)) || { echo "FAILED: $program has no fake" >&2; failed=1; }
    if nm -u "$program" | grep -E '(^| )_*ibv_'; then
        echo "FAILED: $program takes these from the library" >&2
        failed=1
    fi
done
exit $failed
