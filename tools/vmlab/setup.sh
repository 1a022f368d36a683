# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# How tools/vmlab.sh, which sources this, makes a kernel and a first file system to boot.
#
# The kernel is Debian's, as packaged; its cloud flavour has no rdma_rxe. It is unpacked in the cache and not installed.
# Everything is made under another name and then renamed, so what exists is whole, and runs read it without a lock.

[[ -n ${VMLAB_CACHE-}${XDG_CACHE_HOME-}${HOME-} ]] || die 'HOME is not set, nor VMLAB_CACHE: where to keep a kernel?'
cache=${VMLAB_CACHE:-${XDG_CACHE_HOME:-${HOME-}/.cache}/mrd-vmlab}

# What the first file system needs to reach the host's files, and what the machine then loads.
readonly boot_modules='virtio_pci 9pnet_virtio 9p overlay virtio_console'
readonly lab_modules='veth crc32_generic rdma_rxe ib_uverbs rdma_ucm ib_umad sch_netem'

# The release of the kernel that setup unpacked, or nothing.
kernel_release()
{
    local want=${VMLAB_KERNEL-}

    if [[ -n $want ]]; then
        [[ ! -e $cache/${want#linux-image-}/vmlinux ]] || echo "${want#linux-image-}"
        return
    fi
    [[ ! -e $cache/release ]] || want=$(<"$cache/release")
    [[ ! -e $cache/$want/vmlinux ]] || echo "$want"
}

# initrd RELEASE: its file, whose name changes with what it is made from.
initrd()
{
    local sum

    sum=$(cat "$here/vmlab/setup.sh" "$here/vmlab/init" | sha256sum)
    echo "$cache/$1/initrd-${sum:0:12}.cpio"
}

# ------------------------------------------------------------------------------------------ the kernel

# Lists of packages of our own, for machines whose lists are old or were removed; the host's are root's to update.
own_apt()
{
    local own=(-o "Dir::State::lists=$work/apt/lists" -o "Dir::Cache=$work/apt")

    mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial"
    apt+=("${own[@]}")
    apt_cache+=("${own[@]}")
    "${apt[@]}" update -qq >>"$work/log" 2>&1
}

# Packages that could serve, the best first.
candidates()
{
    if [[ -n ${VMLAB_KERNEL-} ]]; then
        echo "$VMLAB_KERNEL"
        return
    fi
    "${apt_cache[@]}" search --names-only '^linux-image-6\.1\.0-[0-9]+-amd64$' 2>>"$work/log" |
        awk '{ print $1 }' | sort -Vr | awk 'NR <= 3'
}

# Into $work; sets package.
download()
{
    for package in $(candidates); do
        echo "vmlab: fetching $package (70 MB)"
        ! (cd "$work" && "${apt[@]}" download "$package" >>log 2>&1) || return 0
    done
    return 1
}

# The kernel in the package unpacks itself, which takes the emulated processor seconds: do it here, once.
unpack_kernel()
{
    local start

    start=$(LC_ALL=C grep -abo -m1 -P '\xfd7zXZ\x00' "$1" | awk -F: 'NR == 1 { print $1 }')
    tail -c "+$((${start:-0} + 1))" "$1" | xz -dc --single-stream >"$2" 2>/dev/null || true
    # Another compression one day: it boots packed, too.
    [[ $(head -c 4 "$2") == $'\x7fELF' ]] || cp "$1" "$2"
}

fetch_kernel()
{
    local package release apt=(apt-get) apt_cache=(apt-cache)

    [[ $(id -u) != 0 ]] || apt+=(-o APT::Sandbox::User=root)
    download || { own_apt && download; } || {
        tail -n 5 "$work/log" >&2
        die "apt-get finds no kernel to download (${VMLAB_KERNEL:-linux-image-6.1.0-*-amd64}, of Debian 12): is there" \
            'a network, and a Debian mirror in /etc/apt? VMLAB_KERNEL names another package'
    }
    echo 'vmlab: unpacking it'
    release=${package#linux-image-}
    dpkg-deb -x "$work"/linux-image-*.deb "$work/kernel" || die "$package does not unpack: is the disk full?"
    [[ -e $work/kernel/boot/vmlinuz-$release ]] || die "$package holds no boot/vmlinuz-$release"
    [[ -n $(find "$work/kernel/lib/modules/$release" -name 'rdma_rxe.ko*') ]] ||
        die "$package has no rdma_rxe, which makes the devices: use the ordinary kernel, neither cloud nor unsigned"
    depmod -b "$work/kernel" "$release"
    unpack_kernel "$work/kernel/boot/vmlinuz-$release" "$work/kernel/vmlinux"
    rm -rf "$work"/kernel/{boot,usr}
    rm -rf "${cache:?}/$release"
    mv "$work/kernel" "$cache/$release"
    echo "$release" >"$work/release"
    mv "$work/release" "$cache/release"
}

# ------------------------------------------------------------------------------------------ the first file system

# The files of modules and of what they need, relative to the kernel's directory.
module_files()
{
    local module

    for module; do
        modprobe -d "$cache/$release" -S "$release" --show-depends "$module" ||
            die "the kernel $release has no module $module"
    done | awk -v prefix="$cache/$release/" '$1 == "insmod" { print substr($2, length(prefix) + 1) }' | sort -u
}

make_initrd()
{
    local root=$work/root file files

    mkdir -p "$root"/{bin,dev,proc,sys,etc}
    cp "$(command -v busybox)" "$root/bin/busybox"
    ! ldd "$root/bin/busybox" >/dev/null 2>&1 ||
        die 'busybox is not static (package busybox-static); tools/install-deps.sh vm installs it'
    ln -s busybox "$root/bin/sh"
    install -m 755 "$here/vmlab/init" "$root/init"
    echo "$boot_modules" >"$root/etc/boot-modules"
    echo "$lab_modules" >"$root/etc/lab-modules"
    # shellcheck disable=SC2086 # lists
    files=$(module_files $boot_modules $lab_modules)
    for file in $files; do
        install -D -m 644 "$cache/$release/$file" "$root/$file"
    done
    cp "$cache/$release/lib/modules/$release"/modules.{order,builtin,builtin.modinfo} "$root/lib/modules/$release/"
    depmod -b "$root" "$release"
    (cd "$root" && find . | cpio -o -H newc --quiet) >"$work/initrd"
    mv "$work/initrd" "$1"
}

# ------------------------------------------------------------------------------------------ setup

setup()
{
    local work release lock

    need_tools qemu-system-x86_64:qemu-system-x86 flock:util-linux
    release=$(kernel_release)
    [[ -z $release || ! -e $(initrd "$release") ]] || return 0

    need_tools apt-get:apt dpkg-deb:dpkg busybox:busybox-static cpio:cpio modprobe:kmod xz:xz-utils
    mkdir -p "$cache" || die "cannot make $cache; VMLAB_CACHE names another directory"
    exec {lock}>"$cache/lock"
    flock "$lock"
    # Whoever held the lock may have done it.
    release=$(kernel_release)
    rm -rf "$cache"/setup.*
    work=$(mktemp -d "$cache/setup.XXXXXX")
    # shellcheck disable=SC2064 # this directory
    trap "rm -rf '$work'" EXIT
    trap 'exit 1' INT TERM
    [[ -n $release ]] || fetch_kernel
    release=$(kernel_release)
    [[ -e $(initrd "$release") ]] || make_initrd "$(initrd "$release")"
    rm -rf "$work"
    trap - EXIT INT TERM
    exec {lock}>&-
    echo "vmlab: ready, kernel $release in $cache"
}
