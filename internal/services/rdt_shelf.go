package services

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tidepool-net/tidepool/internal/files"
)

// shelf is the folder in which objects are stored.
type shelf struct {
	*files.Folder

	where *files.Folder
	made  string // the folder, if it was made for them
}

// openShelf opens a folder, and makes it if it is not there: it alone, for a word that was
// mistyped is to make no path. What is there and no folder is an error, and left alone.
func openShelf(where *files.Folder, dir string) (*shelf, error) {
	s := &shelf{where: where}
	if err := where.Check(dir); err != nil {
		return nil, err
	}
	info, err := where.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return nil, &os.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
	case os.IsNotExist(err):
		if err := where.Mkdir(dir, 0o755); err != nil {
			if parent := filepath.Dir(filepath.Clean(dir)); os.IsNotExist(err) {
				return nil, fmt.Errorf("%w: only %s would be made, not %s", err,
					filepath.Base(dir), parent)
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

// close closes the folder. One that was made and has nothing in it is not wanted.
func (s *shelf) close() {
	_ = s.Close()
	s.sweep()
}

// sweep removes what was made for nothing.
func (s *shelf) sweep() {
	if s.made != "" {
		_ = s.where.Remove(s.made) // of one with objects in it the system says no
	}
}
