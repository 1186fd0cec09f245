#!/usr/bin/env bash
# Runs the core against the slow oracle for long: OPS random operations for each
# mix of components, page size and policy (default 1,000,000).
# Usage: scripts/soak.sh [OPS]
set -euo pipefail
cd "$(dirname "$0")/.."
ops=${1:-1000000}
case "$ops" in
  ''|*[!0-9]*) echo "scripts/soak.sh: OPS is '$ops': give a whole number, for example 1000000" >&2; exit 2 ;;
esac
TREECORE_SOAK_OPS="$ops" exec go test -p 1 ./internal/ops ./tree -run TestRandom -timeout 0 -v
