#!/bin/sh
# What the service made goes with deb's "purge", and with the last package of rpm, which has no purge. Only what the
# operator put into /etc/peer stays.
set -e
case "$1" in
purge | 0)
  rm -rf "$DPKG_ROOT/var/cache/peer" "$DPKG_ROOT/var/cache/private/peer"
  [ ! -d "$DPKG_ROOT/etc/peer" ] || rmdir --ignore-fail-on-non-empty "$DPKG_ROOT/etc/peer" || true
  ;;
esac
[ ! -d "$DPKG_ROOT/run/systemd/system" ] || systemctl daemon-reload || true
