#!/usr/bin/env bash
# All scenarios with many inputs, for a night:
#
#   npm run torture:nightly [-- [FILE] [--allow-skips]]
#
# A million inputs of raw bytes, then each other scenario with its default count. The table goes to FILE (default
# torture-DATE.md). Exit code 1: a row did not hold, or was not run (see --allow-skips of `npm run torture`). SEED=S repeats
# a night.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

file=torture-$(date -u +%Y-%m-%d).md skips=()
for argument in "$@"; do
  case $argument in
    --allow-skips) skips=(--allow-skips) ;;
    -*) echo "usage: $0 [FILE] [--allow-skips]" >&2 && exit 2 ;;
    *) file=$argument ;;
  esac
done
seed=${SEED:-$(((RANDOM * 32768 + RANDOM) % 1000000000))}
torture() { npm run --silent torture -- "$@" --seed "$seed" "${skips[@]}"; }

mapfile -t others < <(npm run --silent torture -- --list | awk 'NR > 1 && $1 != "fuzz" { print $1 }')
((${#others[@]} > 0)) || { echo 'there are no scenarios' >&2; exit 1; }

echo "seed $seed, table: $file"
status=0
{ echo "Seed $seed, $(git rev-parse --short HEAD 2>/dev/null || echo 'no commit'), $(date -u +%FT%RZ)"; echo; } >"$file"
torture fuzz --count "${FUZZ_COUNT:-1000000}" >>"$file" || status=1
# One by one, so that each row is in the file as soon as it is known; without the two lines of the table's head.
for name in "${others[@]}"; do
  torture "$name" > >(tail -n +3 >>"$file") || status=1
  wait $! || status=1
done
cat "$file"
exit "$status"
