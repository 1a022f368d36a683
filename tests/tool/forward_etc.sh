# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# Sourced after forward_lib.sh by tests of names: an /etc of their own, with no name servers and no hosts but localhost.

if [[ -z ${FORWARD_OWN_ETC-} ]]; then
    export FORWARD_OWN_ETC=1
    trap - EXIT
    rm -rf "$scratch"
    cd "$OLDPWD"
    unshare -m true 2>/dev/null || { echo "$(basename "$0" .sh): skipped: no mount namespaces may be made here"; exit 77; }
    exec unshare -m "$0" "$@"
fi
cp -a /etc own_etc 2>/dev/null || true # what may not be read is not needed
mount --bind own_etc /etc
rm -f /etc/resolv.conf /etc/hosts
printf '127.0.0.1 localhost\n' >/etc/hosts
