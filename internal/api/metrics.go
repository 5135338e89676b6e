package api

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// typeMetrics is Prometheus's text exposition format, version 0.0.4.
const typeMetrics = "text/plain; version=0.0.4; charset=utf-8"

// scrapeTime is how long a node may take to answer.
const scrapeTime = 5 * time.Second

// These are the types of metrics.
const (
	counter = "counter"
	gauge   = "gauge"
)

// metrics returns the counters of the process and of every node. If Prometheus's node exporter has
// a node's counter, its name is used (node_network_…). Other names of nodes begin with tidepool_.
func (n *nodes) metrics(w http.ResponseWriter, r *http.Request, about *Process) {
	ctx, cancel := context.WithTimeout(r.Context(), scrapeTime)
	defer cancel()
	now := n.now.Load()
	list := make([]*exposition, len(now.names))
	var wg sync.WaitGroup
	for i, name := range now.names {
		wg.Go(func() {
			list[i] = &exposition{}
			list[i].node(ctx, name, now.members[name].op)
		})
	}
	wg.Wait()
	var all exposition
	all.add("tidepool_build_info", gauge, "Version of the program.", 1, "version", about.Version)
	all.add("process_start_time_seconds", gauge, "Start of the process, Unix time.",
		float64(about.Started.UnixNano())/1e9)
	all.process()
	for _, e := range list {
		all.merge(e)
	}
	w.Header().Set("Content-Type", typeMetrics)
	w.WriteHeader(http.StatusOK)
	_ = write(w, all.text(), hangs)
}

// family is a metric with its samples.
type family struct {
	name, kind, help string
	samples          []string
}

// exposition is a list of metrics in the order of their first sample.
type exposition struct {
	list []*family
	at   map[string]*family
}

// add adds a sample. The arguments labels are alternating names and values.
func (e *exposition) add(name, kind, help string, value float64, labels ...string) {
	f := e.family(name, kind, help)
	var b strings.Builder
	b.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		separator := ","
		if i == 0 {
			separator = "{"
		}
		b.WriteString(separator + labels[i] + `="` + escapes.Replace(labels[i+1]) + `"`)
	}
	if len(labels) > 1 {
		b.WriteByte('}')
	}
	b.WriteString(" " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
	f.samples = append(f.samples, b.String())
}

// escapes replaces the special characters in the values of labels.
var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func (e *exposition) family(name, kind, help string) *family {
	if e.at == nil {
		e.at = map[string]*family{}
	}
	f := e.at[name]
	if f == nil {
		f = &family{name: name, kind: kind, help: help}
		e.at[name] = f
		e.list = append(e.list, f)
	}
	return f
}

func (e *exposition) merge(o *exposition) {
	for _, f := range o.list {
		into := e.family(f.name, f.kind, f.help)
		into.samples = append(into.samples, f.samples...)
	}
}

func (e *exposition) text() []byte {
	var b bytes.Buffer
	for _, f := range e.list {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
		for _, s := range f.samples {
			b.WriteString(s)
		}
	}
	return b.Bytes()
}

// node adds a node's metrics. If the node does not answer, it adds only tidepool_node_up.
func (e *exposition) node(ctx context.Context, name string, op control.Operator) {
	faces, err := control.Ask(ctx, op, control.Interfaces{})
	up := 0.0
	if err == nil {
		up = 1
	}
	e.add("tidepool_node_up", gauge, "Whether the node answers.", up, "node", name)
	if err != nil {
		return
	}
	for i := range faces {
		e.face(name, &faces[i])
	}
	if t, err := control.Ask(ctx, op, control.TCPCounters{}); err == nil {
		e.tcp(name, &t)
	}
	if list, err := control.Ask(ctx, op, control.Sockets{}); err == nil {
		e.sockets(name, list)
	}
	if list, err := control.Ask(ctx, op, control.Routes{}); err == nil {
		e.routes(name, list)
	}
	if list, err := control.Ask(ctx, op, control.Neighbors{}); err == nil {
		for _, nb := range list {
			if nb.State != "" {
				e.add("tidepool_neighbor_up", gauge, "Whether the neighbor is reachable.",
					boolGauge(nb.State == control.NeighborUp), "node", name, "device", nb.Iface,
					"neighbor", nb.Addr.String())
			}
		}
	}
	if list, err := control.Ask(ctx, op, control.Doors{}); err == nil {
		for i := range list {
			e.door(name, &list[i])
		}
	}
}

func boolGauge(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (e *exposition) face(node string, f *control.Interface) {
	labels := []string{"node", node, "device", f.Name}
	e.add("node_network_up", gauge, "Whether the interface is up.", boolGauge(f.Up), labels...)
	e.add("node_network_mtu_bytes", gauge, "MTU of the interface.", float64(f.MTU), labels...)
	for _, way := range []struct {
		name, direction string
		c               *control.Counters
	}{{"receive", "in", &f.In}, {"transmit", "out", &f.Out}} {
		prefix := "node_network_" + way.name + "_"
		e.add(prefix+"packets_total", counter, "IP packets.", float64(way.c.Packets), labels...)
		e.add(prefix+"bytes_total", counter, "Bytes of IP packets.", float64(way.c.Bytes),
			labels...)
		e.add(prefix+"errs_total", counter, "Packets that the device rejected.",
			float64(way.c.Errors), labels...)
		dropped := uint64(0)
		for _, d := range way.c.Drops {
			dropped += d.Packets
			e.add("tidepool_interface_drops_total", counter, "Packets dropped, by reason.",
				float64(d.Packets), slices.Concat(labels,
					[]string{"direction", way.direction, "reason", d.Reason})...)
		}
		e.add(prefix+"drop_total", counter, "Packets dropped.", float64(dropped), labels...)
	}
	e.add("tidepool_interface_delivered_packets_total", counter,
		"Received packets that a local protocol accepted.", float64(f.In.Delivered), labels...)
	e.add("tidepool_interface_forwarded_packets_total", counter,
		"Received packets that were forwarded.", float64(f.In.Forwarded), labels...)
}

func (e *exposition) tcp(node string, t *control.TCPCounted) {
	add := func(name, kind, help string, value uint64) {
		e.add(name, kind, help, float64(value), "node", node)
	}
	const stat = "node_netstat_Tcp_"
	add(stat+"InSegs", counter, "Segments received.", t.SegmentsIn)
	add(stat+"OutSegs", counter, "Segments sent.", t.SegmentsOut)
	add(stat+"RetransSegs", counter, "Segments retransmitted.", t.Retransmits)
	add(stat+"CurrEstab", gauge, "Connections in ESTABLISHED or CLOSE-WAIT.",
		uint64(t.Established))
	add("node_netstat_TcpExt_TCPTimeouts", counter, "Retransmission timeouts.", t.Timeouts)
	add("node_netstat_TcpExt_TCPChallengeACK", counter, "Challenge ACKs sent.", t.ChallengeAcks)
	add("node_netstat_TcpExt_SyncookiesSent", counter, "SYN cookies sent.", t.CookiesSent)
	add("node_netstat_TcpExt_SyncookiesRecv", counter, "Valid SYN cookies received.",
		t.CookiesAccepted)
	add("node_netstat_TcpExt_SyncookiesFailed", counter, "Invalid SYN cookies received.",
		t.CookiesFailed)
	add("tidepool_tcp_connections_opened_total", counter, "Connections opened or accepted.",
		t.Opened)
	add("tidepool_tcp_refused_total", counter, "Resets sent for unknown connections.",
		t.Refused)
	for _, d := range t.Drops {
		e.add("tidepool_tcp_drops_total", counter, "Segments dropped, by reason.",
			float64(d.Packets), "node", node, "reason", d.Reason)
	}
}

// sockets adds the number of sockets by state, and their queued bytes.
func (e *exposition) sockets(node string, list []control.Socket) {
	states := map[string]int{}
	recv, send := 0, 0
	for i := range list {
		s := &list[i]
		states[s.State]++
		if s.State != "LISTEN" {
			recv, send = recv+s.RecvQ, send+s.SendQ
		}
	}
	for _, state := range slices.Sorted(maps.Keys(states)) {
		e.add("tidepool_sockets", gauge, "Sockets, by state.", float64(states[state]), "node",
			node, "state", state)
	}
	e.add("tidepool_socket_receive_queue_bytes", gauge,
		"Received bytes that the application has not read.",
		float64(recv), "node", node)
	e.add("tidepool_socket_send_queue_bytes", gauge,
		"Bytes sent or queued that the peer has not acknowledged.",
		float64(send), "node", node)
}

func (e *exposition) routes(node string, list []control.Route) {
	for _, o := range []struct {
		origin control.Origin
		name   string
	}{
		{control.OriginLocal, "local"},
		{control.OriginRIP, "rip"},
		{control.OriginStatic, "static"},
	} {
		n := 0
		for i := range list {
			if list[i].Origin == o.origin {
				n++
			}
		}
		e.add("tidepool_routes", gauge, "Routes in use, by origin.", float64(n), "node", node,
			"origin", o.name)
	}
}

func (e *exposition) door(node string, d *control.Door) {
	labels := []string{
		"node", node, "door", strconv.Itoa(d.ID), "kind", string(d.Kind), "network", d.Network,
		"from", d.From, "to", d.To,
	}
	e.add("tidepool_door_flows", gauge, "Open flows.", float64(d.Open), labels...)
	e.add("tidepool_door_flows_total", counter, "Flows opened.", float64(d.Opened), labels...)
	e.add("tidepool_door_failures_total", counter, "Flows that failed.",
		float64(d.Failed), labels...)
	e.add("tidepool_door_receive_bytes_total", counter, "Bytes forwarded into the virtual network.",
		float64(d.In), labels...)
	e.add("tidepool_door_transmit_bytes_total", counter,
		"Bytes forwarded out of the virtual network.",
		float64(d.Out),
		labels...)
}
