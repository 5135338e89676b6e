// Package iperf measures throughput between nodes as iperf3 does, over TCP, UDP, RCP and RDT:
// client.go and server.go move the data, message.go and its neighbours are the protocol.
//
// A test has one control connection, on which either side says by a byte how far it is, and two
// messages in each direction: what is to be measured (Params), and what each side has seen
// (Results). Streams are connections to the same port that begin with the control connection's
// cookie, or flows of datagrams that begin with a greeting.
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
// Everything that comes in is bounded: see message.go.
package iperf
