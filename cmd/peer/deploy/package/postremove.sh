#!/bin/sh
# What the service made goes with deb's "purge", and with the last package of rpm, which has no purge. Only what the
# operator put into /etc/peer stays.
set -e
case "$1" in
purge | 0)
  rm -rf "$DPKG_ROOT/var/cache/peer" "$DPKG_ROOT/var/cache/private/peer"
  rmdir "$DPKG_ROOT/etc/peer" 2>/dev/null || true
  ;;
esac
[ ! -d "$DPKG_ROOT/run/systemd/system" ] || systemctl daemon-reload || true
