package netctl

import (
	"errors"
	"io/fs"
	"os"
)

// drafted is a file that is first written under a temporary name: a full disk changes nothing.
type drafted struct {
	path string
	kept bool // the new file is in place
	was  bool // the old file has been saved
}

// draft writes a file under a temporary name in the same directory, completely or not at all.
func draft(path string, text []byte) (*drafted, error) {
	d := &drafted{path: path}
	if err := os.WriteFile(d.newPath(), text, 0o600); err != nil {
		d.discard()
		return nil, err
	}
	return d, nil
}

func (d *drafted) newPath() string { return d.path + ".new" }
func (d *drafted) oldPath() string { return d.path + ".old" }

func (d *drafted) keep() error {
	err := os.Rename(d.newPath(), d.path)
	d.kept = err == nil
	return err
}

// try moves the file into place and saves the old one for undo.
func (d *drafted) try() error {
	err := os.Rename(d.path, d.oldPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.was = err == nil
	return d.keep()
}

// undo restores the old file. It needs no free disk space.
func (d *drafted) undo() {
	switch {
	case d.was:
		_ = os.Rename(d.oldPath(), d.path) // restores the file of a node that has not changed
	case d.kept:
		_ = os.Remove(d.path)
	}
	d.discard()
}

func (d *drafted) discard() {
	if !d.kept {
		_ = os.Remove(d.newPath())
	}
	if d.was {
		_ = os.Remove(d.oldPath())
	}
}

// drafts are files in the network's own directory.
type drafts []*drafted

func draftFiles(nodes []Member) (list drafts, err error) {
	for _, m := range nodes {
		if m.Text == nil {
			continue
		}
		d, err := draft(m.File, m.Text)
		if err != nil {
			list.discard()
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// try moves all files into place, or none of them.
func (f drafts) try() error {
	for _, d := range f {
		if err := d.try(); err != nil {
			f.undo()
			return err
		}
	}
	return nil
}

func (f drafts) undo() {
	for _, d := range f {
		d.undo()
	}
}

func (f drafts) discard() {
	for _, d := range f {
		d.discard()
	}
}
