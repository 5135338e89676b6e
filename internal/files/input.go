package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"syscall"
)

// Limits of files that are read whole, in bytes.
const (
	MaxText = 16 << 20 // what people write: nodes, plans, experiments, scripts
	MaxData = 1 << 30  // what programs write: results, traces
)

// streams matches the names of what a process is started with: its standard input, and the pipes
// that a shell passes as <(COMMAND). The null device is always empty.
var streams = regexp.MustCompile(`^/dev/(stdin|null|fd/[0-9]+)$|^/proc/self/fd/[0-9]+$`)

// Input opens a file that a command reads: a regular one, or a stream that the process was started
// with, under its name below /dev. Opening does not block. The error is ErrNotRegular for other
// pipes, and for devices and folders.
func Input(name string) (*os.File, error) {
	file, _, err := Machine().Read(name)
	if !errors.Is(err, ErrNotRegular) || !streams.MatchString(name) {
		return file, err
	}
	return os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Text reads an Input whole. It fails if the file has more than so many bytes.
func Text(name string, most int64) ([]byte, error) {
	file, err := Input(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return All(name, file, most)
}

// All reads r, which has a name, to its end. It fails if r has more than so many bytes.
func All(name string, r io.Reader, most int64) ([]byte, error) {
	var b bytes.Buffer
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() <= most {
			b.Grow(int(info.Size()) + bytes.MinRead)
		}
	}
	n, err := b.ReadFrom(io.LimitReader(r, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("%s has more than %d bytes", name, most)
	}
	return b.Bytes(), err
}

// Overwrite replaces the text of a regular file, or creates the file. It follows no
// link.
func Overwrite(name string, text []byte, perm os.FileMode) error {
	file, err := Machine().Edit(name, perm)
	if err != nil {
		return err
	}
	if err = file.Truncate(0); err == nil {
		_, err = file.Write(text)
	}
	return errors.Join(err, file.Close())
}
