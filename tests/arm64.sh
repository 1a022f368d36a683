#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
Build for ARM64, run unit and simulated tests in an emulator, and compare results with this machine's.

usage: arm64.sh [--native DIRECTORY] [--build DIRECTORY] [--jobs N]

  --native DIRECTORY  where tools/mrd_sim was built for this machine (default: build)
  --build DIRECTORY   where to build for ARM64 (default: build-arm64)
  --jobs N            compilers and tests at a time (default: the number of cores)
  --help              print this text

The compiler and libraries are Debian's, the emulator is qemu-user: tools/install-deps.sh arm64. Exit
status: 0 if all is the same, 1 if not, 77 if something is missing here, 2 for a wrong option.
USAGE
}

die()
{
    printf 'arm64.sh: %s\n' "$*" >&2
    exit 2
}

skip()
{
    printf 'arm64.sh: skipped: %s\n' "$*" >&2
    exit 77
}

native=build build=build-arm64 jobs=$(nproc)
while (($# > 0)); do
    case $1 in
        --native) native=${2:?--native takes a directory}; shift ;;
        --build) build=${2:?--build takes a directory}; shift ;;
        --jobs) jobs=${2:?--jobs takes a number}; shift ;;
        -h | --help) usage; exit ;;
        *) die "no option '$1'" ;;
    esac
    shift
done
native=$(realpath -m "$native") build=$(realpath -m "$build")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What the emulator does not have: getsockopt(IP_MTU), so no address handle over UDP; MADV_WIPEONFORK; /proc/self/statm of
# what it emulates; a parent's death signal. Tests of these are left out.
readonly left_out='^test_(context|exp_jobs|memory.*|objects|perf_rdma|self|srq|thread_.*|zeroed)$'
# Whole engines in virtual time: those that end soon enough.
readonly simulated='^test_(data_order|delivered|ecmp_theory|header|model_.*|mtu|ordered|policed|reads|shares|sim_.*|slots|superpackets)$'
readonly triplet=aarch64-linux-gnu
readonly emulator=qemu-aarch64-static
export PKG_CONFIG_LIBDIR=/usr/lib/$triplet/pkgconfig:/usr/share/pkgconfig # cmake asks again while it builds

check_tools()
{
    local program library

    [[ $(uname -m) != aarch64 ]] || skip 'this machine is an ARM64: its tests are those of tools/check.sh'
    for program in $triplet-gcc $triplet-objdump $emulator cmake ninja jq; do
        command -v "$program" >/dev/null || skip "no $program here: tools/install-deps.sh arm64"
    done
    for library in libxxhash libcrypto json-c cmocka; do
        pkg-config --exists "$library" || skip "no $library for ARM64 here: tools/install-deps.sh arm64"
    done
    [[ -x $native/tools/mrd_sim ]] || skip "no $native/tools/mrd_sim: build for this machine first"
}

compile()
{
    cmake -S . -B "$build" -G Ninja -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
        -DCMAKE_C_COMPILER=$triplet-gcc -DCMAKE_CROSSCOMPILING_EMULATOR="$(command -v $emulator)" \
        -DMRD_WERROR=ON -DMRD_IBV=OFF -DMRD_OFI=OFF >/dev/null
    cmake --build "$build" --parallel "$jobs"
}

# A product and a sum that are rounded at once differ from those of other machines in the last digit.
check_instructions()
{
    local file num

    for file in "$build"/tools/mrd_sim "$build"/transport/libmrd.so; do
        num=$($triplet-objdump -d "$file" | grep -cE '\sfn?m(add|sub)\s' || true)
        echo "$(basename "$file"): $num fused instructions"
        ((num == 0)) || return 1
    done
}

# Runs whose results follow from thousands of decisions by floating point numbers.
runs()
{
    local cc

    for cc in nscc dctcp swift; do
        echo "run --tm tools/experiments/permutation.cm --oversubscription 4 --cc $cc --seed 3"
    done
    cat <<'RUNS'
run --tm tools/experiments/permutation.cm --loss 0.01 --seed 5
run --tm tools/experiments/permutation.cm --transport rc --cc dcqcn --oversubscription 2
run --tm tools/experiments/permutation.cm --transport irn --loss 0.001
skew --hosts 8 --leaf-hosts 4 --size 32M
failure --hosts 32 --leaf-hosts 8 --size 16M
fairness --flows 2 --tcp 2 --duration 0.1
wan --rtt 5000 --loss 0.001 --duration 1
incast --hosts 32 --leaf-hosts 8 --senders 20 --size 256K --victim
RUNS
}

# measure FILE COMMAND...: what it prints, but for the time it took.
measure()
{
    "${@:2}" --json --quiet --jobs 1 2>/dev/null | jq -c 'del(.wall_s, .packets_per_wall_s)' >"$1"
    [[ -s $1 ]]
}

compare()
{
    local line words failed=0
    local here=$build/here.json there=$build/there.json

    while read -r line; do
        read -ra words <<<"$line"
        measure "$here" "$native/tools/mrd_sim" "${words[@]}" &&
            measure "$there" "$emulator" "$build/tools/mrd_sim" "${words[@]}" || return 1
        if cmp -s "$here" "$there"; then
            echo "the same: $line"
        else
            echo "not the same: $line" >&2
            diff <(jq . "$here") <(jq . "$there") | head -n 8 >&2 || true
            failed=1
        fi
    done < <(runs)
    return $failed
}

run_tests()
{
    ctest --test-dir "$build" -L '^unit$' -E "$left_out" --output-on-failure --no-tests=error --parallel "$jobs" &&
        ctest --test-dir "$build" -L '^sim$' -R "$simulated" --output-on-failure --no-tests=error --parallel "$jobs"
}

check_tools
compile
check_instructions
compare
run_tests
