"""Runs a workflow whose steps are carried out by `worker.py` or `async_worker.py`."""

import sys

import taskledger


def step(id, method, inputs, after=()):
    return {
        "id": id,
        "name": id,
        "parent_id": "all",
        "schemas": {"type": "remote", "method": method},
        "inputs": inputs,
        "dependencies": [{"id": name} for name in after],
        # Without a worker it fails after a minute instead of waiting for ever.
        "params": {"schedule_to_start_seconds": 60},
    }


with taskledger.Client() as client:
    started = client.execute(
        [
            {"id": "all", "name": "all"},
            step("first", "words.count", {"text": "to be or not to be"}),
            step("second", "words.count", {"text": "that is the question"}),
            step("report", "words.report", {"title": "Words"}, after=["first", "second"]),
        ]
    )
    root = started["root_task_id"]
    names = {id: name for name, id in started["task_ids"].items()}
    with client.events(flow=root, start="beginning") as events:
        for event in events:
            if event.type in ("task_completed", "task_failed", "task_progress_update"):
                told = event.data.get("result") or event.data.get("error")
                print(names[event.task_id], event.type, event.data.get("progress"), told or "")
            if event.final:
                break
    run = client.wait(started)
    print("the run is", run.state, run.counts)
    sys.exit(run.state != "completed")
