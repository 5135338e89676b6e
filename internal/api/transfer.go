package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"reflect"
	"strings"

	"github.com/tidepool-net/tidepool/internal/control"
)

// maxTestFile is the maximum size of a test transfer.
const maxTestFile = 1 << 30

// NetworkTransfer requests a transfer of random bytes between nodes over the virtual network.
type NetworkTransfer struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Bytes is the number of random bytes. Neither node stores them.
	Bytes int64 `json:"bytes"`
	// Addr is an address of To, of either family. If empty, it is the first address of the first
	// interface.
	Addr netip.Addr `json:"addr"`
	// Port is the port that To listens on. 0 means a free port from 5001 on.
	Port uint16 `json:"port,omitempty"`
}

// NetworkTransferred is the result, as reported by both ends.
type NetworkTransferred struct {
	Sent     control.Transfer `json:"sent"`
	Received control.Transfer `json:"received"`
	Same     bool             `json:"same"` // the received bytes equal the sent ones
}

// transfer transfers a file between nodes. The answer is a stream of lines: the progress of both
// ends, and the result or the error.
func (js *jobs) transfer(w http.ResponseWriter, r *http.Request) error {
	var t NetworkTransfer
	if err := body(w, r, "transfer", reflect.ValueOf(&t).Elem()); err != nil {
		return err
	}
	x, err := js.nodes.ends(&t)
	if err != nil {
		return err
	}
	ctx, cancel := x.from.within(r.Context())
	defer cancel()
	ctx, end := x.to.within(ctx)
	defer end()
	job, err := js.add(t.From, "transfer", cancel)
	if err != nil {
		return err
	}
	defer js.remove(job)
	out := js.begin(w, typeLines, job, cancel)
	defer out.end()
	out.tell(eventBegun, job.Running)
	done, err := x.move(ctx, &t, out)
	out.writeResult(done, ending(ctx, err, &t, done.Received.Bytes))
	return nil
}

// ends are the two nodes of a transfer.
type ends struct{ from, to *member }

// ends validates a transfer and finds its nodes.
func (n *nodes) ends(t *NetworkTransfer) (x ends, err error) {
	now := n.now.Load()
	x = ends{now.member(t.From), now.member(t.To)}
	switch {
	case x.from == nil:
		return x, fmt.Errorf("transfer: %w", now.noSuch(t.From))
	case x.to == nil:
		return x, fmt.Errorf("transfer: %w", now.noSuch(t.To))
	}
	switch {
	case t.From == t.To:
		return x, fmt.Errorf("transfer: %w: from %s to itself: choose two nodes", control.ErrUsage,
			t.To)
	case t.Bytes < 1 || t.Bytes > maxTestFile:
		return x, fmt.Errorf("transfer: %w: %d bytes: must be 1 to %d", control.ErrUsage, t.Bytes,
			maxTestFile)
	}
	return x, nil
}

func (x ends) move(
	ctx context.Context, t *NetworkTransfer, out *stream,
) (done NetworkTransferred, err error) {
	if !t.Addr.IsValid() {
		faces, err := control.Ask(ctx, x.to.op, control.Interfaces{})
		if err != nil {
			return done, err
		}
		if len(faces) == 0 {
			return done, fmt.Errorf("%s: %w: the node has no interfaces", t.To,
				control.ErrNoSuchInterface)
		}
		t.Addr = faces[0].Addrs()[0].Addr()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stands := make(chan struct{})
	received := make(chan error, 1)
	go func() {
		var e error
		done.Received, e = x.receive(ctx, t, stands, out)
		received <- errorOf(t.To, e, "recvfile ")
	}()
	select {
	case e := <-received:
		return done, e
	case <-stands:
	}
	done.Sent, err = control.Ask(ctx, x.from.op, control.SendFile{
		Random: t.Bytes, Addr: t.Addr, Port: t.Port, Once: true,
		Progress: func(p control.Progress) { out.tell("sending", p) },
	})
	if err != nil {
		cancel()
		<-received //nolint:errcheck // the transfer was stopped
		return done, errorOf(t.From, err, "sendfile ")
	}
	if e := <-received; e != nil {
		return done, e
	}
	done.Same = done.Sent.SHA256 == done.Received.SHA256
	return done, nil
}

// ending returns the error of a transfer. Stopping a transfer stops both ends, and either may
// report that the other reset the connection. In that case ending returns ErrStopped.
func ending(ctx context.Context, err error, t *NetworkTransfer, arrived int64) error {
	if err != nil && ctx.Err() != nil && !errors.Is(context.Cause(ctx), ErrGone) {
		return fmt.Errorf("%w: %d of %d bytes arrived", control.ErrStopped, arrived, t.Bytes)
	}
	return gone(ctx, err)
}

// failure is an error with a different text.
type failure struct {
	error
	text string
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.error }

// errorOf adds the node's name to an error, unless the error contains the name. It removes the
// command and file at the start, because the client did not name them.
func errorOf(node string, err error, begins string) error {
	if err == nil || errors.Is(err, ErrGone) {
		return err
	}
	return &failure{err, node + ": " + strings.TrimPrefix(err.Error(), begins+": ")}
}

// receive receives the file on the first free port.
func (x ends) receive(
	ctx context.Context, t *NetworkTransfer, stands chan<- struct{}, out *stream,
) (control.Transfer, error) {
	first, last := t.Port, t.Port
	if first == 0 {
		first, last = 5001, 5099
	}
	begun, arrived := false, int64(0)
	for port := first; ; port++ {
		t.Port = port
		done, err := control.Ask(ctx, x.to.op, control.RecvFile{
			Port: port, Once: true,
			Progress: func(p control.Progress) {
				if !begun {
					begun = true
					close(stands)
				}
				arrived = p.Bytes
				out.tell("receiving", p)
			},
		})
		if errors.Is(err, control.ErrPortInUse) && port < last {
			continue
		}
		if err != nil {
			done.Bytes = arrived
		}
		return done, err
	}
}
