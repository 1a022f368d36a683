#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# install.sh CMAKE BUILD_DIR CC: an installed tree is complete. Programs are built against it as users would, by
# pkg-config and by find_package, shared and static, in C and C++; the README's example is one of them.

set -euo pipefail

readonly cmake=$1 build=$2 cc=$3
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/moved

fail()
{
    echo "install: FAILED: $*" >&2
    exit 1
}

# run PROGRAM: it says the version that pkg-config knows.
run()
{
    local said

    said=$("$1") || fail "$1 failed"
    [[ $said == "$version" ]] || fail "$1 says version $said, pkg-config $version"
}

# The first C block of the README.
readme_example()
{
    awk '/^```c$/ { inside = 1; next } /^```$/ && inside { exit } inside' "$here/../../README.md"
}

# The README and the index of the tools point at files that are there.
for folder in "$here/../.." "$here/../../tools"; do
    while read -r link; do
        [[ -e $folder/$link ]] || fail "$folder/README.md points at $link, which is not there"
    done < <(grep -oE '\]\([A-Za-z0-9_./-]+\)' "$folder/README.md" | tr -d '()]')
done

# Installed in one place, moved to another: nothing may remember where it was.
"$cmake" --install "$build" --prefix "$scratch/first" >/dev/null
mv "$scratch/first" "$tree"
pc=$(find "$tree" -name mrd.pc)
[[ -n $pc ]] || fail 'no mrd.pc'
export PKG_CONFIG_PATH=${pc%/*} LD_LIBRARY_PATH=${pc%/pkgconfig/mrd.pc}
version=$(pkg-config --modversion mrd)

read -ra flags <<<"$(pkg-config --cflags --libs mrd)"
"$cc" -std=c11 -Wall -Wextra -Werror "$here/consumer/consumer.c" -o "$scratch/by_pkg_config" "${flags[@]}"
run "$scratch/by_pkg_config"
readelf -d "$scratch/by_pkg_config" | grep -q 'NEEDED.*libmrd\.so\.0' || fail 'the soname is not libmrd.so.0'

read -ra flags <<<"$(pkg-config --cflags --libs --static mrd)"
for i in "${!flags[@]}"; do
    [[ ${flags[i]} != -lmrd ]] || flags[i]=-l:libmrd.a
done
"$cc" -std=c11 "$here/consumer/consumer.c" -o "$scratch/by_pkg_config_static" "${flags[@]}"
run "$scratch/by_pkg_config_static"
! readelf -d "$scratch/by_pkg_config_static" | grep -q libmrd || fail 'the static program needs libmrd.so'

"$cmake" -S "$here/consumer" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$tree" -DCMAKE_C_COMPILER="$cc" >/dev/null
"$cmake" --build "$scratch/build" >/dev/null
run "$scratch/build/consumer_shared"
run "$scratch/build/consumer_static"

readme_example >"$scratch/readme.c"
read -ra flags <<<"$(pkg-config --cflags --libs mrd)"
"$cc" -std=c11 -Wall -Wextra -Werror "$scratch/readme.c" -o "$scratch/readme" "${flags[@]}"
timeout 20 "$scratch/readme" >/dev/null || fail "the README's example failed"

# Each call has a page by its name, of one line where another page explains it.
calls=0
for call in $(nm -D --defined-only "${pc%/pkgconfig/mrd.pc}/libmrd.so" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }'); do
    page=$tree/share/man/man3/$call.3
    [[ -s $page ]] || fail "there is no man page $call(3)"
    [[ $(<"$page") != .so* || -s $tree/share/man/$(sed 's/^\.so //' "$page") ]] || fail "$call(3) leads nowhere"
    calls=$((calls + 1))
done
((calls > 40)) || fail "only $calls calls were found"

# The tools, where they are built: they stand alone, and each has its page.
for tool in "$tree"/bin/*; do
    [[ -e $tool ]] || continue
    name=${tool##*/}
    [[ $("$tool" --version) == "$name $version" ]] || fail "$name does not say its version"
    [[ -e $tree/share/man/man1/$name.1 ]] || fail "$name has no man page"
done

# The provider, where it is built: libfabric finds it by what pkg-config tells, and it finds the library by itself.
providers=$(pkg-config --variable=fi_provider_path mrd)
if [[ -n $providers ]]; then
    [[ -e $providers/libmrd-fi.so ]] || fail "there is no libmrd-fi.so in $providers"
    ! command -v fi_info >/dev/null ||
        env -u LD_LIBRARY_PATH FI_PROVIDER_PATH="$providers" fi_info -p mrd >"$scratch/fi_info" ||
        fail 'libfabric does not find the provider'
fi

if command -v g++ >/dev/null; then
    for header in "$tree"/include/mrd/*.h; do
        g++ -std=c++11 -Wall -Wextra -Werror -I"$tree/include" -fsyntax-only -x c++ "$header"
    done
fi
