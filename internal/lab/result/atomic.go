package result

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// temporary begins the names of files that are not whole yet.
const temporary = ".part-"

// WriteFile writes a file so that nobody ever sees a part of it: under another name first, then
// renamed. Folders that are missing are made.
func WriteFile(path string, text []byte) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, temporary+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	// What CreateTemp made is its owner's alone; results are for everybody, as other files are.
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Sweep removes from a folder what a process that was killed had not finished writing. Whoever
// calls it knows that nobody else is writing there.
func Sweep(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), temporary) {
			err = errors.Join(err, os.Remove(filepath.Join(folder, e.Name())))
		}
	}
	return err
}
