package emulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/sim/workload"
)

// rcpArm is either end of the echo of founding document 000: a client that writes pieces with
// pauses, or a server that sends them back.
func rcpArm(ctx context.Context, e *End) error {
	cfg := e.Flow.App.Echo.WithDefaults()
	if e.Start.Role == Receiver {
		l, err := e.Node.RCP.Listen(e.There(), 1, cfg.RCP)
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, func() { _ = l.Close() })
		defer stop()
		e.Ready()
		c, err := l.AcceptRCP()
		if err != nil {
			return err
		}
		end := context.AfterFunc(ctx, c.Abort)
		defer end()
		// At the end, the client stops responding, which the server sees as a failure.
		_ = echoBack(c)
		return nil
	}
	if !e.Wait(ctx) {
		return context.Cause(ctx)
	}
	// The connection exists after the peer's first response. The packet that opened it counts, too.
	c, err := e.Node.RCP.Dial(ctx, netip.AddrPort{}, e.There(), cfg.RCP)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, c.Abort)
	defer stop()
	err = e.count(ctx, c, &cfg)
	e.countRCP(c)
	c.Abort() // the document's client does not close the connection either
	return err
}

func (e *End) countRCP(c *node.RCPConn) {
	n := c.Info().Counts
	e.Set(result.ClientSent, float64(n.Sent()))
	e.Set(result.ClientData, float64(n.DAT))
	e.Set(result.ClientAcks, float64(n.ACK))
	e.Set(result.ClientPackets, float64(n.DAT-n.Again))
	e.Set(result.Retransmits, float64(n.Again))
}

func (e *End) countEcho(ctx context.Context, c *node.Conn) error {
	cfg := e.Flow.App.Echo.WithDefaults()
	err := e.count(ctx, c, &cfg)
	return errors.Join(err, c.Close())
}

// countTCP records what the client's connection has sent. Call it after the node is closed.
func (e *End) countTCP() {
	if e.Flow.App.Echo == nil || e.seen.last.Time == 0 {
		return
	}
	s := &e.seen.last
	e.Set(result.ClientSent, float64(s.SegsOut))
	e.Set(result.ClientData, float64(s.DataSegsOut))
	e.Set(result.ClientAcks, float64(s.SegsOut-s.DataSegsOut))
	e.Set(result.ClientPackets, float64(s.DataSegsOut-s.TotalRetrans))
}

// count writes pieces with a pause after each, and waits until all have been echoed. The caller
// closes the connection.
func (e *End) count(ctx context.Context, c net.Conn, cfg *workload.EchoConfig) error {
	began := time.Now()
	writer := make(chan written, 1)
	go func() { writer <- e.write(ctx, c, cfg) }()
	err := e.readEcho(c, writer)
	if err != nil {
		e.Finish(false, fmt.Sprintf("%v: %d bytes echoed", err, e.seen.received))
		return err
	}
	took := time.Since(began)
	e.Finish(true, "")
	e.Set(result.Completion, took.Seconds())
	e.Set(result.Delivered, float64(e.seen.received))
	e.Set(result.Goodput, float64(e.seen.received)*8/took.Seconds())
	return nil
}

// written is the number of bytes that a client has written, or the client's error.
type written struct {
	bytes uint64
	err   error
}

func (e *End) write(ctx context.Context, c net.Conn, cfg *workload.EchoConfig) (w written) {
	side := simulation.Left
	if e.Flow.Upward {
		side = simulation.Right
	}
	rng := netem.Streams(e.Start.Seed)(side.Host(e.Start.Flow) + workload.EchoStream)
	buf := make([]byte, cfg.MaxBytes)
	for range cfg.Writes {
		piece := buf[:cfg.DrawPiece(rng)]
		sim.Fill(piece, w.bytes)
		if _, w.err = c.Write(piece); w.err != nil {
			break
		}
		w.bytes += uint64(len(piece))
		if !e.sleeps.until(ctx, time.Now().Add(cfg.DrawPause(rng))) {
			w.err = context.Cause(ctx)
			break
		}
	}
	_ = c.SetReadDeadline(time.Now()) // the reader then checks whether the echo is complete
	return w
}

// errWrong means that an echo differs from the written data.
var errWrong = errors.New("an echoed byte differs from the sent byte")

// readEcho reads the echo until all written data has returned.
func (e *End) readEcho(c net.Conn, writer <-chan written) error {
	buf := make([]byte, sim.PatternRun)
	var all *written
	for all == nil || e.seen.received < all.bytes {
		n, err := c.Read(buf)
		e.Got(buf[:n])
		switch {
		case e.seen.corrupted != "":
			return errWrong
		case err == nil:
		case all == nil && errors.Is(err, os.ErrDeadlineExceeded):
			w := <-writer
			if w.err != nil {
				return w.err
			}
			all = &w
			if err := c.SetReadDeadline(time.Time{}); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return nil
}

func echoBack(c net.Conn) error {
	_, err := io.Copy(c, c)
	return errors.Join(err, c.Close())
}
