# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# The networks of the machine of tools/vmlab.sh; usage() there describes them. vmlab_net makes the one of $VMLAB_NET.
#
# Both devices live in the first network namespace, as rdma_rxe opens its socket in no other. What they send each other
# would then stay on the local table; rules that come before it put it on the wire. Commands come in batches, as an
# emulated processor takes long to start a program.

# onto_wire FROM TO TABLE ROUTE: what FROM sends to TO goes by this route.
onto_wire()
{
    echo "rule add pref $3 iif lo from $1 to $2 lookup $3"
    echo "route add $2 $4 src $1 table $3"
}

local_table_last()
{
    echo 'rule add pref 1000 lookup local'
    echo 'rule del pref 0 lookup local'
}

# Packets from an address of this very host are no forgery here.
trust_sources()
{
    local link

    for link in all va vb; do
        echo 1 >"/proc/sys/net/ipv4/conf/$link/accept_local"
        echo 0 >"/proc/sys/net/ipv4/conf/$link/rp_filter"
    done
}

# hosts ADDRESS-A ADDRESS-B: of va and vb, with the length of their networks.
hosts()
{
    echo "addr add $1 dev va"
    echo "addr add $2 dev vb"
    echo 'link set va up'
    echo 'link set vb up'
}

add_devices()
{
    rdma link add rxe0 type rxe netdev va
    rdma link add rxe1 type rxe netdev vb
}

vmlab_net_veth()
{
    local mac_a=02:00:00:00:00:01 mac_b=02:00:00:00:00:02

    ip link add va mtu "$VMLAB_MTU" address $mac_a type veth peer name vb mtu "$VMLAB_MTU" address $mac_b
    trust_sources
    {
        hosts 10.99.0.1/24 10.99.0.2/24
        onto_wire 10.99.0.1 10.99.0.2 101 'dev va'
        onto_wire 10.99.0.2 10.99.0.1 102 'dev vb'
        local_table_last
        echo "neigh replace 10.99.0.2 lladdr $mac_b dev va nud permanent"
        echo "neigh replace 10.99.0.1 lladdr $mac_a dev vb nud permanent"
    } | ip -batch -
    add_devices
}

# router NAME LINK ADDRESS SIDE FAR-NET FAR-SIDE: between LINK and the two paths, whose addresses end in the side.
router()
{
    local i

    # shellcheck disable=SC2016 # it is that shell that expands
    ip netns exec "$1" sh -ec '
        cd /proc/sys/net/ipv4
        echo 1 >ip_forward
        echo 1 >fib_multipath_hash_policy
        for f in conf/*/rp_filter; do echo 0 >$f; done'
    {
        echo "addr add $3/24 dev $2"
        echo "link set $2 up"
        for i in 0 1; do
            echo "addr add 10.99.1$i.$4/30 dev p$i"
            echo "link set p$i up"
        done
        echo "route add $5 nexthop via 10.99.10.$6 dev p0 onlink nexthop via 10.99.11.$6 dev p1 onlink"
    } | ip -n "$1" -batch -
}

vmlab_net_ecmp()
{
    local mtu=$VMLAB_MTU

    ip netns add R1
    ip netns add R2
    ip -batch - <<LINKS
link add va mtu $mtu type veth peer name ra mtu $mtu netns R1
link add vb mtu $mtu type veth peer name rb mtu $mtu netns R2
link add p0 mtu $mtu netns R1 type veth peer name p0 mtu $mtu netns R2
link add p1 mtu $mtu netns R1 type veth peer name p1 mtu $mtu netns R2
LINKS
    trust_sources
    router R1 ra 10.99.1.254 1 10.99.2.0/24 2
    router R2 rb 10.99.2.254 2 10.99.1.0/24 1
    {
        hosts 10.99.1.1/24 10.99.2.1/24
        onto_wire 10.99.1.1 10.99.2.1 101 'via 10.99.1.254 dev va'
        onto_wire 10.99.2.1 10.99.1.1 102 'via 10.99.2.254 dev vb'
        local_table_last
    } | ip -batch -
    add_devices
}

vmlab_net_none()
{
    :
}

# To be called outside of conditions, where the shell would go on after errors.
vmlab_net()
{
    local code

    (set -e; "vmlab_net_$VMLAB_NET")
    code=$?
    ((code == 0)) || echo "vmlab: the network $VMLAB_NET could not be made" >&2
    return $code
}
