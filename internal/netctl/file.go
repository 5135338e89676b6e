package netctl

import (
	"errors"
	"io/fs"
	"os"
)

// drafted is a file that is written beside its place: a full disk is met before anything changes.
type drafted struct {
	path string
	kept bool // it is in its place
	was  bool // what was there before is kept beside it
}

// draft writes a file beside its place, whole or not at all.
func draft(path string, text []byte) (*drafted, error) {
	d := &drafted{path: path}
	if err := os.WriteFile(d.fresh(), text, 0o600); err != nil {
		d.discard()
		return nil, err
	}
	return d, nil
}

func (d *drafted) fresh() string { return d.path + ".new" }
func (d *drafted) old() string   { return d.path + ".old" }

// keep puts the file in its place at once.
func (d *drafted) keep() error {
	err := os.Rename(d.fresh(), d.path)
	d.kept = err == nil
	return err
}

// try puts the file in its place, and what was there before aside for undo.
func (d *drafted) try() error {
	err := os.Rename(d.path, d.old())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.was = err == nil
	return d.keep()
}

// undo brings back what was there before a try. It needs no room on the disk.
func (d *drafted) undo() {
	switch {
	case d.was:
		_ = os.Rename(d.old(), d.path) // the file of a node that runs as it was
	case d.kept:
		_ = os.Remove(d.path)
	}
	d.discard()
}

// discard removes what is not in its place.
func (d *drafted) discard() {
	if !d.kept {
		_ = os.Remove(d.fresh())
	}
	if d.was {
		_ = os.Remove(d.old())
	}
}

// drafts are the files that are the network's own.
type drafts []*drafted

// draftFiles writes those of nodes beside their places, all or none.
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

// try puts all in their places, or none.
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
