#!/usr/bin/env bash
# Moves all listeners from one syrinx process to another:
#
#   sudo scripts/deploy/upgrade.sh FROM TO [ARCHIVE]     two ports of syrinx@.service that nginx knows (syrinx-upstream.conf)
#
# With ARCHIVE (syrinx-VERSION-PLATFORM.tar.gz) the script unpacks that release into /opt/syrinx and points /opt/syrinx/current at
# it; if the new process is not ready, it points back. Without ARCHIVE the new process runs what /opt/syrinx/current names now.
# SYRINX_ROOT is another folder than /opt/syrinx.
#
# The script asks the ops port, 10,000 above, whether the new process is ready: plain HTTP on 127.0.0.1, whatever HOST and TLS_CERT are.
# The old process closes its port when it gets the signal to stop; from then on nginx uses the other port. The old process
# finishes its speech within DRAIN_SECONDS (25).
set -euo pipefail

if [[ $# -lt 2 || $# -gt 3 || $1 == "$2" || ! $1 =~ ^[0-9]{4}$ || ! $2 =~ ^[0-9]{4}$ ]]; then
  echo "usage: $0 FROM TO [ARCHIVE] (two ports of four digits, syrinx-VERSION-PLATFORM.tar.gz)" >&2
  exit 2
fi
from=$1 to=$2 archive=${3-}
root=${SYRINX_ROOT:-/opt/syrinx}

if ! systemctl is-active --quiet "syrinx@$from"; then
  echo "syrinx@$from does not run: nothing to move" >&2
  exit 1
fi
if systemctl is-active --quiet "syrinx@$to"; then
  cat >&2 <<END
syrinx@$to runs already. If an upgrade was interrupted, continue with:
  curl -fsS --max-time 2 http://127.0.0.1:1$to/readyz && systemctl enable syrinx@$to &&
    systemctl disable --now syrinx@$from
or start over: systemctl stop syrinx@$to, then run this script again.
END
  exit 1
fi

# One rename, so that `current` always names a release.
point_current_at() {
  ln -sfn "$1" "$root/.current"
  mv -T "$root/.current" "$root/current"
}

before=
if [[ -n $archive ]]; then
  release=$(basename "$archive" .tar.gz)
  if [[ ! -e $root/$release ]]; then
    unpacked=$(mktemp -d "$root/.unpacked-XXXXXX")
    trap 'rm -rf "$unpacked"' EXIT
    tar -xzf "$archive" -C "$unpacked" --no-same-owner
    mv "$unpacked/$release" "$root/"
  fi
  before=$(readlink "$root/current")
  point_current_at "$release"
fi

# A release that cannot be executed is stopped below too, or systemd would keep restarting it.
systemctl start "syrinx@$to" || true
for ((tries = 120; tries > 0; tries--)); do
  curl -fs --max-time 2 -o /dev/null "http://127.0.0.1:1$to/readyz" && break
  systemctl is-active --quiet "syrinx@$to" || tries=1
  sleep 0.25
done
if ((tries == 0)); then
  systemctl stop "syrinx@$to"
  [[ -z $before ]] || point_current_at "$before"
  echo "syrinx@$to is not ready, and was stopped; syrinx@$from keeps serving. Reason: journalctl -u syrinx@$to -n 20" >&2
  exit 1
fi
echo "syrinx@$to is ready; syrinx@$from drains"

# Enable the new one for the next boot first, so that an interrupted script leaves one enabled.
systemctl enable --quiet "syrinx@$to"
systemctl disable --quiet "syrinx@$from"
# Returns when the old process has ended.
systemctl stop "syrinx@$from"
echo "syrinx@$to serves all requests"
