#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check.sh [--rdma] [--long] [CTEST OPTION...]: install what the tests need, build everything into
# build/, run the tests.
#
#   --rdma  also those on RDMA devices, real ones or software ones in an emulated machine: ten minutes
#           more
#   --long  also what CI leaves out: fabrics of thousands of hosts (tests/large.sh), long ways beside TCP
#           (tests/wan.sh), and an ARM64 in an emulator (tests/arm64.sh), half an hour more
#
# What cannot run on this machine (no root, no namespaces, no virtual machine) is skipped by ctest,
# and says why.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ ${1-} != -h && ${1-} != --help ]] || { sed -n '4,13s/^# \{0,1\}//p' "$0"; exit; }

groups=(build demo test)
left_out=(-LE '^rdma$')
long=no
while [[ ${1-} == --rdma || ${1-} == --long ]]; do
    if [[ $1 == --rdma ]]; then
        groups+=(vm)
        left_out=()
    else
        groups+=(arm64)
        long=yes
    fi
    shift
done
tools/install-deps.sh "${groups[@]}" || echo 'going on without' >&2

# A build directory keeps the generator it was made with.
generator=()
if [[ ! -e build/CMakeCache.txt ]] && command -v ninja >/dev/null; then
    generator=(-G Ninja)
fi
cmake -S . -B build "${generator[@]}" -DMRD_TESTS=ON -DMRD_TOOLS=ON
cmake --build build --parallel "$(nproc)"
result=0
ctest --test-dir build --output-on-failure --no-tests=error --parallel "$(nproc)" \
    "${left_out[@]}" "$@" || result=$?
grep -h 'skipped:' build/Testing/Temporary/LastTest.log || true
if ((${#left_out[@]} > 0)); then
    echo 'left out: tests on RDMA devices, which tools/check.sh --rdma runs too (ten minutes more)'
fi
if [[ $long == yes ]]; then
    for check in tests/large.sh tests/wan.sh tests/arm64.sh; do
        status=0
        $check || status=$?
        ((status == 0 || status == 77)) || result=1
    done
fi
exit $result
