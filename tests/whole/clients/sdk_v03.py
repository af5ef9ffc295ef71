"""The official client of A2A 0.3 in Python, unchanged, over one binding. Prints a line for each step; fails at the first that
goes wrong."""

import asyncio
import sys
import uuid

from a2a.client import ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import (
    DataPart,
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationAuthenticationInfo,
    PushNotificationConfig,
    Role,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TaskState,
    TaskStatusUpdateEvent,
    TextPart,
)
import grpc
import httpx

URL, BINDING = sys.argv[1:3]
UNKNOWN = "00000000-0000-4000-8000-000000000000"
ECHO = {"name": "echo", "schemas": {"method": "echo_executor"}, "inputs": {"n": 7}}
SHORT = {"name": "short", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 300}}
LONG = {"name": "long", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 600_000}}
# Behind a pause, so that the question comes while the stream is read.
PAUSE = {**SHORT, "id": "pause", "parent_id": "ask"}
ASK = {
    "id": "ask",
    "name": "ask",
    "schemas": {"method": "approval_executor"},
    "inputs": {"question": "Which colour?", "response_type": "text"},
    "dependencies": [{"id": "pause"}],
}
# What each binding says of an unknown task, and of one that cannot be cancelled.
REFUSALS = {
    "JSONRPC": (-32001, -32002),
    "HTTP+JSON": (404, 409),
    "GRPC": (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNIMPLEMENTED),
}[BINDING]


def message(part, **members):
    return Message(message_id=str(uuid.uuid4()), role=Role.user, parts=[Part(root=part)], **members)


def tasks(*all, **members):
    return message(DataPart(data={"tasks": list(all)}), **members)


async def refused(call):
    try:
        await call
    except A2AClientJSONRPCError as error:
        return error.error.code
    except A2AClientHTTPError as error:
        return error.status_code
    except grpc.aio.AioRpcError as error:
        return error.code()
    raise AssertionError("expected a refusal")


async def items(stream):
    return [item async for item in stream]


async def main():
    http = httpx.AsyncClient(timeout=30)

    async def client(streaming, polling=False):
        config = ClientConfig(
            streaming=streaming,
            polling=polling,
            httpx_client=http,
            grpc_channel_factory=grpc.aio.insecure_channel,
            supported_transports=[BINDING],
        )
        return await ClientFactory.connect(URL, config)

    plain, streaming, polling = await client(False), await client(True), await client(False, True)

    async def said(client, sent):
        [answer] = await items(client.send_message(sent))
        return answer[0]

    card = await plain.get_card()
    assert card.name == "taskledger" and card.protocol_version == "0.3.0", card
    passed("card")

    [answer] = await items(plain.send_message(message(TextPart(text="hello"))))
    assert isinstance(answer, Message) and answer.role == Role.agent, answer
    passed("send text")

    done = await said(plain, tasks(ECHO, context_id="c-1"))
    assert done.status.state == TaskState.completed and done.context_id == "c-1", done
    assert done.artifacts[0].parts[0].root.data["n"] == 7, done
    passed("send tasks and wait")

    long = await said(polling, tasks(LONG))
    assert long.status.state in (TaskState.submitted, TaskState.working), long
    passed("return immediately")

    told = await items(streaming.send_message(tasks(SHORT)))
    assert told[0][1] is None and told[0][0].id, told
    last = told[-1][1]
    assert isinstance(last, TaskStatusUpdateEvent) and last.final, told
    assert last.status.state == TaskState.completed, told
    assert any(isinstance(update, TaskArtifactUpdateEvent) for _, update in told), told
    assert not any(update.final for _, update in told[1:-1] if isinstance(update, TaskStatusUpdateEvent)), told
    passed("stream")

    read = await plain.get_task(TaskQueryParams(id=done.id))
    assert read.id == done.id and read.history[0].role == Role.user, read
    passed("get")

    stream = streaming.resubscribe(TaskIdParams(id=long.id))
    first = await anext(stream)
    assert first[0].id == long.id, first
    cancelled = await plain.cancel_task(TaskIdParams(id=long.id))
    assert cancelled.status.state == TaskState.canceled, cancelled
    passed("cancel")
    told = await items(stream)
    assert told[-1][1].status.state == TaskState.canceled and told[-1][1].final, told
    passed("resubscribe")
    assert await refused(plain.get_task(TaskQueryParams(id=UNKNOWN))) == REFUSALS[0]
    assert await refused(plain.cancel_task(TaskIdParams(id=long.id))) == REFUSALS[1]
    passed("refusals")

    told = await items(streaming.send_message(tasks(ASK, PAUSE)))
    asked, update = told[-1]
    assert update.status.state == TaskState.input_required and update.final, told
    assert update.status.message.parts[0].root.text == "Which colour?", told
    reply = message(TextPart(text="blue"), task_id=asked.id, context_id=asked.context_id)
    answered = await said(plain, reply)
    assert answered.id == asked.id and answered.status.state == TaskState.completed, answered
    passed("input required")

    waits = await said(polling, tasks(LONG))
    config = PushNotificationConfig(
        id="p-1",
        url="https://example.com/hook",
        authentication=PushNotificationAuthenticationInfo(schemes=["Bearer"], credentials="c"),
    )
    made = await plain.set_task_callback(
        TaskPushNotificationConfig(task_id=waits.id, push_notification_config=config)
    )
    assert made.push_notification_config.url == config.url and made.task_id == waits.id, made
    one = GetTaskPushNotificationConfigParams(id=waits.id, push_notification_config_id="p-1")
    found = await plain.get_task_callback(one)
    assert found.push_notification_config.authentication.schemes == ["Bearer"], found
    await plain.cancel_task(TaskIdParams(id=waits.id))
    passed("push configurations")


def passed(step):
    print(f"passed {step}", flush=True)


asyncio.run(main())
