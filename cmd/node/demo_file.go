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
	"github.com/tidepool-net/tidepool/internal/lab/figure"
)

func (d *demo) path(name string) string { return filepath.Join(d.dir, name) }

// generate writes the file to send and returns its SHA-256. The same seed produces the same file.
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

func digestOf(path string) (string, error) {
	f, err := files.Input(path)
	if err != nil {
		return "", err
	}
	defer f.Close() // opened only for reading
	hash := sha256.New()
	if _, err := io.Copy(hash, bufio.NewReaderSize(f, 1<<20)); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// clear removes the files of an earlier demo. It ignores errors: a file that stays causes an error
// when the demo writes to it.
func (d *demo) clear() {
	d.remove(demoSent, demoReceived, demoPart, demoProbe, demoSummary)
	d.remove(figure.FileNames(demoFigure)...)
	for _, node := range []string{"A", "B", "C"} {
		d.remove(node+".lnx", node+".pcapng")
	}
	if filepath.Dir(d.dir) == d.above {
		return
	}
	for _, name := range comparedAlgorithms { // subdirectories of a comparison
		sub := demo{dir: d.path(name), above: d.dir}
		if info, err := os.Lstat(sub.dir); err == nil && info.IsDir() {
			sub.clear()
			d.remove(name) // fails if the directory contains other files
		}
	}
}

// removeFiles removes the copies of the file, unless the user wants them or they differ. After a
// failure it keeps the partly received file, because the receiver's error names that file. After
// Ctrl-C it removes the partly received file, too.
func (d *demo) removeFiles(ctx context.Context, differ bool) {
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
		_ = os.Remove(d.path(name)) // the file may not exist
	}
}

func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
