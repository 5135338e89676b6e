package rdt

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
)

// squeezer compresses chunks, each on its own, so that each can be read without the
// others. The same chunk always becomes the same bytes: one that is repeated is
// compressed again instead of kept.
type squeezer struct {
	out bytes.Buffer
	z   *zlib.Writer
}

// squeeze returns chunk compressed, valid until the next call, or false if it does not
// become shorter.
func (s *squeezer) squeeze(chunk []byte) ([]byte, bool) {
	s.out.Reset()
	if s.z == nil {
		s.z = zlib.NewWriter(&s.out)
	} else {
		s.z.Reset(&s.out)
	}
	// A bytes.Buffer takes everything, so neither of the two fails.
	_, _ = s.z.Write(chunk)
	_ = s.z.Close()
	return s.out.Bytes(), s.out.Len() < len(chunk)
}

// expander is the way back.
type expander struct {
	in  bytes.Reader
	out []byte
	z   io.ReadCloser
}

// expand returns what b was before, valid until the next call, or false if it is not
// what squeeze makes of 1 to limit bytes. However much b promises, no more than limit+1
// bytes are ever written.
func (e *expander) expand(b []byte, limit int) ([]byte, bool) {
	e.in.Reset(b)
	var err error
	if e.z == nil {
		e.z, err = zlib.NewReader(&e.in)
		e.out = make([]byte, limit+1)
	} else {
		err = e.z.(zlib.Resetter).Reset(&e.in, nil)
	}
	if err != nil {
		return nil, false
	}
	n := 0
	for n < len(e.out) {
		m, err := e.z.Read(e.out[n:])
		n += m
		if errors.Is(err, io.EOF) {
			return e.out[:n], n > 0 && e.in.Len() == 0
		}
		if err != nil {
			return nil, false
		}
	}
	return nil, false
}
