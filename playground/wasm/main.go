//go:build wasip1

// Command wasm is the world of a playground as a WebAssembly reactor (WASI preview 1). Its host
// (../site/wasi.js) provides the clock, the random numbers and the files. Package guest reads the
// input of exports and reports their answers.
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o tidepool.wasm ./playground/wasm
package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/tidepool-net/tidepool/playground"
	"github.com/tidepool-net/tidepool/playground/wasm/guest"
)

func main() {}

var world *playground.World // nil: no network is open yet

var errClosed = errors.New("no network runs: open one first")

// with calls f with the world and the input, and reports the answer.
func with[T, A any](f func(w *playground.World, in T) (A, error)) {
	in, err := guest.Read[T]()
	if err == nil && world == nil {
		err = errClosed
	}
	var a A
	if err == nil {
		a, err = f(world, in)
	}
	guest.Result(a, err)
}

// check reports the errors of a network file or of a script: {"name", "network"}.
//
//go:wasmexport check
func check() {
	c, err := guest.Read[playground.Config]()
	if err == nil {
		err = playground.Check(c.Name, c.Network)
	}
	guest.Result(struct{}{}, err)
}

// open starts a network: a playground.Config without Files.
//
//go:wasmexport open
func open() {
	c, err := guest.Read[playground.Config]()
	if err == nil && world != nil {
		err = errors.New("this process already runs a network: start another process for a new one")
	}
	if err != nil {
		guest.Result(nil, err)
		return
	}
	c.Files = "/"
	c.Print = func(node, text string) {
		told, _ := json.Marshal(map[string]string{"node": node, "text": text}) // plain values
		guest.Say(guest.Output, 0, told)
	}
	c.Send = func(iface int, packet []byte) { guest.Say(guest.Packet, iface, packet) }
	w, err := playground.New(c)
	if err != nil {
		guest.Result(nil, err)
		return
	}
	world = w
	world.Settle() // the shells wait for lines
	guest.Result(map[string]any{"nodes": w.Names()}, nil)
}

// advance runs the network for this many nanoseconds more.
//
//go:wasmexport advance
func advance(by int64) {
	if world != nil {
		world.Advance(world.Now() + time.Duration(by))
	}
}

// receive passes the input, a packet from another network, to an interface.
//
//go:wasmexport receive
func receive(iface int32) {
	if world == nil {
		guest.Result(nil, errClosed)
		return
	}
	if err := world.Receive(int(iface), guest.Bytes()); err != nil {
		guest.Result(nil, err)
	}
}

// state answers with the playground.State.
//
//go:wasmexport state
func state() {
	if world == nil {
		guest.Result(nil, errClosed)
		return
	}
	guest.Result(world.State(), nil)
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
		w.Settle() // the request has its answer, or waits for the network
		return struct{}{}, nil
	})
}

// leave ends a request from get whose client is gone.
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
		guest.Result(nil, errClosed)
		return
	}
	files, err := world.List()
	guest.Result(append([]playground.FileInfo{}, files...), err)
}

// file returns a file of a node: the contents as guest.Body, followed by the answer.
//
//go:wasmexport file
func file() {
	with(func(w *playground.World, in playground.Input) (int, error) {
		data, err := w.File(in.Node, in.File)
		if err == nil {
			guest.Say(guest.Body, 0, data)
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

func (r *response) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}

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
	guest.Say(guest.Head, r.number, text)
}

func (r *response) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if len(p) > 0 {
		guest.Say(guest.Body, r.number, p)
	}
	return len(p), nil
}

// FlushError implements what http.ResponseController calls.
func (r *response) FlushError() error { return nil }

func (r *response) End() {
	r.WriteHeader(http.StatusOK)
	guest.Say(guest.End, r.number, nil)
}
