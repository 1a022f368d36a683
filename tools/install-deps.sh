#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
Install what is missing, and only that, with Debian's apt-get; say what.

usage: install-deps.sh [-n] GROUP...

  build   what the library and the tools are built with
  demo    what tools/demo.sh and tools/fabric.sh run
  test    what the tests need besides
  vm      what tools/vmlab.sh runs, and the tests with RDMA devices
  mpi     what tools/mpi.sh measures with
  mpi-check  what tools/mpi.sh --check runs besides
  arm64   what tests/arm64.sh builds with and runs
  ci      what .ci/run needs besides

  -n      only say what is missing

Exit 1 if something is still missing at the end, for example without root.
USAGE
}

# Group, package, and how to see that it is there, whoever installed it.
table()
{
    cat <<'TABLE'
build gcc             command -v gcc
build libc6-dev       header stdio.h
build cmake           command -v cmake
build ninja-build     command -v ninja
build pkg-config      command -v pkg-config
build libxxhash-dev   pkg-config --exists libxxhash
build libjson-c-dev   pkg-config --exists json-c
build libibverbs-dev  pkg-config --exists libibverbs
build libssl-dev      pkg-config --atleast-version=3.0 libcrypto
build libipsec-mb-dev header intel-ipsec-mb.h
build libevent-dev    pkg-config --exists libevent_core
build libfabric-dev   pkg-config --exists libfabric
demo  iproute2        command -v ip tc
demo  nftables        command -v nft
demo  ethtool         command -v ethtool
demo  iperf3          command -v iperf3
demo  jq              command -v jq
demo  gnuplot-nox     command -v gnuplot
demo  clang           command -v clang
demo  linux-libc-dev  header linux/bpf.h
demo  libbpf-dev      header bpf/bpf_helpers.h
test  libcmocka-dev   pkg-config --exists cmocka
test  libfabric-bin   command -v fi_info fi_pingpong
test  g++             command -v g++
test  dpkg-dev        command -v dpkg-shlibdeps
test  file            command -v file
test  man-db          command -v man
test  groff           command -v groff
test  gnuplot-nox     command -v gnuplot
test  abigail-tools   command -v abidiff abidw
test  jq              command -v jq
test  valgrind        command -v valgrind
test  iproute2        command -v ip ss
test  curl            command -v curl
test  iperf3          command -v iperf3
test  rsync           command -v rsync
vm    qemu-system-x86 command -v qemu-system-x86_64
vm    busybox-static  static busybox
vm    cpio            command -v cpio
vm    kmod            command -v modprobe depmod
vm    xz-utils        command -v xz
vm    iproute2        command -v ip tc rdma
vm    jq              command -v jq
vm    ibverbs-providers provider rxe
vm    ibverbs-utils   command -v ibv_devinfo ibv_rc_pingpong
vm    perftest        command -v ib_write_bw
mpi   openmpi-bin     command -v mpirun orted
mpi   libopenmpi-dev  command -v mpicc
mpi   netpipe-openmpi command -v NPopenmpi
mpi   libfabric-bin   command -v fi_info
mpi-check python3-mpi4py module mpi4py
mpi-check hpcc        command -v hpcc
arm64 gcc-aarch64-linux-gnu  command -v aarch64-linux-gnu-gcc
arm64 libc6-dev-arm64-cross  header ../aarch64-linux-gnu/include/stdio.h
arm64 qemu-user-static       command -v qemu-aarch64-static
arm64 libxxhash-dev:arm64    foreign aarch64-linux-gnu libxxhash
arm64 libssl-dev:arm64       foreign aarch64-linux-gnu libcrypto
arm64 libjson-c-dev:arm64    foreign aarch64-linux-gnu json-c
arm64 libcmocka-dev:arm64    foreign aarch64-linux-gnu cmocka
arm64 jq              command -v jq
ci    git             command -v git
ci    clang           command -v clang
ci    clang-format    command -v clang-format
ci    clang-tidy      command -v clang-tidy
ci    gcovr           command -v gcovr
ci    jq              command -v jq
ci    lighttpd        command -v lighttpd
ci    redis-server    command -v redis-server
ci    redis-tools     command -v redis-benchmark
ci    postgresql      server postgresql
TABLE
}

# Administrators' tools are not on everyone's path.
PATH+=:/usr/sbin:/sbin

header()
{
    [[ -e /usr/include/$1 || -e /usr/include/$(uname -m)-linux-gnu/$1 ]]
}

static()
{
    command -v "$1" >/dev/null && ! ldd "$(command -v "$1")" >/dev/null
}

# provider NAME: of libibverbs.
provider()
{
    compgen -G "/usr/lib/*/libibverbs/lib$1-rdmav*.so" >/dev/null
}

# foreign TRIPLET PKG-CONFIG-NAME: a library of another processor, beside this one's.
foreign()
{
    PKG_CONFIG_LIBDIR=/usr/lib/$1/pkgconfig:/usr/share/pkgconfig pkg-config --exists "$2"
}

# module NAME: of the python that Debian's packages are for.
module()
{
    /usr/bin/python3 -c "import $1"
}

# server postgresql: whose programs are on nobody's path.
server()
{
    compgen -G "/usr/lib/$1/*/bin/initdb" >/dev/null
}

# present KIND ARGUMENT...
present()
{
    local name

    if [[ $1 == command ]]; then
        for name in "${@:3}"; do
            command -v "$name" >/dev/null || return 1
        done
    else
        "$@" 2>/dev/null
    fi
}

missing()
{
    local group package probe

    while read -r group package probe; do
        # shellcheck disable=SC2086 # the probe is a command line
        [[ " $* " != *" $group "* ]] || present $probe || echo "$package"
    done < <(table) | sort -u
}

install()
{
    local log

    log=$(mktemp)
    echo "installing: $*"
    # Packages of another processor are known from now on, and none is installed by that alone.
    [[ "$*" != *:arm64* ]] || dpkg --add-architecture arm64
    if ! DEBIAN_FRONTEND=noninteractive bash -c 'apt-get update -qq &&
            apt-get install -y -qq --no-install-recommends "$@"' install "$@" >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "apt-get could not install them" >&2
    fi
    rm -f "$log"
}

only_say=no
if [[ ${1-} == -n ]]; then
    only_say=yes
    shift
fi
for group; do
    if ! table | grep -q "^$group "; then
        [[ $group == -h || $group == --help ]] && { usage; exit; }
        echo "install-deps.sh: there is no group '$group'" >&2
        exit 2
    fi
done
(($# > 0)) || { usage >&2; exit 2; }

mapfile -t packages < <(missing "$@")
((${#packages[@]} > 0)) || exit 0
if [[ $only_say == no && $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
    install "${packages[@]}"
    mapfile -t packages < <(missing "$@")
    ((${#packages[@]} > 0)) || exit 0
fi
echo "missing: ${packages[*]}" >&2
[[ $(id -u) == 0 ]] || echo "  as root: apt-get install ${packages[*]}" >&2
exit 1
