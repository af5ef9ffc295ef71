# What the examples with workers share. Sourced by their `run.sh`, which sets `here` to its folder.

root=$(cd "$here/../.." && pwd)
client="$root/clients/typescript"
started=()
data=
export PYTHONPATH="$root/clients/python/src${PYTHONPATH:+:$PYTHONPATH}"

stop() {
  # In the order of their start reversed: workers finish what they hold while the server is there.
  for ((i = ${#started[@]} - 1; i >= 0; i--)); do
    kill -TERM "${started[i]}" 2>/dev/null || true
    wait "${started[i]}" 2>/dev/null || true
  done
  [ -z "$data" ] || rm -rf "$data"
}
trap stop EXIT
trap 'exit 130' INT TERM

# Runs a command in the background, so that a signal ends it at once, and waits for its end.
attend() {
  "$@" &
  started+=($!)
  wait $!
}

# The taskledger program.
program() {
  local candidate
  for candidate in "${TASKLEDGER_BIN:-}" "$root/target/release/taskledger" "$root/target/quickstart/taskledger" "$root/target/debug/taskledger"; do
    if [ -n "$candidate" ] && [ -x "$candidate" ]; then
      echo "$candidate"
      return
    fi
  done
  command -v taskledger || {
    echo "no taskledger program: build it with \`cargo build --release\`, or set TASKLEDGER_BIN" >&2
    return 1
  }
}

answers() {
  python3 - "$1" <<'PYTHON'
import sys, urllib.request
urllib.request.urlopen(sys.argv[1] + "/livez", timeout=2).read()
PYTHON
}

# Compiles the worker in `typescript/`, and before it, once, the client that it uses.
build_typescript() {
  if [ ! -f "$client/dist/index.js" ] || [ ! -x "$client/node_modules/.bin/tsc" ]; then
    echo "building the TypeScript client"
    (cd "$client" && npm ci --no-audit --no-fund --loglevel=error && npm run --silent build)
  fi
  mkdir -p "$here/typescript/node_modules"
  ln -sfn "$client" "$here/typescript/node_modules/taskledger"
  "$client/node_modules/.bin/tsc" -p "$here/typescript"
}

# Starts a server unless TASKLEDGER_URL names one.
start_server() {
  if [ -z "${TASKLEDGER_URL:-}" ]; then
    local bin port tries
    bin=$(program)
    data=$(mktemp -d)
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    export TASKLEDGER_URL="http://127.0.0.1:$port"
    "$bin" serve --listen "127.0.0.1:$port" --data-dir "$data" --log-level error &
    started+=($!)
    for ((tries = 0; ; tries++)); do
      if answers "$TASKLEDGER_URL" 2>/dev/null; then break; fi
      kill -0 "${started[0]}" 2>/dev/null || { echo "the server has ended" >&2; exit 1; }
      ((tries < 150)) || { echo "the server does not answer" >&2; exit 1; }
      sleep 0.2
    done
  fi
  echo "the server is $TASKLEDGER_URL"
}

# Starts both workers.
start_workers() {
  python3 "$here/worker.py" &
  started+=($!)
  node "$here/typescript/build/worker.js" &
  started+=($!)
}
