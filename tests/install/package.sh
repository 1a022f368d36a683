#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# package.sh CPACK BUILD_DIR: the Debian packages build and hold what they should.

set -euo pipefail

readonly cpack=$1 build=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail()
{
    echo "package: FAILED: $*" >&2
    exit 1
}

# holds PACKAGE PATTERN...
holds()
{
    local file files pattern

    file=$(echo "$scratch/$1"_*.deb)
    [[ -e $file ]] || fail "there is no package $1"
    files=$(dpkg-deb --contents "$file")
    for pattern in "${@:2}"; do
        grep -qE "$pattern" <<<"$files" || fail "$1 holds no $pattern: $files"
    done
    dpkg-deb --field "$file" Package Version Depends
}

for tool in dpkg-deb dpkg-shlibdeps file; do
    command -v $tool >/dev/null || { echo "package: skipped: no $tool"; exit 77; }
done

"$cpack" --config "$build/CPackConfig.cmake" -G DEB -B "$scratch" >"$scratch/log" || { cat "$scratch/log"; fail cpack; }
holds libmrd0 '/usr/lib/.*libmrd\.so\.0\.1\.0$' '/usr/lib/.*libmrd\.so\.0 -> '
holds libmrd-dev '/usr/include/mrd/mrd\.h$' '/usr/include/mrd/sim\.h$' 'libmrd\.so -> ' 'libmrd\.a$' '/mrd\.pc$' \
    '/mrd-config\.cmake$' '/man7/mrd\.7$' '/man3/mrd_poll_cq\.3$' '/man3/mrd_create_cq\.3$'
dpkg-deb --field "$scratch"/libmrd0_*.deb Depends | grep -q libxxhash0 || fail 'libmrd0 does not depend on libxxhash0'
dpkg-deb --field "$scratch"/libmrd-dev_*.deb Depends | grep -q 'libmrd0 (=' || fail 'libmrd-dev does not depend on libmrd0'
if grep -q '^set(CPACK_COMPONENTS_ALL .*tools' "$build/CPackConfig.cmake"; then
    holds mrd-tools '/usr/bin/mrd_perf$' '/usr/bin/mrd_sim$' '/usr/share/man/man1/mrd_perf\.1' \
        '/usr/share/man/man1/mrd_sim\.1'
    ! grep -q '^LIBEVENT_FOUND.*=1' "$build/CMakeCache.txt" ||
        holds mrd-tools '/usr/bin/mrd_forward$' '/usr/share/man/man1/mrd_forward\.1' '/systemd/system/mrd_forward@\.service$'
    dpkg-deb --field "$scratch"/mrd-tools_*.deb Suggests | grep -q gnuplot || fail 'mrd-tools does not suggest gnuplot'
fi
holds libnccl-net-mrd '/usr/lib/.*libnccl-net-mrd\.so$' '/usr/lib/.*librccl-net-mrd\.so -> libnccl-net-mrd\.so$'
dpkg-deb --field "$scratch"/libnccl-net-mrd_*.deb Depends | grep -q 'libmrd0 (=' ||
    fail 'libnccl-net-mrd does not depend on libmrd0'
if grep -q '^set(CPACK_COMPONENTS_ALL .*ofi' "$build/CPackConfig.cmake"; then
    holds libmrd-fi '/usr/lib/.*libfabric/libmrd-fi\.so$'
    dpkg-deb --field "$scratch"/libmrd-fi_*.deb Depends | grep -q 'libmrd0 (=.*libfabric1\|libfabric1.*libmrd0 (=' ||
        fail 'libmrd-fi does not depend on libmrd0 and libfabric1'
fi
