#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# roaming.sh TALK: a host's address changes, while nothing is under way and while much is. Every message is answered in the
# end, from the new address, and none is executed twice. A temporary address of IPv6 is kept while it is deprecated, and
# left when it is gone.

# shellcheck source=tests/net/two_hosts.sh
source "$(dirname "$0")/two_hosts.sh" "$1"

# change_address FAMILY: a's address on the first link is another one now.
change_address()
{
    if [[ $1 == 4 ]]; then
        ip -n "$a" addr del 10.1.0.1/24 dev l1
        ip -n "$a" addr add 10.1.0.3/24 dev l1
    else
        ip -n "$a" addr del fd01::1/64 dev l1
        ip -n "$a" addr add fd01::3/64 dev l1 nodad
    fi
}

for family in 4 6; do
    set_up
    start_server
    start_client "$(to $family first)" 20 1 300 4
    wait_for_answers 3
    change_address $family
    finish "IPv$family, the address changes, idle" 2

    # So many messages on two paths that they are connected.
    set_up
    start_server
    start_client "$(to $family first)" 40000 64 0 2
    wait_for_answers 100
    change_address $family
    finish "IPv$family, the address changes, busy" 2
done

# preferred: a's temporary address on the first link that new sockets get, once there is one.
preferred()
{
    local try address

    for ((try = 0; try < 200; try++)); do
        address=$(ip -n "$a" -6 -o addr show dev l1 temporary -deprecated -tentative | awk '{ print $4; exit }')
        if [[ $address ]]; then
            echo "$address"
            return 0
        fi
        sleep 0.05
    done
    return 1
}

# try_private NAME MESSAGES WINDOW PAUSE_MS PATHS: while these go, the kernel makes the next temporary address, and then
# takes the first one away. New sockets leave from the next one at once. stalled: a host stood still for so long that
# the client tried another source, as it should; then it has nothing to say of addresses that are deprecated.
try_private()
{
    local old next

    stalled=false
    set_up
    ip netns exec "$a" sysctl -qw net.ipv6.conf.l1.use_tempaddr=2 net.ipv6.conf.l1.dad_transmits=0
    ip -n "$a" addr del fd01::1/64 dev l1
    ip -n "$a" addr add fd01::1/64 dev l1 mngtmpaddr nodad valid_lft 7200 preferred_lft 3600
    old=$(preferred) || { echo "$1: this kernel makes no temporary addresses"; return; }
    start_server
    start_client "$(to 6 first)" "${@:2}"
    wait_for_answers 3
    ip -n "$a" addr change "$old" dev l1 valid_lft 3600 preferred_lft 0
    next=$(preferred) || fail "$1: no address follows $old"
    [[ $(ip -n "$a" -6 route get fd01::2) == *"src ${next%/*} "* ]] || fail "$1: new sockets do not leave from $next"
    wait_for_answers $(($(grep -c '^answered' "$scratch/client") + 3))
    if grep -q 'leave from' "$scratch/client.log"; then
        stalled=true
        return
    fi
    [[ $(grep '^from' "$scratch/server") == "from [${old%/*}]" ]] || { show; fail "$1: $old was left while it was there"; }
    ip -n "$a" addr del "$old" dev l1
    finish "$1" 2
    [[ $(grep '^from' "$scratch/server" | tail -n 1) == "from [${next%/*}]" ]] || { show; fail "$1: not from $next"; }
}

# private NAME MESSAGES WINDOW PAUSE_MS PATHS
private()
{
    local try

    for ((try = 0; try < 3; try++)); do
        try_private "$@"
        $stalled || return 0
    done
    show
    fail "$1: another source was tried each time"
}

private 'IPv6, temporary addresses, idle' 40 1 300 4
private 'IPv6, temporary addresses, busy' 10000 64 1 2
