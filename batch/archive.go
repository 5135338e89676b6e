package batch

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Results travel as lines of base64 because the log of a pod is text, and in pieces because the
// cluster rotates logs at 10 MiB. The last line of a piece has its number, the number of pieces and
// the SHA-256 of the whole archive. A piece without that line is incomplete.
const (
	pieceSize   = 6 << 20
	archiveLine = 6 << 10 // below the 16 KiB at which container runtimes split a line
	archiveEnd  = "tidepool-results"
)

// pieces is an io.Writer for a whole archive. It prints only one piece of the archive.
type pieces struct {
	out   *bufio.Writer
	piece int64
	size  int64
	sum   hash.Hash
	line  []byte
	err   error
}

func (p *pieces) Write(text []byte) (int, error) {
	_, _ = p.sum.Write(text)
	for _, b := range text {
		if p.size/pieceSize == p.piece {
			if p.line = append(p.line, b); len(p.line) == archiveLine {
				p.flush()
			}
		}
		p.size++
	}
	return len(text), p.err
}

func (p *pieces) flush() {
	if len(p.line) > 0 && p.err == nil {
		_, p.err = fmt.Fprintln(p.out, base64.StdEncoding.EncodeToString(p.line))
	}
	p.line = p.line[:0]
}

// Pack writes piece n, counted from 0, of an archive of a folder of results. It leaves out files
// that are still being written. A missing folder counts as empty.
func Pack(w io.Writer, dir string, piece int) error {
	p := &pieces{out: bufio.NewWriter(w), piece: int64(piece), sum: sha256.New()}
	z := gzip.NewWriter(p)
	t := tar.NewWriter(z)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(dir, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || relErr != nil:
			return errors.Join(err, relErr)
		case name != "." && strings.HasPrefix(e.Name(), ".") || name == folder:
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !e.Type().IsRegular():
			return nil
		}
		text, err := files.Text(path, files.MaxData)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the file was merged in the meantime
		}
		if err == nil {
			err = t.WriteHeader(&tar.Header{
				Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(text)),
			})
		}
		if err == nil {
			_, err = t.Write(text)
		}
		return err
	})
	if err = errors.Join(err, t.Close(), z.Close()); err != nil {
		return err
	}
	p.flush()
	of := max(1, (p.size+pieceSize-1)/pieceSize)
	_, err = fmt.Fprintf(p.out, "%s %d %d %x\n", archiveEnd, piece, of, p.sum.Sum(nil))
	return errors.Join(err, p.err, p.out.Flush())
}

// errCut means that a piece is incomplete or belongs to another state of the results.
var errCut = errors.New("the transfer of the results was interrupted, or the results changed " +
	"during it: repeat the command")

type archive struct {
	text []byte
	next int // number of the next piece
	of   int // number of pieces; 0: not known yet
	sum  string
}

func (a *archive) whole() bool { return a.of > 0 && a.next == a.of }

func (a *archive) add(log string) error {
	body, last, _ := strings.Cut(log, archiveEnd+" ")
	var piece, of int
	var sum string
	n, err := fmt.Sscanf(last, "%d %d %64s\n", &piece, &of, &sum)
	text, decodeErr := base64.StdEncoding.DecodeString(strings.ReplaceAll(body, "\n", ""))
	if n != 3 || err != nil || decodeErr != nil || piece != a.next || of <= piece ||
		piece > 0 && (of != a.of || sum != a.sum) {
		return errCut
	}
	a.text = append(a.text, text...)
	a.next, a.of, a.sum = piece+1, of, sum
	if got := sha256.Sum256(a.text); a.whole() && hex.EncodeToString(got[:]) != sum {
		return errCut
	}
	return nil
}

// unpack writes the files of a whole archive into a folder of results. The files that describe the
// experiment stay if they exist; runs that were merged elsewhere become one part.
func (a *archive) unpack(dir string) error {
	z, err := gzip.NewReader(bytes.NewReader(a.text))
	if err != nil {
		return err
	}
	list := map[string][]byte{}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name := filepath.FromSlash(h.Name)
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(name) {
			return fmt.Errorf("invalid file in the archive of results: %q", h.Name)
		}
		if list[name], err = files.All(h.Name, t, files.MaxData); err != nil {
			return err
		}
	}
	const manifest = "run.json"
	if err := sameRun(filepath.Join(dir, manifest), list[manifest]); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(dir, manifest)); err != nil && list[manifest] == nil {
		return fmt.Errorf("the volume has no results in %s: the folder must have the same name as "+
			"in `node lab submit`", filepath.Base(dir))
	}
	for name, text := range list {
		path := filepath.Join(dir, name)
		switch {
		case name == "trials.csv":
			path = filepath.Join(dir, "cells", name)
		case filepath.Dir(name) != ".":
		default:
			if _, err := os.Lstat(path); err == nil {
				continue
			}
		}
		if err := result.WriteFile(path, text); err != nil {
			return err
		}
	}
	return nil
}

// sameRun returns nil if the results on the volume are of the folder's run, and otherwise says why
// not.
func sameRun(path string, theirs []byte) error {
	mine, err := files.Text(path, files.MaxData)
	if errors.Is(err, fs.ErrNotExist) || theirs == nil {
		return nil
	}
	var a, b struct{ Name, Version, Mark string }
	if err = errors.Join(err, json.Unmarshal(mine, &a), json.Unmarshal(theirs, &b)); err != nil {
		return err
	}
	if a.Mark != b.Mark {
		return fmt.Errorf("the volume has other results of the same name: %s of version %s, not "+
			"%s of version %s; choose another folder with -o", b.Name, b.Version, a.Name, a.Version)
	}
	return nil
}
