#!/usr/bin/env bash
# Runs OpenAI's own Python client against treecore serve. Needs Go and Python 3.9
# or newer; the client is installed into a folder of its own (.venv). Where it
# cannot be had, the test says so and is skipped.
set -euo pipefail
cd "$(dirname "$0")"

skip() {
  echo "skipped: tests/openai: $1"
  exit 0
}

command -v python3 >/dev/null 2>&1 || skip "python3 is missing"
if ! cmp -s requirements.txt .venv/installed.txt; then
  rm -rf .venv
  python3 -m venv .venv >/dev/null 2>&1 || skip "python3 -m venv does not work: install python3-venv"
  .venv/bin/pip install --quiet --disable-pip-version-check -r requirements.txt >.venv/pip.log 2>&1 ||
    skip "the package openai cannot be installed: $(tail -n 1 .venv/pip.log)"
  cp requirements.txt .venv/installed.txt
fi

dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
(cd ../.. && go build -o "$dir/treecore" ./cmd/treecore)
"$dir/treecore" serve --addr 127.0.0.1:0 --api-key secret >"$dir/out" &
server=$!
url=
for _ in $(seq 200); do # until it says where it listens
  url=$(sed -n 's/^serving \(http[^:]*:[^:]*:[0-9]*\):.*/\1/p' "$dir/out")
  [ -n "$url" ] && break
  kill -0 "$server" 2>/dev/null || break
  sleep 0.05
done
[ -n "$url" ] || { echo "tests/openai: the server has not started" >&2; exit 1; }
.venv/bin/python test_openai.py "$url/v1"
