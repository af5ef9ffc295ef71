// An agent that executes tasks over the EventBus protocol, and a requester of such tasks:
//
//	go run .                               executes tasks
//	go run . request 'to be or not to be'  publishes a task and prints its result
package main

import (
	"context"
	"log"
	"os"
	"strings"

	"google.golang.org/grpc/metadata"

	"taskledger-example-agent/pb"
)

func main() {
	address := strings.TrimPrefix(os.Getenv("TASKLEDGER_URL"), "http://")
	if address == "" {
		address = "127.0.0.1:8000"
	}
	connection, err := connect(address)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if token := os.Getenv("TASKLEDGER_TOKEN"); token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	bus := pb.NewEventBusClient(connection)
	if len(os.Args) == 3 && os.Args[1] == "request" {
		request(ctx, bus, os.Args[2])
	} else {
		serve(ctx, bus)
	}
}
