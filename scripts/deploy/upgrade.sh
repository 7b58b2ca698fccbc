#!/usr/bin/env bash
# Moves all listeners from one syrinx to another, and cuts none of them off:
#
#   sudo scripts/deploy/upgrade.sh FROM TO      two ports of syrinx@.service that nginx knows (syrinx-upstream.conf)
#
# The new process runs what /opt/syrinx/current names now. The old one, told to stop, takes nothing new: from that moment
# nginx finds its port closed and asks the other. What it was speaking it speaks to the end, for up to 30 s.
set -euo pipefail

if [[ $# -ne 2 || $1 == "$2" || ! $1$2 =~ ^[0-9]+$ ]]; then
  echo "usage: $0 FROM TO (two ports)" >&2
  exit 2
fi
from=$1 to=$2

if ! systemctl is-active --quiet "syrinx@$from"; then
  echo "syrinx@$from does not run: nothing to move" >&2
  exit 1
fi
if systemctl is-active --quiet "syrinx@$to"; then
  echo "syrinx@$to runs already: stop it first" >&2
  exit 1
fi

systemctl start "syrinx@$to"
for ((tries = 120; tries > 0; tries--)); do
  curl -fs -o /dev/null "http://127.0.0.1:$to/readyz" && break
  systemctl is-active --quiet "syrinx@$to" || tries=1
  sleep 0.25
done
if ((tries == 0)); then
  systemctl stop "syrinx@$to"
  echo "syrinx@$to is not ready, and was stopped; syrinx@$from serves on. Why: journalctl -u syrinx@$to -n 20" >&2
  exit 1
fi
echo "syrinx@$to is ready; syrinx@$from drains"

# Returns when the old process has ended. With the next boot the new one comes up.
systemctl stop "syrinx@$from"
systemctl disable --quiet "syrinx@$from"
systemctl enable --quiet "syrinx@$to"
echo "syrinx@$to has it all"
