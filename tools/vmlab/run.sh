# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# How tools/vmlab.sh, which sources this, boots the machine for one command.
#
# A directory of the run is shared with the machine: it holds `start`, which tools/vmlab/init runs there, and gets
# `status` and what the command wrote to $VMLAB_OUT. The command's output comes through two virtual serial ports.

# number NAME VALUE MIN MAX
number()
{
    [[ $2 =~ ^(0|[1-9][0-9]{0,8})$ && $2 -ge $3 && $2 -le $4 ]] ||
        bad_usage "$1 is a number from $3 to $4, not '$2'"
}

need_machine()
{
    local release

    need_tools qemu-system-x86_64:qemu-system-x86
    release=$(kernel_release)
    [[ -n $release && -e $(initrd "$release") ]] || die "nothing to boot in $cache: run '$here/vmlab.sh setup' first"
}

# write_start CMD...: what the machine is to run.
write_start()
{
    local setting

    printf 'export VMLAB=1 VMLAB_OUT=/run/vmlab/out VMLAB_NET=%q VMLAB_MTU=%q\n' "$net" "$mtu"
    for setting in "${environment[@]}"; do
        printf 'export %q\n' "$setting"
    done
    # Only the command's own end writes a status.
    printf 'cd %q && source %q || exit\nvmlab_net\n[[ $? == 0 ]] || exit\n' "$PWD" "$here/vmlab/net.sh"
    printf '%q ' "$@"
    printf '\necho $? >/run/vmlab/status\n'
}

boot()
{
    local channels=() ports=() name

    for name in out err; do
        channels+=(-chardev "file,id=$name,path=$run_dir/$name")
        ports+=(-device "virtserialport,chardev=$name,name=vmlab.$name")
    done
    exec timeout -k 5 "$limit" qemu-system-x86_64 -M q35 -accel "$accel" -cpu qemu64 -m "$memory" -smp "$processors" \
        -nodefaults -no-user-config -nic none -display none -no-reboot -rtc base=utc \
        -kernel "$cache/$release/vmlinux" -initrd "$(initrd "$release")" \
        -append 'console=ttyS0 quiet panic=-1 oops=panic mitigations=off nokaslr tsc=reliable random.trust_cpu=on' \
        -chardev "file,id=console,path=$run_dir/console" -serial chardev:console \
        -device virtio-serial-pci "${channels[@]}" "${ports[@]}" \
        -fsdev local,id=host,path=/,security_model=none,readonly=on,multidevs=remap \
        -device virtio-9p-pci,fsdev=host,mount_tag=host \
        -fsdev "local,id=run,path=$run_dir/share,security_model=none" \
        -device virtio-9p-pci,fsdev=run,mount_tag=run </dev/null >"$run_dir/qemu.log" 2>&1
}

# Called at exit.
end_run()
{
    [[ -z $machine ]] || kill "$machine" 2>/dev/null || true
    rm -rf "$run_dir"
}

# report CODE: the exit status of a run whose qemu ended with CODE.
report()
{
    local status=125

    [[ $verbose == no ]] || cat "$run_dir/console" "$run_dir/qemu.log" >&2
    if [[ -s $run_dir/share/status ]]; then
        status=$(<"$run_dir/share/status")
    elif (($1 == 124 || $1 == 137)); then
        echo "vmlab.sh: not done after $limit s; -t sets the limit, -v shows the console" >&2
        status=124
    else
        echo "vmlab.sh: the machine failed (qemu's exit status is $1); it said last:" >&2
        tail -q -n 20 "$run_dir/qemu.log" "$run_dir/console" >&2
    fi
    return "$status"
}

run()
{
    local net=veth mtu=4200 environment=() out='' limit=300 memory=1024 processors=2 accel=tcg,thread=multi verbose=no
    local option OPTIND=1 release code=0 readers=()

    while getopts :n:u:e:o:t:m:s:a:v option; do
        case $option in
        n) net=$OPTARG ;;
        u) number -u "$OPTARG" 68 65535; mtu=$OPTARG ;;
        e) environment+=("$OPTARG") ;;
        o) out=$OPTARG ;;
        t) number -t "$OPTARG" 1 86400; limit=$OPTARG ;;
        m) number -m "$OPTARG" 128 1048576; memory=$OPTARG ;;
        s) number -s "$OPTARG" 1 255; processors=$OPTARG ;;
        a) accel=$OPTARG ;;
        v) verbose=yes ;;
        *) bad_usage "run: option -$OPTARG is unknown or lacks its value" ;;
        esac
    done
    shift $((OPTIND - 1))
    [[ $net == none || $net == veth || $net == ecmp ]] || bad_usage "-n is none, veth or ecmp, not '$net'"
    (($# > 0)) || bad_usage 'run: which command?'
    need_machine
    release=$(kernel_release)

    # Not local: the trap needs them.
    machine=''
    run_dir=$(mktemp -d --tmpdir vmlab.XXXXXX)
    trap end_run EXIT
    trap 'exit 130' INT TERM
    mkdir -p "$run_dir/share/out"
    mkfifo "$run_dir/out" "$run_dir/err"
    : >"$run_dir/console"
    echo "$cache/$release/lib/modules" >"$run_dir/share/modules"
    write_start "$@" >"$run_dir/share/start"

    cat "$run_dir/out" &
    readers+=($!)
    cat "$run_dir/err" >&2 &
    readers+=($!)
    boot &
    machine=$!
    wait "$machine" || code=$?
    machine=''
    # Where qemu died before it opened them, this ends the readers.
    : 1<>"$run_dir/out" 1<>"$run_dir/err"
    wait "${readers[@]}" || true
    if [[ -n $out ]]; then
        mkdir -p "$out"
        cp -r "$run_dir/share/out/." "$out/"
    fi
    report "$code"
}
