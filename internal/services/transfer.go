package services

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"

	cryptorand "crypto/rand"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/node"
)

const (
	transferChunk  = 256 << 10
	progressPeriod = 200 * time.Millisecond // time between two progress reports
)

// transfer is a running file transfer.
type transfer struct {
	result     control.Transfer
	host       *Host
	folder     *files.Folder // directory that Path is relative to
	id         int           // number in control.Underway; 0: not listed
	hash       hash.Hash
	verify     bool  // both ends have offered the digest
	total      int64 // bytes to transfer; -1: unknown
	began      time.Time
	reportedAt time.Time
	progress   func(control.Progress)
}

func (h *Host) newTransfer(
	ctx context.Context, path string, sent bool, progress func(control.Progress),
) *transfer {
	return &transfer{
		result: control.Transfer{Path: path, Sent: sent, SID: -1},
		host:   h, folder: files.Of(ctx),
		hash: sha256.New(), total: -1, progress: progress,
	}
}

// skip reads the first offset bytes of a file for the digest.
func (t *transfer) skip(ctx context.Context, f io.Reader, offset int64) error {
	buf := make([]byte, transferChunk)
	for t.result.Offset < offset {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		k, err := f.Read(buf[:min(int64(len(buf)), offset-t.result.Offset)])
		t.hash.Write(buf[:k])
		t.result.Offset += int64(k)
		if err != nil {
			return err
		}
	}
	return nil
}

// count adds transferred bytes, and reports progress from time to time.
func (t *transfer) count(p []byte) {
	t.hash.Write(p)
	t.result.Bytes += int64(len(p))
	if time.Since(t.reportedAt) >= progressPeriod {
		t.tell()
	}
}

func (t *transfer) tell() {
	now := time.Now()
	t.reportedAt = now
	p := control.Progress{ID: t.id, Offset: t.result.Offset, Bytes: t.result.Bytes, Total: t.total}
	if !t.began.IsZero() {
		p.Elapsed = now.Sub(t.began)
	}
	t.host.underway.note(t, p)
	if t.progress != nil {
		t.progress(p)
	}
	t.host.node.Watchers.Announce(control.Transferring{
		Path: t.result.Path, Sent: t.result.Sent, SID: t.result.SID, Peer: t.result.Peer,
		Progress: p,
	})
}

// finish completes and announces the result, and returns err.
func (t *transfer) finish(err error) (control.Transfer, error) {
	if !t.began.IsZero() {
		t.result.Seconds = time.Since(t.began).Seconds()
	}
	if t.result.Seconds > 0 {
		t.result.MBPerS = float64(t.result.Bytes) / 1e6 / t.result.Seconds
	}
	t.result.SHA256 = t.digest()
	t.tell()
	e := control.TransferEnded{Transfer: t.result}
	if err != nil {
		e.Problem = err.Error()
	}
	t.host.node.Watchers.Announce(e)
	return t.result, err
}

func (t *transfer) digest() string { return hex.EncodeToString(t.hash.Sum(nil)) }

// sendFile connects, sends the file up to its initial size, closes the connection, and waits until
// the peer has acknowledged everything.
func (h *Host) sendFile(ctx context.Context, r control.SendFile) (control.Transfer, error) {
	t := h.newTransfer(ctx, r.Path, true, r.Progress)
	t.result.Once = r.Once
	f, err := t.open(&r)
	if err != nil {
		return t.result, fmt.Errorf("sendfile: %w", err)
	}
	defer f.close()
	ctx, leave := h.enter(ctx, t, "sendfile", 0)
	defer leave()
	if r.Offset < 0 || r.Offset > f.size {
		return t.result, fmt.Errorf("sendfile %s: %w: offset %d: the file has %d bytes",
			r.Path, control.ErrUsage, r.Offset, f.size)
	}
	if err := t.skip(ctx, f, r.Offset); err != nil {
		return t.result, fmt.Errorf("sendfile %s: %w", r.Path, err)
	}
	t.total = f.size - t.result.Offset
	dial := h.node.TCP.DialForFile
	if r.NoVerify {
		dial = h.node.TCP.Dial
	}
	c, err := node.ConnectBy(ctx, dial, r.Addr, r.Port)
	if err != nil {
		return t.result, fmt.Errorf("sendfile %s: %w", r.Path, stopError(ctx, err))
	}
	t.result.SID, t.result.Peer = c.SID(), c.Remote()
	t.began = time.Now()
	t.tell()
	stop := context.AfterFunc(ctx, c.Abort)
	defer stop()
	err = t.deliver(ctx, c, f)
	acked := account(c, &t.result)
	if err != nil {
		c.Abort()
		err = fmt.Errorf("sendfile %s: %w (%s)", r.Path, stopError(ctx, err), t.left(acked, err))
		return t.finish(err)
	}
	_ = c.Close() // ignores the error, because everything is delivered
	return t.finish(nil)
}

// deliver sends the rest of the file and waits until the receiver confirms it.
func (t *transfer) deliver(ctx context.Context, c *node.Conn, f *source) error {
	if t.verify = c.FileDigest(); t.verify {
		if err := t.announce(c); err != nil {
			return err
		}
	}
	if err := sendAll(c, f, t); err != nil {
		return err
	}
	if err := t.unchanged(f); err != nil {
		return err
	}
	if t.verify {
		if _, err := c.Write(t.hash.Sum(nil)); err != nil {
			return err
		}
	}
	if err := c.CloseWrite(); err != nil {
		return err
	}
	if err := c.AwaitDelivery(ctx); err != nil {
		return err
	}
	if t.verify {
		return t.awaitDigest(c)
	}
	return awaitVerdict(c)
}

// source is the data of a SendFile.
type source struct {
	io.Reader

	file *os.File // file to send; nil: random bytes
	at   fs.FileInfo
	size int64
}

func (f *source) close() {
	if f.file != nil {
		_ = f.file.Close() // opened only for reading
	}
}

func (t *transfer) open(r *control.SendFile) (*source, error) {
	if r.Path == "" && r.Random > 0 {
		var seed [32]byte
		_, _ = cryptorand.Read(seed[:]) // never fails
		return &source{Reader: rand.NewChaCha8(seed), size: r.Random}, nil
	}
	f, at, err := t.folder.Read(r.Path)
	if err != nil {
		return nil, err
	}
	return &source{Reader: f, file: f, at: at, size: at.Size()}, nil
}

// sendAll writes the rest of the file to the connection.
func sendAll(c *node.Conn, f *source, t *transfer) error {
	buf := make([]byte, transferChunk)
	for t.result.Bytes < t.total {
		k, err := f.Read(buf[:min(int64(len(buf)), t.total-t.result.Bytes)])
		if k == 0 && errors.Is(err, io.EOF) {
			return t.shrunk(f.file)
		}
		if k == 0 && err != nil {
			return err
		}
		if _, err := c.Write(buf[:k]); err != nil {
			return err
		}
		t.count(buf[:k])
	}
	return nil
}

// shrunk returns the error of a file that became shorter.
func (t *transfer) shrunk(f *os.File) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %d bytes at the start, %d now",
		control.ErrChanged, t.result.Offset+t.total, now.Size())
}

// unchanged checks that the file did not change. Renaming or deleting it is permitted.
func (t *transfer) unchanged(f *source) error {
	if f.file == nil {
		return nil
	}
	at := f.at
	now, err := f.file.Stat()
	switch {
	case err != nil:
		return err
	case now.Size() != at.Size():
		return fmt.Errorf("%w: %d bytes at the start, %d now",
			control.ErrChanged, at.Size(), now.Size())
	case !now.ModTime().Equal(at.ModTime()):
		return fmt.Errorf("%w: another program wrote to it", control.ErrChanged)
	}
	there, err := t.folder.Stat(t.result.Path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		t.result.Note = "the file was deleted during the transfer, but sent completely"
	case err == nil && !os.SameFile(there, now):
		t.result.Note = "the file was replaced during the transfer; the old one was sent"
	}
	return nil
}

// verdictTime is how long a sender waits until the receiver closes its side.
const verdictTime = 2 * time.Second

// awaitVerdict waits for the receiver, which has all the data, to close: a FIN means that it stored
// the file, a reset that it could not. Silence counts as success, because some nodes close late or
// never.
func awaitVerdict(c *node.Conn) error {
	if err := c.SetReadDeadline(time.Now().Add(verdictTime)); err != nil {
		return err
	}
	_, err := c.Read(make([]byte, 1))
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// account copies the connection's counters to the result and returns the acknowledged bytes.
func account(c *node.Conn, t *control.Transfer) (acked uint64) {
	i, err := c.Info()
	if err != nil {
		return 0 // a closed node has no counters
	}
	t.Retransmits, t.Timeouts = i.TotalRetrans, i.TotalRTO
	t.TailProbes, t.WindowProbes = i.TailProbes, i.WindowProbes
	t.RTT, t.MinRTT, t.MSS = i.RTT, i.MinRTT, i.SndMSS
	return i.BytesAcked
}

// left describes how much was sent, and how to continue. Only the receiver knows how much it
// stored. A transfer cannot continue if the file changed.
func (t *transfer) left(acked uint64, why error) string {
	if t.verify { // the peer's byte count includes the preamble and the digest
		acked = min(max(acked, preambleLen)-preambleLen, uint64(t.total))
	}
	at := ""
	if t.result.Offset > 0 {
		at = fmt.Sprintf(" after the first %d", t.result.Offset)
	}
	advice := ": continue with `recvfile --resume` at the receiver and the --offset that it prints"
	switch {
	case t.result.Once:
		advice = ""
	case errors.Is(why, control.ErrChanged), errors.Is(why, control.ErrMismatch):
		advice = ": send it again"
	case t.result.Bytes == t.total && acked >= uint64(t.total):
		advice = ": the receiver has all of it and reports the result"
	}
	return fmt.Sprintf("of %d bytes%s %d were written and %d acknowledged%s", t.total, at,
		t.result.Bytes, acked, advice)
}

// stopError is like control.ReasonOf, but returns ErrStopped if the operator stopped the transfer.
func stopError(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return &stopped{context.Cause(ctx)}
	}
	return control.ReasonOf(ctx, err)
}

// stopped is a control.ErrStopped that also wraps its cause.
type stopped struct{ cause error }

func (*stopped) Error() string     { return control.ErrStopped.Error() }
func (s *stopped) Unwrap() []error { return []error{control.ErrStopped, s.cause} }
