#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# experiments.sh MRD_SIM: the page of the experiments can be made, and the one in the tree is whole.

set -euo pipefail

for tool in jq gnuplot; do
    command -v $tool >/dev/null || { echo "experiments: skipped: no $tool"; exit 77; }
done

sim=$(realpath "$1")
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../tools" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail()
{
    printf 'FAILED: %s\n' "$*" >&2
    exit 1
}

# whole PAGE: all its figures are filled in and its files are there; pictures are small.
whole()
{
    local file files

    ! grep -nE '\{\{|\}\}|(^|[^/])\bnull\b|\bNaN\b|\\\(' "$1" >&2 || fail "$1 has holes"
    files=$(grep -oE '\]\(experiments/[^)]*' "$1" | cut -c3-)
    (($(grep -c 'svg$' <<<"$files") == 11)) || fail "$1 does not have a picture for each experiment"
    for file in $files; do
        file=$(dirname "$1")/$file
        [[ -s $file ]] || fail "no $file"
        (($(stat -c %s "$file") < 60000)) || fail "$file is large"
        [[ $file != *.svg ]] || grep -q '</svg>' "$file" || fail "$file is no picture"
    done
}

"$tools/experiments.sh" --quick -o "$scratch/out" -s "$sim" 2>"$scratch/log" ||
    { tail -n 5 "$scratch/log" >&2; fail 'the script'; }
whole "$scratch/out/EXPERIMENTS.md"
[[ ! -e $tools/EXPERIMENTS.md ]] || whole "$tools/EXPERIMENTS.md"

# Some of it is made anew: the same figures make the same page, and what was wrong with that section alone is mended.
cp "$scratch/out/EXPERIMENTS.md" "$scratch/before"
rm "$scratch/out/experiments/skew.svg"
sed -i '/^## skew/,/^## /{s/ ±.*//; s/Goodput falls/Goodput soars/}' "$scratch/out/EXPERIMENTS.md"
! cmp -s "$scratch/before" "$scratch/out/EXPERIMENTS.md" || fail 'the test changes nothing'
"$tools/experiments.sh" --quick --only skew --only allreduce -o "$scratch/out" -s "$sim" 2>"$scratch/log" ||
    { tail -n 5 "$scratch/log" >&2; fail 'the script with --only'; }
cmp "$scratch/before" "$scratch/out/EXPERIMENTS.md" || fail '--only changes something else'
[[ -s $scratch/out/experiments/skew.svg ]] || fail '--only draws nothing'
! "$tools/experiments.sh" --quick --only walk -o "$scratch/out" -s "$sim" 2>"$scratch/log" || fail 'there is no walk'
grep -q "^.*--only: expected .*, found 'walk'" "$scratch/log" || fail 'what --only takes is not said'
! "$tools/experiments.sh" --quick --only skew -o "$scratch/none" -s "$sim" 2>"$scratch/log" || fail 'a page without one'

# claim QUICK CONDITION: what becomes of a sentence.
claim()
{
    jq -rn --argjson quick "$1" --argjson all '[{}]' --argjson commands '[{}]' \
        "$(cat "$tools/page.jq") claim($2; \"it is so\")" 2>&1
}

[[ $(claim false true) == '' ]] || fail 'a claim that holds leaves something behind'
[[ $(claim true false) == '' ]] || fail 'a claim is checked though it is quick'
! claim false false >"$scratch/claim" || fail 'a claim that does not hold passes'
grep -q 'it is so' "$scratch/claim" || fail 'a claim that does not hold is not named'

# The job script that the page shows runs as it stands, a task of it.
# shellcheck disable=SC2016
sed -n '/^#!\/bin\/bash$/,/^```$/{/^```$/!p}' "$scratch/out/EXPERIMENTS.md" >"$scratch/job"
(cd "$scratch" && PATH=$(dirname "$sim"):$PATH SLURM_ARRAY_TASK_ID=3 bash ./job 2>/dev/null) || fail 'the job script'
jq -e '.experiment == "collision" and .seed == 3' "$scratch/results.3" >/dev/null || fail 'the job has no results'
