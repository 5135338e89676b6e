package lab

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/trace"
)

// writeXplots writes the time-sequence graphs of a record's flows for xplot.
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

// writeLogs writes what the links of a record did as logs that mahimahi's programs read.
func writeLogs(dir, name string, r *result.Record) error {
	for i := range r.Links {
		l := &r.Links[i]
		h := trace.Header{
			Link: map[string]string{"down": "Downlink", "up": "Uplink"}[l.Name], Queue: l.Queue,
			Trace: fmt.Sprintf("%g Mbit/s", l.Rate/1e6), Command: "node lab: " + r.Title,
		}
		for _, note := range r.Notes {
			if strings.HasPrefix(note, l.Name+": ") {
				h.Note = note
			}
		}
		var text bytes.Buffer
		if err := trace.WriteLog(&text, h, l); err != nil {
			return err
		}
		path := result.LinkPath(dir, name, l.Name, ".log")
		if err := result.WriteFile(path, text.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
