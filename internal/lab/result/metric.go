package result

import (
	"cmp"
	_ "embed"
	"strings"
)

// Metric is the name of a metric of a flow or a run, as in the columns of files.
type Metric string

// Definition describes a metric for tables, figures, formulas and documents.
type Definition struct {
	Name Metric
	Unit Unit
	// Title is the metric's name on an axis, and Head is the head of a narrow column. If they are
	// empty, see Titled and Headed.
	Title, Head string
	Text        string // how the metric is measured
}

// Titled returns the metric's name for an axis.
func (d Definition) Titled() string {
	return cmp.Or(d.Title, strings.ReplaceAll(string(d.Name), "_", " "))
}

// Headed returns the metric's name for the head of a narrow column.
func (d Definition) Headed() string { return cmp.Or(d.Head, d.Titled()) }

// catalog has the metrics in the order of their definitions, which is also the order in tables.
var catalog []Definition

func define(name Metric, unit Unit, title, head, text string) Metric {
	catalog = append(catalog, Definition{name, unit, title, head, text})
	return name
}

// These are the metrics of a flow. lab/simulation computes them in metrics.go, sender_stats.go and
// packet.go, and lab/emulation in real time. trial.go computes Share. Means and extremes exclude
// the warm-up, counts do not.
var (
	Goodput    = define("goodput", "bit/s", "", "", "goodput of the receiving application")
	Throughput = define("throughput", "bit/s", "", "",
		"rate of the flow's data packets through the bottleneck, headers included")
	Share = define("share", "", "", "", "the flow's share of the total goodput")
	Trend = define("trend", "", "", "",
		"Kendall's S of the goodput in 16 parts of the measured time: rising pairs minus "+
			"falling pairs")
	Drift = define("drift", "", "", "",
		"change of the goodput from the first part to the last, relative to its mean "+
			"(Sen's slope)")
	Completion = define("completion", "s", "time to completion", "completion",
		"from the flow's start to the last byte that the application received")
	Delivered = define("delivered", "bytes", "", "", "bytes that the application received")
	Sent      = define("sent", "packets", "packets sent", "sent", "packets that both ends sent")
	DataSent  = define("data_sent", "packets", "data packets sent", "",
		"packets with data, retransmissions included")
	AcksSent = define("acks_sent", "packets", "acknowledgments sent", "",
		"packets without data")
	Retransmits = define("retransmits", "packets", "retransmitted packets", "retransmitted",
		"packets with data that had been sent before")
	Timeouts   = define("timeouts", "", "timeouts", "", "retransmission timeouts")
	Recoveries = define("recoveries", "", "", "", "fast recoveries")
	Drops      = define("drops", "packets", "packets dropped or lost", "dropped",
		"packets of both ends that the bottleneck dropped or the path's loss model lost")
	RTTMean = define("rtt_mean", "s", "mean RTT", "", "mean of the measured round trips")
	RTTMin  = define("rtt_min", "s", "shortest RTT", "", "shortest measured round trip")
	RTTMax  = define("rtt_max", "s", "longest RTT", "", "longest measured round trip")
	RTTP50  = define("rtt_p50", "s", "median RTT", "", "median of the measured round trips")
	RTTP95  = define("rtt_p95", "s", "RTT (p95)", "",
		"95th percentile of the measured round trips")
	RTTP99 = define("rtt_p99", "s", "RTT (p99)", "",
		"99th percentile of the measured round trips")
	RequestMean = define("request_mean", "s", "", "",
		"mean time from a request to the last byte of its answer")
	RequestP95 = define("request_p95", "s", "", "", "95th percentile of the times of requests")
	CwndMean   = define("cwnd_mean", "bytes", "mean cwnd", "",
		"time average of the congestion window")
	CwndMin = define("cwnd_min", "bytes", "smallest cwnd", "", "smallest congestion window")
	CwndMax = define("cwnd_max", "bytes", "largest cwnd", "", "largest congestion window")
)

// These are the metrics of the founding documents' applications, counted as in the documents.
// lab/simulation computes them in document_app.go, and lab/emulation in real time.
var (
	ClientSent = define("client_sent", "packets", "client's packets", "client sent",
		"packets that the client sent until it had all data: document 000's count")
	ClientData = define("client_data", "packets", "client's data packets", "client's data",
		"the client's packets with data, retransmissions included")
	ClientAcks = define("client_acks", "packets", "client's acknowledgments", "",
		"the client's packets without data")
	ClientPackets = define("client_packets", "packets", "client's data, once each", "",
		"the client's packets with data, without retransmissions: the N of the closed form")
	Rounds = define("rounds", "", "", "",
		"iterations of the client's send loop that sent a packet")
	ServerSent = define("server_sent", "packets", "server's packets", "",
		"packets that the server or the sender sent until the client had all data")
	ServerData = define("server_data", "packets", "server's data packets", "",
		"the server's packets with data, retransmissions included")
	Damaged = define("damaged", "packets", "", "",
		"packets that failed the protocol's own checksum")
	ObjectsDone = define("objects", "", "", "", "objects that arrived")
	ObjectMean  = define("object_mean", "s", "mean time of an object", "",
		"mean time from the start to an object's last byte")
	SmallMean = define("small_mean", "s", "mean time of small objects", "small objects",
		"object_mean of the small objects")
	SmallLast = define("small_last", "s", "time of the last small object", "last small",
		"time until the last small object was complete")
	LargeMean = define("large_mean", "s", "mean time of large objects", "large objects",
		"object_mean of the large objects")
	LargeLast = define("large_last", "s", "time of the last large object", "last large",
		"time until the last large object was complete")
	NotebookThroughput = define("notebook_throughput", "bytes/s", "new ACKs × 80",
		"new ACKs × 80", "80 bytes for each new acknowledgment: document 002's count")
	NotebookAcks = define("notebook_acks", "packets", "acknowledgments", "",
		"acknowledgments that the sender received")
	NotebookDuplicates = define("notebook_duplicates", "", "share of duplicate ACKs", "dup. ACKs",
		"share of the acknowledgments that the sender counted as duplicates")
)

// These are the metrics of a run, from lab/simulation/path.go (Jain and Packets: from trial.go).
var (
	Utilization = define("utilisation", "", "", "",
		"share of the bottleneck's capacity that was used")
	Jain = define("jain", "", "Jain's index", "Jain",
		"Jain's index of the goodputs: 1 is fair")
	QueueMean = define("queue_mean", "s", "mean queueing delay", "",
		"mean wait of a packet in the bottleneck's queue")
	QueueP50 = define("queue_p50", "s", "queueing delay (p50)", "",
		"median wait in the bottleneck's queue")
	QueueP95 = define("queue_p95", "s", "queueing delay (p95)", "queue (p95)",
		"95th percentile of the wait in the bottleneck's queue")
	QueueMax = define("queue_max", "s", "longest queueing delay", "",
		"longest wait in the bottleneck's queue")
	QueueDrops = define("queue_drops", "packets", "packets dropped", "",
		"packets that the bottleneck's queue dropped")
	Policed = define("policed", "packets", "", "",
		"packets that the bottleneck's policer dropped")
	Losses = define("losses", "packets", "packets lost", "",
		"packets that the path's loss model lost")
	Marks = define("marks", "packets", "packets marked", "",
		"packets that the queue marked (ECN)")
	Packets = define("packets", "packets", "packets of all hosts", "",
		"packets that all hosts sent")
)

// These metrics describe the lateness of a run in real time. They are computed in
// lab/emulation/lateness.go.
var (
	LateP99 = define("late_p99", "s", "", "",
		"real time: 99th percentile of the lateness of packets that leave the path")
	LateMax = define("late_max", "s", "", "",
		"real time: maximum lateness of packets that leave the path")
	WakeP99 = define("wake_p99", "s", "", "",
		"real time: 99th percentile of the lateness of the hosts' processes when they wake up")
	WakeMax = define("wake_max", "s", "", "",
		"real time: maximum lateness of the hosts' processes when they wake up")
	LateLimit = define("late_limit", "s", "", "",
		"highest late_p99 of a run that kept time; 0: the path adds no delay")
	WakeLimit   = define("wake_limit", "s", "", "", "highest wake_p99 of a run that kept time")
	SocketDrops = define("socket_drops", "packets", "", "",
		"packets that the machine dropped because a socket's buffer was full")
)

//go:embed columns.csv
var columns string

// Columns describes the columns of all tables in a directory of results, as CSV: the table's file,
// the column, its unit and its meaning.
func Columns() []byte {
	text := []byte(columns)
	for _, d := range catalog {
		text = AppendRow(text, "trials.csv", string(d.Name), string(d.Unit), d.Text)
	}
	return text
}

// Catalog returns the metrics, in the order of tables.
func Catalog() []Definition { return catalog }

// Find returns the metric with a name. It returns false if there is no such metric.
func Find(name string) (Definition, bool) {
	for _, d := range catalog {
		if string(d.Name) == name {
			return d, true
		}
	}
	return Definition{Name: Metric(name)}, false
}

// Definition returns the metric's entry in the catalog.
func (m Metric) Definition() Definition {
	d, _ := Find(string(m))
	return d
}

// Names returns the names of all metrics.
func Names() []string {
	names := make([]string, len(catalog))
	for i, d := range catalog {
		names[i] = string(d.Name)
	}
	return names
}
