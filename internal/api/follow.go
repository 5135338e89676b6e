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

// streamLine is a line of a stream.
type streamLine struct {
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
}

// follow sends a streaming request and calls the functions of the request. When ctx ends, it stops
// the command and returns the command's answer, such as the statistics of a ping.
func (c *Client) follow(
	ctx context.Context, k *control.Kind, request reflect.Value, text []byte, into reflect.Value,
) error {
	return c.stoppable(ctx, func(own context.Context, begun chan<- int) error {
		resp, err := c.send(own, http.MethodPost, c.command(k), typeLines, text)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return c.consume(own, resp.Body, request, into, begun)
	})
}

// stoppable runs a request in a separate context. When ctx ends, it stops the command whose number
// the node has sent.
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
		return ctx.Err() // the node's ErrStopped has the progress, and does not match
	}
	return err
}

// recordedPiece is the maximum size of a piece of a capture.
const recordedPiece = 256 << 10

// record is like follow, for a raw capture.
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
			return fmt.Errorf("node %s: invalid answer: it has no number of a running capture",
				c.node)
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

// halt stops a running command. It waits up to stopTime for the command to end.
func (c *Client) halt(ctx context.Context, begun <-chan int) {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	select {
	case id := <-begun:
		path := "/nodes/" + url.PathEscape(c.node) + "/running/" + strconv.Itoa(id)
		resp, err := c.send(ctx, http.MethodDelete, path, typeJSON, nil)
		if err != nil {
			return // the command has ended, or the node has
		}
		_ = resp.Body.Close()
	case <-ctx.Done():
	}
	<-ctx.Done()
}

// consume reads a stream to its end and processes each line.
func (c *Client) consume(
	ctx context.Context, body io.Reader, request, into reflect.Value, begun chan<- int,
) error {
	in := json.NewDecoder(body)
	for {
		var l streamLine
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
			// Ignore unknown events: newer nodes may send them.
			if _, err := relay(request, l.Event, l.Data); err != nil {
				return fmt.Errorf("node %s: event %s: %w", c.node, l.Event, err)
			}
		}
	}
}

// Watch implements control.Operator. If the node is unreachable, or stops, Lost receives a value.
func (c *Client) Watch(f func(control.Event)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	path := "/nodes/" + url.PathEscape(c.node) + "/events"
	// After the response header the node sends every event.
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

// longestEvent is the maximum length of a line of an event stream.
const longestEvent = 1 << 20

// listen reads server-sent events to the end of the stream.
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

// eventFrom decodes an event, or returns nil if its name is unknown.
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
