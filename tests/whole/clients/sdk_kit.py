"""The official client in Python, unchanged, over one binding, against the executor of the official conformance kit: what is
done stands in the id of a message. Prints a line for each beginning of an id; fails at the first that goes wrong."""

import asyncio
import sys
import uuid

from a2a.client import ClientConfig, create_client
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.errors import UnsupportedOperationError
from google.protobuf.json_format import MessageToDict, ParseDict
import grpc
import httpx

URL, BINDING = sys.argv[1:3]
COMPLETED = TaskState.TASK_STATE_COMPLETED
FILE = {"filename": "output.txt", "mediaType": "text/plain"}
# What is made, by the beginning of the id.
MADE = {
    "tck-complete-task": {"text": "Hello from TCK"},
    "tck-artifact-text": {"text": "Generated text content"},
    "tck-artifact-file": {"raw": "dGNr", **FILE},
    "tck-artifact-file-url": {"url": "https://example.com/output.txt", **FILE},
    "tck-artifact-data": {"data": {"key": "value", "count": 42.0}},
    "tck-delayed-complete": {"text": "Done after delay"},
    "tck-long-running": {"text": "Long-running output"},
    "something-else": {"text": "Hello from TCK"},
}
STREAMED = {
    "tck-stream-001": {"text": "Stream hello from TCK"},
    "tck-stream-002": {"text": "Stream message-only response"},
    "tck-stream-003": {"text": "Stream task lifecycle"},
    "tck-stream-ordering-001": {"text": "Ordered output"},
    "tck-stream-artifact-text": {"text": "Streamed text content"},
    "tck-stream-artifact-file": {"raw": "dGNr", **FILE},
}
# States in which a message leaves its task.
LEFT = {
    "tck-input-required": TaskState.TASK_STATE_INPUT_REQUIRED,
    "tck-auth-required": TaskState.TASK_STATE_AUTH_REQUIRED,
    "tck-reject-task": TaskState.TASK_STATE_REJECTED,
    "tck-task-failure": TaskState.TASK_STATE_FAILED,
}


def request(prefix, text="Hello", now=False, **members):
    message = {"messageId": f"{prefix}-{uuid.uuid4()}", "role": "ROLE_USER", "parts": [{"text": text}], **members}
    configuration = SendMessageConfiguration(return_immediately=now)
    return SendMessageRequest(message=ParseDict(message, Message()), configuration=configuration)


async def items(stream):
    return [item async for item in stream]


def state(item):
    return item.task.status.state if item.HasField("task") else item.status_update.status.state


def made(item):
    """The artifacts that an item of a stream tells."""
    return [item.artifact_update.artifact] if item.HasField("artifact_update") else list(item.task.artifacts)


def check(artifacts, part):
    assert len(artifacts) == 1, artifacts
    assert [MessageToDict(it) for it in artifacts[0].parts] == [part], artifacts


async def main():
    http = httpx.AsyncClient(timeout=30)

    async def client(streaming):
        config = ClientConfig(
            streaming=streaming,
            httpx_client=http,
            grpc_channel_factory=grpc.aio.insecure_channel if BINDING == "GRPC" else None,
            supported_protocol_bindings=[BINDING],
        )
        return await create_client(URL, config)

    plain, streaming = await client(False), await client(True)

    async def sent(*given, **members):
        [answer] = await items(plain.send_message(request(*given, **members)))
        return answer.task

    for prefix, part in MADE.items():
        task = await sent(prefix)
        assert task.status.state == COMPLETED, task
        check(task.artifacts, part)
        passed(prefix)

    for client in (plain, streaming):
        [answer] = await items(client.send_message(request("tck-message-response")))
        assert answer.message.parts[0].text == "Direct message response", answer
    passed("tck-message-response")

    for prefix, left in LEFT.items():
        task = await sent(prefix)
        assert task.status.state == left, task
        # It is the client that speaks next, or nobody any more.
        if left in (TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED):
            ended = await sent("tck-complete-task", taskId=task.id)
            assert (ended.id, ended.status.state) == (task.id, COMPLETED), ended
        else:
            try:
                await sent("tck-complete-task", taskId=task.id)
                raise AssertionError("the task has ended")
            except UnsupportedOperationError:
                pass
        passed(prefix)

    for prefix, part in STREAMED.items():
        told = await items(streaming.send_message(request(prefix)))
        assert told[0].HasField("task"), told
        assert not any(item.HasField("task") for item in told[1:]), told
        assert state(told[-1]) == COMPLETED, told
        check([it for item in told for it in made(item)], part)
        passed(prefix)

    told = await items(streaming.send_message(request("tck-stream-artifact-chunked")))
    chunks = [item.artifact_update for item in told if item.HasField("artifact_update")]
    told = [(it.artifact.parts[0].text, it.append, it.last_chunk) for it in chunks]
    assert told == [("chunk-1 ", False, False), ("chunk-2", True, True)], chunks
    assert len({it.artifact.artifact_id for it in chunks}) == 1, chunks
    passed("tck-stream-artifact-chunked")

    begun = await sent("tck-multi-turn", "begin")
    for text, expected in [("more", TaskState.TASK_STATE_INPUT_REQUIRED), ("done", COMPLETED)]:
        assert begun.status.state == TaskState.TASK_STATE_INPUT_REQUIRED, begun
        turn = await sent("tck-multi-turn", text, taskId=begun.id)
        assert (turn.id, turn.context_id) == (begun.id, begun.context_id), turn
        assert turn.status.state == expected, turn
    read = await plain.get_task(GetTaskRequest(id=begun.id))
    asked = [message.parts[0].text for message in read.history if message.role == 1]
    assert asked == ["begin", "more", "done"], read
    passed("tck-multi-turn")

    works = await sent("tck-cancel", now=True)
    assert works.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING), works
    cancelled = await plain.cancel_task(CancelTaskRequest(id=works.id))
    assert cancelled.status.state == TaskState.TASK_STATE_CANCELED, cancelled
    passed("tck-cancel")

    # A stream is left and another one follows the task, to its end.
    stream = streaming.send_message(request("test-resubscribe-message-id"))
    begun = await anext(stream)
    await stream.aclose()
    told = await items(streaming.subscribe(SubscribeToTaskRequest(id=begun.task.id)))
    assert told[0].task.id == begun.task.id, told
    assert state(told[-1]) == COMPLETED, told
    check([it for item in told for it in made(item)], {"text": "Resubscribed"})
    passed("test-resubscribe-message-id")
    for each in (plain, streaming):
        await each.close()


def passed(prefix):
    print(f"passed {prefix}", flush=True)


asyncio.run(main())
