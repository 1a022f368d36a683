#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# faults.sh SEND_FROM_PORT: each command of tools/fabric.sh does what it says, on its own fabric only.

# shellcheck source=tests/net/lib.sh
source "$(dirname "$0")/lib.sh"

readonly sender=$1 ports=64 count=100
readonly sent=$((ports * count))

# From leaf $1 to leaf $2, over all ports.
send_all()
{
    local port

    for ((port = 20000; port < 20000 + ports; port++)); do
        on "$1" 0 "$sender" "10.$2.0.2" "$port" $count
    done
}

received()
{
    on "$1" 0 awk '$1 == "Udp:" && $2 ~ /^[0-9]/ { print $2 + $3 + $4 }' /proc/net/snmp
}

# How much the columns grow over a round of sending: expect_growth FROM TO, sets came, lost, eaten, arrived.
observe()
{
    local came0 lost0 eaten0 arrived0

    came0=$(column packets "$1") lost0=$(column lost "$1") eaten0=$(column eaten "$1") arrived0=$(received "$2")
    send_all "$1" "$2"
    came=$(minus "$(column packets "$1")" "$came0")
    lost=$(minus "$(column lost "$1")" "$lost0")
    eaten=$(minus "$(column eaten "$1")" "$eaten0")
    arrived=$(($(received "$2") - arrived0))
    echo "$3: came $came lost $lost eaten $eaten arrived $arrived"
}

# word N of a list, from 0
nth()
{
    local list
    read -ra list <<<"$1"
    echo "${list[$2]}"
}

expect_exit()
{
    local code=0

    "${@:2}" 2>/dev/null || code=$?
    ((code == $1)) || fail "exit $code instead of $1: ${*:2}"
}

# shellcheck disable=SC2086 # lists of numbers are meant to be split
{
fabric_up -L 2 -S 3
send_all 0 1
send_all 1 0

observe 0 1 clean
((arrived == sent && $(sum $came) == sent && $(sum $lost $eaten) == 0)) || fail 'a clean fabric loses packets'

# 10% of 6400, within five standard deviations.
fabric loss 100000
observe 0 1 'loss 10%'
(($(sum $lost) > 520 && $(sum $lost) < 760)) || fail 'loss is off'
((arrived == sent - $(sum $lost) && $(sum $eaten) == 0)) || fail 'loss is counted wrongly'

# Both faults at once, and each is ended alone.
fabric blackhole 0 1 on
observe 0 1 'loss and blackhole'
((arrived == sent - $(sum $lost $eaten))) || fail 'what is dropped is counted wrongly'
(($(nth "$eaten" 1) == $(nth "$came" 1) && $(nth "$eaten" 1) > 0)) || fail 'the blackhole lets packets through'
(($(nth "$lost" 0) > 0)) || fail 'a blackhole ends the loss'
fabric loss 0
observe 0 1 blackhole
((arrived == sent - $(nth "$came" 1) && $(sum $lost) == 0)) || fail 'the blackhole is not alone'
observe 1 0 'other way'
((arrived == sent && $(sum $eaten) == 0)) || fail 'the blackhole works in the wrong direction'
fabric blackhole all 1 on
observe 1 0 'both ways'
(($(nth "$eaten" 1) == $(nth "$came" 1) && $(nth "$eaten" 1) > 0)) || fail 'a blackhole of all leaves one out'
fabric blackhole all 1 off
fabric blackhole all 1 off

# The console does and says the same as the commands.
counted=$(fabric counters)
answer=$(printf '%s\n' counters 'blackhole 0 1 on' counters | fabric console)
[[ $answer == "$counted"$'\n.\n'"$counted"$'\n.' ]] || fail "the console counts $answer, not $counted"
observe 0 1 console
((arrived == sent - $(nth "$came" 1) && $(nth "$eaten" 1) == $(nth "$came" 1))) || fail 'the console makes no blackhole'
expect_exit 2 fabric console <<<'cut 0 1'
fabric blackhole 0 1 off

# The leaf goes round a link that it sees unplugged.
fabric cut 0 2
observe 0 1 cut
(($(nth "$came" 2) == 0 && arrived == sent)) || fail 'the leaf sends into an unplugged link'
fabric heal 0 2
send_all 0 1
observe 0 1 healed
(($(nth "$came" 2) > 0 && arrived == sent)) || fail 'the link is not healed'
observe 1 0 'healed, other way'
((arrived == sent)) || fail 'the spine has no route to the healed leaf'

# A silent host keeps its TCP: the port is closed, and says so.
fabric silence 1 0 on
observe 0 1 silence
((arrived == 0 && $(sum $lost $eaten) == 0)) || fail 'UDP reaches a silent host'
observe 1 0 'silence, other way'
((arrived == 0)) || fail 'UDP comes from a silent host'
expect_exit 1 on 0 0 timeout 10 bash -c ': </dev/tcp/10.1.0.2/9'
fabric silence 1 0 off
fabric silence 1 0 off
observe 0 1 'no silence'
((arrived == sent)) || fail 'the silence does not end'

# TCP of pinned ports takes one spine, both ways; of others all.
observe_tcp()
{
    local try

    there=$(column tcp 0) back=$(column tcp 1)
    for ((try = 0; try < 40; try++)); do
        expect_exit 1 on 0 0 timeout 10 bash -c ": </dev/tcp/10.1.0.2/$1"
    done
    there=$(minus "$(column tcp 0)" "$there") back=$(minus "$(column tcp 1)" "$back")
    echo "TCP to port $1: $there, back: $back"
}
fabric pin 1 30000-30009
observe_tcp 30009
[[ $there == '0 40 0 ' && $back == '0 40 0 ' ]] || fail 'pinned TCP is not at its spine'
observe_tcp 30010
(($(nth "$there" 1) < 40 && $(nth "$back" 1) < 40)) || fail 'other ports are pinned, too'

# A second fabric beside it does not touch this one.
FABRIC_PREFIX="${prefix}b_" "$root/tools/fabric.sh" up -S 1
FABRIC_PREFIX="${prefix}b_" "$root/tools/fabric.sh" down
(($(fabric names | wc -l) == 7)) || fail 'taking another fabric down took parts of this one'
}

expect_exit 1 fabric up
expect_exit 2 fabric up -S 0
expect_exit 2 fabric up -b 1500
expect_exit 2 fabric loss 1%
expect_exit 2 fabric blackhole 0 3 on
expect_exit 2 fabric cut 2 0
expect_exit 2 fabric silence 0 1 on
expect_exit 2 fabric silence 0 0
expect_exit 2 fabric pin 3 1-2
expect_exit 2 fabric pin 0 1
expect_exit 2 fabric frobnicate
expect_exit 2 fabric
fabric down
[[ -z $(fabric names) ]] || fail 'down leaves namespaces behind'
expect_exit 1 fabric stat
expect_exit 2 fabric up --flow-cap fast

# A flow has a token bucket: what one port sends beyond it is dropped at the leaf, the same over many ports arrives.
fabric_up -L 2 -S 2 --flow-cap 1
before=$(received 1) began=$SECONDS
for ((i = 0; i < 60; i++)); do # not at once: the hosts' backlogs would drop some
    on 0 0 "$sender" 10.1.0.2 20000 100
done
seconds=$((SECONDS - began + 1))
arrived=$(($(received 1) - before))
[[ $(fabric capped) == "0 $((6000 - arrived))"$'\n1 0' ]] || fail "of one port's 6000 packets $arrived arrived, but: $(fabric capped)"
# The bucket holds 262144 bytes, which are 2473 packets, and the rate adds 1179 a second.
((arrived >= 2473 && arrived <= 2473 + 1180 * seconds)) || fail "a cap of 1 Mbit/s let $arrived of 6000 packets through"
send_all 0 1
observe 0 1 capped
((arrived == sent)) || fail "of ports below their caps $arrived of $sent packets arrived"
fabric down
