package emulation

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/sim/workload"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

func objectsArm(ctx context.Context, e *End) error {
	g, err := e.Objects()
	if err != nil {
		return err
	}
	if e.Start.Role == Sender {
		return e.sendObjects(ctx, g)
	}
	if !e.Wait(ctx) {
		return context.Cause(ctx)
	}
	err = e.receiveObjects(ctx, g)
	g.Report(err)
	return err
}

func (e *End) sendObjects(ctx context.Context, g *Objects) error {
	n := 1
	if e.Flow.App.Objects.Arm == workload.Parallel {
		n = len(g.Items)
	}
	l, err := e.Node.TCP.Listen(e.There(), n)
	if err != nil {
		return err
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	e.Ready()
	errs := make(chan error, n)
	var list []*node.Conn
	for range n {
		c, err := l.AcceptTCP()
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, c.Abort)
		defer stop()
		list = append(list, c)
		go func() { errs <- sendOn(c, g, e.Flow.App.Objects) }()
	}
	for range n {
		err = errors.Join(err, <-errs)
	}
	var sum tcp.Info
	for _, c := range list {
		i, gone := c.Info()
		if gone != nil {
			break
		}
		sum.SegsOut += i.SegsOut
		sum.DataSegsOut += i.DataSegsOut
		sum.TotalRetrans += i.TotalRetrans
		sum.TotalRTO += i.TotalRTO
		sum.FastRecoveries += i.FastRecoveries
	}
	e.Set(result.ServerSent, float64(sum.SegsOut))
	e.Set(result.ServerData, float64(sum.DataSegsOut))
	e.Set(result.Retransmits, float64(sum.TotalRetrans))
	e.Set(result.Timeouts, float64(sum.TotalRTO))
	e.Set(result.Recoveries, float64(sum.FastRecoveries))
	return err
}

// sendOn writes the data of one connection, and waits until the client closes the connection.
func sendOn(c *node.Conn, g *Objects, cfg *workload.ObjectsConfig) error {
	defer c.Close()
	parts := cfg.Stream(g.Items)
	if cfg.Arm == workload.Parallel {
		var number [workload.RequestBytes]byte
		if _, err := io.ReadFull(c, number[:]); err != nil {
			return err
		}
		i := int(binary.BigEndian.Uint16(number[:]))
		if i >= len(g.Items) {
			return fmt.Errorf("no object %d", i)
		}
		parts = g.Items[i].Stream()
	}
	w := bufio.NewWriterSize(c, bufferBytes)
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Flush(), c.CloseWrite()); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, c)
	return err
}

// bufferBytes is the size of one read or write.
const bufferBytes = 1 << 16

func (e *End) receiveObjects(ctx context.Context, g *Objects) error {
	if e.Flow.App.Objects.Arm != workload.Parallel {
		return e.onConnection(ctx, func(c *node.Conn) error { return e.take(c, g, g.Order...) })
	}
	var all sync.WaitGroup
	errs := make([]error, len(g.Order))
	for k, i := range g.Order {
		all.Go(func() {
			errs[k] = e.onConnection(ctx, func(c *node.Conn) error {
				if _, err := c.Write(binary.BigEndian.AppendUint16(nil, uint16(i))); err != nil {
					return err
				}
				return e.take(c, g, i)
			})
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (e *End) onConnection(ctx context.Context, do func(c *node.Conn) error) error {
	c, err := e.Node.TCP.Dial(ctx, e.There())
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, c.Abort)
	defer stop()
	return errors.Join(do(c), c.Close())
}

// errForeign means that received data is not one of the expected objects.
var errForeign = errors.New("received data is not an object of this experiment")

func (e *End) take(c io.Reader, g *Objects, objects ...int) error {
	framed := e.Flow.App.Objects.Arm == workload.Interleaved
	r := workload.NewObjectReader(g.Items, objects, framed, g.Got)
	buf := make([]byte, bufferBytes)
	for r.Left() > 0 {
		n, err := c.Read(buf)
		if !r.Take(buf[:n]) {
			return errForeign
		}
		if err != nil && r.Left() > 0 {
			return err
		}
	}
	return nil
}
