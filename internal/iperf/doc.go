// Package iperf measures throughput between nodes as iperf3 does, over TCP, UDP, RCP and RDT:
// client.go and server.go run the two ends of a test; message.go, results.go, state.go and wire.go
// have the protocol.
//
// A test has one control connection. On it, each side sends its state as a byte, and there are
// messages with the parameters of the test (Params) and with each side's results (Results). Streams
// are connections to the same port that begin with the control connection's cookie, or flows of
// datagrams that begin with a greeting.
//
//	client                          server
//	cookie                     ->
//	                           <-   ParamExchange
//	Params                     ->
//	                           <-   CreateStreams
//	streams, each with cookie  ->
//	                           <-   TestStart, TestRunning
//	        the bytes that are measured
//	TestEnd                    ->
//	                           <-   ExchangeResults
//	Results                    ->
//	                           <-   Results, DisplayResults
//	Done                       ->
//
// All input is limited in size: see message.go.
package iperf
