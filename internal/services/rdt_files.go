package services

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/rdt"
)

// gathering reads files into objects. Later changes of a file do not affect its object.
type gathering struct {
	objects []rdt.Object
	bytes   int64
}

// readObjects reads files, and all files below directories.
func readObjects(ctx context.Context, paths []string) ([]rdt.Object, error) {
	g := &gathering{}
	where := files.Of(ctx)
	for _, p := range paths {
		if err := g.path(ctx, where, p); err != nil {
			return nil, err
		}
	}
	if len(g.objects) == 0 {
		return nil, fmt.Errorf("%w: no files to serve", control.ErrUsage)
	}
	return g.objects, nil
}

func (g *gathering) path(ctx context.Context, where *files.Folder, p string) error {
	info, err := where.Stat(p)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return g.folder(ctx, where, p)
	}
	return g.file(ctx, where, p, filepath.Base(p))
}

// folder reads all files below a directory. It does not follow symbolic links.
func (g *gathering) folder(ctx context.Context, where *files.Folder, p string) error {
	root, err := where.Sub(p)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return g.file(ctx, root, name, name)
	})
}

func (g *gathering) file(ctx context.Context, where *files.Folder, path, name string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !rdt.ValidName(name) {
		return fmt.Errorf("%w: %q is not a valid object name", control.ErrUsage, name)
	}
	if len(g.objects) == rdt.MaxEntries {
		return fmt.Errorf("%w: more than %d files", control.ErrTooBig, rdt.MaxEntries)
	}
	f, info, err := where.Read(path)
	if err != nil {
		return err
	}
	defer f.Close()
	tooBig := fmt.Errorf("%w: the files up to %s have more than %d bytes", control.ErrTooBig, name,
		int64(MaxBytes))
	room := MaxBytes - g.bytes
	if info.Size() > room {
		return tooBig
	}
	data, err := io.ReadAll(io.LimitReader(f, room+1))
	switch {
	case err != nil:
		return err
	case int64(len(data)) > room: // the file has grown since it was listed
		return tooBig
	}
	g.bytes += int64(len(data))
	g.objects = append(g.objects, NewObject(name, data))
	return nil
}

// store stores an object below a directory. No name or symbolic link can lead out of it.
func store(root *files.Folder, name string, data []byte, replace bool) error {
	if dir := path.Dir(name); dir != "." {
		if err := root.MkdirAll(filepath.FromSlash(dir), 0o755); err != nil {
			return err
		}
	}
	target := filepath.FromSlash(name)
	if info, err := root.Lstat(target); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: %w", name, files.ErrNotRegular)
	}
	// The temporary name must not collide with an object or a file: a directory may contain both a
	// and a.part.
	part := filepath.Join(filepath.Dir(target), partPrefix+rand.Text())
	f, err := root.Create(part, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = root.Publish(f, part, target, replace)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = root.Remove(part) // ignores the error, because the server still has the object
	}
	return err
}

// partPrefix is the prefix of temporary files.
const partPrefix = ".part-"

func resultOf(r *RDTResult, dir string, problems map[string]error) control.RDTObject {
	o := control.RDTObject{
		RDTEntry: entryOf(&r.Entry), Began: r.Began.Seconds(), Done: r.Done.Seconds(),
	}
	err := r.Err
	if err == nil {
		err = problems[r.Name]
	}
	switch {
	case err != nil:
		o.Problem = err.Error()
	case dir != "":
		o.Path = filepath.Join(dir, filepath.FromSlash(r.Name))
	}
	return o
}
