package rdt

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
)

// compressor compresses each chunk separately, so that the receiver can decompress each one alone.
// Compression is deterministic: a chunk is compressed again for a retransmission and not stored.
type compressor struct {
	out bytes.Buffer
	z   *zlib.Writer
}

// compress returns the compressed chunk, or false if it is not shorter. The chunk is valid until
// the next call.
func (s *compressor) compress(chunk []byte) ([]byte, bool) {
	s.out.Reset()
	if s.z == nil {
		s.z = zlib.NewWriter(&s.out)
	} else {
		s.z.Reset(&s.out)
	}
	// Writing to a bytes.Buffer does not fail.
	_, _ = s.z.Write(chunk)
	_ = s.z.Close()
	return s.out.Bytes(), s.out.Len() < len(chunk)
}

type decompressor struct {
	in  bytes.Reader
	out []byte
	z   io.ReadCloser
}

// expand returns the decompressed chunk, valid until the next call. It returns false if b is
// invalid, or if the chunk is empty or longer than limit. It never writes more than limit+1 bytes.
func (e *decompressor) expand(b []byte, limit int) ([]byte, bool) {
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
