"""Executes tasks of the type `text.words`: counts the words of a text."""

import time

import grpc
from bus import connect, credentials, pb

AGENT = "python-agent"


def execute(bus, task):
    progress = pb.TaskProgress(task_id=task.task_id, executor_agent_id=AGENT)
    progress.status = pb.TASK_STATUS_IN_PROGRESS
    progress.progress_message = "counting"
    progress.progress_percentage = 50
    progress.updated_at.GetCurrentTime()
    bus.PublishTaskProgress(pb.PublishTaskProgressRequest(progress=progress), metadata=credentials)

    result = pb.TaskResult(task_id=task.task_id, executor_agent_id=AGENT)
    text = task.parameters.fields["text"]
    if text.HasField("string_value"):
        result.status = pb.TASK_STATUS_COMPLETED
        result.result.update({"words": len(text.string_value.split())})
    else:
        result.status = pb.TASK_STATUS_FAILED
        result.error_message = "the parameter `text` must be a string"
    result.completed_at.GetCurrentTime()
    bus.PublishTaskResult(pb.PublishTaskResultRequest(result=result), metadata=credentials)


def serve(bus):
    request = pb.SubscribeToTasksRequest(agent_id=AGENT, task_types=["text.words"])
    for task in bus.SubscribeToTasks(request, metadata=credentials):
        try:
            execute(bus, task)
            print(f"executed {task.task_id}", flush=True)
        except grpc.RpcError as error:
            # The task has ended without us, for example because it was cancelled.
            if error.code() != grpc.StatusCode.FAILED_PRECONDITION:
                raise
            print(f"gave up {task.task_id}: {error.details()}", flush=True)


bus = connect()
while True:
    try:
        serve(bus)
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.UNAVAILABLE:
            raise
    time.sleep(1)  # The server restarts. Tasks that were not finished come again.
