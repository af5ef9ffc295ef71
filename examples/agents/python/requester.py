"""Publishes a task of the type `text.words`, waits for its result, and prints it."""

import argparse
import sys
import uuid

from bus import connect, credentials, pb
from google.protobuf.json_format import MessageToDict

REQUESTER = "python-requester"

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("text", nargs="?", default="one two three\nfour five")
options.add_argument("--agent", default="", help="the agent that must execute the task (default: any)")
options = options.parse_args()

bus = connect()
task = pb.TaskMessage(
    task_id=f"task_text.words_{uuid.uuid4()}",
    task_type="text.words",
    requester_agent_id=REQUESTER,
    responder_agent_id=options.agent,
    priority=pb.PRIORITY_HIGH,
)
task.parameters.update({"text": options.text})
task.created_at.GetCurrentTime()
response = bus.PublishTask(pb.PublishTaskRequest(task=task), metadata=credentials)
if not response.success:
    sys.exit(response.error)
print(f"published {task.task_id}", flush=True)

# The server keeps results, so it does not matter that the task may have ended before.
request = pb.SubscribeToTaskResultsRequest(requester_agent_id=REQUESTER, task_ids=[task.task_id])
result = next(iter(bus.SubscribeToTaskResults(request, metadata=credentials)))
if result.status != pb.TASK_STATUS_COMPLETED:
    sys.exit(f"{pb.TaskStatus.Name(result.status)}: {result.error_message}")
print(f"{result.executor_agent_id} answers {MessageToDict(result.result)}")
