package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"taskledger-example-agent/pb"
)

const requester = "go-requester"

// Publishes a task of the type `text.words` and waits for its result. Prints both.
func request(ctx context.Context, bus pb.EventBusClient, text string) {
	unique := make([]byte, 16)
	if _, err := rand.Read(unique); err != nil {
		log.Fatal(err)
	}
	task := &pb.TaskMessage{
		TaskId:           fmt.Sprintf("task_text.words_%x", unique),
		TaskType:         "text.words",
		Parameters:       &structpb.Struct{Fields: map[string]*structpb.Value{"text": structpb.NewStringValue(text)}},
		RequesterAgentId: requester,
		Priority:         pb.Priority_PRIORITY_HIGH,
		CreatedAt:        timestamppb.Now(),
	}
	response, err := bus.PublishTask(ctx, &pb.PublishTaskRequest{Task: task})
	if err != nil {
		log.Fatal(err)
	}
	if !response.Success {
		log.Fatal(response.Error)
	}
	fmt.Println("published", task.TaskId)

	// The server keeps results, so it does not matter that the task may have ended before.
	inbox := &pb.SubscribeToTaskResultsRequest{RequesterAgentId: requester, TaskIds: []string{task.TaskId}}
	results, err := bus.SubscribeToTaskResults(ctx, inbox)
	if err != nil {
		log.Fatal(err)
	}
	result, err := results.Recv()
	if err != nil {
		log.Fatal(err)
	}
	if result.Status != pb.TaskStatus_TASK_STATUS_COMPLETED {
		log.Fatal(result.Status, ": ", result.ErrorMessage)
	}
	fmt.Println(result.ExecutorAgentId, "answers", result.Result.AsMap())
}
