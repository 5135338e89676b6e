package netem

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// queueWords is what the text says about the queue. Zero fields are missing in the text.
type queueWords struct {
	QueueSpec
	noECN, estimator bool
	memory           int
}

// These are the queues' keywords.
const (
	wordDropTail = "droptail"
	wordDropHead = "drophead"
	wordCoDel    = "codel"
	wordFQCoDel  = "fq_codel"
	wordPIE      = "pie"
	wordRED      = "red"
)

// parameter is a parameter of one or more queues.
type parameter struct {
	name, usage string // name of the parameter, and the text that follows the name in its usage
	of          string // queues that have the parameter
	read        func(r *reader, usage string)
}

// disciplines and parameters are the queues' keywords.
var (
	disciplines = []string{
		wordDropTail, wordDropHead, wordCoDel, wordFQCoDel, wordPIE, wordRED,
	}
	parameters = []parameter{
		{"flows", " N", "fq_codel", func(r *reader, u string) {
			r.queue.Flows = r.count(u, maxFQFlows)
		}},
		{"quantum", " BYTES", "fq_codel", func(r *reader, u string) {
			r.queue.Quantum = r.bytes(u)
		}},
		{"memory_limit", " BYTES", "fq_codel", func(r *reader, u string) {
			r.queue.memory = r.bytes(u)
		}},
		{"min", " N or BYTESkb", "red", (*reader).readMin},
		{"max", " N or BYTESkb", "red", (*reader).readMax},
		{"probability", " SHARE%", "red", func(r *reader, u string) {
			r.queue.RED.MaxP = r.ratio(u)
		}},
		{"weight", " SHARE%", "red", func(r *reader, u string) { r.queue.RED.Weight = r.ratio(u) }},
		{"avpkt", " BYTES", "red", func(r *reader, u string) { r.queue.RED.Mean = r.bytes(u) }},
		{"abrupt", "", "red", func(r *reader, _ string) { r.queue.RED.Abrupt = true }},
		{"markall", "", "red", func(r *reader, _ string) { r.queue.RED.MarkAll = true }},
		{"target", " TIME", "codel fq_codel pie", func(r *reader, u string) {
			r.queue.Target = r.time(u)
		}},
		{"interval", " TIME", "codel fq_codel", func(r *reader, u string) {
			r.queue.Interval = r.time(u)
		}},
		{"tupdate", " TIME", "pie", func(r *reader, u string) { r.queue.PIE.Update = r.time(u) }},
		{"alpha", " N", "pie", func(r *reader, u string) { r.queue.PIE.Alpha = r.sixteenths(u) }},
		{"beta", " N", "pie", func(r *reader, u string) { r.queue.PIE.Beta = r.sixteenths(u) }},
		{"allowance", " TIME", "pie", func(r *reader, u string) { r.queue.PIE.Burst = r.time(u) }},
		{"dq_rate_estimator", "", "pie", func(r *reader, _ string) { r.queue.estimator = true }},
		{"ecn", "", "codel fq_codel pie red", func(r *reader, _ string) { r.queue.ECN = true }},
		{"noecn", "", "codel fq_codel pie red", func(r *reader, _ string) { r.queue.noECN = true }},
	}
)

// queueKeywords are the keywords of both tables.
func queueKeywords() []keyword {
	list := make([]keyword, 0, len(disciplines)+len(parameters))
	for _, name := range disciplines {
		list = append(list, keyword{name, name, func(r *reader) { r.queue.Discipline = name }})
	}
	for _, p := range parameters {
		usage := p.name + p.usage
		list = append(list, keyword{p.name, usage, func(r *reader) { p.read(r, usage) }})
	}
	return list
}

func (r *reader) makeQueue() {
	c, l := &r.cfg, &r.queue
	for _, name := range disciplines {
		if w, given := r.seen[name]; given && name != l.Discipline {
			r.fail(w, "in conflict with "+l.Discipline, "only one of them")
		}
		r.needs(name, c.Rate != nil, "a rate, without which no queue forms")
	}
	for _, p := range parameters {
		of := strings.Fields(p.of)
		r.needs(p.name, slices.Contains(of, l.Discipline), strings.Join(of, " or "))
	}
	if r.err != nil {
		return
	}
	if c.Rate == nil {
		if c.MaxPackets, c.MaxBytes = l.Packets, l.Bytes; l.Time > 0 {
			r.fail(r.seen["limit"], "a time, which needs a rate", "a rate")
		}
		return
	}
	r.checkQueue()
	c.Queue = l.queue(c.Rate)
}

// checkQueue reports parameters that contradict each other.
func (r *reader) checkQueue() {
	l := &r.queue
	if l.ECN && l.noECN {
		r.fail(r.seenLast("ecn", "noecn"), "in conflict with the other keyword",
			"either ecn or noecn")
	}
	if l.Discipline == wordCoDel || l.Discipline == wordFQCoDel {
		c := CoDel{Target: l.Target, Interval: l.Interval}.withDefaults()
		if c.Target >= c.Interval {
			r.fail(r.seenLast("target", "interval"), "invalid: the target would be "+
				c.Target.String()+" and the interval "+c.Interval.String(),
				"a target below the interval")
		}
	}
	if l.Discipline == wordFQCoDel && l.Time > 0 {
		r.fail(r.seen["limit"], "not a limit of fq_codel", "a limit in packets or bytes")
	}
	if l.Discipline == wordRED {
		r.checkRED()
	}
}

func (r *reader) checkRED() {
	l := r.queue
	b := l.boundFor(1 << 40)
	switch {
	case l.RED.InPackets && l.RED.Max == 0 && b.Packets < 4:
		r.fail(r.seen["min"], "missing max", "max N too, or limit N packets")
	case l.RED.Max == 0 && !l.RED.InPackets && b.Bytes < 4:
		r.fail(r.seen[wordRED], "missing thresholds", "min and max, or a limit in bytes")
	}
	l.Bound = b
	whole := l.Queue().(RED).WithDefaults()
	if whole.Min >= whole.Max {
		r.fail(r.seenLast("min", "max", wordRED), "invalid: min would be "+strconv.Itoa(whole.Min)+
			" and max "+strconv.Itoa(whole.Max), "min below max")
	}
}

// boundFor returns the given limit, or the default for a rate.
func (l *queueWords) boundFor(rate int64) Bound {
	if l.Bound == (Bound{}) {
		return Bound(UsualQueue(BitsPerSecond(rate)))
	}
	return l.Bound
}

// queue creates the queue with its defaults, so that String shows them.
func (l *queueWords) queue(rate Rate) Discipline {
	spec := l.QueueSpec
	switch spec.Discipline {
	case wordCoDel:
	case wordFQCoDel:
		spec.Bytes, spec.ECN = cmp.Or(l.memory, l.Bytes), !l.noECN
	case wordPIE:
		spec.PIE.Timestamps = !l.estimator
	default:
		spec.Bound = l.boundFor(rate.MeanRate())
	}
	switch q := spec.Queue().(type) {
	case CoDel:
		return q.withDefaults()
	case FQCoDel:
		return q.withDefaults()
	case PIE:
		return q.withDefaults()
	case RED:
		return q.WithDefaults()
	default:
		return q
	}
}

// readMin and readMax parse thresholds. Both must use the same unit.
func (r *reader) readMin(usage string) { r.queue.RED.Min = r.threshold(usage, "max") }

func (r *reader) readMax(usage string) { r.queue.RED.Max = r.threshold(usage, "min") }

func (r *reader) threshold(usage, other string) int {
	w, ok := r.next(usage)
	if !ok {
		return 0
	}
	n, inPackets := 0, false
	if bytes, ok := measure(w.text, sizeUnits, defaultMaxBytes); ok {
		n = int(bytes)
	} else if count, err := strconv.Atoi(w.text); err == nil && count >= 1 && count <= maxLimit {
		n, inPackets = count, true
	} else {
		r.fail(w, "not a queue length", "packets, such as 20, or bytes, such as 30kb")
	}
	if _, given := r.seen[other]; given && inPackets != r.queue.RED.InPackets {
		r.fail(w, "in another unit than "+other, "both in packets or both in bytes")
	}
	r.queue.RED.InPackets = inPackets
	return n
}

// ratio parses a share, which must be above zero.
func (r *reader) ratio(usage string) float64 {
	at := r.at
	p := r.share(usage)
	if r.err == nil && p == 0 {
		r.fail(r.words[at], "zero", "more than 0%")
	}
	return p
}

// sixteenths parses a weight of tc-pie(8), in sixteenths of 1/s.
func (r *reader) sixteenths(usage string) float64 {
	w, ok := r.next(usage)
	if !ok {
		return 0
	}
	const most, part = 32, 16
	n, err := strconv.ParseFloat(w.text, 64)
	if err != nil || !(n > 0 && n <= most) || strings.Trim(w.text, "0123456789.") != "" {
		r.fail(w, "not a weight", "a number above 0, up to 32, in sixteenths of 1/s")
	}
	return n / part
}

// bytes parses a length; the unit is optional.
func (r *reader) bytes(usage string) int {
	w, ok := r.next(usage)
	if !ok {
		return 0
	}
	if n, ok := measure(w.text, sizeUnits, defaultMaxBytes); ok {
		return int(n)
	}
	n, err := strconv.Atoi(w.text)
	if err != nil || n < 1 || n > defaultMaxBytes {
		r.fail(w, "not a number of bytes", "such as 1514 or 32kb, up to 64mb")
	}
	return n
}

const usageLimit = "limit PACKETS, BYTESkb, TIME or several of them, such as 100,64kb,200ms"

func (r *reader) limit() {
	w, ok := r.next(usageLimit)
	if !ok {
		return
	}
	b := &r.queue.Bound
	for item := range strings.SplitSeq(w.text, ",") {
		n, err := strconv.Atoi(item)
		bytes, inBytes := measure(item, sizeUnits, defaultMaxBytes)
		d, isTime := duration(item)
		switch {
		case err == nil && n >= 1 && n <= maxLimit && b.Packets == 0:
			b.Packets = n
		case inBytes && b.Bytes == 0:
			b.Bytes = int(bytes)
		case isTime == nil && d > 0 && d <= maxDelay && b.Time == 0:
			b.Time = d
		default:
			r.fail(w, "not a limit",
				"packets, such as 100, or bytes, such as 64kb, or a time; 65536 or 64mb at most")
			return
		}
	}
}

const usagePolice = "police RATE BURST [mark]"

func (r *reader) police() {
	w, ok := r.next(usagePolice)
	if !ok {
		return
	}
	bits, ok := measure(w.text, rateUnits, maxRate)
	if !ok {
		r.fail(w, "not a rate", usageOfRates)
	}
	r.cfg.Policer = &Policer{Rate: BitsPerSecond(bits), Burst: r.bytes(usagePolice)}
	r.cfg.Policer.Mark = r.skip("mark")
}

// maxRate is the highest rate in the text, in bits/s.
const maxRate = 1e12

const (
	usageRate    = "rate RATE [OVERHEAD [CELLSIZE [CELLOVERHEAD]]] or rate RATE,RATE@TIME,…"
	usageOfRates = "a number with bit, kbit, mbit or gbit, such as 10mbit"
)

// maxSteps limits the steps of a rate.
const maxSteps = 1000

// rate parses a rate: a constant rate, or one with steps.
func (r *reader) rate() {
	w, ok := r.next(usageRate)
	if !ok {
		return
	}
	for item := range strings.SplitSeq(w.text, ",") {
		text, when, later := strings.Cut(item, "@")
		bits, ok := measure(text, rateUnits, maxRate)
		var at time.Duration
		if later {
			var err error
			if at, err = duration(when); err != nil || at > maxDelay {
				r.fail(w, "not a rate", "a time after each @, such as 1mbit,2500kbit@40s")
			}
			ok = ok || slices.Contains([]string{"0", "0bit"}, text)
		}
		switch n := len(r.steps); {
		case !ok:
			r.fail(w, "not a rate", usageOfRates)
		case later != (n > 0) || n > 0 && at <= r.steps[n-1].At:
			r.fail(w, "not a rate", "the first at 0, the others in order of time, "+
				"such as 1mbit,2500kbit@40s")
		case n == maxSteps:
			r.fail(w, "too long", strconv.Itoa(maxSteps)+" steps at most")
		}
		if r.err != nil {
			return
		}
		r.steps = append(r.steps, Step{at, BitsPerSecond(bits)})
	}
	r.framing()
}

// framing parses the overhead of packets and cells.
func (r *reader) framing() {
	if r.more() {
		r.cfg.Overhead = r.number("rate RATE OVERHEAD", 0, math.MaxUint16)
	}
	if at := r.at; r.more() {
		r.cells.Size = r.number("rate RATE OVERHEAD CELLSIZE", 1, math.MaxUint16)
		if len(r.steps) > 1 {
			r.fail(r.words[at], "not possible with a rate in steps", "a constant rate")
		}
		r.cells.Rate = r.steps[0].Rate
	}
	if r.more() {
		r.cells.Overhead = r.number("rate RATE OVERHEAD CELLSIZE CELLOVERHEAD", 0, math.MaxUint16)
	}
}

const usageTrace = "trace FILE [once]"

// maxTraceFile limits a trace file, in bytes. That is enough for a link of 1 Gbit/s for 30 s.
const maxTraceFile = 16 << 20

func (r *reader) trace() {
	w, ok := r.next(usageTrace)
	if !ok {
		return
	}
	once := r.skip("once")
	text, ok := r.file(w, maxTraceFile, "rate or slot")
	if !ok {
		return
	}
	at, _, err := ParseTrace(w.text, text)
	if e, ok := errors.AsType[*diagnostic.Error](err); ok {
		place := diagnostic.Error{File: e.File, Line: e.Line, Col: e.Col, Msg: e.Msg}
		if e.Text != "" {
			// The error does not quote the text, which could come from any file of the node.
			place.Msg = "not a time"
		}
		r.fail(w, "not a mahimahi trace: "+place.Error(), e.Want)
		return
	}
	r.traced = &Opportunities{At: at, Once: once, Name: w.text}
}

const usageSlot = "slot MIN [MAX] [packets N] [bytes N] or " +
	"slot distribution NAME DELAY JITTER [packets N] [bytes N]"

func (r *reader) slot() {
	s := &Slots{}
	if r.skip("distribution") {
		j := r.distribution()
		s.Min = r.time(usageSlot)
		j.Size = r.time(usageSlot)
		s.Jitter = j
	} else {
		s.Min = r.time(usageSlot)
		if r.more() {
			s.Max = r.time(usageSlot)
		}
	}
	for range 2 { // the parameters can be in any order
		if s.Packets == 0 && r.skip("packets") {
			s.Packets = r.count("packets N", maxLimit)
		}
		if s.Bytes == 0 && r.skip("bytes") {
			s.Bytes = r.bytes("bytes N")
		}
	}
	r.slots = s
}
