package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

const (
	capturesFolder = "captures"
	// smallBytes is how much all flows of a run may send together for it to be captured unasked.
	smallBytes = 2 << 20
)

// captures are the files that the packets of one run go into, each whole when it has its name.
type captures struct {
	dir, prefix string
	files       map[string]*os.File
	err         error
}

// capturePath is the file of a flow's sender, or of its receiver.
func capturePath(dir, record string, flow int, receiver bool) string {
	end := "sender"
	if receiver {
		end = "receiver"
	}
	return filepath.Join(dir, capturesFolder, fmt.Sprintf("%s-%d-%s.pcapng", record, flow, end))
}

// open is where the packets of one end of a flow go; nil: nowhere, and err says why.
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

// close gives the files their names, or removes them if the run came to nothing.
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

// captured reports whether a cell's first trial is captured: if that is asked for, or if all that
// its flows send is little.
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

// hasCaptures reports whether a cell's captures are there.
func hasCaptures(dir, record string, flows int) bool {
	for flow := range flows {
		if _, err := os.Stat(capturePath(dir, record, flow, false)); err != nil {
			return false
		}
	}
	return true
}
