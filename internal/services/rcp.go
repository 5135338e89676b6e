package services

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// These are the limits of the measuring client of founding document 000. It writes pieces of
// leastPiece to mostPiece bytes, and waits leastRest to mostRest milliseconds after each.
const (
	countedWrites = 1000
	maxCounted    = 1 << 20
	leastPiece    = 200
	mostPiece     = 399
	leastRest     = 2
	mostRest      = 19
)

// errEcho means that the echo differs from the written data.
var errEcho = errors.New("the echo differs from the data")

// counting is a running client. Its writer and its reader generate the same random bytes.
type counting struct {
	node   *node.Node
	conn   *node.RCPConn
	writes int
	seed   [32]byte
}

// lengths returns a function that draws the pieces' lengths: every such function the same ones.
func (k *counting) lengths() func() int {
	rng := rand.New(rand.NewChaCha8(k.seed))
	return func() int { return leastPiece + rng.IntN(mostPiece-leastPiece+1) }
}

// bytes returns the stream's random bytes.
func (k *counting) bytes() *rand.ChaCha8 {
	seed := k.seed
	seed[0] ^= 1
	return rand.NewChaCha8(seed)
}

// countRCP writes to an echo server, reads everything back, and counts the packets.
func (h *Host) countRCP(ctx context.Context, r control.RCPCount) (control.RCPCounted, error) {
	r.Writes = cmp.Or(r.Writes, countedWrites)
	to := netip.AddrPortFrom(r.Addr, r.Port)
	if r.Writes < 1 || r.Writes > maxCounted {
		return control.RCPCounted{}, control.Misuse("%d writes: must be 1 to %d", r.Writes,
			maxCounted)
	}
	c, err := h.node.RCP.Dial(ctx, netip.AddrPort{}, to, rcpConfig(r.Options))
	if err != nil {
		return control.RCPCounted{}, fmt.Errorf("%v: %w", to, control.ReasonOf(ctx, err))
	}
	defer func() { _ = c.Close() }() // a failed connection reports its error elsewhere
	defer context.AfterFunc(ctx, c.Abort)()
	k := &counting{node: h.node, conn: c, writes: r.Writes}
	for i := range k.seed {
		k.seed[i] = byte(rand.Uint32())
	}
	result, err := k.run()
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("%v: %w", to, context.Cause(ctx))
	case err != nil:
		c.Abort()
		err = fmt.Errorf("%v: %w", to, control.Reason(err))
	}
	return result, err
}

// run writes in a goroutine and reads the echo.
func (k *counting) run() (control.RCPCounted, error) {
	began := k.node.Time.Now()
	written := make(chan struct{})
	over := make(chan struct{}) // closed to end the writer's pause
	go func() {
		k.write(over)
		close(written)
	}()
	result, err := k.read()
	if err != nil {
		k.conn.Abort()
		close(over)
		<-written
		return result, err
	}
	<-written
	result.Seconds = k.node.Time.Now().Sub(began).Seconds()
	s := k.conn.Describe()
	result.SRTT, result.RCPCounts = s.SRTT, s.RCPCounts
	return result, nil
}

// write writes the pieces, with a pause after each. It ignores errors, because read then detects
// that a part of the echo is missing.
func (k *counting) write(over chan struct{}) {
	length, from := k.lengths(), k.bytes()
	piece := make([]byte, mostPiece)
	for range k.writes {
		b := piece[:length()]
		_, _ = from.Read(b) // never fails
		if _, err := k.conn.Write(b); err != nil {
			return
		}
		rested := make(chan struct{})
		wait := time.Duration(leastRest+rand.IntN(mostRest-leastRest+1)) * time.Millisecond
		timer := k.node.Time.AfterFunc(wait, func() { close(rested) })
		select {
		case <-rested:
		case <-over:
			timer.Stop()
			return
		}
	}
}

// read reads the echo and compares it with the written data.
func (k *counting) read() (control.RCPCounted, error) {
	result := control.RCPCounted{Writes: k.writes}
	var total int64
	length := k.lengths()
	for range k.writes {
		total += int64(length())
	}
	want, hash := k.bytes(), sha256.New()
	got, expected := make([]byte, 16<<10), make([]byte, 16<<10)
	for result.Bytes < total {
		m, err := k.conn.Read(got[:min(int64(len(got)), total-result.Bytes)])
		if err != nil {
			return result, err
		}
		_, _ = want.Read(expected[:m]) // never fails
		if !bytes.Equal(got[:m], expected[:m]) {
			return result, errEcho
		}
		hash.Write(got[:m])
		result.Bytes += int64(m)
	}
	result.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return result, nil
}

// operatorBuffer limits the unsent data. The document's buffers are unlimited. operatorRTO is the
// maximum RTO, which equals the document's timeout.
const (
	operatorBuffer = 1 << 20
	operatorRTO    = 100 * time.Millisecond
)

func rcpConfig(o control.RCPOptions) node.RCPConfig {
	cfg := node.RCPConfig{
		Width: o.Width, Window: o.Window, Timer: o.Timer, Timeout: o.Timeout,
		SendBuffer: operatorBuffer,
	}
	cfg.MaxRTO = operatorRTO
	if cfg.Timeout != 0 {
		cfg.MaxRTO = min(cfg.Timeout, operatorRTO)
	}
	return cfg
}

func (h *Host) echoRCP(_ context.Context, r control.RCPEcho) (control.RCPPort, error) {
	on := h.node.AllAddrs(r.Port)
	l, err := h.node.RCP.Listen(on, 0, rcpConfig(r.Options))
	if err != nil {
		return control.RCPPort{}, fmt.Errorf("port %d: %w", r.Port, control.Reason(err))
	}
	go func() {
		for {
			c, err := l.AcceptRCP()
			if err != nil {
				return
			}
			go echoBack(c)
		}
	}()
	return control.RCPPort{Local: l.Local()}, nil
}

// echoBack echoes one connection. Package rcp limits the number of connections.
func echoBack(c *node.RCPConn) {
	buf := make([]byte, 16<<10)
	for {
		k, err := c.Read(buf)
		if err == nil {
			_, err = c.Write(buf[:k])
		}
		if err != nil {
			_ = c.Close() // the client has closed the connection, or is gone
			return
		}
	}
}
