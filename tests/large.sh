#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
Run mrd_sim on fabrics of thousands of hosts, and compare the slowest flow with bounds.

usage: large.sh [--build DIRECTORY]

  --build DIRECTORY  where tools/mrd_sim was built (default: build)
  --help             print this text

Each line that is printed has the mean of the slowest flow's time over the seeds 1 to 3, and its bound. Two minutes, and
2 GB. Exit status: 0 if all are within their bounds, 1 if not, 77 if something is missing here, 2 for a wrong option.
USAGE
}

build=build
options=$(getopt -n large.sh -o h -l build:,help -- "$@") || exit 2
eval set -- "$options"
while [[ $1 != -- ]]; do
    case $1 in
    --build) build=$2; shift 2 ;;
    *) usage; exit ;;
    esac
done
shift
(($# == 0)) || { echo "large.sh: what is '$1'?" >&2; exit 2; }
build=$(realpath -m "$build")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/common.sh
source tools/common.sh
die_status=77
need jq
[[ -x $build/tools/mrd_sim ]] || die "no $build/tools/mrd_sim: build it first"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# Fat trees of 400 Gb/s with 600 ns a link, marks between 0.2 and 0.8 BDP, and headers as uet-htsim counts them.
fabric=(--tiers 3 --gbps 400 --delay 0.6 --wire-overhead htsim)
failed=0

# within BOUND_US EXPERIMENT OPTION...: the slowest flow's time, as the mean of three seeds, is at most that.
within()
{
    local bound=$1 mean

    shift
    if ! (cd "$scratch" && "$build/tools/mrd_sim" "$@" "${fabric[@]}" --seeds 3 --jobs 1 --quiet --json) \
        >"$scratch/result" 2>"$scratch/log"; then
        tail -n 3 "$scratch/log" >&2
        failed=1
        return
    fi
    mean=$(jq .mean.fct_us.max "$scratch/result")
    printf '%9.2f us, at most %7s: mrd_sim %s\n' "$mean" "$bound" "$* ${fabric[*]}"
    if ! jq -e --argjson bound "$bound" '.mean.fct_us.max <= $bound' "$scratch/result" >/dev/null; then
        echo 'large.sh: that is too slow' >&2
        failed=1
    fi
}

permutation 8192 1000000 >"$scratch/permutation_8192.cm"
permutation 1024 20000 >"$scratch/permutation_1024.cm"

# The bounds are what was measured, and a seed's spread of it.
within 36.0 run -tm permutation_8192.cm --hosts 8192 --leaf-hosts 16
within 8.9 run -tm permutation_1024.cm --hosts 1024 --leaf-hosts 8
within 4140 incast --senders 1023 --size 100000 --hosts 1024 --leaf-hosts 8
exit $failed
