#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# forward_strangers.sh MRD_FORWARD STRANGER: whoever is not the other end of a tunnel does nothing to its streams, even if he
# knows all of their numbers; and what he is answered does not tell him whether he does.

set -euo pipefail

forward=$1 stranger=$2
# shellcheck source=tests/tool/forward_lib.sh
source "$(dirname "$0")/forward_lib.sh"

start_forward server serve --listen 127.0.0.1:4802 --allow '127.0.0.1:*' --verbose
timeout 200 "$stranger" serve 127.0.0.1:4802 7000 >out 2>err || fail_with server 'a stranger meddles with a server'
stop server

start client "$forward" connect -L 6000:127.0.0.1:7000 --verbose --peer-timeout 60 127.0.0.1:4803
timeout 200 "$stranger" connect 127.0.0.1:4803 6000 >out 2>err || fail_with client 'a stranger meddles with a client'
stop client
