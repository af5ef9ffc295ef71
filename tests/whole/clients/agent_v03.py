"""An agent made with the official SDK of A2A 0.3 in Python, as the helloworld sample of its samples is: it answers with a
message. Prints the URL of its card's server."""

import socket

from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentSkill
from a2a.utils import new_agent_text_message
import uvicorn


class Agent(AgentExecutor):
    async def execute(self, context, event_queue):
        await event_queue.enqueue_event(new_agent_text_message("Hello World"))

    async def cancel(self, context, event_queue):
        raise NotImplementedError("it has no tasks")


server = socket.create_server(("127.0.0.1", 0))
url = f"http://127.0.0.1:{server.getsockname()[1]}"
card = AgentCard(
    name="older-peer",
    description="Says hello",
    url=url,
    version="1",
    default_input_modes=["text"],
    default_output_modes=["text"],
    capabilities=AgentCapabilities(streaming=True),
    skills=[AgentSkill(id="hello", name="hello", description="Hello", tags=["hello"])],
)
handler = DefaultRequestHandler(agent_executor=Agent(), task_store=InMemoryTaskStore())
app = A2AStarletteApplication(agent_card=card, http_handler=handler).build()
print(url, flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[server])
