#!/usr/bin/env bash
# Kills writers with kill -9 while they write pages, and looks for wrong pages
# afterwards: KILLS times (default 100) a process that writes to a folder, and as
# often a redis-server (skipped without one).
# Usage: scripts/killtest.sh [KILLS]
set -euo pipefail
cd "$(dirname "$0")/.."
kills=${1:-100}
case "$kills" in
  ''|*[!0-9]*|0) echo "scripts/killtest.sh: KILLS is '$kills': give a whole number, for example 100" >&2; exit 2 ;;
esac
TREECORE_KILLS="$kills" exec go test -p 1 ./storage/file ./storage/redis -run KilledWhileWriting -timeout 0 -count 1 -v
