package main

import "google.golang.org/grpc"

// In place of the file of the same name in examples/agents/go, where gRPC is older than 1.63 and has no `NewClient`: Debian 12.
func connect(address string) (*grpc.ClientConn, error) {
	return grpc.Dial(address, grpc.WithInsecure())
}
