#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check_fake.sh PROGRAM: the fake libibverbs gives all verbs that this program calls, none is left to the library.

set -euo pipefail

command -v nm >/dev/null || { echo "skipped: no nm"; exit 77; }
nm "$1" | grep ' [Tt] ibv_open_device$' >/dev/null || { echo "FAILED: $1 has no fake" >&2; exit 1; }
! nm -u "$1" | grep -E '(^| )_*ibv_' || { echo "FAILED: $1 takes these from the library" >&2; exit 1; }
