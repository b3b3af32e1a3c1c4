#!/bin/sh
# Before it is removed the peer stops: deb says "remove", rpm the number of packages that stay.
set -e
if [ -d "$DPKG_ROOT/run/systemd/system" ] && { [ "$1" = remove ] || [ "$1" = 0 ]; }; then
  systemctl --no-reload disable --now peer.socket peer.service || true
fi
