"""A worker in threads that counts words and thumbnails nothing at all, slowly.

taskledger serve &
python examples/worker.py          # in one terminal
python examples/workflow.py        # in another one
"""

import logging

import taskledger

logging.basicConfig(level=logging.INFO)
worker = taskledger.Worker(concurrency=8)


@worker.method(
    "words.count",
    description="Counts the words of a text",
    input_schema={
        "type": "object",
        "required": ["text"],
        "properties": {"text": {"type": "string"}},
    },
    defaults={"retry_count": 2},
)
def count_words(input, ctx):
    words = input["text"].split()
    for done, word in enumerate(words, 1):
        ctx.sleep(0.2)  # raises `Cancelled` at once if the task is cancelled
        ctx.progress(done / len(words), f"counted {word!r}")
    return {"count": len(words)}


@worker.method("words.report", description="Fails for good if there is no title")
def report(input, ctx):
    if not input.get("title"):
        raise taskledger.Final("a report needs a title")
    ctx.log.info("writing the report")
    return {"report": f"{input['title']}, attempt {ctx.attempt}"}


if __name__ == "__main__":
    worker.run()
