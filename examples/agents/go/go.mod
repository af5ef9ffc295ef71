module taskledger-example-agent

go 1.24
