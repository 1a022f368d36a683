#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# fabtests.sh [OPTION...] [COMMAND...]: libfabric's own tests, fabtests, over mrd's provider. Each COMMAND is one test,
# for example 'fi_rdm_pingpong -I 5'; without any, all those of scripts/runfabtests.sh there for endpoints of reliable
# datagrams. Where the test has two ends, both run here, on 127.0.0.1.
#
#   --provider NAME  another provider, to compare; default: mrd
#   --path DIR       of libmrd-fi.so; default: build/transport/adapters/ofi
#   --drop PERCENT   mrd loses this share of the packets that it receives, at both ends
#   --device SERVER[,CLIENT]  mrd's devices, for example RDMA ones; default: UDP, in a network of its own
#   --vm             over software RDMA devices, in the virtual machine of tools/vmlab.sh, which is slow
#   --only PATTERN   only the commands that match this extended regular expression
#   --short          a few iterations instead of the default number
#   --bin DIR        keep the compiled programs there, for the next run
#   --logs DIR       what both ends print, one file a test; default: a new directory in /tmp
#   --timeout SECONDS  of a test; default: 300
#   --preload FILES  LD_PRELOAD of the tests: a sanitizer's libraries, if the provider is built with it
#   --list           print the commands and run nothing
#
# FABTESTS_DIR names the sources: the directory fabtests of libfabric's release. Tests that need what libfabric or the
# provider does not have end with FI_ENODATA or FI_ENOSYS: "notrun". Exit 0: none failed; 77: there are no sources.
#
# An address on an RDMA device is not known before the endpoint is: with --device both ends tell each other theirs over
# TCP, which fabtests calls out-of-band; fi_poll cannot do that.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
provider=mrd
path=$root/build/transport/adapters/ofi
drop=0
only=.
length=standard
bin=
logs=
limit=300
preload=
devices=()
machine=false
list=false
commands=()

readonly ENODATA=61 ENOSYS=38
readonly OUT_OF_BAND_PORT=0BB8 # 3000, as /proc/net/tcp writes it

usage()
{
    sed -n '4,26s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

die()
{
    echo "fabtests.sh: $*" >&2
    exit 2
}

while (($# > 0)); do
    case $1 in
    --provider | --path | --drop | --device | --only | --bin | --logs | --timeout | --preload)
        (($# > 1)) || die "$1 needs a value"
        case $1 in
        --provider) provider=$2 ;;
        --path) path=$(realpath -m -- "$2") ;;
        --drop) drop=$2 ;;
        --device) IFS=, read -ra devices <<<"$2" ;;
        --only) only=$2 ;;
        --bin) bin=$(realpath -m -- "$2") ;;
        --logs) logs=$(realpath -m -- "$2") ;;
        --timeout) limit=$2 ;;
        --preload) preload=$2 ;;
        esac
        shift
        ;;
    --vm) machine=true ;;
    --short) length=short ;;
    --list) list=true ;;
    -h | --help) usage; exit ;;
    --)
        commands+=("${@:2}")
        break
        ;;
    -*) usage >&2; exit 2 ;;
    *) commands+=("$1") ;;
    esac
    shift
done
[[ $limit =~ ^[1-9][0-9]*$ ]] || die "--timeout $limit: a number of seconds is needed"
[[ $drop =~ ^[0-9]+(\.[0-9]+)?$ ]] || die "--drop $drop: a percentage is needed"
((${#devices[@]} < 3)) || die '--device: a device is needed, or two'
[[ $provider == mrd ]] || { ((${#devices[@]} == 0)) && ! $machine; } || die "$provider knows no device of mrd's"

# One program: GOOD_ADDR and SERVER_ADDR are addresses of this machine.
unit_tests()
{
    cat <<'LIST'
fi_getinfo_test -s SERVER_ADDR GOOD_ADDR
fi_av_test -g GOOD_ADDR -n 1 -s SERVER_ADDR -e rdm
fi_dom_test -n 2
fi_eq_test
fi_cq_test
fi_mr_test
fi_cntr_test
LIST
}

functional_tests()
{
    cat <<'LIST'
fi_av_xfer -e rdm
fi_cq_data -e rdm
fi_poll -t queue
fi_poll -t counter
fi_rdm
fi_rdm -U
fi_rdm_rma_event
fi_rdm_rma_trigger
fi_shared_ctx
fi_shared_ctx --no-tx-shared-ctx
fi_shared_ctx --no-rx-shared-ctx
fi_rdm_tagged_peek
fi_scalable_ep
fi_rdm_shared_av
fi_multi_mr -e rdm -V
fi_multi_ep -e rdm -v
fi_recv_cancel -e rdm -V
fi_unexpected_msg -e rdm -I 10
fi_msg_inject -A inject -v
fi_msg_inject -N -A inject -v
fi_msg_inject -A inj_complete -v
fi_msg_inject -N -A inj_complete -v
fi_bw -e rdm -v -T 1
fi_bw -e rdm -v -T 1 -U
fi_rdm_multi_client -C 10 -I 5
fi_rdm_multi_client -C 10 -I 5 -U
LIST
}

short_tests()
{
    cat <<'LIST'
fi_rma_bw -e rdm -o write -I 5
fi_rma_bw -e rdm -o write -I 5 -U
fi_rma_bw -e rdm -o read -I 5
fi_rma_bw -e rdm -o read -I 5 -U
fi_rma_bw -e rdm -o writedata -I 5
fi_rma_bw -e rdm -o writedata -I 5 -U
fi_rdm_atomic -I 5 -o all
fi_rdm_atomic -I 5 -o all -U
fi_rdm_cntr_pingpong -I 5
fi_multi_recv -e rdm -I 5
fi_rdm_pingpong -I 5
fi_rdm_pingpong -I 5 -U
fi_rdm_pingpong -I 5 -v
fi_rdm_pingpong -I 5 -v -U
fi_rdm_tagged_pingpong -I 5
fi_rdm_tagged_pingpong -I 5 -U
fi_rdm_tagged_pingpong -I 5 -v
fi_rdm_tagged_pingpong -I 5 -v -U
fi_rdm_tagged_bw -I 5
fi_rdm_tagged_bw -I 5 -U
fi_rdm_tagged_bw -I 5 -v
fi_rdm_tagged_bw -I 5 -v -U
LIST
}

standard_tests()
{
    cat <<'LIST'
fi_rma_bw -e rdm -o write
fi_rma_bw -e rdm -o write -U
fi_rma_bw -e rdm -o read
fi_rma_bw -e rdm -o read -U
fi_rma_bw -e rdm -o writedata
fi_rma_bw -e rdm -o writedata -U
fi_rdm_atomic -o all -I 1000
fi_rdm_atomic -o all -I 1000 -U
fi_rdm_cntr_pingpong
fi_multi_recv -e rdm
fi_rdm_pingpong
fi_rdm_pingpong -U
fi_rdm_pingpong -v
fi_rdm_pingpong -v -U
fi_rdm_pingpong -k
fi_rdm_pingpong -k -U
fi_rdm_pingpong -k -v
fi_rdm_pingpong -k -v -U
fi_rdm_tagged_pingpong
fi_rdm_tagged_pingpong -U
fi_rdm_tagged_pingpong -v
fi_rdm_tagged_pingpong -v -U
fi_rdm_tagged_bw
fi_rdm_tagged_bw -U
fi_rdm_tagged_bw -v
fi_rdm_tagged_bw -v -U
LIST
}

# Must find no provider.
negative_tests()
{
    echo 'fi_rdm g00n13s'
}

if ((${#commands[@]} == 0)); then
    mapfile -t commands < <({
        unit_tests
        negative_tests
        functional_tests
        "${length}_tests"
    } | grep -E -e "$only" || true)
fi
((${#commands[@]} > 0)) || die "no test matches $only"
if $list; then
    printf '%s\n' "${commands[@]}"
    exit
fi

skip()
{
    echo "fabtests: skipped: $*"
    exit 77
}

[[ -n ${FABTESTS_DIR-} ]] || skip 'FABTESTS_DIR does not name the sources of fabtests'
[[ -e $FABTESTS_DIR/common/shared.c ]] || skip "there are no sources of fabtests in $FABTESTS_DIR"
pkg-config --exists libfabric || skip 'the headers of libfabric are not installed (package libfabric-dev)'
[[ $provider != mrd || -e $path/libmrd-fi.so ]] || skip "there is no libmrd-fi.so in $path"

if $machine; then
    why=$("$root/tools/vmlab.sh" check 2>&1) || skip "no virtual machine: $why"
fi

# The tests listen on fixed ports: in a network namespace they meet nobody else's. RDMA devices are not in there.
if [[ -z ${FABTESTS_ALONE-} && ${#devices[@]} == 0 ]] && ! $machine; then
    export FABTESTS_ALONE=yes
    again=(bash -c 'ip link set lo up && exec "$@"' again
        "${BASH_SOURCE[0]}" --provider "$provider" --path "$path" --drop "$drop" --timeout "$limit"
        --preload "$preload" ${bin:+--bin "$bin"} ${logs:+--logs "$logs"} -- "${commands[@]}")
    for namespace in 'unshare --net' 'unshare --user --map-root-user --net'; do
        # shellcheck disable=SC2086 # a command line
        ! $namespace ip link set lo up 2>/dev/null || exec $namespace "${again[@]}"
    done
    echo 'no network namespace can be made here: the tests use ports 9228 and 3000 of this machine' >&2
fi

scratch=$(mktemp -d)
trap 'jobs -p | xargs -r kill -9 2>/dev/null || true; rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM
bin=${bin:-$scratch/bin}
logs=${logs:-$(mktemp -d /tmp/fabtests.XXXXXX)}
mkdir -p "$bin" "$logs"

read -ra compile <<<"${CC:-cc} -O2 -g -w -D_GNU_SOURCE -DHAVE_CONFIG_H $(pkg-config --cflags libfabric)"
compile+=(-I "$bin" -I "$FABTESTS_DIR/include" -I "$FABTESTS_DIR/include/unix")
read -ra libraries <<<"$(pkg-config --libs libfabric) -lpthread -ldl"

# What ./configure would find out.
write_config()
{
    cat >"$bin/config.h.new" <<'CONFIG'
#define HAVE_CLOCK_GETTIME 1
#define HAVE_EPOLL 1
#define HAVE___INT128 1
#define HAVE_LIBZE 0
#define ENABLE_DEBUG 0
#define PACKAGE_VERSION "unknown"
CONFIG
    mv "$bin/config.h.new" "$bin/config.h"
}

# object FOLDER/NAME: compiles a file of the sources, if that was not done yet; prints what it became.
object()
{
    local file=$bin/${1//\//_}.o

    if [[ ! -e $file ]]; then
        "${compile[@]}" -c "$FABTESTS_DIR/$1.c" -o "$file.new" >&2 && mv "$file.new" "$file"
    fi
    echo "$file"
}

# build PROGRAM: fi_rdm is functional/rdm.c, and so on.
build()
{
    local folder common objects=()
    local name=${1#fi_}

    [[ ! -e $bin/$1 ]] || return 0
    for folder in functional benchmarks unit; do
        [[ ! -e $FABTESTS_DIR/$folder/$name.c ]] || break
    done
    [[ -e $FABTESTS_DIR/$folder/$name.c ]] || die "there are no sources of $1"
    for common in shared hmem hmem_cuda hmem_rocr hmem_ze hmem_neuron; do
        objects+=("$(object common/$common)")
    done
    [[ $folder != benchmarks ]] || objects+=("$(object benchmarks/benchmark_shared)")
    [[ $folder != unit ]] || objects+=("$(object unit/common)")
    "${compile[@]}" "$FABTESTS_DIR/$folder/$name.c" "${objects[@]}" -o "$bin/$1.new" "${libraries[@]}"
    mv "$bin/$1.new" "$bin/$1"
}

# bounded LOG COMMAND...: what the command prints goes there; returns how it ended, 124 or 137 after the time limit.
bounded()
{
    local log=$1

    shift
    { printf '$ %s\n' "$*"
      timeout --kill-after=5 "$limit" env ${preload:+LD_PRELOAD="$preload"} "$@"; } </dev/null >"$log" 2>&1
}

# run_unit COMMAND...
run_unit()
{
    local status=0

    bounded "$log" "$@" || status=$?
    case $status in
    0) verdict=pass ;;
    "$ENODATA" | "$ENOSYS") verdict=notrun ;;
    124 | 137) verdict=fail why='too slow' ;;
    *) verdict=fail why="exit $status" ;;
    esac
}

# run_negative COMMAND...
run_negative()
{
    run_unit "$@"
    if [[ $verdict == notrun ]]; then
        verdict=pass
    elif [[ $verdict == pass ]]; then
        verdict=fail why='a provider was found'
    fi
}

# await_server PID: until it can be asked for its address, or has ended.
await_server()
{
    sleep 1 # as runfabtests.sh does: not all servers can be seen to listen
    ((${#devices[@]} > 0)) || return 0
    while kill -0 "$1" 2>/dev/null && ! grep -q ":$OUT_OF_BAND_PORT [0-9A-F:]* 0A " /proc/net/tcp{,6}; do
        sleep 0.2
    done
}

# run_pair COMMAND...: a server, and a client of it.
run_pair()
{
    local server pid client=0 server_status=0
    local server_end=(-s 127.0.0.1) client_end=(-s 127.0.0.1 127.0.0.1) client_environment=()

    if ((${#devices[@]} > 0)); then
        server_end=(-E) client_end=(-E -B 0 127.0.0.1) # over UDP, another port than the server
        client_environment=(FI_MRD_DEVICE="${devices[-1]}")
    fi
    bounded "$log.server" "$@" "${server_end[@]}" &
    pid=$!
    await_server "$pid"
    bounded "$log.client" "${client_environment[@]}" "$@" "${client_end[@]}" || client=$?
    if ((client != 0)); then
        sleep 2
        for server in $(ps -o pid= --ppid "$pid"); do
            kill "$server" 2>/dev/null || true # timeout passes it on
        done
    fi
    wait "$pid" || server_status=$?
    cat "$log.server" "$log.client" >"$log"
    rm "$log.server" "$log.client"

    case $server_status,$client in
    0,0) verdict=pass ;;
    "$ENODATA,$ENODATA" | "$ENOSYS,$ENOSYS") verdict=notrun ;;
    *124* | *137*) verdict=fail why="too slow: server $server_status, client $client" ;;
    *) verdict=fail why="exit: server $server_status, client $client" ;;
    esac
}

# run COMMAND LINE: prints the line of the table.
run()
{
    local line=$1 start=$SECONDS verdict why='' log words

    log=$logs/$(tr -c 'a-zA-Z0-9_\n-' _ <<<"$line").log
    words=${line//GOOD_ADDR/127.0.0.1}
    read -ra words <<<"${words//SERVER_ADDR/127.0.0.1}"
    words[0]=$bin/${words[0]}
    words+=(-p "$provider")
    if ((${#devices[@]} > 0)) && [[ $line == fi_poll* ]]; then
        verdict=notrun why='exchanges no addresses out-of-band'
    elif [[ $line == *g00n13s* ]]; then
        run_negative "${words[@]}"
    elif [[ $line == fi_*_test* && $line != fi_resmgmt_test* ]]; then
        run_unit "${words[@]}"
    else
        run_pair "${words[@]}"
    fi
    printf '%-6s %4ds  %s%s\n' "$verdict" $((SECONDS - start)) "$line" "${why:+  ($why)}"
    count[$verdict]=$((count[$verdict] + 1))
}

# This script again, in the virtual machine: there the programs are as this machine built them. Both ends of a test have
# buffers of up to a gigabyte.
in_machine()
{
    local code=0

    # shellcheck disable=SC2016 # the machine's shell expands it
    "$root/tools/vmlab.sh" run -n veth -m 4096 -t $((60 + limit * ${#commands[@]})) -o "$logs" \
        -e FABTESTS_DIR="$FABTESTS_DIR" -- bash -c '"$1" --logs "$VMLAB_OUT" "${@:2}"' fabtests \
        "$(realpath "${BASH_SOURCE[0]}")" --path "$path" --bin "$bin" --drop "$drop" --timeout "$limit" \
        --device rxe0,rxe1 -- "${commands[@]}" || code=$?
    echo "the logs of the machine are in $logs"
    return $code
}

# Without a provider, or a device, every line would end with FI_ENODATA.
check_provider()
{
    local device status=0

    build fi_dom_test
    for device in "${devices[@]-}"; do
        bounded "$scratch/log" ${device:+FI_MRD_DEVICE="$device"} "$bin/fi_dom_test" -n 1 -p "$provider" || status=$?
        ((status != ENODATA)) || die "libfabric finds no provider $provider${device:+ with a device $device}"
    done
}

write_config
for line in "${commands[@]}"; do
    build "${line%% *}"
done

if $machine; then
    in_machine
    exit
fi

export FI_PROVIDER_PATH=$path
[[ $provider == mrd ]] || unset FI_PROVIDER_PATH
export FI_MRD_DROP=$drop
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0} # fabtests leaks itself
check_provider
((${#devices[@]} == 0)) || export FI_MRD_DEVICE=${devices[0]}
declare -A count=([pass]=0 [fail]=0 [notrun]=0)
for line in "${commands[@]}"; do
    run "$line"
done
echo "$provider, $drop % dropped: ${count[pass]} passed, ${count[fail]} failed, ${count[notrun]} not run; logs: $logs"
((count[fail] == 0))
