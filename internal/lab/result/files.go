package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tidepool-net/tidepool/internal/files"
)

// These are the folders of a record's files in a directory of results.
const (
	RecordsFolder = "records"
	FlowsFolder   = "flows"
	LinksFolder   = "links"
)

// RecordPath returns the path of a record's main file. WriteRecord writes this file last, so a
// record is complete if the file exists.
func RecordPath(dir, name string) string {
	return filepath.Join(dir, RecordsFolder, name+".json")
}

// FlowPath returns the path of a file of a record's flow. The file of its samples has no suffix.
func FlowPath(dir, record string, flow int, suffix string) string {
	return filepath.Join(dir, FlowsFolder, fmt.Sprintf("%s-%d%s.csv", record, flow, suffix))
}

// XplotPath returns the path of the time-sequence graph of a record's flow.
func XplotPath(dir, record string, flow int) string {
	return filepath.Join(dir, FlowsFolder, fmt.Sprintf("%s-%d.xpl", record, flow))
}

// LinkPath returns the path of the file of one direction of the bottleneck.
func LinkPath(dir, record, link, ext string) string {
	return filepath.Join(dir, LinksFolder, record+"-"+link+ext)
}

// WriteRecord writes a record's files into a directory of results.
func WriteRecord(dir, name string, r *Record) error {
	head := *r
	head.Flows = make([]FlowRecord, len(r.Flows))
	head.Links = make([]LinkRecord, len(r.Links))
	for i := range r.Flows {
		f := &r.Flows[i]
		for suffix, text := range map[string][]byte{
			"":          FormatRows(f.Samples, f.Own...),
			"-segments": FormatRows(f.Segments),
			"-progress": FormatRows(f.Progress),
		} {
			if err := WriteFile(FlowPath(dir, name, i, suffix), text); err != nil {
				return err
			}
		}
		head.Flows[i] = *f
		head.Flows[i].Samples, head.Flows[i].Segments, head.Flows[i].Progress = nil, nil, nil
	}
	for i := range r.Links {
		l := &r.Links[i]
		path := LinkPath(dir, name, l.Name, ".csv")
		if err := WriteFile(path, FormatRows(l.Events)); err != nil {
			return err
		}
		head.Links[i] = *l
		head.Links[i].Events = nil
	}
	text, err := json.MarshalIndent(&head, "", "  ")
	if err != nil {
		panic("BUG: result: a record is no JSON: " + err.Error())
	}
	return WriteFile(RecordPath(dir, name), append(text, '\n'))
}

// ReadRecord reads a record from a directory of results. The error is os.ErrNotExist if there
// is no such record.
func ReadRecord(dir, name string) (*Record, error) {
	path := RecordPath(dir, name)
	text, err := files.Text(path, files.MaxData)
	if err != nil {
		return nil, err
	}
	r := new(Record)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrFile, err)
	}
	var errs []error
	for i := range r.Flows {
		f := &r.Flows[i]
		f.Samples, err = readTable[Sample](FlowPath(dir, name, i, ""), f.Own...)
		errs = append(errs, err)
		f.Segments, err = readTable[Segment](FlowPath(dir, name, i, "-segments"))
		errs = append(errs, err)
		f.Progress, err = readTable[Point](FlowPath(dir, name, i, "-progress"))
		errs = append(errs, err)
	}
	for i := range r.Links {
		l := &r.Links[i]
		if l.Name != filepath.Base(l.Name) {
			return nil, fmt.Errorf("%s: %w: unknown link %q", path, ErrFile, l.Name)
		}
		l.Events, err = readTable[LinkEvent](LinkPath(dir, name, l.Name, ".csv"))
		errs = append(errs, err)
	}
	return r, errors.Join(errs...)
}

func readTable[T Row[T]](path string, own ...string) ([]T, error) {
	text, err := files.Text(path, files.MaxData)
	if err != nil {
		return nil, err
	}
	var row T
	return parseTable(path, row.columns(own), text)
}
