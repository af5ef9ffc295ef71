#!/usr/bin/env bash
# Starts a server (unless TASKLEDGER_URL names one), a worker in Python and one in TypeScript, executes a workflow that
# needs both, prints its tree, and stops everything that it has started.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"

build_typescript
start_server
start_workers
attend python3 "$here/workflow.py"
