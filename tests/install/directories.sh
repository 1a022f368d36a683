#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# directories.sh CMAKE SOURCE_DIR CC: pkg-config tells where things are, also where some of the install directories are
# absolute and others relative to the prefix, as packagers of several systems have them.

set -euo pipefail

readonly cmake=$1 source=$2 cc=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

command -v pkg-config >/dev/null || { echo 'skipped: no pkg-config'; exit 77; }

fail()
{
    echo "directories: FAILED: $*" >&2
    exit 1
}

# same WHAT DIRECTORY EXPECTED
same()
{
    [[ $(realpath -m "$2") == "$3" ]] || fail "$1 is $2, not $3"
}

# check LIBDIR INCLUDEDIR: as they are given to cmake, below or beside the prefix.
check()
{
    local prefix=$scratch/out lib=$1 include=$2 flags found

    rm -rf "$scratch/build" "$scratch/out" "$scratch/apart"
    "$cmake" -S "$source" -B "$scratch/build" -DCMAKE_C_COMPILER="$cc" -DMRD_TESTS=OFF -DMRD_TOOLS=OFF \
        -DMRD_IBV=OFF -DMRD_LTO=OFF -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR="$lib" \
        -DCMAKE_INSTALL_INCLUDEDIR="$include" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; fail 'cmake'; }
    [[ $lib == /* ]] || lib=$prefix/$lib
    [[ $include == /* ]] || include=$prefix/$include
    mkdir -p "$lib/pkgconfig"
    cp "$scratch/build/transport/mrd.pc" "$lib/pkgconfig"
    export PKG_CONFIG_PATH=$lib/pkgconfig
    same prefix "$(pkg-config --variable=prefix mrd)" "$prefix"
    flags=$(pkg-config --cflags-only-I --libs-only-L mrd)
    for found in $flags; do
        case $found in
            -I*) same "what -I names" "${found#-I}" "$include" ;;
            -L*) same "what -L names" "${found#-L}" "$lib" ;;
        esac
    done
    [[ $flags == *-I* && $flags == *-L* ]] || fail "no -I or no -L in: $flags"
    found=$(pkg-config --variable=fi_provider_path mrd)
    [[ -z $found ]] || same 'the path of the provider' "$found" "$lib/libfabric"
}

check lib64/deeper include/mrd-0.1
check "$scratch/out/lib" "$scratch/out/include"
check lib "$scratch/apart/include"
check "$scratch/apart/lib" include
