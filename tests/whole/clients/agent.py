"""An agent made with the official SDK of A2A 1.0 in Python, which the tests call. Prints the URL of its card's server.

What it does is the first word of a message: `say` answers with a message and no task, `stream` makes an artifact in
pieces, `ask` asks once and makes an artifact of the answer, `again` makes an artifact before it asks, `wait` works until it is
cancelled, `fail` fails, `reject` rejects, and `gone` ends the process."""

import asyncio
import os
import socket
import sys

from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from starlette.applications import Starlette
import uvicorn

STREAMS = sys.argv[1:] != ["--polled"]


def text(words):
    return Part(text=words)


class Agent(AgentExecutor):
    async def execute(self, context, event_queue):
        words = context.get_user_input()
        if words.startswith("say"):
            await event_queue.enqueue_event(new_text_message("Hello World"))
            return
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.current_task:
            # As agents of the SDK do: a later turn of a task begins with an update.
            await updater.start_work()
            await updater.add_artifact([text(f"answered {words}")], artifact_id="answer", name="answer")
            await updater.complete()
            return
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        if words.startswith("stream"):
            await updater.start_work(updater.new_agent_message([text("thinking")]))
            pieces = ["to be", " or not", " to be"]
            for i, piece in enumerate(pieces):
                last = i == len(pieces) - 1
                await updater.add_artifact([text(piece)], artifact_id="words", append=i > 0, last_chunk=last)
            await updater.complete()
        elif words.startswith(("ask", "again")):
            if words.startswith("again"):
                await updater.add_artifact([text("a draft")], artifact_id="draft", name="draft")
            await updater.requires_input(updater.new_agent_message([text("Which colour?")]))
        elif words.startswith("wait"):
            await updater.start_work()
            await asyncio.Event().wait()
        elif words.startswith("fail"):
            await updater.failed(updater.new_agent_message([text("no paper")]))
        elif words.startswith("reject"):
            await updater.reject(updater.new_agent_message([text("not today")]))
        elif words.startswith("gone"):
            os._exit(1)
        else:
            await updater.complete(updater.new_agent_message([text(f"nothing for {words}")]))

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def main():
    server = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{server.getsockname()[1]}"
    card = AgentCard(
        name="python-peer",
        description="Does what the first word says",
        version="1",
        supported_interfaces=[
            AgentInterface(protocol_binding="JSONRPC", protocol_version="1.0", url=f"{url}/rpc"),
            AgentInterface(protocol_binding="HTTP+JSON", protocol_version="1.0", url=f"{url}/rest"),
        ],
        capabilities=AgentCapabilities(streaming=STREAMS),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="words", name="words", description="Words", tags=["words"])],
    )
    handler = DefaultRequestHandler(agent_executor=Agent(), task_store=InMemoryTaskStore(), agent_card=card)
    routes = [
        *create_agent_card_routes(card),
        *create_jsonrpc_routes(handler, "/rpc"),
        *create_rest_routes(handler, path_prefix="/rest"),
    ]
    print(url, flush=True)
    uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="warning")).run(sockets=[server])


main()
