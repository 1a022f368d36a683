#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# limits.sh MRD_PERF: what a device, a port or the system does not allow is refused with a message that says what.

# shellcheck source=tests/rdma/lib.sh
source "$(dirname "$0")/lib.sh"

readonly perf=$1

# refused PATTERN COMMAND...: exits with 1 or 2, and says so; never by a signal.
refused()
{
    local code=0

    timeout 60 "${@:2}" >client 2>&1 || code=$?
    note "$(tail -n 1 client)"
    ((code == 1 || code == 2)) || fail "exit status $code instead of 1 or 2"
    grep -Eiq -- "$1" client || fail "the message does not match '$1'"
}

# refused_client PATTERN OPTION...
refused_client()
{
    refused "$1" "$perf" send_bw -d "${devices[1]}" -p $port -s 4096 -n 100 "${@:2}" 127.0.0.1
}

# Nobody, who may lock 64 KiB.
small_memlock()
{
    refused 'lock|memlock|ulimit' setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all \
        bash -c 'ulimit -l 64 && exec "$@"' bash \
        "$perf" send_bw -d "${devices[1]}" -p $port -s 4096 -n 100 127.0.0.1
}

no_entry()
{
    chmod 600 /dev/infiniband/uverbs*
    refused 'denied|/dev/infiniband' setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all \
        "$perf" send_bw -d "${devices[1]}" -p $port -s 4096 -n 100 127.0.0.1
    chmod 666 /dev/infiniband/uverbs*
}

# mtus VA VB
mtus()
{
    ip link set va mtu "$1"
    ip link set vb mtu "$2"
}

in_machine veth "$@"
serve_all "$perf"

run_case 'unknown device' refused "device.*rxe9" "$perf" send_bw -d rxe9 -p $port 127.0.0.1
run_case 'unknown device, server' refused "device.*rxe9" "$perf" send_bw -d rxe9 -p 4894
run_case 'unknown port' refused_client 'port 7|has 1 port' -i 7
run_case 'unknown GID' refused_client 'GID.*77' -x 77
run_case 'unknown entropy' refused_client 'qpair' --entropy=luck
run_case 'MTU beyond the port' refused_client 'MTU' -m 8192
run_case 'little memory may be locked' small_memlock
run_case 'no right to the device' no_entry

mtus 4200 1500
run_case 'MTUs differ' refused_client "MTU.*differ"
run_case 'MTU beyond one port' refused_client 'MTU.*1024' -m 2048
run_case 'MTUs differ, one is given' transfer "$perf" send_bw 4096 100 -m 1024
mtus 300 300
run_case 'MTU of 256' refused_client '256.*MTU|MTU.*256'
mtus 4200 4200

ip link set va down
run_case 'port down' refused_client 'not active|down'
ip link set va up

run_case 'afterwards all is well' transfer "$perf" send_bw 4096 1000
finish
