#!/usr/bin/env bash
# Starts a server (unless TASKLEDGER_URL names one), a worker in Python and one in TypeScript, checks a workflow document,
# plays it, runs it, answers its question, compares what comes out with `expected.json`, and stops everything that it has
# started. Ends with 1 if anything is different.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
bin=$(program)
cd "$here"

# The id of the task of a phase, in the answer to `workflows run`.
task_of() {
  python3 -c 'import json, sys
print(*[p["task_id"] for p in json.load(sys.stdin)["phases"] if p["phase_name"] == sys.argv[1]])' "$1" <<<"$created"
}

# The questions that wait may be of others: this waits for that of one task.
until_asked() {
  local tries
  for ((tries = 0; tries < 300; tries++)); do
    if "$bin" respond "$1" 2>/dev/null; then return; fi
    sleep 0.2
  done
  "$bin" tasks explain "$1" >&2
  return 1
}

build_typescript
"$bin" workflows validate --strict incident.yaml
echo "a dry run, with the outputs of a major incident:"
"$bin" workflows dry-run --strict incident.yaml --trigger-file trigger.json --outputs outputs.json
start_server
start_workers

created=$("$bin" workflows run --strict incident.yaml --trigger-file trigger.json --json)
approve=$(task_of approve)
until_asked "$approve"
"$bin" respond "$approve" true
attend python3 check.py "$created"
echo "everything is as expected"
