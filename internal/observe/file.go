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

// captureFile is where a capture is written, a file after another if they are limited.
type captureFile struct {
	folder  *files.Folder
	path    string
	limit   int64 // bytes of a file; 0: none
	keep    int   // files; 0: all
	replace bool  // captures that are there
	c       *capturing

	file  *os.File
	w     *capture.Writer
	size  int64 // bytes written
	whole int64 // of them, those up to the end of a packet
	begun int
}

// Write implements io.Writer for what is beneath the capture's writer.
func (f *captureFile) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	f.size += int64(n)
	return n, err
}

// name is that of the number-th file: x.pcapng, x-1.pcapng, x-2.pcapng.
func (f *captureFile) name(number int) string {
	if number == 0 {
		return f.path
	}
	end := filepath.Ext(f.path)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(f.path, end), number, end)
}

// open begins the next file.
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
		_ = f.removeRegular(f.name(old)) // who has moved it away meanwhile keeps it
	}
	return nil
}

// create makes a file, or empties a capture that has its name.
func (f *captureFile) create(name string) (*os.File, error) {
	file, err := f.folder.Create(name, 0o666)
	if !errors.Is(err, fs.ErrExist) {
		return file, err
	}
	if !f.replace {
		return nil, fmt.Errorf("%s: %w: --force replaces a capture (overwrite in the API)", name,
			fs.ErrExist)
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

// pcapng reports why a file is not replaced by a capture: it holds something else.
func pcapng(file *os.File) error {
	var begin [4]byte
	n, err := io.ReadFull(file, begin[:])
	if n > 0 && begin != [4]byte{0x0a, 0x0d, 0x0d, 0x0a} {
		return fmt.Errorf("%w, and not a pcapng file: choose another name", fs.ErrExist)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// flush writes what waits. When the disk takes no more, the file is cut behind the last packet
// that is whole, so that it can be read.
func (f *captureFile) flush() error {
	err := f.w.Flush()
	if err == nil {
		f.whole = f.size
		return nil
	}
	// What the system said is told; that it does not cut either changes nothing.
	_ = f.file.Truncate(f.whole)
	return fmt.Errorf("%s: %w", f.file.Name(), cause(err))
}

// cause is what the system said of a file, without the names that are told anyway.
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
			if err := f.turnOver(p, s); err != nil {
				return err
			}
		}
		if err := f.c.packet(f.w, p, s); err != nil {
			_ = f.flush() // cuts the file, and says what we know
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

// turnOver begins another file if the next packet is too long for this one.
func (f *captureFile) turnOver(p *Batch, next *Packet) error {
	const block = 200 // what a packet's block has beside it, at most: a header and a comment
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
		err = nil // it was told when it came
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

// removeRegular deletes a file, but nothing else that has its name now.
func (f *captureFile) removeRegular(name string) error {
	info, err := f.folder.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	return f.folder.Remove(name)
}
