"""Does the steps `text.count` and `text.page`."""

import logging
from collections import Counter

import taskledger

logging.basicConfig(level=logging.WARNING, format="python worker: %(message)s")
worker = taskledger.Worker(name="python", concurrency=4)


@worker.method("text.count")
def count(input, ctx):
    words = input["text"].lower().split()
    if not words:
        # Trying again would not help.
        raise taskledger.Final("the text is empty")
    lengths = Counter(len(word) for word in words)
    for done in range(1, 5):
        # Stands for work that takes a while. Raises `Cancelled` when the task is cancelled.
        ctx.sleep(0.1)
        ctx.progress(done / 4, f"part {done} of 4")
    return {"words": len(words), "by_length": {str(n): lengths[n] for n in sorted(lengths)}}


@worker.method("text.page")
def page(input, ctx):
    [chart] = [ctx.client.get(step["id"])["result"]["chart"] for step in ctx.task["dependencies"]]
    return {"page": f"{input['title']}\n{'=' * len(input['title'])}\n{chart}"}


if __name__ == "__main__":
    worker.run()
