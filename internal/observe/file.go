package observe

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/files"
)

// captureFile writes a capture to a file. If the size is limited, it writes several files in turn.
type captureFile struct {
	folder  *files.Folder
	path    string
	limit   int64 // maximum size of a file in bytes; 0: no limit
	keep    int   // number of files to keep; 0: all
	replace bool  // overwrite existing captures
	c       *capturing

	file  *os.File
	w     *capture.Writer
	size  int64 // bytes written
	whole int64 // bytes up to the end of the last complete packet
	begun int
}

// Write implements io.Writer for the capture.Writer.
func (f *captureFile) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	f.size += int64(n)
	return n, err
}

// name returns the name of the n-th file: x.pcapng, x-1.pcapng, x-2.pcapng.
func (f *captureFile) name(number int) string {
	if number == 0 {
		return f.path
	}
	end := filepath.Ext(f.path)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(f.path, end), number, end)
}

func (f *captureFile) open() (err error) {
	name := f.name(f.begun)
	if f.file, err = f.create(name); err != nil {
		return err
	}
	f.size, f.whole = 0, 0
	f.begun++
	f.c.done.File, f.c.done.Files = name, f.begun
	if f.w, err = capture.New(f, f.c.faces, f.c.o.Snaplen); err == nil {
		err = f.flush()
	}
	if err != nil {
		return errors.Join(err, f.file.Close())
	}
	if old := f.begun - 1 - f.keep; f.keep > 0 && old >= 0 {
		_ = f.removeRegular(f.name(old)) // leaves anything but a regular file
	}
	return nil
}

// create creates a file, or empties an existing capture with this name.
func (f *captureFile) create(name string) (*os.File, error) {
	file, err := f.folder.Create(name, 0o666)
	if !errors.Is(err, fs.ErrExist) {
		return file, err
	}
	if !f.replace {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrExist)
	}
	if file, err = f.folder.Edit(name, 0o666); err != nil {
		return nil, err
	}
	if err = pcapng(file); err == nil {
		err = file.Truncate(0)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return file, nil
}

// pcapng returns an error if the file must not be replaced because it is not a capture.
func pcapng(file *os.File) error {
	var begin [4]byte
	n, err := io.ReadFull(file, begin[:])
	if n > 0 && begin != [4]byte{0x0a, 0x0d, 0x0d, 0x0a} {
		return fmt.Errorf("%w and is not a pcapng file: choose another name", fs.ErrExist)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// flush writes buffered packets. If the disk is full, it truncates the file after the last complete
// packet, so that the file stays readable.
func (f *captureFile) flush() error {
	err := f.w.Flush()
	if err == nil {
		f.whole = f.size
		return nil
	}
	// The caller reports the write error. An error of the truncation would add no information.
	_ = f.file.Truncate(f.whole)
	return fmt.Errorf("%s: %w", f.file.Name(), cause(err))
}

// cause returns the system's error without the path, which the caller adds.
func cause(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

func (f *captureFile) write(p *Batch) error {
	kept := f.c.done
	for i := range p.List {
		s := &p.List[i]
		if f.limit > 0 {
			if err := f.rotate(p, s); err != nil {
				return err
			}
		}
		if err := f.c.packet(f.w, p, s); err != nil {
			_ = f.flush() // truncates the file; the caller reports its own error
			f.c.done.Packets, f.c.done.Bytes = kept.Packets, kept.Bytes
			return fmt.Errorf("%s: %w", f.file.Name(), cause(err))
		}
	}
	if err := f.flush(); err != nil {
		f.c.done.Packets, f.c.done.Bytes = kept.Packets, kept.Bytes
		return err
	}
	return nil
}

// rotate starts another file if the next packet does not fit in the current one.
func (f *captureFile) rotate(p *Batch, next *Packet) error {
	const block = 200 // upper bound of the size of a packet's header and comment
	if f.size+int64(f.w.Buffered()+len(p.Bytes(next)))+block <= f.limit {
		return nil
	}
	if err := f.finish(); err != nil {
		return err
	}
	return f.open()
}

// finish writes the statistics and closes the file.
func (f *captureFile) finish() error {
	if f.file == nil {
		return nil
	}
	err := f.c.statistics(f.w)
	if err == nil {
		err = f.flush()
	} else {
		err = nil // the error was reported when it occurred
	}
	if closed := f.file.Close(); closed != nil {
		err = errors.Join(err, fmt.Errorf("%s: %w", f.file.Name(), cause(closed)))
	}
	f.file = nil
	return err
}

func (f *captureFile) abandon() error {
	return errors.Join(f.file.Close(), f.removeRegular(f.path))
}

// removeRegular deletes a file only if it is a regular file.
func (f *captureFile) removeRegular(name string) error {
	info, err := f.folder.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	return f.folder.Remove(name)
}
