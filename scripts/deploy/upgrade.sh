#!/usr/bin/env bash
# Moves all listeners from one syrinx to another:
#
#   sudo scripts/deploy/upgrade.sh FROM TO      two ports of syrinx@.service that nginx knows (syrinx-upstream.conf)
#
# Whether it is ready is asked at the ops port, which is 10,000 above: plain HTTP on 127.0.0.1, whatever HOST and TLS_CERT are.
# The new process runs what /opt/syrinx/current names now. The old one, told to stop, closes its port: from that moment
# nginx asks the other. What it was speaking it speaks to the end, for up to DRAIN_SECONDS (25); with enough of them nobody is cut off.
set -euo pipefail

if [[ $# -ne 2 || $1 == "$2" || ! $1 =~ ^[0-9]{4}$ || ! $2 =~ ^[0-9]{4}$ ]]; then
  echo "usage: $0 FROM TO (two ports of four digits)" >&2
  exit 2
fi
from=$1 to=$2

if ! systemctl is-active --quiet "syrinx@$from"; then
  echo "syrinx@$from does not run: nothing to move" >&2
  exit 1
fi
if systemctl is-active --quiet "syrinx@$to"; then
  cat >&2 <<END
syrinx@$to runs already. If an upgrade was cut off, go on from there:
  curl -fsS --max-time 2 http://127.0.0.1:1$to/readyz && systemctl enable syrinx@$to &&
    systemctl disable --now syrinx@$from
or begin anew: systemctl stop syrinx@$to, and this once more.
END
  exit 1
fi

# What cannot even be executed is stopped below too: systemd would try it again and again.
systemctl start "syrinx@$to" || true
for ((tries = 120; tries > 0; tries--)); do
  curl -fs --max-time 2 -o /dev/null "http://127.0.0.1:1$to/readyz" && break
  systemctl is-active --quiet "syrinx@$to" || tries=1
  sleep 0.25
done
if ((tries == 0)); then
  systemctl stop "syrinx@$to"
  echo "syrinx@$to is not ready, and was stopped; syrinx@$from serves on. Why: journalctl -u syrinx@$to -n 20" >&2
  exit 1
fi
echo "syrinx@$to is ready; syrinx@$from drains"

# With the next boot the new one comes up: first, so that a script that is cut off leaves one that does.
systemctl enable --quiet "syrinx@$to"
systemctl disable --quiet "syrinx@$from"
# Returns when the old process has ended.
systemctl stop "syrinx@$from"
echo "syrinx@$to has it all"
