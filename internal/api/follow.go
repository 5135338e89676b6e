package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/control"
)

// heard is a line of a stream as it comes.
type heard struct {
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
}

// follow sends a request that streams and calls its functions. When ctx ends the node is told to
// stop, and what it answers then is the answer: a ping's statistics.
func (c *Client) follow(
	ctx context.Context, k *control.Kind, request reflect.Value, text []byte, into reflect.Value,
) error {
	return c.stoppable(ctx, func(own context.Context, begun chan<- int) error {
		resp, err := c.send(own, http.MethodPost, c.command(k), typeLines, text)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return c.heed(own, resp.Body, request, into, begun)
	})
}

// stoppable carries out an exchange in a context of its own, and when ctx ends has the node stop
// the command whose number the exchange has told.
func (c *Client) stoppable(
	ctx context.Context, exchange func(own context.Context, begun chan<- int) error,
) error {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	begun := make(chan int, 1)
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-ctx.Done():
		case <-over:
			return
		}
		c.halt(own, begun)
		cancel()
	}()
	err := exchange(own, begun)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return ctx.Err() // a control.ErrStopped, which says how far it came, comes as a Problem
	}
	return err
}

// recordedPiece is how much of a capture is handed on at once, at the most.
const recordedPiece = 256 << 10

// record is follow for a capture that is wanted as it is: its bytes come as they are, too.
func (c *Client) record(
	ctx context.Context, request reflect.Value, begins func(), piece func([]byte),
	into reflect.Value,
) error {
	path := "/nodes/" + url.PathEscape(c.node) + "/capture?" + toQuery(request).Encode()
	return c.stoppable(ctx, func(own context.Context, begun chan<- int) error {
		resp, err := c.send(own, http.MethodGet, path, typeCapture, nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		id, err := strconv.Atoi(resp.Header.Get(headerRunning))
		if err != nil {
			return fmt.Errorf("node %s: its answer is not a capture that can be stopped", c.node)
		}
		begun <- id
		if begins != nil {
			begins()
		}
		buf := make([]byte, recordedPiece)
		for err == nil {
			var n int
			n, err = resp.Body.Read(buf)
			if n > 0 {
				piece(buf[:n])
			}
		}
		if !errors.Is(err, io.EOF) {
			return c.gone(own, err)
		}
		result := []byte(resp.Trailer.Get(headerResult))
		if err := json.Unmarshal(result, into.Interface()); err != nil {
			return c.gone(own, err)
		}
		return nil
	})
}

// halt stops a command under way and returns when it has ended, or has had its time.
func (c *Client) halt(ctx context.Context, begun <-chan int) {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	select {
	case id := <-begun:
		path := "/nodes/" + url.PathEscape(c.node) + "/running/" + strconv.Itoa(id)
		resp, err := c.send(ctx, http.MethodDelete, path, typeJSON, nil)
		if err != nil {
			return // it has ended, or the node has
		}
		_ = resp.Body.Close()
	case <-ctx.Done():
	}
	<-ctx.Done()
}

// heed reads a stream to its end.
func (c *Client) heed(
	ctx context.Context, body io.Reader, request, into reflect.Value, begun chan<- int,
) error {
	in := json.NewDecoder(body)
	for {
		var l heard
		if err := in.Decode(&l); err != nil {
			return c.gone(ctx, err)
		}
		switch l.Event {
		case eventBegun:
			var r Running
			if err := json.Unmarshal(l.Data, &r); err != nil {
				return c.gone(ctx, err)
			}
			begun <- r.ID
		case eventResult:
			if err := json.Unmarshal(l.Data, into.Interface()); err != nil {
				return c.gone(ctx, err)
			}
			return nil
		case eventError:
			var p Problem
			if err := json.Unmarshal(l.Data, &p); err != nil {
				return c.gone(ctx, err)
			}
			return &p
		default:
			// An event that this program does not know is a newer node's.
			if _, err := relay(request, l.Event, l.Data); err != nil {
				return fmt.Errorf("node %s: event %s: %w", c.node, l.Event, err)
			}
		}
	}
}

// Watch implements control.Operator. That the node cannot be heard, or not any more, is told by
// Lost.
func (c *Client) Watch(f func(control.Event)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	path := "/nodes/" + url.PathEscape(c.node) + "/events"
	// The answer's header says that the node tells from now on.
	resp, err := c.send(ctx, http.MethodGet, path, typeEvents, nil)
	if err != nil {
		cancel()
		c.lose()
		return func() {}
	}
	go func() {
		defer resp.Body.Close()
		listen(resp.Body, f)
		if ctx.Err() == nil {
			c.lose()
		}
	}()
	return cancel
}

func (c *Client) lose() {
	select {
	case c.lost <- struct{}{}:
	default:
	}
}

// longestEvent bounds a line of a stream of events.
const longestEvent = 1 << 20

// listen reads server-sent events until their end.
func listen(body io.Reader, f func(control.Event)) {
	in := bufio.NewScanner(body)
	in.Buffer(nil, longestEvent)
	name, data := "", ""
	for in.Scan() {
		field, value, _ := strings.Cut(in.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			name = value
		case "data":
			data += value
		case "":
			if in.Text() == "" && data != "" {
				if e := eventFrom(name, data); e != nil {
					f(e)
				}
				name, data = "", ""
			}
		}
	}
}

// eventFrom is the event that was told; nil: none that this program knows.
func eventFrom(name, data string) control.Event {
	t, ok := eventsOf[name]
	if !ok {
		return nil
	}
	e := reflect.New(t)
	if json.Unmarshal([]byte(data), e.Interface()) != nil {
		return nil
	}
	event, _ := reflect.TypeAssert[control.Event](e.Elem())
	return event
}
