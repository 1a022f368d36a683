#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Real verbs devices without RDMA hardware: a virtual machine with software RDMA (Soft-RoCE, the kernel's rdma_rxe).
# usage() says how to use it, tools/vmlab/setup.sh how the machine is made, tools/vmlab/net.sh what is wired in it.
#
# The machine emulates its processor, so it needs no virtualization and no privilege, and is slow: compare what happens
# in it, not how fast. It shows the host's files, read-only under a layer of its own that ends with it: what the host
# built just runs, and nothing that is done there changes the host.

set -euo pipefail

# Administrators' tools are not on everyone's path.
PATH+=:/usr/sbin:/sbin

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here

usage()
{
    cat <<'USAGE'
Run a command in a virtual machine that has software RDMA devices. Needs neither root, nor KVM, nor RDMA hardware.

usage: vmlab.sh setup                      fetch a kernel and make ready to boot it; does nothing if that is done
       vmlab.sh check                      could run boot? Exit 77 and the reason if not
       vmlab.sh run [OPTIONS] -- CMD...    boot, run CMD as root in this directory, return its exit status

  -n NET         the network (default veth)
                   none  no devices
                   veth  rxe0 (10.99.0.1 on va) and rxe1 (10.99.0.2 on vb), wired to each other
                   ecmp  rxe0 (10.99.1.1 on va) and rxe1 (10.99.2.1 on vb), two routers in between, namespaces R1 and
                         R2; two equal-cost paths, p0 and p1, connect those, chosen by the hash of addresses and ports
  -u MTU         of the interfaces (default 4200, which makes the MTU of RDMA 4096)
  -e NAME=VALUE  in CMD's environment; may be repeated
  -o DIR         gets the files that CMD writes to the directory $VMLAB_OUT
  -t SECONDS     limit of the whole run (default 300)
  -m MIB         memory (default 1024)
  -s N           processors (default 2)
  -a ACCEL       qemu's accelerator (default tcg,thread=multi; kvm is faster where it works)
  -v             show the machine's console on stderr

In the machine $VMLAB is 1, VMLAB_NET is NET. Index 1 of a device's GIDs is its IPv4 address.

Exit status of run: CMD's; 124 beyond the limit, 125 if the machine failed, 2 for a wrong option.

The environment: VMLAB_CACHE, the directory of what setup makes (default: mrd-vmlab in $XDG_CACHE_HOME or ~/.cache);
VMLAB_KERNEL, the Debian package of the kernel (default: the newest linux-image-6.1.0-*-amd64 that apt-get finds).

  vmlab.sh setup
  vmlab.sh run -- ibv_devinfo -v
USAGE
}

die()
{
    echo "vmlab.sh: $*" >&2
    exit 1
}

bad_usage()
{
    echo "vmlab.sh: $* (vmlab.sh --help shows the usage)" >&2
    exit 2
}

# need_tools COMMAND:PACKAGE...
need_tools()
{
    local tool missing=''

    [[ $(uname -m) == x86_64 ]] || die "the machine is x86-64 and runs the host's programs, which are $(uname -m)"
    for tool; do
        command -v "${tool%:*}" >/dev/null || missing+=" ${tool%:*} (package ${tool#*:})"
    done
    [[ -z $missing ]] || die "missing:$missing; tools/install-deps.sh vm installs them"
}

# shellcheck source=tools/vmlab/setup.sh
source "$here/vmlab/setup.sh"
# shellcheck source=tools/vmlab/run.sh
source "$here/vmlab/run.sh"

command=${1-}
(($# == 0)) || shift
case $command in
setup)
    (($# == 0)) || bad_usage 'setup takes no arguments'
    setup
    ;;
check)
    (($# == 0)) || bad_usage 'check takes no arguments'
    (need_machine) || exit 77
    ;;
run) run "$@" ;;
help | -h | --help) usage ;;
'')
    usage >&2
    exit 2
    ;;
*) bad_usage "there is no command '$command'" ;;
esac
