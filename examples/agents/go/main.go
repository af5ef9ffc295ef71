// Executes tasks of the type `text.words`: counts the words of a text.
package main

import (
	"context"
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

func serve(ctx context.Context, bus pb.EventBusClient) error {
	tasks, err := bus.SubscribeToTasks(ctx, &pb.SubscribeToTasksRequest{AgentId: agent, TaskTypes: []string{"text.words"}})
	for err == nil {
		var task *pb.TaskMessage
		if task, err = tasks.Recv(); err != nil {
			return err
		}
		_, err = bus.PublishTaskResult(ctx, &pb.PublishTaskResultRequest{Result: count(task)})
		if status.Code(err) == codes.FailedPrecondition {
			err = nil // The task has ended without us, for example because it was cancelled.
		}
	}
	return err
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
	ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+os.Getenv("TASKLEDGER_TOKEN"))
	for {
		log.Print(serve(ctx, pb.NewEventBusClient(connection)))
		time.Sleep(time.Second) // The server restarts. Tasks that were not finished come again.
	}
}
