package internet

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/observe"
	"github.com/tidepool-net/tidepool/internal/table"
)

// ladder is the drawing of one connection.
type ladder struct {
	Title, Text string
	Last        bool
}

// Limits of the drawings: the number of connections (the newest), and of the first and last lines
// of each.
const (
	maxLadders = 20
	ladderHead = 40
	ladderTail = 160
)

// draw writes network.pcapng, the packets of all hosts, and ladder.txt, its last connections.
func (w *World) draw() (list []ladder, omitted int, err error) {
	packets, names, err := w.captured()
	if err != nil || len(packets) == 0 {
		return nil, 0, err
	}
	var merged bytes.Buffer
	out, err := capture.New(&merged, names, 0)
	if err != nil {
		return nil, 0, err
	}
	var flows []string // filters of the connections to draw
	for _, p := range packets {
		way := capture.Inbound
		if p.Out {
			way = capture.Outbound
		}
		if err := out.Packet(p.At, p.Interface, way, p.Comment, p.Data); err != nil {
			return nil, 0, err
		}
		if flow := opens(p); flow != "" && !slices.Contains(flows, flow) {
			flows = append(flows, flow)
		}
	}
	if err := out.Flush(); err != nil {
		return nil, 0, err
	}
	omitted = max(0, len(flows)-maxLadders)
	var text strings.Builder
	for _, flow := range flows[omitted:] {
		l, err := w.drawFlow(merged.Bytes(), flow)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, l)
		fmt.Fprintf(&text, "%s\n\n%s\n", l.Title, l.Text)
	}
	if len(list) > 0 {
		list[len(list)-1].Last = true
	}
	return list, omitted, cmp.Or(
		files.Overwrite(filepath.Join(w.captures, "network.pcapng"), merged.Bytes(), 0o644),
		files.Overwrite(filepath.Join(w.captures, "ladder.txt"), []byte(text.String()), 0o644),
	)
}

// captured returns the packets of all captures, in their order, with the numbers of their
// interfaces.
func (w *World) captured() (list []capture.Captured, names []capture.Interface, err error) {
	numbers := map[string]int{}
	for _, h := range w.hosts {
		for k := 1; k <= h.starts; k++ {
			name := fmt.Sprintf("%s-%d.pcapng", h.name, k)
			file, err := files.Input(filepath.Join(w.captures, name))
			if err != nil {
				return nil, nil, err
			}
			err = capture.Read(file, func(p *capture.Captured) error {
				name := h.name + " " + p.Name
				if _, ok := numbers[name]; !ok {
					numbers[name] = len(names)
					names = append(names, capture.Interface{Name: name})
				}
				one := *p
				one.Interface, one.Name, one.Data = numbers[name], name, bytes.Clone(p.Data)
				list = append(list, one)
				return nil
			})
			_ = file.Close() // the file was only read
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", file.Name(), err)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b capture.Captured) int { return cmp.Compare(a.At, b.At) })
	return list, names, nil
}

// If a packet is a SYN on the sender's interface, opens returns the filter of its connection.
func opens(p capture.Captured) string {
	var f capture.Facts
	f.Parse(p.Data)
	flow, ok := f.Flow(true)
	// this filter is valid
	syn, _ := capture.ParseFilter("tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn")
	if !ok || !p.Out || !syn.Match(&f) {
		return ""
	}
	return fmt.Sprintf("host %v and host %v and tcp port %d and port %d", flow.Local.Addr(),
		flow.Remote.Addr(), flow.Local.Port(), flow.Remote.Port())
}

// owner returns the name of the host that has an address, with the port.
func (w *World) owner(end string) string {
	at, err := netip.ParseAddrPort(end)
	i := slices.IndexFunc(w.hosts, func(h *Host) bool {
		return slices.Contains(h.addrs, at.Addr())
	})
	if err != nil || i < 0 {
		return "no host"
	}
	return w.hosts[i].name
}

// drawFlow draws the connection that a filter matches.
func (w *World) drawFlow(file []byte, filter string) (l ladder, err error) {
	var lines []string
	drawing := table.NewLadder(table.LadderConfig{Width: 120}, func(line string) {
		lines = append(lines, line)
	})
	_, err = observe.TraceFile(bytes.NewReader(file), filter, func(s control.TracedSegment) {
		if l.Title == "" {
			l.Title = fmt.Sprintf("%s of %s to %s of %s, since %s", s.Left, w.owner(s.Left),
				s.Right, w.owner(s.Right), s.At.UTC().Format("15:04:05.000000"))
		}
		drawing.Add(&s)
	})
	drawing.Flush()
	if n := len(lines) - ladderHead - ladderTail; n > 0 {
		lines = slices.Concat(lines[:ladderHead], []string{fmt.Sprintf("… %d lines …", n)},
			lines[len(lines)-ladderTail:])
	}
	l.Text = strings.Join(lines, "\n")
	return l, err
}
