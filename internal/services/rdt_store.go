package services

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tidepool-net/tidepool/internal/files"
)

type objectStore struct {
	*files.Folder

	where *files.Folder
	made  string // path of the directory, if openObjectStore created it
}

// openObjectStore opens a directory, and creates it if it does not exist. It does not create
// parents, because a mistyped path must not leave directories. If something else has this name, it
// returns an error.
func openObjectStore(where *files.Folder, dir string) (*objectStore, error) {
	s := &objectStore{where: where}
	info, err := where.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return nil, &os.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
	case os.IsNotExist(err):
		if err := where.Mkdir(dir, 0o755); err != nil {
			if parent := filepath.Dir(filepath.Clean(dir)); os.IsNotExist(err) {
				return nil, fmt.Errorf("%w: create %s first", err, parent)
			}
			return nil, err
		}
		s.made = dir
	}
	if s.Folder, err = where.Sub(dir); err != nil {
		s.sweep()
		return nil, err
	}
	return s, nil
}

// close closes the directory, and removes it if openObjectStore created it and it is empty.
func (s *objectStore) close() {
	_ = s.Close()
	s.sweep()
}

// sweep removes the directory if openObjectStore created it and it is empty.
func (s *objectStore) sweep() {
	if s.made != "" {
		_ = s.where.Remove(s.made) // fails if the directory contains objects
	}
}
