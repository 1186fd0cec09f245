#!/usr/bin/env bash
# The branching fingerprint in four calls: requests that share a prefix of 24,576
# tokens, which ends inside a chunk of the prefill. The first of them computes it
# all, the second finds that a window is missing where the prefix ends and leaves
# one there, and the third and fourth reuse all of it.
# Usage: scripts/tour.sh [FLAG...]    flags go to treecore serve
# Needs Go, curl and jq.
set -euo pipefail
cd "$(dirname "$0")/.."

for tool in go curl jq; do
  if ! command -v "$tool" >/dev/null 2>&1; then
    echo "scripts/tour.sh: $tool is missing: install it" >&2
    exit 2
  fi
done

dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
go build -o "$dir/treecore" ./cmd/treecore
"$dir/treecore" serve --addr 127.0.0.1:0 --model gpt-oss-20b --page-size 16 --chunk-tokens 16384 "$@" >"$dir/out" &
server=$!
for _ in $(seq 200); do # until it says where it listens
  url=$(sed -n 's/^serving \(http[^:]*:[^:]*:[0-9]*\):.*/\1/p' "$dir/out")
  [ -n "$url" ] && break
  kill -0 "$server" 2>/dev/null || { echo "scripts/tour.sh: the server has not started" >&2; exit 1; }
  sleep 0.05
done
[ -n "$url" ] || { echo "scripts/tour.sh: the server does not say where it listens" >&2; exit 1; }

ask() { # NAME FIRST: the shared prefix and a question of its own
  jq -nc --argjson q "$2" '{input_ids: ([range(24576)] + [range($q; $q + 16384)]), sampling_params: {max_new_tokens: 1}}' |
    curl -sS --fail-with-body "$url/generate" -d @- |
    jq -r --arg name "$1" '"\($name)  \(.meta_info.cached_tokens) of \(.meta_info.prompt_tokens) tokens cached; Full alone: \(.meta_info.match.full_only); limited by \(.meta_info.match.limited_by): \(.meta_info.match.reason)"'
}

ask A 100000 | tee "$dir/answers"
ask B 200000 | tee -a "$dir/answers"
ask C 300000 | tee -a "$dir/answers"
ask D 400000 | tee -a "$dir/answers"

want="A 0 B 16384 C 24576 D 24576"
for flag in "$@"; do
  [ "$flag" = --no-branching ] && want="A 0 B 16384 C 16384 D 16384"
done
got=$(awk '{print $1, $2}' "$dir/answers" | xargs)
if [ "$got" != "$want" ]; then
  echo "scripts/tour.sh: cached tokens are $got, want $want" >&2
  exit 1
fi
