#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
clang-tidy over core/, transport/, tools/ and examples/, with the checks of .clang-tidy. Exit 1 if
it finds something.

usage: tidy.sh [-d DIRECTORY] [FILE.c...]

  -d DIRECTORY   where the compile commands go (default build-tidy); nothing is built
  FILE.c...      only these

A minute of processor time. Needs clang, clang-tidy, cmake, ninja and jq.
USAGE
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
directory=build-tidy
while getopts :d:h option; do
    case $option in
    d) directory=$OPTARG ;;
    h) usage; exit ;;
    *) usage >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
for tool in clang clang-tidy cmake jq ninja; do
    if ! command -v $tool >/dev/null; then
        echo "tidy.sh: no $tool (tools/install-deps.sh build ci)" >&2
        exit 1
    fi
done

cmake -S . -B "$directory" -G Ninja -DCMAKE_C_COMPILER=clang -DMRD_TESTS=OFF -DMRD_LTO=OFF \
    >/dev/null
files=("$@")
if ((${#files[@]} == 0)); then
    mapfile -t files < <(jq -r '.[].file' "$directory/compile_commands.json" | sort -u)
fi
# One file at a time: over several, this clang-tidy takes a va_list of one for that of another.
if ! printf '%s\0' "${files[@]}" |
    xargs -0 -P "$(nproc)" -n 1 clang-tidy -p "$directory" --quiet 2>"$directory/tidy.log"; then
    grep -v ' warnings\? generated' "$directory/tidy.log" >&2 || true
    exit 1
fi
echo "${#files[@]} files are clean"
