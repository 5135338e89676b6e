package observe

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
)

// Everything returns an observer of every packet from the start of the node on. Begin writes the
// packets.
func Everything(file string, snaplen int, driven bool) (*Observer, error) {
	o, err := newObserver(&control.Record{File: file, Snaplen: snaplen})
	if err != nil {
		return nil, fmt.Errorf("pcap: %w", err)
	}
	o.Patient = driven
	o.About.Kind = pcapKind
	return o, nil
}

// pcapKind is the kind of the capture of every packet.
const pcapKind = "pcap"

// Begin writes the packets of an Everything observer to the observer's file.
func (h *Host) Begin(o *Observer, overwrite bool) error {
	c := h.newCapturing(o)
	c.faces = append(c.faces[:o.Ifaces:o.Ifaces], c.faces[len(c.faces)-1])
	if _, _, err := c.sink(files.Machine(), &control.Record{
		File: o.About.File, Overwrite: overwrite,
	}); err != nil {
		o.Leave() // lets the loop continue without this observer
		return fmt.Errorf("pcap: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pcap = c
	c.begin()
	return nil
}

func (h *Host) startPcap(ctx context.Context, r control.PcapStart) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pcap != nil { // stop the running capture before its file is overwritten
		return fmt.Errorf("%s: %w", h.pcap.o.About.File, control.ErrCapturing)
	}
	if r.File == "" {
		return errNoFile
	}
	c, err := h.prepareFile(files.Of(ctx), &control.Record{
		File: r.File, Snaplen: r.Snaplen, Overwrite: r.Overwrite,
	})
	if err != nil {
		return err
	}
	c.o.About.Kind = pcapKind
	if err := h.taps.Observe(c.o); err != nil {
		return errors.Join(err, c.abandon())
	}
	h.pcap = c
	c.begin()
	return nil
}

// File returns the file of the capture of every packet; empty: no such capture is running.
func (h *Host) File() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pcap == nil {
		return ""
	}
	return h.pcap.o.About.File
}

func (h *Host) stopPcap(context.Context, control.PcapStop) (control.Capture, error) {
	h.mu.Lock()
	c := h.pcap
	h.pcap = nil
	h.mu.Unlock()
	if c == nil {
		return control.Capture{}, control.ErrNotCapturing
	}
	return c.finishPcap()
}

func (c *capturing) finishPcap() (control.Capture, error) {
	done := c.finish()
	answer := control.Capture{
		File: done.File, Packets: done.Packets, Missed: c.o.Shown() - done.Packets,
	}
	if done.Problem != "" {
		return answer, fmt.Errorf("%s; the file contains %d packets, and %d are missing",
			done.Problem, answer.Packets, answer.Missed)
	}
	return answer, nil
}
