package iperf

import "fmt"

// State is a one-byte state that one end sends on the control connection.
type State int8

// These are the states of the protocol.
const (
	TestStart       State = 1
	TestRunning     State = 2
	TestEnd         State = 4
	ParamExchange   State = 9
	CreateStreams   State = 10
	ServerTerminate State = 11
	ClientTerminate State = 12
	ExchangeResults State = 13
	DisplayResults  State = 14
	Done            State = 16
	// AccessDenied is the answer of a server that is busy with another test.
	AccessDenied State = -1
	// ServerError is followed by two numbers of four bytes: iperf3's error number, and the
	// system's.
	ServerError State = -2
)

var stateNames = map[State]string{
	TestStart: "TEST_START", TestRunning: "TEST_RUNNING", TestEnd: "TEST_END",
	ParamExchange: "PARAM_EXCHANGE", CreateStreams: "CREATE_STREAMS",
	ServerTerminate: "SERVER_TERMINATE", ClientTerminate: "CLIENT_TERMINATE",
	ExchangeResults: "EXCHANGE_RESULTS", DisplayResults: "DISPLAY_RESULTS",
	Done: "IPERF_DONE", AccessDenied: "ACCESS_DENIED", ServerError: "SERVER_ERROR",
}

func (s State) String() string {
	if name, ok := stateNames[s]; ok {
		return name
	}
	return fmt.Sprintf("state %d", int8(s))
}

// The error numbers that a server sends. iperf3 has a text for each.
const (
	CodeParams       int32 = 113
	CodeCongestion   int32 = 133
	CodeCreateStream int32 = 200
)

// codeNames are texts for the error numbers that other servers send.
var codeNames = map[int32]string{
	27:               "the total required bandwidth is larger than the server's limit",
	37:               "the server could not authorize the client",
	CodeParams:       "it could not read the parameters",
	115:              "it could not send its results",
	116:              "it could not read the results",
	121:              "it cannot set TCP_NODELAY",
	122:              "it cannot set the maximum segment size",
	123:              "it cannot set the socket buffers",
	CodeCongestion:   "it does not know that congestion control",
	CodeCreateStream: "it cannot create a stream",
	202:              "it cannot listen for a stream",
	204:              "it cannot accept a stream",
	206:              "it cannot read from a stream",
}

// CodeText describes an error number of a server.
func CodeText(code int32) string {
	if text, ok := codeNames[code]; ok {
		return text
	}
	return fmt.Sprintf("error %d", code)
}
