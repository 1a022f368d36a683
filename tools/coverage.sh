#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
How much of core/ the unit and simulated tests run: builds it with counters, runs them, and prints
lines and branches of each file. Exit 1 if a test fails, or if too little is run.

usage: coverage.sh [-v] [-n] [DIRECTORY]

  -v          print as well which functions and lines never ran, and which branches were never taken
  -n          do not build and run: print what the last run left
  DIRECTORY   where to build (default build-coverage)

At least 92% of the lines and 80% of the branches must run. Branches of assertions do not count:
they are there not to be taken.
USAGE
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly lines_min=92 branches_min=80

die()
{
    echo "coverage.sh: $*" >&2
    exit 1
}

readonly which=(-L '^(unit|sim)$' -R '^test_')

# Builds and runs only what runs core/: neither tools nor devices.
run_tests()
{
    local tests

    rm -rf "$directory"
    cmake -S . -B "$directory" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS='-O1 --coverage' \
        -DMRD_LTO=OFF -DMRD_TOOLS=OFF -DMRD_IBV=OFF -DMRD_TESTS=ON >/dev/null
    mapfile -t tests < <(ctest --test-dir "$directory" -N "${which[@]}" |
        sed -n 's/^ *Test *#.*: //p')
    ((${#tests[@]} > 0)) || die 'there are no tests'
    if ! cmake --build "$directory" --target "${tests[@]}" >"$directory/build.log"; then
        tail "$directory/build.log" >&2
        die 'the build fails'
    fi
    if ! ctest --test-dir "$directory" "${which[@]}" --timeout 900 --parallel "$(nproc)" \
        --output-on-failure >"$directory/test.log"; then
        tail -n 50 "$directory/test.log" >&2
        die 'tests fail'
    fi
}

# A line a file, and one for all: file, lines, branches.
print_table()
{
    jq -r '(.files[] | [.filename, .line_percent, .branch_percent]),
        ["together", .line_percent, .branch_percent] | @tsv' "$directory/summary.json" |
        awk -F '\t' '
            BEGIN { printf "%-32s %8s %10s\n", "", "lines", "branches" }
            { printf "%-32s %7.1f%% %9.1f%%\n", $1, $2, $3 }'
}

print_holes()
{
    jq -r '.files[] | .file as $file
        | (.functions[] | select(.execution_count == 0)
            | "\($file):\(.lineno): \(.name)() is never called"),
          (.lines[] | select(."gcovr/noncode" | not) | "\($file):\(.line_number): " as $at
            | (.branches | length) as $all
            | ([.branches[] | select(.count == 0)] | length) as $never
            | if .count == 0 then $at + "never run"
              elif $never > 0 then $at + "\($never) of \($all) branches never taken"
              else empty end)' "$directory/detail.json"
}

verbose=no run=yes
while getopts :vnh option; do
    case $option in
    v) verbose=yes ;;
    n) run=no ;;
    h) usage; exit ;;
    *) usage >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
(($# <= 1)) || { usage >&2; exit 2; }
directory=${1-build-coverage}
for tool in gcovr jq ninja; do
    command -v $tool >/dev/null || die "no $tool (tools/install-deps.sh ci)"
done

[[ $run == no ]] || run_tests
gcovr --root . --object-directory "$directory" --filter 'core/' \
    --exclude-branches-by-pattern '.*\bassert\(.*' --json-summary "$directory/summary.json" \
    --json "$directory/detail.json" "$directory/core" || die 'gcovr fails'
[[ $verbose == no ]] || print_holes
print_table
jq -e --argjson lines $lines_min --argjson branches $branches_min \
    '.line_percent >= $lines and .branch_percent >= $branches' \
    "$directory/summary.json" >/dev/null ||
    die "less than $lines_min% of the lines or $branches_min% of the branches"
