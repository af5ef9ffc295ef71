#!/usr/bin/env bash
# Builds taskledger, starts a server with its embedded store on 127.0.0.1:8000, runs a real
# workflow on it and leaves the server running. Needs a Rust toolchain from rustup; on Debian and
# Ubuntu it also installs a C compiler (SQLite is compiled in).
#   TASKLEDGER_LISTEN    another address                      (127.0.0.1:8000)
#                        beyond this machine with TASKLEDGER_AUTH=off: else callers need a token
#   TASKLEDGER_DATA_DIR  another folder for the data          (./taskledger-data)
set -euo pipefail
cd "$(dirname "$0")"
. ./.ci/tools.sh

listen="${TASKLEDGER_LISTEN:-127.0.0.1:8000}"
data="${TASKLEDGER_DATA_DIR:-./taskledger-data}"
# The programs that the workflow starts; `command_executor` runs no others.
programs="awk,cp,diff,gzip,head,mkdir,sha256sum,shuf,sort,split,tar,tee,wc"

need_c_compiler
# Less optimised than a release, and built in half of the time: `cargo install --path . --locked` makes the real one.
cargo build --profile quickstart --locked
program=target/quickstart/taskledger
log="$data/server.log"
url="http://$listen"

# The data is for this user alone; a log of an earlier start is made so too.
(umask 077 && mkdir -p "$data" && touch "$log")
chmod 600 "$log"
seen=$(wc -c <"$log")
said() { tail -c "+$((seen + 1))" "$log"; }
nohup "$program" serve --listen "$listen" --data-dir "$data" --allow-command "$programs" \
    >/dev/null 2>>"$log" </dev/null &
server=$!

# Until it listens, at most 10 seconds; a server that cannot start says why.
for _ in $(seq 100); do
    if grep -q '"message":"listening"' <(said); then break; fi
    if ! kill -0 "$server" 2>/dev/null; then
        echo "the server did not start:" >&2
        said >&2
        exit 1
    fi
    sleep 0.1
done

echo
echo "Running examples/real_workflow.json (one step fails on purpose, and is tolerated):"
echo
"$program" run examples/real_workflow.json --url "$url"
cat <<TEXT

The server runs at $url (process $server; data and log in $data).
  $program tasks list --root-only --url $url
  curl -s $url -H 'content-type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"tasks.list","params":{"limit":3}}'
Stop it:  kill $server
TEXT
