// Package files opens the files that operators name. A Folder resolves the names: on the whole
// machine for the user who started the process, or below one directory for clients of the API. It
// opens only regular files and directories, because opening a pipe or a device may block for ever.
package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Errors of this package. They are wrapped with the file's name.
var (
	// ErrOutside means that a name is outside the directory.
	ErrOutside = errors.New("outside of the folder")
	// ErrNotRegular means that the file is a pipe, a device or a directory, or a symbolic link
	// where links are not followed.
	ErrNotRegular = errors.New("not a regular file")
)

// names are the operations that a Folder needs. os.Root has them.
type names interface {
	opener
	editor
}

type opener interface {
	Lstat(name string) (fs.FileInfo, error)
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	OpenRoot(name string) (*os.Root, error)
	Stat(name string) (fs.FileInfo, error)
}

type editor interface {
	Link(old, to string) error
	Mkdir(name string, perm fs.FileMode) error
	MkdirAll(name string, perm fs.FileMode) error
	Remove(name string) error
	Rename(old, to string) error
}

// Folder resolves names. It implements fs.FS. Several goroutines may use it.
type Folder struct {
	names

	root *os.Root // root of the folder; nil: the whole machine
	path string   // path of the root, without symbolic links

	elsewhere bool
}

// Machine returns the Folder of the whole machine.
func Machine() *Folder { return &Folder{names: machine{}} }

// OpenFolder returns the Folder of a directory. Neither a name nor a symbolic link can leave it.
func OpenFolder(dir string) (*Folder, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Folder{names: root, root: root, path: path}, nil
}

// Path returns the directory of a confined Folder, absolute and without symbolic links; empty: the
// whole machine.
func (f *Folder) Path() string { return f.path }

// Close closes the root directory.
func (f *Folder) Close() error {
	if f.root == nil {
		return nil
	}
	return f.root.Close()
}

type key struct{}

// In returns a context whose requests name files in f.
func In(ctx context.Context, f *Folder) context.Context { return context.WithValue(ctx, key{}, f) }

// Of returns the Folder of a request's context; the default is the whole machine.
func Of(ctx context.Context) *Folder {
	if f, ok := ctx.Value(key{}).(*Folder); ok {
		return f
	}
	return Machine()
}

// maxName is the maximum length of a name in bytes, as in most systems.
const maxName = 4096

// Elsewhere returns the Folder of requests whose files another process opens. It opens no files.
func Elsewhere() *Folder { return &Folder{elsewhere: true} }

// Confined reports whether names are limited to one directory.
func (f *Folder) Confined() bool { return f.root != nil || f.elsewhere }

// CheckName returns an error if a name cannot be the name of a file below a directory.
func CheckName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("file name with %d bytes: %w", len(name), syscall.ENAMETOOLONG)
	}
	if strings.ContainsRune(name, 0) {
		return fmt.Errorf("%q: %w: a file name must not contain a zero byte", name, fs.ErrInvalid)
	}
	if !filepath.IsLocal(name) {
		return fmt.Errorf("%q: %w: file names must be relative to the node's folder, without ..; "+
			"--files DIR chooses the folder", name, ErrOutside)
	}
	return nil
}

// Check returns an error if a name is invalid in the folder.
func (f *Folder) Check(name string) error {
	switch {
	case f.elsewhere:
		return fmt.Errorf("%q: %w: the node cannot open files there", name, ErrOutside)
	case f.root != nil || len(name) > maxName:
		return CheckName(name)
	}
	return nil
}

// outside clarifies errors: it explains os.Root's error about a symbolic link, names the user of
// the process if permission is missing, and replaces the names of system calls by "open".
func outside(err error) error {
	e, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return err
	}
	why := e.Err
	id := strconv.Itoa(os.Geteuid())
	switch {
	case strings.Contains(why.Error(), "path escapes"):
		why = fmt.Errorf("%w: the path has a symbolic link that leads out", ErrOutside)
	case errors.Is(why, fs.ErrPermission) && id != "-1":
		if u, err := user.LookupId(id); err == nil {
			id = u.Username
		}
		why = fmt.Errorf("%w for this process, which runs as user %s", why, id)
	}
	return &fs.PathError{Op: "open", Path: e.Path, Err: why}
}

func notRegular(name string, info fs.FileInfo) error {
	what := map[fs.FileMode]string{
		fs.ModeDir: "a folder", fs.ModeNamedPipe: "a pipe", fs.ModeSocket: "a socket",
		fs.ModeSymlink: "a symbolic link",
	}[info.Mode().Type()]
	err := fmt.Errorf("%w: it is %s", ErrNotRegular, cmp.Or(what, "a device"))
	return &fs.PathError{Op: "open", Path: name, Err: err}
}

// Stat describes a file, and follows symbolic links that stay in the folder.
func (f *Folder) Stat(name string) (fs.FileInfo, error) {
	if err := f.Check(name); err != nil {
		return nil, err
	}
	info, err := f.names.Stat(name)
	return info, outside(err)
}

// Open opens a regular file or a directory for reading. It implements fs.FS.
func (f *Folder) Open(name string) (fs.File, error) {
	info, err := f.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, notRegular(name, info)
	}
	file, err := f.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, outside(err)
	}
	// After Stat, another file may have taken the name.
	if info, err = file.Stat(); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = notRegular(name, info)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// Read opens a regular file for reading.
func (f *Folder) Read(name string) (*os.File, fs.FileInfo, error) {
	opened, err := f.Open(name)
	if err != nil {
		return nil, nil, err
	}
	file, _ := opened.(*os.File) // Open returns no other type
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(name, info)
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// Create creates a file for reading and writing. It fails with fs.ErrExist if a regular file has
// that name, and with ErrNotRegular if something else has it.
func (f *Folder) Create(name string, perm fs.FileMode) (*os.File, error) {
	if err := f.Check(name); err != nil {
		return nil, err
	}
	file, err := f.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	if !errors.Is(err, fs.ErrExist) {
		return file, outside(err)
	}
	if info, e := f.Lstat(name); e == nil && !info.Mode().IsRegular() {
		return nil, notRegular(name, info)
	}
	return nil, outside(err)
}

// Edit opens a regular file for reading and writing with its contents, or creates it. It follows no
// symbolic link.
func (f *Folder) Edit(name string, perm fs.FileMode) (*os.File, error) {
	file, err := f.Create(name, perm)
	if !errors.Is(err, fs.ErrExist) {
		return file, err
	}
	before, err := f.Lstat(name)
	if err != nil {
		return nil, outside(err)
	}
	if !before.Mode().IsRegular() {
		return nil, notRegular(name, before)
	}
	if file, err = f.OpenFile(name, os.O_RDWR|nonblock, 0); err != nil {
		return nil, outside(err)
	}
	if info, err := file.Stat(); err != nil || !os.SameFile(before, info) {
		_ = file.Close() // another file or a symbolic link replaced it
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	return file, nil
}

// Publish gives a finished file its name. An existing file stays, with fs.ErrExist, unless replace
// is set. On return the file and its new name are on disk.
func (f *Folder) Publish(file *os.File, part, name string, replace bool) error {
	if err := f.Check(name); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	rename := f.renameNew
	if replace {
		rename = f.Rename
	}
	err := rename(part, name)
	if errors.Is(err, fs.ErrExist) {
		return &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	if err != nil {
		return outside(err)
	}
	return f.syncFolder(filepath.Dir(name))
}

// renameNew renames a file without replacing another.
func (f *Folder) renameNew(old, to string) error {
	err := f.Link(old, to)
	if err == nil {
		return f.Remove(old)
	}
	if _, there := f.Lstat(to); errors.Is(there, fs.ErrNotExist) {
		return f.Rename(old, to) // the file system has no hard links
	}
	return err
}

// syncFolder writes a directory's names to disk if the system supports it.
func (f *Folder) syncFolder(dir string) error {
	d, err := f.OpenFile(dir, os.O_RDONLY, 0)
	if err != nil {
		return outside(err)
	}
	_ = d.Sync() // ignores the error, because some file systems do not support Sync
	return d.Close()
}

// Sub returns a subdirectory of the folder.
func (f *Folder) Sub(name string) (*Folder, error) {
	if info, err := f.Stat(name); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	root, err := f.OpenRoot(name)
	if err != nil {
		return nil, outside(err)
	}
	return &Folder{names: root, root: root, path: filepath.Join(f.path, name)}, nil
}

// machine resolves names on the whole machine.
type machine struct{}

func (machine) Link(old, to string) error                    { return os.Link(old, to) }
func (machine) Lstat(name string) (fs.FileInfo, error)       { return os.Lstat(name) }
func (machine) Mkdir(name string, perm fs.FileMode) error    { return os.Mkdir(name, perm) }
func (machine) MkdirAll(name string, perm fs.FileMode) error { return os.MkdirAll(name, perm) }
func (machine) OpenRoot(name string) (*os.Root, error)       { return os.OpenRoot(name) }
func (machine) Remove(name string) error                     { return os.Remove(name) }
func (machine) Rename(old, to string) error                  { return os.Rename(old, to) }
func (machine) Stat(name string) (fs.FileInfo, error)        { return os.Stat(name) }

func (machine) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}
