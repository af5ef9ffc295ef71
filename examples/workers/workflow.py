"""Executes the workflow, waits for its end, and prints the tree of its tasks."""

import sys

import taskledger

AUSTEN = """It is a truth universally acknowledged that a single man in possession of a good fortune must be in want
of a wife"""
MELVILLE = """Call me Ishmael Some years ago never mind how long precisely having little or no money in my purse and
nothing particular to interest me on shore I thought I would sail about a little"""


def step(id, method, inputs, after=()):
    return {
        "id": id,
        "name": id,
        "parent_id": "report",
        # A worker does it, whether one is connected yet or not.
        "schemas": {"type": "remote", "method": method},
        "inputs": inputs,
        "dependencies": [{"id": name} for name in after],
        # Without a worker it fails after a minute. A failure is tried again twice.
        "params": {"schedule_to_start_seconds": 60, "timeout_seconds": 30, "retry_count": 2},
    }


TASKS = [
    {"id": "report", "name": "report"},
    step("count-austen", "text.count", {"text": AUSTEN}),
    step("count-melville", "text.count", {"text": MELVILLE}),
    step("chart", "text.chart", {"width": 30}, after=["count-austen", "count-melville"]),
    step("page", "text.page", {"title": "How long are their words?"}, after=["chart"]),
]


def show(tree, depth=0):
    task = tree["task"]
    print(f"{'  ' * depth}{task['name']}: {task['status']}", task["error"] or "")
    for child in tree["children"]:
        show(child, depth + 1)


with taskledger.Client() as client:
    started = client.execute(TASKS)
    run = client.wait(started, timeout=120)
    show(client.tree(started["root_task_id"]))
    if run.state == "completed":
        print("\n" + client.get(started["task_ids"]["page"])["result"]["page"])
    sys.exit(run.state != "completed")
