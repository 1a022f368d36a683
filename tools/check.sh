#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check.sh [--rdma] [--long] [CTEST OPTION...]: install what the tests need, build everything into
# build/, run the tests. Six minutes on two cores with nobody beside.
#
#   --rdma  also on RDMA devices, real ones or software ones in an emulated machine: as CI does, three
#           minutes more
#   --long  also what CI leaves out, for an hour: tests of minutes on networks of namespaces and on RDMA
#           devices, several seeds of simulated tests, fabrics of thousands of hosts (tests/large.sh),
#           long ways beside TCP (tests/wan.sh), and an ARM64 in an emulator (tests/arm64.sh)
#
# What cannot run on this machine (no root, no namespaces, no virtual machine) is skipped by ctest,
# and says why.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ ${1-} != -h && ${1-} != --help ]] || { sed -n '4,13s/^# \{0,1\}//p' "$0"; exit; }

groups=(build demo test)
left_out='tests on RDMA devices (--rdma), those of minutes and further seeds (--long)'
labels=(-LE '^(rdma|long)$')
minutes=6
long=no few_seeds=ON
while [[ ${1-} == --rdma || ${1-} == --long ]]; do
    groups+=(vm)
    if [[ $1 == --long ]]; then
        groups+=(arm64)
        long=yes few_seeds=OFF labels=() left_out=none minutes=75
    elif [[ $long == no ]]; then
        labels=(-LE '^long$') left_out='tests of minutes and further seeds (--long)' minutes=9
    fi
    shift
done
echo "check.sh: about $minutes minutes on two cores; left out: $left_out"
tools/install-deps.sh "${groups[@]}" || echo 'going on without' >&2

# A build directory keeps the generator it was made with.
generator=()
if [[ ! -e build/CMakeCache.txt ]] && command -v ninja >/dev/null; then
    generator=(-G Ninja)
fi
cmake -S . -B build "${generator[@]}" -DMRD_TESTS=ON -DMRD_TOOLS=ON -DMRD_TEST_FEW_SEEDS=$few_seeds
cmake --build build --parallel "$(nproc)"
result=0
# Twice as many as there are cores: those of tools and networks wait, most of their time.
ctest --test-dir build --output-on-failure --no-tests=error --parallel $((2 * $(nproc))) \
    "${labels[@]}" "$@" || result=$?
grep -h 'skipped:' build/Testing/Temporary/LastTest.log || true
echo "left out: $left_out"
if [[ $long == yes ]]; then
    for check in tests/large.sh tests/wan.sh tests/arm64.sh; do
        status=0
        $check || status=$?
        ((status == 0 || status == 77)) || result=1
    done
fi
exit $result
