# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# Shared by the tests on RDMA devices: source it, then in_machine or on_devices, after which the script goes on where
# there are devices: the virtual machine runs the same script again. Booting takes seconds, so one run holds many
# cases; each prints a line PASS or FAIL, and a failed one what its programs said. End with finish.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly root
test_name=$(basename "$0" .sh)
# Not mrd_perf's own: a server of that may be running.
readonly port=4893
devices=()
failed=0
# Both ends poll: on one core each would wait for the other's time slice.
server_core=() client_core=()
if (($(nproc) > 1)); then
    server_core=(--bind 0) client_core=(--bind 1)
fi

skip()
{
    echo "rdma_$test_name: skipped: $*"
    exit 77
}

fail()
{
    echo "FAILED: $*"
    exit 1
}

# ------------------------------------------------------------------------------------------ where there are devices

prepare()
{
    scratch=$(mktemp -d)
    trap clean_up EXIT
    trap 'exit 1' INT TERM
    cd "$scratch"
}

end_jobs()
{
    local running

    running=$(jobs -p)
    [[ -n $running ]] || return 0
    # Waiting keeps the shell from telling of their deaths.
    # shellcheck disable=SC2086 # a list
    { kill -9 $running; wait $running; } 2>/dev/null || true
}

clean_up()
{
    end_jobs
    cd /
    rm -rf "$scratch"
}

# in_machine NET ARG...: go on in the virtual machine with that network; ARG... are those of this script.
in_machine()
{
    local why code=0

    if [[ -n ${VMLAB-} ]]; then
        # For the caller.
        # shellcheck disable=SC2034
        devices=(rxe0 rxe1)
        prepare
        return
    fi
    why=$("$root/tools/vmlab.sh" check 2>&1) || skip "no RDMA devices: $why"
    "$root/tools/vmlab.sh" run -n "$1" -t 500 -- "$0" "${@:2}" || code=$?
    exit $code
}

# Real devices that could be used.
real_devices()
{
    local verbs

    for verbs in /sys/class/infiniband_verbs/uverbs*; do
        if [[ -r /dev/infiniband/${verbs##*/} && -w /dev/infiniband/${verbs##*/} ]] &&
            grep -q ACTIVE "$verbs/device/infiniband/$(<"$verbs/ibdev")/ports/1/state" 2>/dev/null &&
            grep -q Ethernet "$verbs/device/infiniband/$(<"$verbs/ibdev")/ports/1/link_layer"; then
            cat "$verbs/ibdev"
        fi
    done
}

# on_devices ARG...: go on with a real device if there is one, which talks to itself, else in the virtual machine.
# MRD_RDMA_DEVICES="SERVER CLIENT" names other ones.
on_devices()
{
    local found

    if [[ -z ${VMLAB-} ]]; then
        read -ra devices <<<"${MRD_RDMA_DEVICES-}"
        mapfile -t found < <(real_devices)
        ((${#devices[@]} > 0 || ${#found[@]} == 0)) || devices=("${found[0]}" "${found[0]}")
        if ((${#devices[@]} == 2)); then
            echo "devices of this machine: ${devices[*]}"
            prepare
            return
        fi
    fi
    in_machine veth "$@"
}

# ------------------------------------------------------------------------------------------ cases

# run_case NAME COMMAND...: in a directory of its own; it fails if COMMAND, a function, does.
run_case()
{
    local name=$1 code=0 begun=$SECONDS dir file
    shift

    dir=$(mktemp -d "$scratch/case.XXXXXX")
    # Not in a condition, where the shell would ignore errors in the function.
    set +e
    (
        set -e
        trap end_jobs EXIT
        cd "$dir"
        "$@"
    ) >"$dir/output" 2>&1
    code=$?
    set -e
    if ((code == 0)); then
        echo "PASS $name ($((SECONDS - begun)) s)$(sed -n 's/^note: /; /p' "$dir/output" | tr -d '\n')"
        return
    fi
    failed=$((failed + 1))
    echo "FAIL $name ($((SECONDS - begun)) s), exit status $code"
    for file in "$dir"/*; do
        [[ ! -s $file ]] || tail -n 30 "$file" | sed "s|^|    ${file##*/}: |"
    done
    [[ ! -e $scratch/server ]] || tail -n 5 "$scratch/server" | sed 's|^|    server of all: |'
}

# Something that the line of the case shall show.
note()
{
    echo "note: $*"
}

finish()
{
    ((failed == 0)) || { echo "$failed failed"; exit 1; }
    exit 0
}

# ------------------------------------------------------------------------------------------ mrd_perf

# listens PORT: any process, on TCP. Without starting one, which takes the emulated processor long.
listens()
{
    local hex file line

    printf -v hex ':%04X' "$1"
    for file in /proc/net/tcp /proc/net/tcp6; do
        [[ -e $file ]] || continue
        while read -r line; do
            [[ $line != *"$hex "*" 0A "* ]] || return 0
        done <"$file"
    done
    return 1
}

# start_server PORT OUTPUT COMMAND...: in the background; sets server.
start_server()
{
    local try

    "${@:3}" >"$2" 2>&1 &
    server=$!
    for ((try = 0; try < 200; try++)); do
        ! listens "$1" || return 0
        kill -0 $server 2>/dev/null || break
        sleep 0.05
    done
    cat "$2"
    fail "the server does not listen: ${*:3}"
}

# One for all cases, $1 being mrd_perf.
serve_all()
{
    start_server $port "$scratch/server" "$1" send_bw -d "${devices[0]}" -p $port "${server_core[@]}" --forever
}

# client PERF TEST OPTION...: against the server of all, on the second device. Sets code.
client()
{
    code=0
    timeout 90 "$1" "$2" -d "${devices[1]}" -p $port "${client_core[@]}" --out_json_file json "${@:3}" 127.0.0.1 \
        >client 2>&1 || code=$?
}

# get_figure KEY: a number or a word of the client's report; sets figure. Read without starting a program.
get_figure()
{
    local report

    read -rd '' report <json || true
    [[ $report =~ \"$1\":\ *\"?([^\",]*) ]] || fail "the report has no $1"
    figure=${BASH_REMATCH[1]}
}

# expect_figure KEY VALUE
expect_figure()
{
    get_figure "$1"
    [[ $figure == "$2" ]] || fail "$1 is $figure and not $2"
}

# transfer PERF TEST SIZE ITERATIONS OPTION...: everything arrived, and was verified.
transfer()
{
    client "$1" "$2" -s "$3" -n "$4" --verify "${@:5}"
    ((code == 0)) || fail "the client's exit status is $code"
    expect_figure device "${devices[1]}"
    expect_figure verified true
    expect_figure size_bytes "$3"
    expect_figure iterations "$4"
}
