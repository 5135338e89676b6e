package emulation

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/sim/workload"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Objects over TCP are on a connection as in virtual time: each behind its length in 16 characters;
// where they take turns each chunk is behind the object's number and the chunk's length, 2 bytes
// each; and where each has a connection the client asks for it by its number, 2 bytes.
const (
	lengthChars  = 16
	numberBytes  = 2
	defaultChunk = 1325
)

// objectsArm is both ends of a transfer of objects over TCP.
func objectsArm(ctx context.Context, e *End) error {
	g, err := e.Goods()
	if err != nil {
		return err
	}
	if e.Start.Role == Sender {
		return e.giveObjects(ctx, g)
	}
	if !e.Wait(ctx) {
		return context.Cause(ctx)
	}
	err = e.takeObjects(ctx, g)
	g.Report(err)
	return err
}

// giveObjects serves as many connections as the objects are to have.
func (e *End) giveObjects(ctx context.Context, g *Goods) error {
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
		go func() { errs <- giveOn(c, g, e.Flow.App.Objects) }()
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
		sum.Retransmits += i.Retransmits
		sum.Timeouts += i.Timeouts
		sum.FastRecoveries += i.FastRecoveries
	}
	e.Set(result.ServerSent, float64(sum.SegsOut))
	e.Set(result.ServerData, float64(sum.DataSegsOut))
	e.Set(result.Retransmits, float64(sum.Retransmits))
	e.Set(result.Timeouts, float64(sum.Timeouts))
	e.Set(result.Recoveries, float64(sum.FastRecoveries))
	return err
}

// giveOn writes what one connection carries, and waits until the client has closed it.
func giveOn(c *node.Conn, g *Goods, cfg *workload.ObjectsConfig) error {
	defer c.Close()
	var err error
	switch cfg.Arm {
	case workload.Interleaved:
		err = giveInTurns(c, g, cfg.Chunk)
	case workload.Parallel:
		var number [numberBytes]byte
		if _, err = io.ReadFull(c, number[:]); err == nil {
			i := int(binary.BigEndian.Uint16(number[:]))
			if i >= len(g.Items) {
				return fmt.Errorf("there is no object %d", i)
			}
			_, err = c.Write(withLength(g.Items[i].Data))
		}
	default:
		for _, i := range g.Order {
			if _, err = c.Write(withLength(g.Items[i].Data)); err != nil {
				break
			}
		}
	}
	if err == nil {
		err = c.CloseWrite()
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, c)
	return err
}

func withLength(data []byte) []byte {
	return append(fmt.Appendf(nil, "%*d", lengthChars, len(data)), data...)
}

// giveInTurns writes a chunk of each object that is not over, and again.
func giveInTurns(w io.Writer, g *Goods, chunk int) error {
	if chunk == 0 {
		chunk = defaultChunk
	}
	left := make([][]byte, len(g.Items))
	for i := range left {
		left[i] = withLength(g.Items[i].Data)
	}
	for more := true; more; {
		more = false
		for i := range left {
			n := min(chunk, len(left[i]))
			if n == 0 {
				continue
			}
			frame := binary.BigEndian.AppendUint16(nil, uint16(i))
			frame = binary.BigEndian.AppendUint16(frame, uint16(n))
			if _, err := w.Write(append(frame, left[i][:n]...)); err != nil {
				return err
			}
			left[i], more = left[i][n:], true
		}
	}
	return nil
}

// takeObjects connects and takes what comes.
func (e *End) takeObjects(ctx context.Context, g *Goods) error {
	arm := e.Flow.App.Objects.Arm
	if arm != workload.Parallel {
		return e.onConnection(ctx, func(c *node.Conn) error {
			r := bufio.NewReaderSize(c, 1<<16)
			if arm == workload.Interleaved {
				return takeInTurns(r, g)
			}
			for _, i := range g.Order {
				if err := g.take(i, r); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var all sync.WaitGroup
	errs := make([]error, len(g.Order))
	for k, i := range g.Order {
		all.Go(func() {
			errs[k] = e.onConnection(ctx, func(c *node.Conn) error {
				if _, err := c.Write(binary.BigEndian.AppendUint16(nil, uint16(i))); err != nil {
					return err
				}
				return g.take(i, c)
			})
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// onConnection does something on a connection of its own.
func (e *End) onConnection(ctx context.Context, do func(c *node.Conn) error) error {
	c, err := e.Node.TCP.Dial(ctx, e.There())
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, c.Abort)
	defer stop()
	return errors.Join(do(c), c.Close())
}

// errForeign is a stream of which an object makes no sense.
var errForeign = errors.New("what comes is no object")

// take reads one object, behind its length.
func (g *Goods) take(i int, r io.Reader) error {
	n, err := readLength(r)
	if err != nil {
		return err
	}
	if n != len(g.Items[i].Data) {
		return errForeign
	}
	buf := make([]byte, 1<<16)
	for at := 0; at < n; {
		k, err := r.Read(buf[:min(len(buf), n-at)])
		if k > 0 && !g.Got(i, at, buf[:k]) {
			return errForeign
		}
		if at += k; err != nil && at < n {
			return err
		}
	}
	return nil
}

func readLength(r io.Reader) (int, error) {
	var text [lengthChars]byte
	if _, err := io.ReadFull(r, text[:]); err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimLeft(string(text[:]), " "))
	if err != nil {
		return 0, errForeign
	}
	return n, nil
}

// takeInTurns reads chunks of all objects.
func takeInTurns(r io.Reader, g *Goods) error {
	at := make([]int, len(g.Items))
	heads := make([][]byte, len(g.Items)) // of the length, as far as it has come
	buf := make([]byte, 1<<16)
	for left := len(g.Items); left > 0; {
		var frame [2 * numberBytes]byte
		if _, err := io.ReadFull(r, frame[:]); err != nil {
			return err
		}
		i := int(binary.BigEndian.Uint16(frame[:]))
		b := buf[:binary.BigEndian.Uint16(frame[numberBytes:])]
		if i >= len(at) || len(b) == 0 {
			return errForeign
		}
		if _, err := io.ReadFull(r, b); err != nil {
			return err
		}
		k := min(lengthChars-len(heads[i]), len(b))
		heads[i], b = append(heads[i], b[:k]...), b[k:]
		if len(b) == 0 {
			continue
		}
		if !g.Got(i, at[i], b) {
			return errForeign
		}
		if at[i] += len(b); at[i] == len(g.Items[i].Data) {
			left--
		}
	}
	return nil
}
