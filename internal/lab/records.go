package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

func recordName(cells, cell int) string {
	return fmt.Sprintf("%0*d", len(fmt.Sprint(cells-1)), cell)
}

func hasRecord(dir, name string) bool {
	_, err := os.Stat(result.RecordPath(dir, name))
	return err == nil
}

// Record reads the record of a cell's first trial. The error is os.ErrNotExist if the cell has no
// record.
func (r *Results) Record(cell int) (*result.Record, error) {
	return result.ReadRecord(r.Dir, recordName(len(r.Cells), cell))
}

func writeXplots(dir, name string, r *result.Record) error {
	for i := range r.Flows {
		f := &r.Flows[i]
		text := result.Xplot(r.Title+", "+f.Name+" (time sequence graph)", f)
		if text == nil {
			continue
		}
		if err := result.WriteFile(result.XplotPath(dir, name, i), text); err != nil {
			return err
		}
	}
	return nil
}

func writeLogs(dir, name string, r *result.Record) error {
	for i := range r.Links {
		l := &r.Links[i]
		h := result.LogHeader{
			Link: map[string]string{"down": "Downlink", "up": "Uplink"}[l.Name], Queue: l.Queue,
			Trace: fmt.Sprintf("%g Mbit/s", l.Rate/1e6), Command: "node lab: " + r.Title,
		}
		for _, note := range r.Notes {
			if strings.HasPrefix(note, l.Name+": ") {
				h.Note = note
			}
		}
		path := result.LinkPath(dir, name, l.Name, ".log")
		err := result.Create(path, func(w io.Writer) error { return l.WriteLog(w, h) })
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	capturesFolder = "captures"
	// By default, a run is captured only if all its flows together send at most smallBytes.
	smallBytes = 2 << 20
)

// captures are the capture files of one run. Each file gets its final name when it is complete.
type captures struct {
	dir, prefix string
	files       map[string]*os.File
	err         error
}

func capturePath(dir, record string, flow int, receiver bool) string {
	end := "sender"
	if receiver {
		end = "receiver"
	}
	return filepath.Join(dir, capturesFolder, fmt.Sprintf("%s-%d-%s.pcapng", record, flow, end))
}

// open opens the capture of one end of a flow. After an error, it returns nil and sets err.
func (c *captures) open(flow int, receiver bool) io.Writer {
	path := capturePath(c.dir, c.prefix, flow, receiver)
	f, err := result.CreateTemp(path)
	if err != nil {
		c.err = errors.Join(c.err, err)
		return nil
	}
	c.files[path] = f
	return f
}

// close renames the files, or removes them if the run failed.
func (c *captures) close(whole bool) error {
	err := c.err
	for path, f := range c.files {
		if whole && err == nil {
			err = result.Commit(f, path)
		} else {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}
	return err
}

// captured reports whether to capture a cell's first trial: on request, or if it is recorded and
// its flows send little data.
func (o *Options) captured(cell *plan.Cell) bool {
	if o.Pcap || cell.Index >= o.Records {
		return o.Pcap
	}
	var total uint64
	for i := range cell.Flows {
		a := &cell.Flows[i].App
		if a.Size == 0 || a.Size > smallBytes {
			return false
		}
		total += a.Wanted()
	}
	return total <= smallBytes
}

func hasCaptures(dir, record string, flows int) bool {
	for flow := range flows {
		if _, err := os.Stat(capturePath(dir, record, flow, false)); err != nil {
			return false
		}
	}
	return true
}
