package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"github.com/andybalholm/brotli"
)

// quality is brotli's. The best, 11, would save a seventh more and take 11 times as long.
const quality = 9

// pack compresses a program with brotli. site/unpack.js is the reverse.
func pack(program []byte) ([]byte, error) {
	var packed bytes.Buffer
	const window = 24 // bits; the largest
	w := brotli.NewWriterOptions(&packed, brotli.WriterOptions{Quality: quality, LGWin: window})
	err := writeAll(w, program)
	return packed.Bytes(), err
}

// compress compresses with gzip.
func compress(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	err = writeAll(w, text)
	return packed.Bytes(), err
}

func writeAll(w io.WriteCloser, text []byte) error {
	_, err := w.Write(text)
	return errors.Join(err, w.Close())
}
