package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
)

// Maximum sizes of files that are read whole, in bytes.
const (
	MaxText = 16 << 20 // for files that people write: nodes, plans, experiments, scripts
	MaxData = 1 << 30  // for files that programs write: results, traces
)

// streams matches the names of the streams that a process is started with: its standard input, and
// the pipes of a shell's <(COMMAND). The null device is always empty.
var streams = regexp.MustCompile(`^/dev/(stdin|null|fd/[0-9]+)$|^/proc/self/fd/[0-9]+$`)

// Input opens a file that a command reads: a regular file, or a stream that the process was started
// with, by its name below /dev. Opening does not block. The error is ErrNotRegular for other pipes,
// and for devices and directories.
func Input(name string) (*os.File, error) { return Machine().Input(name) }

// Input opens a file of the folder like the function Input.
func (f *Folder) Input(name string) (*os.File, error) {
	file, _, err := f.Read(name)
	if !errors.Is(err, ErrNotRegular) || !streams.MatchString(name) {
		return file, err
	}
	return os.OpenFile(name, os.O_RDONLY|nonblock, 0)
}

// Text reads the whole file that Input opens. It fails if the file has more than most bytes.
func Text(name string, most int64) ([]byte, error) {
	file, err := Input(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return All(name, file, most)
}

// All reads r. It fails if r has more than most bytes. The error contains name.
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

// Overwrite replaces the contents of a regular file, or creates it. It follows no symbolic link.
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
