// Executes tasks of the type `text.words`: counts the words of a text.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"taskledger-example-agent/pb"
)

const agent = "go-agent"

func execute(ctx context.Context, bus pb.EventBusClient, task *pb.TaskMessage) error {
	progress := &pb.TaskProgress{
		TaskId:             task.TaskId,
		Status:             pb.TaskStatus_TASK_STATUS_IN_PROGRESS,
		ProgressMessage:    "counting",
		ProgressPercentage: 50,
		ExecutorAgentId:    agent,
		UpdatedAt:          timestamppb.Now(),
	}
	if _, err := bus.PublishTaskProgress(ctx, &pb.PublishTaskProgressRequest{Progress: progress}); err != nil {
		return err
	}
	result := &pb.TaskResult{TaskId: task.TaskId, ExecutorAgentId: agent, CompletedAt: timestamppb.Now()}
	if text, ok := task.GetParameters().AsMap()["text"].(string); ok {
		words := structpb.NewNumberValue(float64(len(strings.Fields(text))))
		result.Result = &structpb.Struct{Fields: map[string]*structpb.Value{"words": words}}
		result.Status = pb.TaskStatus_TASK_STATUS_COMPLETED
	} else {
		result.ErrorMessage = "the parameter `text` must be a string"
		result.Status = pb.TaskStatus_TASK_STATUS_FAILED
	}
	_, err := bus.PublishTaskResult(ctx, &pb.PublishTaskResultRequest{Result: result})
	return err
}

func serve(ctx context.Context, bus pb.EventBusClient) error {
	request := &pb.SubscribeToTasksRequest{AgentId: agent, TaskTypes: []string{"text.words"}}
	tasks, err := bus.SubscribeToTasks(ctx, request)
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
		case codes.FailedPrecondition:
			// The task has ended without us, for example because it was cancelled.
			fmt.Println("gave up", task.TaskId, err)
		default:
			return err
		}
	}
}

func main() {
	address := strings.TrimPrefix(os.Getenv("TASKLEDGER_URL"), "http://")
	if address == "" {
		address = "127.0.0.1:8000"
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if token := os.Getenv("TASKLEDGER_TOKEN"); token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	for {
		err := serve(ctx, pb.NewEventBusClient(connection))
		if err != io.EOF && status.Code(err) != codes.Unavailable {
			log.Fatal(err)
		}
		time.Sleep(time.Second) // The server restarts. Tasks that were not finished come again.
	}
}
