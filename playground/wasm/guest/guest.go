//go:build wasip1

// Package guest has the code that the WebAssembly programs of the playground have in common. The
// host writes the input of an export as JSON to the address that buffer returns. The export reports
// its answer with tell.
package guest

import (
	"encoding/json"
	"errors"
	"unsafe"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// tell passes a message to the host: the message's kind, the number of a response, and the
// message's bytes.
//
//go:wasmimport tidepool tell
func tell(kind uint32, number uint32, at unsafe.Pointer, size uint32)

// The kinds of messages.
const (
	result = iota // the answer of an export, as JSON
	failed        // the error of an export
	Output        // from a shell: {"node", "text"}; from an experiment: {"done", "of"} or {"text"}
	Head          // the head of the response with this number: {"status", "headers"}
	Body          // a part of the response's body
	End           // the end of the response
	Packet        // a packet from the interface with this number
)

// Say passes a message to the host.
func Say(kind, number int, text []byte) {
	tell(uint32(kind), uint32(number), unsafe.Pointer(unsafe.SliceData(text)), uint32(len(text)))
}

var input []byte // input of the next export

// buffer returns the address to which the host writes the input of the next export.
//
//go:wasmexport buffer
func buffer(size uint32) unsafe.Pointer {
	input = make([]byte, size)
	return unsafe.Pointer(unsafe.SliceData(input))
}

// Result reports an export's answer.
func Result(value any, err error) {
	if err != nil {
		Say(failed, 0, failure(err))
		return
	}
	text, err := json.Marshal(value)
	if err != nil {
		Say(failed, 0, []byte(err.Error()))
		return
	}
	Say(result, 0, text)
}

// failure returns an error as {"errors": [{"file", "line", "col", "text"}]}.
func failure(err error) []byte {
	type place struct {
		File string `json:"file,omitempty"`
		Line int    `json:"line"`
		Col  int    `json:"col"`
		Text string `json:"text"`
	}
	list := []place{}
	if many, ok := errors.AsType[diagnostic.Errors](err); ok {
		for _, e := range many {
			text := e.Msg
			if e.Want != "" {
				text += "; expected " + e.Want
			}
			list = append(list, place{e.File, e.Line, e.Col, text})
		}
	} else {
		list = append(list, place{Text: err.Error()})
	}
	text, _ := json.Marshal(map[string]any{"errors": list}) // plain values
	return text
}

// Bytes returns the input of an export that is not JSON.
func Bytes() []byte { return input }

// Read parses the input of an export.
func Read[T any]() (v T, err error) {
	err = json.Unmarshal(input, &v)
	return v, err
}
