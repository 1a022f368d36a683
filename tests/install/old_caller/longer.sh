#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# longer.sh HEADER: a public header as a later version may have it, on stdout: each struct that grows has one field more.

set -euo pipefail

readonly grow='^struct mrd_(context_attr|qp_init_attr|counter|peer_attr|path_attr|context_info|sim_attr|sim_stats) \{'

awk -v grow="$grow" '
    $0 ~ grow { inside = 1 }
    inside && /^};/ { print "    uint64_t later[4];"; inside = 0; grown++ }
    { print }
    END { exit grown == 0 }' "$1"
