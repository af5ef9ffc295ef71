"""The same as `worker.py` with asyncio: hundreds of handlers in one thread."""

import asyncio
import logging

import taskledger

handler = logging.StreamHandler()
handler.setFormatter(taskledger.JsonFormatter())
logging.basicConfig(level=logging.INFO, handlers=[handler])
worker = taskledger.AsyncWorker(concurrency=500, lease_seconds=30)


@worker.method("words.count", declare=True, defaults={"retry_count": 2})
async def count_words(input, ctx):
    words = input["text"].split()
    for done, word in enumerate(words, 1):
        await asyncio.sleep(0.2)  # is cancelled if the task is
        ctx.progress(done / len(words), f"counted {word!r}")
    return {"count": len(words)}


@worker.method("words.report", declare=True)
async def report(input, ctx):
    if not input.get("title"):
        raise taskledger.Final("a report needs a title")
    return {"report": f"{input['title']}, attempt {ctx.attempt}"}


if __name__ == "__main__":
    asyncio.run(worker.run())
