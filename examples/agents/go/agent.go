package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"taskledger-example-agent/pb"
)

const agent = "go-agent"

// Executes tasks of the type `text.words`: counts the words of a text.
func serve(ctx context.Context, bus pb.EventBusClient) {
	for {
		err := executeAll(ctx, bus)
		// The server restarts, or ends the stream because it stops.
		if status.Code(err) != codes.Unavailable && err != io.EOF {
			log.Fatal(err)
		}
		time.Sleep(time.Second) // Tasks that were not finished come again.
	}
}

func executeAll(ctx context.Context, bus pb.EventBusClient) error {
	tasks, err := bus.SubscribeToTasks(ctx, &pb.SubscribeToTasksRequest{AgentId: agent, TaskTypes: []string{"text.words"}})
	if err != nil {
		return err
	}
	for {
		task, err := tasks.Recv()
		if err != nil {
			return err
		}
		switch err := execute(ctx, bus, task); status.Code(err) {
		case codes.OK:
			fmt.Println("executed", task.TaskId)
		case codes.FailedPrecondition: // The task has ended without us, for example because it was cancelled.
			fmt.Println("gave up", task.TaskId)
		default:
			return err
		}
	}
}

func execute(ctx context.Context, bus pb.EventBusClient, task *pb.TaskMessage) error {
	progress := &pb.TaskProgress{
		TaskId:             task.TaskId,
		ExecutorAgentId:    agent,
		Status:             pb.TaskStatus_TASK_STATUS_IN_PROGRESS,
		ProgressMessage:    "counting",
		ProgressPercentage: 50,
		UpdatedAt:          timestamppb.Now(),
	}
	if _, err := bus.PublishTaskProgress(ctx, &pb.PublishTaskProgressRequest{Progress: progress}); err != nil {
		return err
	}
	_, err := bus.PublishTaskResult(ctx, &pb.PublishTaskResultRequest{Result: count(task)})
	return err
}

func count(task *pb.TaskMessage) *pb.TaskResult {
	result := &pb.TaskResult{TaskId: task.TaskId, ExecutorAgentId: agent, CompletedAt: timestamppb.Now()}
	text, ok := task.GetParameters().AsMap()["text"].(string)
	if !ok {
		result.Status = pb.TaskStatus_TASK_STATUS_FAILED
		result.ErrorMessage = "the parameter `text` must be a string"
		return result
	}
	words := structpb.NewNumberValue(float64(len(strings.Fields(text))))
	result.Result = &structpb.Struct{Fields: map[string]*structpb.Value{"words": words}}
	result.Status = pb.TaskStatus_TASK_STATUS_COMPLETED
	return result
}
