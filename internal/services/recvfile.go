package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/node"
)

// recvFile accepts one connection and stores its data.
func (h *Host) recvFile(ctx context.Context, r control.RecvFile) (control.Transfer, error) {
	t := h.newTransfer(ctx, r.Path, false, r.Progress)
	t.result.Once = r.Once
	if r.Offset < 0 || r.Size < 0 || r.Offset > 0 && !r.Resume || r.Path == "" && r.Resume {
		return t.result, fmt.Errorf("recvfile: %w: offset %d, size %d: must not be negative; "+
			"an offset needs resume, and resume a file", control.ErrUsage, r.Offset, r.Size)
	}
	ctx, leave := h.enter(ctx, t, "recvfile", r.Port)
	defer leave()
	f, err := t.createTarget(r.Resume, r.Overwrite)
	if err == nil && r.Resume {
		if err = t.resume(ctx, f.File, r.Offset); err != nil {
			_ = f.Close() // nothing was written
		}
	}
	if err != nil {
		return t.result, fmt.Errorf("recvfile: %w", err)
	}
	defer f.close()
	if r.Size > 0 {
		t.total = max(0, r.Size-t.result.Offset)
	}
	c, err := h.takeOne(ctx, &r, func() { t.tell() })
	if err != nil {
		return t.result, fmt.Errorf("recvfile %s: port %d: %w%s", r.Path, r.Port,
			stopError(ctx, err), t.noSender(ctx))
	}
	f.came = true
	t.result.SID, t.result.Peer = c.SID(), c.Remote()
	t.began = time.Now()
	t.tell()
	stop := context.AfterFunc(ctx, c.Abort)
	defer stop()
	c.Guard()
	err = t.receive(c, f)
	if err == nil {
		err = t.expected(&r)
	}
	if err == nil {
		err = f.publish()
	}
	if !t.confirm(c, err) {
		c.Abort() // the reset informs the sender
	} else {
		_ = c.Close() // everything has arrived, and the sender knows that
	}
	if err != nil {
		err = fmt.Errorf("recvfile %s: %w (%s)", r.Path, stopError(ctx, err), t.kept(&r, err))
		return t.finish(err)
	}
	return t.finish(nil)
}

// receive stores the data, and checks its digest if the sender offered it.
func (t *transfer) receive(c *node.Conn, f io.Writer) error {
	if t.verify = c.FileDigest(); t.verify {
		return t.receiveVerified(c, f)
	}
	return receiveAll(c, f, t)
}

// noSender describes that no sender had connected when the receiver was stopped.
func (t *transfer) noSender(ctx context.Context) string {
	if ctx.Err() == nil {
		return ""
	}
	return " (no sender had connected)"
}

// kept describes what was stored of an incomplete file, and how to continue. A transfer cannot
// continue after data of another file.
func (t *transfer) kept(r *control.RecvFile, why error) string {
	whole, part := t.result.Offset+t.result.Bytes, t.part()
	if t.result.Once || t.result.Path == "" {
		return fmt.Sprintf("%d bytes arrived", whole)
	}
	text := fmt.Sprintf("%d bytes are kept in %s", whole, part)
	if errors.Is(why, fs.ErrExist) {
		return text
	}
	if errors.Is(why, control.ErrMismatch) && !errors.Is(why, errOffset) &&
		(r.Size == 0 || whole >= r.Size) {
		return text + ": receive it again without --resume"
	}
	return fmt.Sprintf("%s: continue with --resume here and --offset %d at the sender", text, whole)
}

// resume starts after the stored bytes, or after the first offset bytes.
func (t *transfer) resume(ctx context.Context, f *os.File, offset int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	switch {
	case offset > info.Size():
		return fmt.Errorf("%w: offset %d: %s has only %d bytes", control.ErrUsage, offset,
			f.Name(), info.Size())
	case offset == 0:
		offset = info.Size()
	}
	if err := t.skip(ctx, f, offset); err != nil {
		return err
	}
	return f.Truncate(offset)
}

// expected checks the size and the digest that the request names.
func (t *transfer) expected(r *control.RecvFile) error {
	whole := t.result.Offset + t.result.Bytes
	switch {
	case r.Size > 0 && whole != r.Size:
		return fmt.Errorf("%w: received %d bytes, expected %d", control.ErrMismatch, whole, r.Size)
	case r.SHA256 != "" && !strings.EqualFold(r.SHA256, t.digest()):
		return fmt.Errorf("%w: SHA-256 %s, expected %s", control.ErrMismatch, t.digest(),
			strings.ToLower(r.SHA256))
	}
	return nil
}

func (t *transfer) part() string { return t.result.Path + ".part" }

// target is the file that a transfer writes.
type target struct {
	*os.File // the open file; nil: data is discarded

	t       *transfer
	replace bool // replace an existing file that has the final name
	came    bool // a sender has connected, so its data stays even if it is incomplete
}

// Write implements io.Writer.
func (f *target) Write(p []byte) (int, error) {
	if f.File == nil {
		return len(p), nil
	}
	return f.File.Write(p)
}

// close closes the file. It removes an empty file unless a sender connected.
func (f *target) close() {
	if f.File == nil {
		return
	}
	info, err := f.Stat()
	if err == nil && info.Size() == 0 && !f.came {
		if there, e := f.t.folder.Lstat(f.t.part()); e == nil && os.SameFile(info, there) {
			_ = f.t.folder.Remove(f.t.part())
		}
	}
	_ = f.Close() // data that must be on disk is already synced
}

// publish gives the complete file its final name.
func (f *target) publish() error {
	if f.File == nil {
		return nil
	}
	return f.t.folder.Publish(f.File, f.t.part(), f.t.result.Path, f.replace)
}

// createTarget opens the file before a sender connects. keep allows a .part file of an earlier
// transfer. replace allows discarding it, and replacing an existing file that has the final name.
func (t *transfer) createTarget(keep, replace bool) (*target, error) {
	if t.result.Path == "" {
		return &target{t: t}, nil
	}
	if err := t.folder.Check(t.result.Path); err != nil {
		return nil, err
	}
	info, err := t.folder.Lstat(t.result.Path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: %w", t.result.Path, files.ErrNotRegular)
	case err == nil && !replace:
		return nil, fmt.Errorf("%s: %w", t.result.Path, fs.ErrExist)
	}
	f, err := t.folder.Edit(t.part(), 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, control.Also(fmt.Errorf("%s: no such directory: %s", t.result.Path,
			filepath.Dir(t.result.Path)), fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	if locked, err := files.TryLock(f); err != nil || !locked {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w%s", t.result.Path, control.ErrBusy,
			t.host.underway.writer(t))
	}
	if err := t.empty(f, keep, replace); err != nil {
		_ = f.Close()
		return nil, err
	}
	return &target{File: f, t: t, replace: replace}, nil
}

// empty truncates the .part file of an earlier transfer if replace is set, and not if keep is. The
// file is locked, so no other transfer writes to it.
func (t *transfer) empty(f *os.File, keep, replace bool) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case keep || info.Size() == 0:
		return nil
	case !replace:
		return fmt.Errorf("%s: %w, from an interrupted transfer: --resume continues it", t.part(),
			fs.ErrExist)
	}
	return f.Truncate(0)
}

func (h *Host) takeOne(
	ctx context.Context, r *control.RecvFile, listening func(),
) (*node.Conn, error) {
	if r.Port == 0 {
		return nil, fmt.Errorf("%w: must be a port from 1 to 65535", control.ErrUsage)
	}
	l, err := h.node.TCP.ListenWith(h.node.AllAddrs(r.Port),
		node.ListenOptions{Backlog: 1, FileDigest: !r.NoVerify})
	if err != nil {
		return nil, control.Reason(err)
	}
	defer l.Close()
	listening()
	stop := context.AfterFunc(ctx, func() { _ = l.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, control.ReasonOf(ctx, err)
	}
	return c, nil
}

// receiveAll stores data until the peer closes.
func receiveAll(c io.Reader, f io.Writer, t *transfer) error {
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
