#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check.sh [CTEST OPTION...]: install what the tests need, build everything into build/, run all tests.
#
# What cannot run on this machine (no root, no namespaces, no virtual machine) is skipped by ctest, and says why.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ ${1-} != -h && ${1-} != --help ]] || { sed -n '4,6s/^# //p' "$0"; exit; }

tools/install-deps.sh build demo test vm || echo 'going on without' >&2

# A build directory keeps the generator it was made with.
generator=()
if [[ ! -e build/CMakeCache.txt ]] && command -v ninja >/dev/null; then
    generator=(-G Ninja)
fi
cmake -S . -B build "${generator[@]}" -DMRD_TESTS=ON -DMRD_TOOLS=ON
cmake --build build --parallel "$(nproc)"
result=0
ctest --test-dir build --output-on-failure --no-tests=error "$@" || result=$?
grep -h 'skipped:' build/Testing/Temporary/LastTest.log || true
exit $result
