"""Waits for the end of the run that `workflows run --json` told, shows what its phases gave, and compares it with `expected.json`."""

import json
import sys
from pathlib import Path

import taskledger

created = json.loads(sys.argv[1])
root = created["root_task_id"]
expected = json.loads(Path(__file__).with_name("expected.json").read_text())

with taskledger.Client() as client:
    run = client.wait(root, timeout=120)
    phases = {node["task"]["name"]: node["task"] for node in client.tree(root)["children"]}

results = {name: task["result"] or {} for name, task in phases.items()}
found = {
    "run": run.state,
    "phases": {name: task["status"] for name, task in phases.items()},
    "skipped": [it["phase_name"] for it in created["phases"] if it["status"] == "skipped"],
    "collect": results["collect"],
    "page": results["publish"].get("page"),
}
print(f"\napproved by {results['approve'].get('responded_by')}\n{found['page']}", flush=True)
differences = [key for key in expected if found[key] != expected[key]]
for key in differences:
    print(f"{key}: expected {expected[key]!r}, found {found[key]!r}", file=sys.stderr)
sys.exit(bool(differences))
