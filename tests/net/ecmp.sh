#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# ecmp.sh SEND_FROM_PORT: many source ports reach every spine, and each port goes by the same one whoever sends.

# shellcheck source=tests/net/lib.sh
source "$(dirname "$0")/lib.sh"

readonly sender=$1 ports=48 first_port=20000 count=20

# Which spine takes the packets of each source port, appended to `map`. One process a port: sockets differ, ports do not.
take_map()
{
    local port before after spine index number

    map=''
    before=$(column packets)
    for ((port = first_port; port < first_port + ports; port++)); do
        on 0 0 "$sender" 10.1.0.2 "$port" $count
        after=$(column packets)
        spine='' index=0
        for number in $(minus "$after" "$before"); do
            if ((number == count)); then
                spine=$index
            elif ((number != 0)); then
                fail "port $port was split: spine $index got $number of $count packets"
            fi
            index=$((index + 1))
        done
        [[ -n $spine ]] || fail "the packets of port $port came to no spine"
        map+="$spine "
        before=$after
    done
}

fabric_up -S 4
# The first packets of all may wait for ARP and be dropped: let every link have seen one.
for ((port = 30000; port < 30064; port++)); do
    on 0 0 "$sender" 10.1.0.2 "$port" 1
done
sleep 0.2

take_map
first=$map
take_map
second=$map
echo "spines of ports $first_port-$((first_port + ports - 1)): $first"
[[ $first == "$second" ]] || fail "the second time they were:  $second"
for spine in 0 1 2 3; do
    [[ " $first" == *" $spine "* ]] || fail "no port of $ports leads to spine $spine"
done
