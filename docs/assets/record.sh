#!/usr/bin/env bash
# Makes the picture of README.md from what the program really prints:
#     docs/assets/record.sh [PROGRAM]      (target/release/taskledger unless given)
# Needs python3. Starts a server on a free port with a folder that is deleted afterwards.
set -euo pipefail
assets=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "${1:-$assets/../../target/release/taskledger}")

place=$(mktemp -d)
"$program" serve --listen 127.0.0.1:0 --data-dir "$place/data" --log-format json 2>"$place/log" &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true; rm -rf "$place"' EXIT

url=""
for _ in $(seq 100); do
    url=$(sed -n 's/.*"message":"listening".*"url":"\([^"]*\)".*/\1/p' "$place/log")
    if [ -n "$url" ]; then break; fi
    if ! kill -0 "$server" 2>/dev/null; then
        cat "$place/log" >&2
        exit 1
    fi
    sleep 0.1
done

cp "$assets/demo.json" "$place/report.json"
mkdir "$place/bin"
ln -s "$program" "$place/bin/taskledger"
cd "$place"
PATH="$place/bin:$PATH" TASKLEDGER_URL="$url" python3 "$assets/record.py" --columns 76 --output "$assets/run.svg" \
    "taskledger run report.json --url \"\$TASKLEDGER_URL\"" "taskledger run report.json"
echo "$assets/run.svg"
