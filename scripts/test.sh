#!/usr/bin/env bash
# Runs every check and test of the project, as a newcomer and as CI do.
# Needs Go (see go.mod for the version) and nothing else; the Go command fetches
# the rest. What needs curl, jq or Python besides says so where it is skipped.
# Usage: scripts/test.sh [--quick]   (--quick leaves out the race run)
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v go >/dev/null 2>&1; then
  echo "scripts/test.sh: the go command is missing: install Go $(sed -n 's/^go //p' go.mod) or newer from https://go.dev/dl" >&2
  exit 2
fi

step() { printf '\n== %s\n' "$*"; }

step "gofmt"
unformatted=$(gofmt -l $(git ls-files '*.go' 2>/dev/null || find . -name '*.go'))
if [ -n "$unformatted" ]; then
  echo "not formatted; run gofmt -w on:" >&2
  echo "$unformatted" >&2
  exit 1
fi

step "go vet"
go vet ./...

step "staticcheck"
go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

step "tests"
go test -timeout 9m ./...

step "the tour of the server"
if command -v curl >/dev/null 2>&1 && command -v jq >/dev/null 2>&1; then
  scripts/tour.sh
else
  echo "skipped: scripts/tour.sh: it needs curl and jq"
fi

step "OpenAI's client"
tests/openai/run.sh

if [ "${1:-}" != "--quick" ]; then
  step "tests under the race detector"
  go test -race -short -timeout 9m ./...
fi

step "all checks passed"
