package emulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// tcpArm is either end of a TCP flow: of one transfer, of requests, of an echo or of objects.
func tcpArm(ctx context.Context, e *End) error {
	if e.Flow.App.Objects != nil {
		return objectsArm(ctx, e)
	}
	c, err := e.connect(ctx)
	if err != nil {
		return err
	}
	// The connection is aborted when ctx ends, so that no call blocks.
	stop := context.AfterFunc(ctx, c.Abort)
	defer stop()
	defer func() {
		if ctx.Err() != nil {
			c.Abort()
		}
	}()
	app := &e.Flow.App
	switch {
	case app.Echo != nil && e.Start.Role == Sender:
		return e.countEcho(ctx, c)
	case app.Echo != nil:
		return echoBack(c)
	case e.Start.Role == Sender && app.Requests > 0:
		return e.respond(c)
	case e.Start.Role == Sender:
		return e.send(ctx, c)
	case app.Requests > 0:
		return e.request(ctx, c)
	}
	return e.receive(c)
}

func (e *End) connect(ctx context.Context) (*node.Conn, error) {
	if e.Dials() {
		if !e.Wait(ctx) {
			return nil, context.Cause(ctx)
		}
		return e.Node.TCP.Dial(ctx, e.There())
	}
	l, err := e.Node.TCP.Listen(e.There(), 1)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	e.Ready()
	return l.AcceptTCP()
}

func (e *End) send(ctx context.Context, c *node.Conn) error {
	s := &source{end: e, began: time.Now(), size: math.MaxUint64}
	if e.Start.Size > 0 {
		s.size = e.Start.Size
	}
	for s.sent < s.size {
		n, at := s.room()
		if n == 0 {
			if !e.sleeps.until(ctx, at) {
				return context.Cause(ctx)
			}
			continue
		}
		if _, err := c.Write(sim.Pattern(s.sent, int(n))); err != nil {
			return err
		}
		s.sent += n
	}
	if err := c.CloseWrite(); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, c)
	return errors.Join(err, c.Close())
}

type source struct {
	end        *End
	began      time.Time
	size, sent uint64
}

// sourceInterval is the interval at which a source checks whether its data has been sent.
const sourceInterval = time.Millisecond

// room returns how much the source may write now, or when to check again.
func (s *source) room() (n uint64, at time.Time) {
	elapsed := time.Since(s.began)
	unsent := func() uint64 { return s.sent - min(s.sent, s.end.seen.sent.Load()) }
	n, wait := s.end.Flow.App.MayWrite(elapsed, s.sent, s.size, sim.PatternRun, unsent)
	return n, s.began.Add(elapsed + cmp.Or(wait, sourceInterval))
}

func (e *End) receive(c *node.Conn) error {
	buf := make([]byte, sim.PatternRun)
	for {
		n, err := c.Read(buf)
		e.Got(buf[:n])
		if e.Start.Size > 0 && e.seen.received >= e.Start.Size {
			e.Complete()
		}
		if errors.Is(err, io.EOF) {
			return c.Close()
		}
		if err != nil {
			return err
		}
	}
}

const requestBytes = 100

func (e *End) request(ctx context.Context, c net.Conn) error {
	app := &e.Flow.App
	buf := make([]byte, sim.PatternRun)
	var took simulation.Histogram
	defer func() {
		if took.Count > 0 {
			e.Set(result.RequestMean, took.Mean().Seconds())
			e.Set(result.RequestP95, took.Percentile(.95).Seconds())
		}
	}()
	for i := range app.Requests {
		o := result.Object{
			Name: fmt.Sprintf("request %d", i+1), Size: int(app.Size), Start: e.Now(),
		}
		_, err := c.Write(sim.Pattern(0, requestBytes))
		for left := app.Size; err == nil && left > 0; {
			var n int
			n, err = c.Read(buf[:min(left, uint64(len(buf)))])
			e.Got(buf[:n])
			left -= uint64(n)
			if left == 0 {
				err = nil
			}
		}
		if o.Done = err == nil; o.Done {
			o.End = e.Now()
			took.Add(o.End - o.Start)
		}
		e.Object(o)
		if err != nil {
			return err
		}
		if i < app.Requests-1 && !e.sleeps.until(ctx, time.Now().Add(app.Gap)) {
			return context.Cause(ctx)
		}
	}
	e.Complete()
	return c.Close()
}

// respond answers each request with the number of bytes that it asks for.
func (e *End) respond(c net.Conn) error {
	size, sent := e.Flow.App.Size, uint64(0)
	for request := make([]byte, requestBytes); ; {
		if _, err := io.ReadFull(c, request); errors.Is(err, io.EOF) {
			return c.Close()
		} else if err != nil {
			return err
		}
		for owed := size; owed > 0; {
			n, err := c.Write(sim.Pattern(sent, int(min(owed, sim.PatternRun))))
			if err != nil {
				return err
			}
			owed, sent = owed-uint64(n), sent+uint64(n)
		}
	}
}
