package services

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// These messages are exchanged by two nodes that have both offered the file's digest
// (docs/decisions/0001-file-digest.md):
//
//	sender    offset (8 bytes), length (8 bytes), that many bytes, SHA-256 of the file, FIN
//	receiver  SHA-256 of its file (32 bytes), FIN
//
// The numbers are in network byte order. The digests cover the file from its first byte on, and
// both ends compare them. All other peers get the bytes only.

// preambleLen is the length of offset and length.
const preambleLen = 16

// confirmTime is how long a sender waits for the digest of the receiver, which stores the file
// first.
const confirmTime = time.Minute

// errOffset is an ErrMismatch of the two ends' offsets.
var errOffset = fmt.Errorf("%w", control.ErrMismatch)

// announce sends the offset and the length in one segment, together with the first bytes.
func (t *transfer) announce(c *node.Conn) error {
	if err := c.SetCork(true); err != nil { // the first bytes or the FIN release the segment
		return err
	}
	var b [preambleLen]byte
	binary.BigEndian.PutUint64(b[:], uint64(t.result.Offset))
	binary.BigEndian.PutUint64(b[8:], uint64(t.total))
	_, err := c.Write(b[:])
	return err
}

// expect reads offset and length from the sender.
func (t *transfer) expect(r io.Reader) error {
	var b [preambleLen]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return early(err, 0)
	}
	offset, length := binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])
	if offset != uint64(t.result.Offset) {
		return fmt.Errorf("%w: the sender starts at byte %d of the file, the receiver at byte %d",
			errOffset, offset, t.result.Offset)
	}
	if length > 1<<62 {
		return fmt.Errorf("%w: invalid size: the sender announces %d bytes", control.ErrMismatch,
			length)
	}
	t.total = int64(length)
	return nil
}

// receiveVerified receives a file with offset, length and digest, and checks them.
func (t *transfer) receiveVerified(r io.Reader, f io.Writer) error {
	if err := t.expect(r); err != nil {
		return err
	}
	if err := receiveAll(io.LimitReader(r, t.total), f, t); err != nil {
		return err
	}
	theirs := make([]byte, sha256.Size+1) // one byte more detects data after the digest
	switch k, err := io.ReadFull(r, theirs); {
	case k > sha256.Size:
		return fmt.Errorf("%w: more data than the %d bytes that the sender announced",
			control.ErrMismatch, t.total)
	case k < sha256.Size || !errors.Is(err, io.ErrUnexpectedEOF):
		return early(err, t.total-t.result.Bytes)
	}
	theirs = theirs[:sha256.Size]
	if ours := t.hash.Sum(nil); !bytes.Equal(ours, theirs) {
		return t.differ(ours, theirs)
	}
	t.result.Verified = true
	return nil
}

// early returns the error of a sender that closed before the end of the file.
func early(err error, missing int64) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return fmt.Errorf("the sender closed early: %d bytes and the digest are missing", missing)
}

// digestError is an ErrMismatch that both ends detect.
type digestError struct{ text string }

func (e *digestError) Error() string { return e.text }
func (*digestError) Unwrap() error   { return control.ErrMismatch }

func (t *transfer) differ(ours, theirs []byte) error {
	return &digestError{fmt.Sprintf("the digests differ: SHA-256 %s here, %s at %v",
		hex.EncodeToString(ours), hex.EncodeToString(theirs), t.result.Peer)}
}

// confirm sends the digest to the sender if the file is stored or the digests differ. err is the
// reason why the file was not stored. It returns false if the caller must reset the connection.
func (t *transfer) confirm(c *node.Conn, err error) bool {
	var differ *digestError
	switch {
	case err != nil && !errors.As(err, &differ):
		return false
	case differ != nil || t.result.Verified:
		_, _ = c.Write(t.hash.Sum(nil)) // an error means that the sender is gone
	}
	return true
}

// awaitDigest compares the receiver's digest with this end's.
func (t *transfer) awaitDigest(c *node.Conn) error {
	if err := c.SetReadDeadline(time.Now().Add(confirmTime)); err != nil {
		return err
	}
	theirs := make([]byte, sha256.Size)
	_, err := io.ReadFull(c, theirs)
	switch ours := t.hash.Sum(nil); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, os.ErrDeadlineExceeded):
		t.result.Note = "the receiver has the file, but did not send its SHA-256"
		return nil
	case err != nil:
		return err
	case !bytes.Equal(ours, theirs):
		return t.differ(ours, theirs)
	}
	t.result.Verified = true
	return nil
}
