"""The official client in Python, unchanged, over one binding: eighteen steps, with the token in TOKEN if there is one. Prints
a line for each; fails at the first that goes wrong. Push and the extended card are skipped only where the card does not
declare them."""

import asyncio
import os
import sys
import uuid

from a2a.client import AuthInterceptor, ClientConfig, CredentialService, create_client
from a2a.client.card_resolver import A2ACardResolver
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict, ParseDict
import grpc
import httpx

URL, BINDING = sys.argv[1:3]
TOKEN = os.environ.get("TOKEN")
UNKNOWN = "00000000-0000-4000-8000-000000000000"
ECHO = {"name": "echo", "schemas": {"method": "echo_executor"}, "inputs": {"n": 7}}
SHORT = {"name": "short", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 300}}
LONG = {"name": "long", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 600_000}}
ASK = {
    "name": "ask",
    "schemas": {"method": "approval_executor"},
    "inputs": {"question": "Which colour?", "response_type": "text"},
}


class Credentials(CredentialService):
    """What the card asks for, whatever it calls it."""

    async def get_credentials(self, scheme, context):
        return TOKEN


def request(*parts, now=False, history=None, **members):
    message = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": list(parts), **members}
    configuration = SendMessageConfiguration(return_immediately=now)
    if history is not None:
        configuration.history_length = history
    return SendMessageRequest(message=ParseDict(message, Message()), configuration=configuration)


def tasks(*all):
    return {"data": {"tasks": list(all)}}


async def fails(kind, call):
    try:
        await call
    except kind:
        return
    raise AssertionError(f"expected {kind.__name__}")


async def items(stream):
    return [item async for item in stream]


async def main():
    http = httpx.AsyncClient(timeout=30)
    channel = grpc.aio.insecure_channel if BINDING == "GRPC" else None

    async def client(streaming):
        config = ClientConfig(
            streaming=streaming,
            httpx_client=http,
            grpc_channel_factory=channel,
            supported_protocol_bindings=[BINDING],
        )
        interceptors = [AuthInterceptor(Credentials())] if TOKEN else []
        return await create_client(URL, config, interceptors=interceptors)

    card = await A2ACardResolver(http, URL).get_agent_card()
    assert card.name == "taskledger", card
    passed("card")
    plain, streaming = await client(False), await client(True)

    async def said(sent):
        [answer] = await items(plain.send_message(sent))
        return answer.task

    [answer] = await items(plain.send_message(request({"text": "hello"})))
    assert answer.WhichOneof("payload") == "message", answer
    passed("send text")

    done = await said(request(tasks(ECHO), contextId="c-1"))
    assert done.status.state == TaskState.TASK_STATE_COMPLETED, done
    assert MessageToDict(done.artifacts[0].parts[0].data)["n"] == 7, done
    passed("send tasks and wait")

    long = await said(request(tasks(LONG), now=True))
    assert long.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING), long
    passed("return immediately")

    told = await items(streaming.send_message(request(tasks(SHORT))))
    assert told[0].HasField("task"), told
    assert told[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED, told
    assert any(item.HasField("artifact_update") for item in told), told
    passed("stream")

    read = await plain.get_task(GetTaskRequest(id=done.id))
    assert read.id == done.id and read.history, read
    passed("get")
    read = await plain.get_task(GetTaskRequest(id=done.id, history_length=0))
    assert not read.history, read
    passed("history length")

    listed = await plain.list_tasks(ListTasksRequest())
    assert listed.total_size == len(listed.tasks) >= 3, listed
    passed("list")
    page = await plain.list_tasks(ListTasksRequest(page_size=1))
    rest = await plain.list_tasks(ListTasksRequest(page_size=100, page_token=page.next_page_token))
    ids = [task.id for task in [*page.tasks, *rest.tasks]]
    assert ids == [task.id for task in listed.tasks] and not rest.next_page_token, ids
    passed("list pages")

    stream = streaming.subscribe(SubscribeToTaskRequest(id=long.id))
    first = await anext(stream)
    assert first.task.id == long.id, first
    cancelled = await plain.cancel_task(CancelTaskRequest(id=long.id))
    assert cancelled.status.state == TaskState.TASK_STATE_CANCELED, cancelled
    passed("cancel")
    told = await items(stream)
    assert told[-1].status_update.status.state == TaskState.TASK_STATE_CANCELED, told
    passed("subscribe")
    await fails(TaskNotCancelableError, plain.cancel_task(CancelTaskRequest(id=long.id)))
    passed("cancel what has ended")
    await fails(TaskNotFoundError, plain.get_task(GetTaskRequest(id=UNKNOWN)))
    passed("unknown task")

    asked = await said(request(tasks(ASK)))
    assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED, asked
    assert asked.status.message.parts[0].text == "Which colour?", asked
    answered = await said(request({"text": "blue"}, taskId=asked.id))
    assert answered.id == asked.id and answered.context_id == asked.context_id, answered
    assert answered.status.state == TaskState.TASK_STATE_COMPLETED, answered
    passed("input required")

    again = await said(request(tasks(ECHO), contextId="c-1"))
    assert again.context_id == "c-1" and again.id != done.id, again
    of_context = await plain.list_tasks(ListTasksRequest(context_id="c-1"))
    assert {task.id for task in of_context.tasks} == {again.id, done.id}, of_context
    passed("context")

    if card.capabilities.push_notifications:
        waits = await said(request(tasks(LONG), now=True))
        config = TaskPushNotificationConfig(task_id=waits.id, id="p-1", url="https://example.com/hook")
        made = await plain.create_task_push_notification_config(config)
        assert (made.id, made.url) == ("p-1", config.url), made
        one = GetTaskPushNotificationConfigRequest(task_id=waits.id, id="p-1")
        assert (await plain.get_task_push_notification_config(one)).url == config.url
        all = ListTaskPushNotificationConfigsRequest(task_id=waits.id)
        assert len((await plain.list_task_push_notification_configs(all)).configs) == 1
        gone = DeleteTaskPushNotificationConfigRequest(task_id=waits.id, id="p-1")
        await plain.delete_task_push_notification_config(gone)
        assert not (await plain.list_task_push_notification_configs(all)).configs
        await plain.cancel_task(CancelTaskRequest(id=waits.id))
        passed("push configurations")
    else:
        skipped("push configurations")

    if card.capabilities.extended_agent_card:
        extended = await plain.get_extended_agent_card(GetExtendedAgentCardRequest())
        assert extended.name == card.name, extended
        passed("extended card")
    else:
        skipped("extended card")

    both = [streaming.send_message(request(tasks(LONG))) for _ in range(2)]
    begun = [await anext(stream) for stream in both]
    for item in begun:
        await plain.cancel_task(CancelTaskRequest(id=item.task.id))
    for stream in both:
        told = await items(stream)
        assert told[-1].status_update.status.state == TaskState.TASK_STATE_CANCELED, told
    passed("two streams")
    for each in (plain, streaming):
        await each.close()


def passed(step):
    print(f"passed {step}", flush=True)


def skipped(step):
    print(f"skipped {step}", flush=True)


asyncio.run(main())
