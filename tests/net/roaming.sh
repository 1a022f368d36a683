#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# roaming.sh TALK: a host's address changes, while nothing is under way and while much is. Every message is answered in the
# end, from the new address, and none is executed twice.

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
    start_client "$(to $family first)" 6 1 300 4
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
