"""Waits for the end of a run, shows what its phases gave, and compares it with `expected.json`."""

import json
import sys
from pathlib import Path

import taskledger

root = sys.argv[1]
expected = json.loads(Path(__file__).with_name("expected.json").read_text())

with taskledger.Client() as client:
    run = client.wait(root, timeout=120)
    phases = {node["task"]["name"]: node["task"] for node in client.tree(root)["children"]}
    deletions = client.history(root, scope="flow", types=["task_deleted"])
    before = [client.get(event["task_id"], as_of=event["position"] - 1) for event in deletions]

results = {name: task["result"] or {} for name, task in phases.items()}
found = {
    "run": run.state,
    "phases": {name: task["status"] for name, task in phases.items()},
    "deleted": [task["name"] for task in before],
    "collect": results["collect"],
    "page": results["publish"].get("page"),
}
print(f"\napproved by {results['approve'].get('responded_by')}\n{found['page']}", flush=True)
differences = [key for key in expected if found[key] != expected[key]]
for key in differences:
    print(f"{key}: expected {expected[key]!r}, found {found[key]!r}", file=sys.stderr)
sys.exit(bool(differences))
