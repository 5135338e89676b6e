package result

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// temporary is the prefix of the names of incomplete files.
const temporary = ".part-"

// WriteFile replaces a file atomically: it writes a temporary file and renames it. It creates
// missing folders.
func WriteFile(path string, text []byte) error {
	return Create(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// Create is like WriteFile, but fill writes the text in parts.
func Create(path string, fill func(w io.Writer) error) error {
	f, err := CreateTemp(path)
	if err != nil {
		return err
	}
	if err := fill(f); err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return Commit(f, path)
}

// CreateTemp opens a temporary file. Commit gives the file its name. CreateTemp creates missing
// folders.
func CreateTemp(path string) (*os.File, error) {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	return os.CreateTemp(folder, temporary+filepath.Base(path)+"-")
}

// Commit closes a file from CreateTemp and gives it its name. If Commit fails, it leaves no file.
func Commit(f *os.File, path string) error {
	// CreateTemp makes files private, but results are readable by all, like other files.
	err := errors.Join(f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Sweep removes temporary files that are older than age, because the processes that wrote them were
// killed. It uses the clock of the file system, because processes on other machines may share the
// files.
func Sweep(folder string, age time.Duration) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		return !strings.HasPrefix(e.Name(), temporary)
	})
	if err != nil || len(entries) == 0 {
		return err
	}
	f, err := CreateTemp(filepath.Join(folder, "now"))
	if err != nil {
		return err
	}
	now, err := f.Stat()
	if err = errors.Join(err, f.Close(), os.Remove(f.Name())); err != nil {
		return err
	}
	for _, e := range entries {
		info, statErr := e.Info()
		if statErr != nil || now.ModTime().Sub(info.ModTime()) < age {
			continue // the file is gone or in use
		}
		err = errors.Join(err, os.Remove(filepath.Join(folder, e.Name())))
	}
	return err
}
