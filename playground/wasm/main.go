//go:build wasip1

// Command wasm is the world of a playground as a WebAssembly reactor (WASI preview 1). Its host
// (../site/wasi.js) provides the clock, the random numbers and the files. All exports but buffer
// take the JSON that buffer's caller has written, and answer through tell.
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o tidepool.wasm ./playground/wasm
package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"
	"unsafe"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/playground"
)

func main() {}

// tell passes a message to the host: its kind, the number of a response, and its bytes.
//
//go:wasmimport tidepool tell
func tell(kind uint32, number uint32, at unsafe.Pointer, size uint32)

// The kinds of messages.
const (
	toldResult = iota // the JSON of an export's answer
	toldError         // an export's error
	toldOutput        // of a shell: {"node", "text"}
	toldHead          // of the response with this number: {"status", "headers"}
	toldBody          // a part of its body
	toldEnd           // its end
)

func say(kind, number int, text []byte) {
	tell(uint32(kind), uint32(number), unsafe.Pointer(unsafe.SliceData(text)), uint32(len(text)))
}

var (
	input []byte            // of the next export
	world *playground.World // nil: none yet
)

// buffer returns where the host writes the input of the next export.
//
//go:wasmexport buffer
func buffer(size uint32) unsafe.Pointer {
	input = make([]byte, size)
	return unsafe.Pointer(unsafe.SliceData(input))
}

// result reports an export's answer.
func result(value any, err error) {
	if err != nil {
		say(toldError, 0, failure(err))
		return
	}
	text, err := json.Marshal(value)
	if err != nil {
		say(toldError, 0, []byte(err.Error()))
		return
	}
	say(toldResult, 0, text)
}

var errClosed = errors.New("no network runs: open one first")

// failure returns an error as {"errors": [{"line", "col", "text"}]}.
func failure(err error) []byte {
	type place struct {
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
			list = append(list, place{e.Line, e.Col, text})
		}
	} else {
		list = append(list, place{Text: err.Error()})
	}
	text, _ := json.Marshal(map[string]any{"errors": list}) // plain values
	return text
}

// read parses the input of an export.
func read[T any]() (v T, err error) {
	err = json.Unmarshal(input, &v)
	return v, err
}

// with calls f with the world and the input, and reports the answer.
func with[T, A any](f func(w *playground.World, in T) (A, error)) {
	in, err := read[T]()
	if err == nil && world == nil {
		err = errClosed
	}
	var a A
	if err == nil {
		a, err = f(world, in)
	}
	result(a, err)
}

// check reports the errors of a network file: {"name", "network"}.
//
//go:wasmexport check
func check() {
	c, err := read[playground.Config]()
	if err == nil {
		_, err = playground.Parse(c.Name, []byte(c.Network))
	}
	result(struct{}{}, err)
}

// open starts a network: a playground.Config without Files.
//
//go:wasmexport open
func open() {
	c, err := read[playground.Config]()
	if err == nil && world != nil {
		err = errors.New("a network runs already: its process must be a new one")
	}
	if err != nil {
		result(nil, err)
		return
	}
	c.Files = "/"
	c.Print = func(node, text string) {
		told, _ := json.Marshal(map[string]string{"node": node, "text": text}) // plain values
		say(toldOutput, 0, told)
	}
	w, err := playground.New(c)
	if err != nil {
		result(nil, err)
		return
	}
	world = w
	world.Settle() // the shells wait for lines
	result(map[string]any{"nodes": w.Names()}, nil)
}

// advance runs the network for this many nanoseconds more.
//
//go:wasmexport advance
func advance(by int64) {
	if world != nil {
		world.Advance(world.Now() + time.Duration(by))
	}
}

// state answers with the playground.State.
//
//go:wasmexport state
func state() {
	if world == nil {
		result(nil, errClosed)
		return
	}
	result(world.State(), nil)
}

// do carries out a new playground.Input, and answers with its time.
//
//go:wasmexport do
func do() {
	with(func(w *playground.World, in playground.Input) (time.Duration, error) {
		var answer playground.Response
		if in.Request != nil {
			answer = &response{number: in.Request.Number}
		}
		err := w.Do(&in, answer)
		return in.At, err
	})
}

// replay carries out a playground.Input at its time.
//
//go:wasmexport replay
func replay() {
	with(func(w *playground.World, in playground.Input) (struct{}, error) {
		return struct{}{}, w.Replay(&in)
	})
}

// get begins to answer a playground.Request that only reads.
//
//go:wasmexport get
func get() {
	with(func(w *playground.World, r playground.Request) (struct{}, error) {
		w.Get(&r, &response{number: r.Number})
		w.Settle() // it has its answer, or waits for the network
		return struct{}{}, nil
	})
}

// leave ends a request of get: its client is gone.
//
//go:wasmexport leave
func leave(number int32) {
	if world != nil {
		world.Leave(int(number))
		world.Settle()
	}
}

// complete answers with the completions of a playground.Input's Line.
//
//go:wasmexport complete
func complete() {
	with(func(w *playground.World, in playground.Input) ([]string, error) {
		return append([]string{}, w.Complete(in.Node, in.Line)...), nil
	})
}

// list answers with the nodes' files.
//
//go:wasmexport list
func list() {
	if world == nil {
		result(nil, errClosed)
		return
	}
	files, err := world.List()
	result(append([]playground.FileInfo{}, files...), err)
}

// file answers with a file of a node, as toldBody and toldResult.
//
//go:wasmexport file
func file() {
	with(func(w *playground.World, in playground.Input) (int, error) {
		data, err := w.File(in.Node, in.File)
		if err == nil {
			say(toldBody, 0, data)
		}
		return len(data), err
	})
}

// response is the http.ResponseWriter of a request. Its parts go to the host at once.
type response struct {
	number int
	header http.Header
	begun  bool
}

// Header implements http.ResponseWriter.
func (r *response) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}

// WriteHeader implements http.ResponseWriter.
func (r *response) WriteHeader(status int) {
	if r.begun {
		return
	}
	r.begun = true
	headers := map[string]string{}
	for name := range r.Header() {
		headers[name] = r.header.Get(name)
	}
	text, _ := json.Marshal(map[string]any{"status": status, "headers": headers}) // plain values
	say(toldHead, r.number, text)
}

// Write implements http.ResponseWriter.
func (r *response) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if len(p) > 0 {
		say(toldBody, r.number, p)
	}
	return len(p), nil
}

// FlushError implements what http.ResponseController calls.
func (r *response) FlushError() error { return nil }

// End implements playground.Response.
func (r *response) End() {
	r.WriteHeader(http.StatusOK)
	say(toldEnd, r.number, nil)
}
