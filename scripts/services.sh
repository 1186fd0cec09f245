#!/usr/bin/env bash
# Starts and stops the servers that the storage tests use: Redis alone, as a
# cluster of three, behind a sentinel, and with TLS; and an S3-compatible store,
# Versity's gateway over a folder.
#
#   scripts/services.sh install        installs redis-server and openssl (Debian), and
#                                      builds versitygw into TREECORE_SERVICES_DIR/bin
#   eval "$(scripts/services.sh start)"   starts them and sets the variables that the tests read
#   go test ./storage/...
#   scripts/services.sh stop
#
# They listen on 127.0.0.1 from port TREECORE_SERVICES_PORT (default 17000) on,
# keep everything in TREECORE_SERVICES_DIR (default /tmp/treecore-services), and
# are ended by the process ids that start left there. stop removes what start made,
# and nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=${TREECORE_SERVICES_DIR:-/tmp/treecore-services}
port=${TREECORE_SERVICES_PORT:-17000}
gateway=github.com/versity/versitygw
gateway_version=v1.8.0
servers=(single cluster1 cluster2 cluster3 master sentinel tls s3) # a folder and a process id each

say() { echo "scripts/services.sh: $*" >&2; }

install() {
  if ! command -v redis-server >/dev/null 2>&1; then
    apt-get update -qq && apt-get install -y -qq redis-server >&2
    # Debian starts one of its own, which nobody here needs.
    systemctl disable --now redis-server >/dev/null 2>&1 || true
  fi
  command -v openssl >/dev/null 2>&1 || apt-get install -y -qq openssl >&2
  if ! has_gateway; then
    mkdir -p "$dir/bin"
    GOBIN="$(cd "$dir/bin" && pwd)" go install "$gateway/cmd/versitygw@$gateway_version" >&2
  fi
}

# has_gateway: whether the gateway is there, in the version that is named above.
has_gateway() {
  local built
  built=$(go version -m "$dir/bin/versitygw" 2>/dev/null) || return 1
  [[ $built == *"$gateway"$'\t'"$gateway_version"$'\t'* ]]
}

# redis NAME PORT [SETTINGS...]: one server, in a folder of its own.
redis() {
  local name=$1 at=$2
  shift 2
  mkdir -p "$dir/$name"
  redis-server --port "$at" --bind 127.0.0.1 --dir "$dir/$name" --save '' --daemonize yes \
    --pidfile "$dir/$name.pid" --logfile "$dir/$name/log" "$@" >/dev/null
}

# answers COMMAND...: waits until it prints PONG.
answers() {
  for _ in $(seq 100); do
    if [ "$("$@" ping 2>/dev/null)" = PONG ]; then return 0; fi
    sleep 0.1
  done
  say "no answer to: $* (see $dir)"
  return 1
}

# healthy PORT PATH: waits until a server answers a plain request with 200.
healthy() {
  local status
  for _ in $(seq 100); do
    status=$({
      exec 3<>"/dev/tcp/127.0.0.1/$1"
      printf 'GET %s HTTP/1.0\r\n\r\n' "$2" >&3
      read -r status <&3
      echo "$status"
    } 2>/dev/null) || status=
    if [[ $status == *' 200 '* ]]; then return 0; fi
    sleep 0.1
  done
  say "no answer at 127.0.0.1:$1$2 (see $dir)"
  return 1
}

start() {
  for program in redis-server redis-cli openssl; do
    if ! command -v "$program" >/dev/null 2>&1; then
      say "$program is missing: run scripts/services.sh install"
      exit 2
    fi
  done
  if ! has_gateway; then
    say "$dir/bin/versitygw $gateway_version is missing: run scripts/services.sh install"
    exit 2
  fi
  stop

  redis single "$port" --appendonly yes
  answers redis-cli -p "$port"

  for i in 1 2 3; do
    redis "cluster$i" $((port + i)) --cluster-enabled yes --cluster-config-file nodes.conf
    answers redis-cli -p $((port + i))
  done
  redis-cli --cluster create "127.0.0.1:$((port + 1))" "127.0.0.1:$((port + 2))" "127.0.0.1:$((port + 3))" \
    --cluster-yes >"$dir/cluster.log" 2>&1
  for i in 1 2 3; do
    for _ in $(seq 100); do
      if redis-cli -p $((port + i)) cluster info | grep -q cluster_state:ok; then break; fi
      sleep 0.1
    done
  done

  redis master $((port + 4)) --requirepass secret
  answers redis-cli -p $((port + 4)) -a secret --no-auth-warning
  mkdir -p "$dir/sentinel"
  printf '%s\n' "port $((port + 5))" "bind 127.0.0.1" "dir $dir/sentinel" "daemonize yes" \
    "pidfile $dir/sentinel.pid" "logfile $dir/sentinel/log" \
    "sentinel monitor main 127.0.0.1 $((port + 4)) 1" "sentinel auth-pass main secret" >"$dir/sentinel/conf"
  redis-server "$dir/sentinel/conf" --sentinel >/dev/null
  answers redis-cli -p $((port + 5))

  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
    -keyout "$dir/tls.key" -out "$dir/tls.pem" 2>/dev/null
  redis tls 0 --tls-port $((port + 6)) --tls-cert-file "$dir/tls.pem" --tls-key-file "$dir/tls.key" \
    --tls-ca-cert-file "$dir/tls.pem" --tls-auth-clients no --requirepass secret
  answers redis-cli -p $((port + 6)) --tls --cacert "$dir/tls.pem" -a secret --no-auth-warning

  # A bucket is a folder. Nothing here may keep our output open, which the shell
  # that evaluates it reads to its end.
  mkdir -p "$dir/s3/treecore"
  nohup "$dir/bin/versitygw" --access treecore --secret treecore-secret --port "127.0.0.1:$((port + 7))" \
    --health /health --quiet posix "$dir/s3" </dev/null >"$dir/s3.log" 2>&1 &
  echo $! >"$dir/s3.pid"
  healthy $((port + 7)) /health

  cat <<VARIABLES
export TREECORE_REDIS_URL='redis://127.0.0.1:$port'
export TREECORE_REDIS_CLUSTER_URL='redis://127.0.0.1:$((port + 1)),127.0.0.1:$((port + 2)),127.0.0.1:$((port + 3))?mode=cluster'
export TREECORE_REDIS_SENTINEL_URL='redis://:secret@127.0.0.1:$((port + 5))?mode=sentinel&master=main'
export TREECORE_REDIS_TLS_URL='rediss://:secret@127.0.0.1:$((port + 6))?ca=$dir/tls.pem'
export TREECORE_S3_URL='s3://treecore:treecore-secret@treecore/pages?endpoint=127.0.0.1:$((port + 7))&tls=0'
VARIABLES
}

# runs PID: whether that process is one of ours, and not only waits to be reaped.
runs() {
  local line
  line=$({ tr '\0' ' ' <"/proc/$1/cmdline"; } 2>/dev/null) || return 1
  [[ $line == *redis-server* || $line == *"$dir/bin/versitygw"* ]]
}

stop() {
  [ -d "$dir" ] || return 0
  for name in "${servers[@]}"; do
    [ -f "$dir/$name.pid" ] || continue
    pid=$(cat "$dir/$name.pid")
    # The id may have gone to another process since: look what it runs.
    if runs "$pid"; then
      kill "$pid" 2>/dev/null || true
      for _ in $(seq 200); do
        runs "$pid" || break
        sleep 0.05
      done
      if runs "$pid"; then kill -9 "$pid" 2>/dev/null || true; fi
    fi
  done
  # Nothing but what start made: the folder may be somebody's own.
  for name in "${servers[@]}"; do rm -rf "$dir/$name" "$dir/$name.pid"; done
  rm -f "$dir/cluster.log" "$dir/s3.log" "$dir/tls.key" "$dir/tls.pem"
}

case "${1:-}" in
  install|start|stop) "$1" ;;
  *) say "say install, start or stop"; exit 2 ;;
esac
