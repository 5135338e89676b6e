package result

import (
	"cmp"
	_ "embed"
	"strings"
)

// Metric is the name of a number of a flow or a run, as columns of files have it.
type Metric string

// Definition is all that tables, figures, formulas and documents know of a metric.
type Definition struct {
	Name Metric
	Unit string // bit/s, s, bytes, packets, or empty for a pure number
	// Title is what an axis calls it, Head the head of a narrow column; empty: see Titled, Headed.
	Title, Head string
	Text        string // how it is measured
}

// Titled is the metric in words.
func (d Definition) Titled() string {
	return cmp.Or(d.Title, strings.ReplaceAll(string(d.Name), "_", " "))
}

// Headed is the metric as the head of a narrow column has it.
func (d Definition) Headed() string { return cmp.Or(d.Head, d.Titled()) }

// The metrics of a flow. Means and extremes leave the warm-up out, counts do not.
const (
	Goodput     Metric = "goodput"
	Throughput  Metric = "throughput"
	Completion  Metric = "completion"
	Delivered   Metric = "delivered"
	Sent        Metric = "sent"
	DataSent    Metric = "data_sent"
	AcksSent    Metric = "acks_sent"
	Retransmits Metric = "retransmits"
	Timeouts    Metric = "timeouts"
	Recoveries  Metric = "recoveries"
	Drops       Metric = "drops"
	RTTMean     Metric = "rtt_mean"
	RTTMin      Metric = "rtt_min"
	RTTMax      Metric = "rtt_max"
	RTTP50      Metric = "rtt_p50"
	RTTP95      Metric = "rtt_p95"
	RTTP99      Metric = "rtt_p99"
	RequestMean Metric = "request_mean"
	RequestP95  Metric = "request_p95"
	CwndMean    Metric = "cwnd_mean"
	CwndMin     Metric = "cwnd_min"
	CwndMax     Metric = "cwnd_max"
	Share       Metric = "share"
	Trend       Metric = "trend"
	Drift       Metric = "drift"
)

// The metrics of founding documents' own applications, as these count.
const (
	ClientSent    Metric = "client_sent"
	ClientData    Metric = "client_data"
	ClientAcks    Metric = "client_acks"
	ClientPackets Metric = "client_packets"
	Rounds        Metric = "rounds"
	ServerSent    Metric = "server_sent"
	ServerData    Metric = "server_data"
	Damaged       Metric = "damaged"

	ObjectsDone Metric = "objects"
	ObjectMean  Metric = "object_mean"
	SmallMean   Metric = "small_mean"
	SmallLast   Metric = "small_last"
	LargeMean   Metric = "large_mean"
	LargeLast   Metric = "large_last"

	NotebookThroughput Metric = "notebook_throughput"
	NotebookAcks       Metric = "notebook_acks"
	NotebookDuplicates Metric = "notebook_duplicates"
)

// The metrics of a run.
const (
	Utilisation Metric = "utilisation"
	Jain        Metric = "jain"
	QueueMean   Metric = "queue_mean"
	QueueP50    Metric = "queue_p50"
	QueueP95    Metric = "queue_p95"
	QueueMax    Metric = "queue_max"
	QueueDrops  Metric = "queue_drops"
	Policed     Metric = "policed"
	Losses      Metric = "losses"
	Marks       Metric = "marks"
	Packets     Metric = "packets"
)

// The metrics of a run in real time: how late it was.
const (
	LateP99     Metric = "late_p99"
	LateMax     Metric = "late_max"
	WakeP99     Metric = "wake_p99"
	WakeMax     Metric = "wake_max"
	LateLimit   Metric = "late_limit"
	WakeLimit   Metric = "wake_limit"
	SocketDrops Metric = "socket_drops"
)

// catalog has the metrics in the order of tables.
var catalog = []Definition{
	{Goodput, "bit/s", "", "", "goodput of the receiving application"},
	{Throughput, "bit/s", "", "", "rate of the flow's data packets through the bottleneck, " +
		"headers included"},
	{Share, "", "", "", "the flow's share of the total goodput"},
	{Trend, "", "", "", "Kendall's S of the goodput in 16 parts of the measured time: rising " +
		"pairs minus falling pairs"},
	{Drift, "", "", "", "change of the goodput from the first part to the last, relative to its " +
		"mean (Sen's slope)"},
	{Completion, "s", "time to completion", "completion", "from the flow's start to the last " +
		"byte that the application got"},
	{Delivered, "bytes", "", "", "bytes that the receiving application got"},
	{Sent, "packets", "packets sent", "sent", "packets that both ends sent"},
	{DataSent, "packets", "data packets sent", "", "packets with data, retransmissions included"},
	{AcksSent, "packets", "acknowledgments sent", "", "packets without data"},
	{Retransmits, "packets", "retransmitted packets", "retransmitted", "packets with data that " +
		"had been sent before"},
	{Timeouts, "", "timeouts", "", "retransmission timeouts"},
	{Recoveries, "", "", "", "fast recoveries"},
	{Drops, "packets", "packets dropped or lost", "dropped", "packets of both ends that the " +
		"bottleneck dropped or the path's loss model lost"},
	{RTTMean, "s", "mean RTT", "", "mean of the measured round trips"},
	{RTTMin, "s", "shortest RTT", "", "shortest measured round trip"},
	{RTTMax, "s", "longest RTT", "", "longest measured round trip"},
	{RTTP50, "s", "median RTT", "", "median of the measured round trips"},
	{RTTP95, "s", "RTT (p95)", "", "95th percentile of the measured round trips"},
	{RTTP99, "s", "RTT (p99)", "", "99th percentile of the measured round trips"},
	{RequestMean, "s", "", "", "mean time from a request to the last byte of its answer"},
	{RequestP95, "s", "", "", "95th percentile of the times of requests"},
	{CwndMean, "bytes", "mean cwnd", "", "time average of the congestion window"},
	{CwndMin, "bytes", "smallest cwnd", "", "smallest congestion window"},
	{CwndMax, "bytes", "largest cwnd", "", "largest congestion window"},
	{ClientSent, "packets", "client's packets", "client sent", "packets that the client sent " +
		"until it had all data: document 000's count"},
	{ClientData, "packets", "client's data packets", "client's data", "the client's packets " +
		"with data, retransmissions included"},
	{ClientAcks, "packets", "client's acknowledgments", "", "the client's packets without data"},
	{ClientPackets, "packets", "client's data, once each", "", "the client's packets with data, " +
		"without retransmissions: the N of the closed form"},
	{Rounds, "", "", "", "iterations of the client's send loop that sent a packet"},
	{ServerSent, "packets", "server's packets", "", "packets that the server, or the sender, " +
		"sent in that time"},
	{ServerData, "packets", "server's data packets", "", "of these, with data, retransmissions " +
		"included"},
	{Damaged, "packets", "", "", "packets that failed the protocol's own checksum"},
	{ObjectsDone, "", "", "", "objects that arrived"},
	{ObjectMean, "s", "mean time of an object", "", "mean time from the start to an object's " +
		"last byte"},
	{SmallMean, "s", "mean time of small objects", "small objects", "object_mean of the small " +
		"objects"},
	{SmallLast, "s", "time of the last small object", "last small", "time until the last small " +
		"object was complete"},
	{LargeMean, "s", "mean time of large objects", "large objects", "object_mean of the large " +
		"objects"},
	{LargeLast, "s", "time of the last large object", "last large", "time until the last large " +
		"object was complete"},
	{NotebookThroughput, "bytes/s", "new ACKs × 80", "new ACKs × 80", "80 for each new " +
		"acknowledgment: document 002's count"},
	{NotebookAcks, "packets", "acknowledgments", "", "acknowledgments that the sender received"},
	{NotebookDuplicates, "", "share of duplicate ACKs", "dup. ACKs", "share of the " +
		"acknowledgments that the sender took for duplicates"},
	{Utilisation, "", "", "", "share of the bottleneck's capacity that was used"},
	{Jain, "", "Jain's index", "Jain", "Jain's index of the goodputs: 1 is fair"},
	{QueueMean, "s", "mean queueing delay", "", "mean wait of a packet in the bottleneck's queue"},
	{QueueP50, "s", "queueing delay (p50)", "", "median wait in the bottleneck's queue"},
	{QueueP95, "s", "queueing delay (p95)", "queue (p95)", "95th percentile of the wait in the " +
		"bottleneck's queue"},
	{QueueMax, "s", "longest queueing delay", "", "longest wait in the bottleneck's queue"},
	{QueueDrops, "packets", "packets dropped", "", "packets that the bottleneck's queue dropped"},
	{Policed, "packets", "", "", "packets that the bottleneck's policer dropped"},
	{Losses, "packets", "packets lost", "", "packets that the path's loss model lost"},
	{Marks, "packets", "packets marked", "", "packets that the queue marked (ECN)"},
	{Packets, "packets", "packets of all hosts", "", "packets that all hosts sent"},
	{LateP99, "s", "", "", "real time: 99th percentile of how late packets left the path"},
	{LateMax, "s", "", "", "real time: how late a packet left the path at most"},
	{WakeP99, "s", "", "", "real time: 99th percentile of how late the hosts' processes woke up"},
	{WakeMax, "s", "", "", "real time: how late a host's process woke up at most"},
	{LateLimit, "s", "", "", "highest late_p99 of a run that kept time; 0: the path adds no delay"},
	{WakeLimit, "s", "", "", "highest wake_p99 of a run that kept time"},
	{SocketDrops, "packets", "", "", "packets that overflowed the machine's socket buffers"},
}

//go:embed columns.csv
var columns string

// Columns describes the columns of all tables in a directory of results, as CSV: the table's file,
// the column, its unit and its meaning.
func Columns() []byte {
	text := []byte(columns)
	for _, d := range catalog {
		text = append(text, "trials.csv,"+string(d.Name)+","+d.Unit+","...)
		text = append(AppendField(text, d.Text), '\n')
	}
	return text
}

// Catalog returns the metrics, in the order of tables.
func Catalog() []Definition { return catalog }

// Find returns the metric with a name; false if there is no such metric.
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

// Names returns what they are called.
func Names() []string {
	names := make([]string, len(catalog))
	for i, d := range catalog {
		names[i] = string(d.Name)
	}
	return names
}
