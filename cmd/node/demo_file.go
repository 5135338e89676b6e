package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/files"
)

func (d *demo) path(name string) string { return filepath.Join(d.dir, name) }

// generate writes the file that will be sent and returns its SHA-256. The same seed gives the same
// file.
func (d *demo) generate(ctx context.Context) (digest string, err error) {
	f, err := files.Machine().Create(d.path(demoSent), 0o666)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], d.seed)
	noise := rand.NewChaCha8(key)
	hash := sha256.New()
	buf := make([]byte, 1<<20)
	for left := d.bytes; left > 0; {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		piece := buf[:min(left, int64(len(buf)))]
		_, _ = noise.Read(piece) // never fails
		if _, err := f.Write(piece); err != nil {
			return "", err
		}
		hash.Write(piece)
		left -= int64(len(piece))
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// digestOf is the SHA-256 of a file as it lies on the disk.
func digestOf(path string) (string, error) {
	f, err := files.Input(path)
	if err != nil {
		return "", err
	}
	defer f.Close() // it was only read
	hash := sha256.New()
	if _, err := io.Copy(hash, bufio.NewReaderSize(f, 1<<20)); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// clear removes what an earlier demonstration left, so that nothing of it passes for this one's.
// What cannot be removed will fail to be written, with an error of its own.
func (d *demo) clear() {
	d.remove(demoSent, demoReceived, demoPart, demoProbe, demoSummary)
	d.remove(figureFiles("figure")...)
	for _, node := range []string{"A", "B", "C"} {
		d.remove(node+".lnx", node+".pcapng")
	}
	if filepath.Dir(d.dir) == d.above {
		return
	}
	for _, name := range comparedAlgorithms { // of a comparison
		sub := demo{dir: d.path(name), above: d.dir}
		if info, err := os.Lstat(sub.dir); err == nil && info.IsDir() {
			sub.clear()
			d.remove(name) // fails where other files are in it
		}
	}
}

// tidy removes the copies of the file unless they are wanted: asked for, or differ. What has come
// of a file that did not arrive stays, as its receiver has said, unless Ctrl-C was the reason.
func (d *demo) tidy(ctx context.Context, differ bool) {
	if d.keep || differ {
		return
	}
	names := []string{demoSent, demoReceived}
	if ctx.Err() != nil {
		names = append(names, demoPart)
	}
	d.remove(names...)
}

func (d *demo) remove(names ...string) {
	for _, name := range names {
		_ = os.Remove(d.path(name)) // it may not be there, and is only in the way if it is
	}
}

func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
