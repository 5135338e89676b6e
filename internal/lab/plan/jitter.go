package plan

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
)

type jitterDraft struct {
	made        netem.Jitter
	overtake    bool
	correlation float64
	table       *node
	width       time.Duration
	widthNode   *node
}

func (j *jitterDraft) keys() []key {
	size := func(shape, what string) reading {
		return func(d *decoder, n *node) {
			if w, ok := d.span(n, what, 0, maxDelay); ok {
				j.made = netem.RandomJitter{Size: w, Shape: shape}
			}
		}
	}
	return []key{
		{"uniform", "", size("", "a maximum deviation")},
		{"normal", "", size("normal", "a standard deviation")},
		{"pareto", "", size("pareto", "a jitter")},
		{"paretonormal", "", size("paretonormal", "a jitter")},
		{"table", "", readNode(&j.table)},
		{"width", "", func(d *decoder, n *node) {
			j.widthNode = n
			readTime("the time for the table's value 8192", maxDelay, &j.width)(d, n)
		}},
		{"steps", "", j.readSteps},
		{"overtake", "", readSwitch(&j.overtake)},
		{"correlation", "", readShare(correlationText, &j.correlation)},
	}
}

// correlationText is the description of a correlation in errors.
const correlationText = "the correlation of successive packets"

var jitterKinds = []string{"uniform", "normal", "pareto", "paretonormal", "table", "steps"}

func (l *link) readJitter(d *decoder, n *node) {
	if n.kind != mapping {
		if w, ok := d.span(n, "a jitter", 0, maxDelay); ok && w > 0 {
			l.Jitter = netem.UniformJitter(w)
		}
		return
	}
	if d.alternative(n, "a jitter", jitterKinds) == "" {
		return
	}
	var j jitterDraft
	d.fill(n, "a jitter", j.keys())
	switch {
	case j.table != nil:
		j.readTable(d)
	case j.widthNode != nil:
		d.bad(j.widthNode, "a width needs a table", "a table such as table: FILE.dist")
	}
	l.Jitter, l.Overtaking, l.Correlation.Jitter = j.made, j.overtake, j.correlation
}

func (j *jitterDraft) readTable(d *decoder) {
	j.made = nil
	if j.widthNode == nil {
		d.bad(j.table, "a table needs a width: the time for its value 8192",
			"a width such as width: 10ms")
		return
	}
	text, ok := d.file(j.table, "a table of tc's, such as normal.dist")
	if !ok {
		return
	}
	table, err := netem.ParseTable(string(text))
	if err != nil {
		d.bad(j.table, diagnostic.Quote(j.table.text)+": "+plainly(err), "a table in tc's format")
		return
	}
	j.made = netem.RandomJitter{Size: j.width, Table: table, Shape: j.table.text}
}

func (j *jitterDraft) readSteps(d *decoder, n *node) {
	steps, ok := d.steps(n, "an extra delay", result.Seconds)
	if !ok {
		return
	}
	t := netem.DelayTrace{}
	for _, s := range steps {
		t.Points = append(t.Points, netem.DelayPoint{At: s.at, Delay: time.Duration(s.value)})
	}
	if d.check(n, t) {
		j.made = t
	}
}
