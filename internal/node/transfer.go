package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

const (
	transferChunk  = 256 << 10
	progressPeriod = 200 * time.Millisecond
)

// senderSilence is when a receiver, who has nothing in flight that would time
// out, finds out that its sender is gone: after half a minute.
var senderSilence = tcp.Keepalive{Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// transfer is a file on its way.
type transfer struct {
	control.Transfer
	hash     hash.Hash
	total    int64 // -1: not known
	began    time.Time
	told     time.Time
	progress func(control.Progress)
}

func newTransfer(path string, sent bool, progress func(control.Progress)) *transfer {
	return &transfer{
		Transfer: control.Transfer{Path: path, Sent: sent, SID: -1},
		hash:     sha256.New(), total: -1, progress: progress,
	}
}

// count adds bytes that were moved, and tells now and then how far it is.
func (t *transfer) count(p []byte) {
	t.hash.Write(p)
	t.Bytes += int64(len(p))
	if time.Since(t.told) >= progressPeriod {
		t.tell()
	}
}

func (t *transfer) tell() {
	if t.progress == nil {
		return
	}
	now := time.Now()
	t.told = now
	p := control.Progress{Bytes: t.Bytes, Total: t.total}
	if !t.began.IsZero() {
		p.Elapsed = now.Sub(t.began)
	}
	t.progress(p)
}

// finish fills in the result, which announces itself, and passes err on.
func (t *transfer) finish(n *Node, err error) (control.Transfer, error) {
	if !t.began.IsZero() {
		t.Seconds = time.Since(t.began).Seconds()
	}
	if t.Seconds > 0 {
		t.MBPerS = float64(t.Bytes) / 1e6 / t.Seconds
	}
	t.SHA256 = hex.EncodeToString(t.hash.Sum(nil))
	t.tell()
	e := control.TransferEnded{Transfer: t.Transfer}
	if err != nil {
		e.Problem = err.Error()
	}
	n.watchers.publish(e)
	return t.Transfer, err
}

// sendFile connects, sends the file as long as it was at the start, closes, and
// waits until the peer has acknowledged everything.
func (n *Node) sendFile(ctx context.Context, r control.SendFile) (control.Transfer, error) {
	t := newTransfer(r.Path, true, r.Progress)
	f, size, err := openRegular(r.Path)
	if err != nil {
		return t.Transfer, fmt.Errorf("sendfile: %w", err)
	}
	defer f.Close()
	t.total = size
	c, err := n.connectTo(ctx, r.Addr, r.Port)
	if err != nil {
		return t.Transfer, fmt.Errorf("sendfile %s: %w", r.Path, err)
	}
	t.SID, t.Peer = c.sid, c.peer
	t.began = time.Now()
	t.tell()
	stop := context.AfterFunc(ctx, c.Abort)
	defer stop()
	err = n.sendAll(ctx, c, f, t)
	if err == nil {
		err = c.CloseWrite()
	}
	if err == nil {
		err = c.awaitDelivery(ctx)
	}
	if err == nil {
		err = c.awaitVerdict()
	}
	n.account(c, &t.Transfer)
	if err != nil {
		c.Abort()
		err = fmt.Errorf("sendfile %s: %w", r.Path, fileError(ctx, err))
		return t.finish(n, err)
	}
	_ = c.Close() // it is delivered: nothing can go wrong any more
	return t.finish(n, nil)
}

func openRegular(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// sendAll writes the file to the connection and checks that it stayed the
// length it was.
func (n *Node) sendAll(ctx context.Context, c *Conn, f *os.File, t *transfer) error {
	buf := make([]byte, transferChunk)
	for t.Bytes < t.total {
		k, err := f.Read(buf[:min(int64(len(buf)), t.total-t.Bytes)])
		if k == 0 && errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: %d bytes at the start, %d now",
				control.ErrChanged, t.total, t.Bytes)
		}
		if k == 0 && err != nil {
			return err
		}
		if _, err := c.Write(buf[:k]); err != nil {
			return ctxError(ctx, err)
		}
		t.count(buf[:k])
	}
	if info, err := f.Stat(); err == nil && info.Size() != t.total {
		return fmt.Errorf("%w: %d bytes at the start, %d now",
			control.ErrChanged, t.total, info.Size())
	}
	return nil
}

// awaitDelivery waits until the peer has acknowledged our FIN, and with it
// everything before.
func (c *Conn) awaitDelivery(ctx context.Context) error {
	select {
	case <-c.delivered:
		return nil
	case <-c.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-c.delivered:
		return nil
	default:
	}
	if failure := c.failure.Load(); failure != nil {
		return *failure
	}
	return control.ErrReset
}

// verdictTime is how long a sender waits for the receiver's side to close.
const verdictTime = 2 * time.Second

// awaitVerdict waits for what the receiver says of the file, all of which it
// has: a FIN that it has stored it, a reset that it could not. Nodes that do
// not close for long, or never, are believed after a while.
func (c *Conn) awaitVerdict() error {
	if err := c.SetReadDeadline(time.Now().Add(verdictTime)); err != nil {
		return err
	}
	_, err := c.Read(make([]byte, 1))
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// account copies why it was not faster from the connection.
func (n *Node) account(c *Conn, t *control.Transfer) {
	_ = n.call(func(clock.Time) { // a closed node has no figures
		fillTransfer(t, c.tc.Info())
	})
}

func fillTransfer(t *control.Transfer, i tcp.Info) {
	t.Retransmits, t.Timeouts = i.Retransmits, i.Timeouts
	t.TailProbes, t.WindowProbes = i.TailProbes, i.WindowProbes
	t.RTT, t.MinRTT, t.MSS = i.RTT, i.MinRTT, i.SendMSS
}

// fileError names the error of an ended context as what ended it.
func fileError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return inner(err)
}

// recvFile takes one connection and stores what comes.
func (n *Node) recvFile(ctx context.Context, r control.RecvFile) (control.Transfer, error) {
	t := newTransfer(r.Path, false, r.Progress)
	part := r.Path + ".part"
	f, err := createTarget(r.Path, part)
	if err != nil {
		return t.Transfer, fmt.Errorf("recvfile: %w", err)
	}
	c, err := n.takeOne(ctx, r.Port, func() { t.tell() })
	if err != nil {
		_ = f.Close()
		_ = os.Remove(part) // nothing has come: nothing is lost
		return t.Transfer, fmt.Errorf("recvfile %s: port %d: %w", r.Path, r.Port, err)
	}
	t.SID, t.Peer = c.sid, c.peer
	t.began = time.Now()
	stop := context.AfterFunc(ctx, c.Abort)
	defer stop()
	c.keepalive(senderSilence)
	err = firstError(receiveAll(c, f, t), f.Close())
	if err == nil {
		err = os.Rename(part, r.Path)
	}
	if err != nil {
		c.Abort() // so that the sender learns of it
		err = fmt.Errorf("recvfile %s: %w (%d bytes are kept in %s)",
			r.Path, fileError(ctx, err), t.Bytes, part)
		return t.finish(n, err)
	}
	_ = c.Close() // all has come, and been told so
	return t.finish(n, nil)
}

// createTarget makes sure that the file can be written before anybody sends.
func createTarget(path, part string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if lockFile(f) != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", path, control.ErrBusy)
	}
	// Only now: until it is locked the bytes may be another transfer's. EINVAL: a device has no
	// length to cut.
	if err := f.Truncate(0); err != nil && !errors.Is(err, syscall.EINVAL) {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// takeOne listens and takes one connection.
func (n *Node) takeOne(ctx context.Context, port uint16, listening func()) (*Conn, error) {
	if port == 0 {
		return nil, fmt.Errorf("%w: want a port from 1 to 65535", control.ErrUsage)
	}
	l, err := n.Listen(netip.AddrPortFrom(netip.IPv4Unspecified(), port), 1)
	if err != nil {
		return nil, inner(err)
	}
	defer l.Close()
	listening()
	stop := context.AfterFunc(ctx, func() { _ = l.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, ctxError(ctx, err)
	}
	return c, nil
}

// receiveAll stores what comes until the peer closes.
func receiveAll(c net.Conn, f io.Writer, t *transfer) error {
	buf := make([]byte, transferChunk)
	for {
		k, err := c.Read(buf)
		if k > 0 {
			stored, err := f.Write(buf[:k])
			t.count(buf[:stored])
			if err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
