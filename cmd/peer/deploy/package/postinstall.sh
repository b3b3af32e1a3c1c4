#!/bin/sh
# After an upgrade the peer runs the new program: deb says "configure" and the former version, rpm the number of packages.
set -e
[ -d "$DPKG_ROOT/run/systemd/system" ] || exit 0
systemctl daemon-reload || true
if [ "$1" = configure ] && [ -n "$2" ] || [ "$1" = 2 ]; then
  systemctl try-restart peer.service || true
fi
