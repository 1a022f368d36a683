#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# compare.sh MRD_PERF: the page of the comparison can be made, and the one in the tree is whole.

# shellcheck source=tests/rdma/lib.sh
source "$(dirname "$0")/lib.sh"

# whole PAGE: all its figures are filled in, and its picture is one.
whole()
{
    ! grep -nE '\{\{|\}\}|(^|[^/])\bnull\b|\bNaN\b|\\\(' "$1" >&2 || fail "$1 has holes"
    grep -q '](compare.svg)' "$1" || fail "$1 shows no picture"
    grep -q '</svg>' "$(dirname "$1")/compare.svg" || fail "the picture of $1 is none"
}

for tool in jq gnuplot; do
    command -v $tool >/dev/null || skip "no $tool"
done
why=$("$root/tools/vmlab.sh" check 2>&1) || skip "no RDMA devices: $why"
perf=$(realpath "$1")
prepare
"$root/tools/compare.sh" --quick -o "$scratch/page" -p "$perf" >log 2>&1 || { tail -n 20 log; fail 'tools/compare.sh'; }
whole page/COMPARE.md
for transport in raw-ud mrd-ibv rc; do
    grep -q "mrd_perf write_bw --transport $transport " page/COMPARE.md || fail "the page does not say how $transport ran"
done
whole "$root/tools/COMPARE.md"
