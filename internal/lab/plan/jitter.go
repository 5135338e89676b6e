package plan

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/mistake"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// jitterOf is a jitter in the making.
type jitterOf struct {
	made      netem.Jitter
	overtake  bool
	alike     float64
	table     *node
	width     time.Duration
	widthNode *node
}

// width reads a key that is a distribution.
func width(name, what string, made func(time.Duration) netem.Jitter) key[jitterOf] {
	return key[jitterOf]{name, "", func(d *decoder, n *node, j *jitterOf) {
		if w, ok := d.span(n, what, 0, maxDelay); ok {
			j.made = made(w)
		}
	}}
}

var jitterKeys = []key[jitterOf]{
	width("uniform", "so much more or less", func(w time.Duration) netem.Jitter {
		return netem.UniformJitter(w)
	}),
	width("normal", "a standard deviation", func(w time.Duration) netem.Jitter {
		return netem.NormalJitter(w)
	}),
	width("pareto", "a jitter",
		func(w time.Duration) netem.Jitter { return netem.ParetoJitter(w) }),
	width("paretonormal", "a jitter", func(w time.Duration) netem.Jitter {
		return netem.ParetoNormalJitter(w)
	}),
	{"table", "", func(_ *decoder, n *node, j *jitterOf) { j.table = n }},
	{"width", "", func(d *decoder, n *node, j *jitterOf) {
		j.widthNode = n
		d.time(n, "what 8192 stands for in the table", maxDelay, &j.width)
	}},
	{"steps", "", func(d *decoder, n *node, j *jitterOf) { j.made = d.delaySteps(n) }},
	{"overtake", "", func(d *decoder, n *node, j *jitterOf) { d.truth(n, &j.overtake) }},
	{"correlation", "", func(d *decoder, n *node, j *jitterOf) {
		d.share(n, "how alike successive packets are", &j.alike)
	}},
}

// jitterKinds are the distributions.
var jitterKinds = []string{"uniform", "normal", "pareto", "paretonormal", "table", "steps"}

// jitter reads how the delay varies.
func (d *decoder) jitter(n *node, l *link) {
	if n.plain("none") {
		return
	}
	if n.kind != mapping {
		if w, ok := d.span(n, "a jitter", 0, maxDelay); ok && w > 0 {
			l.Jitter = netem.UniformJitter(w)
		}
		return
	}
	if !d.alternatives(n, "a jitter", jitterKinds) {
		return
	}
	var j jitterOf
	fill(d, n, "a jitter", jitterKeys, &j)
	switch {
	case j.table != nil:
		j.made = d.jitterTable(&j)
	case j.widthNode != nil:
		d.bad(j.widthNode, "a width without a table", "table: FILE.dist beside it")
	}
	l.Jitter, l.Overtaking, l.Correlation.Jitter = j.made, j.overtake, j.alike
}

// jitterTable reads a file of tc's.
func (d *decoder) jitterTable(j *jitterOf) netem.Jitter {
	if j.widthNode == nil {
		d.bad(j.table, "a table without what 8192 stands for", "width: 10ms beside it")
		return nil
	}
	text, ok := d.file(j.table, "a table of tc's, such as normal.dist")
	if !ok {
		return nil
	}
	table, err := netem.ParseTable(string(text))
	if err != nil {
		d.bad(j.table, mistake.Quote(j.table.text)+": "+plainly(err), "a table of tc's")
		return nil
	}
	return netem.TableJitter{Jitter: j.width, Table: table, Name: j.table.text}
}

// delaySteps reads how much longer packets take from which time on.
func (d *decoder) delaySteps(n *node) netem.Jitter {
	steps, ok := d.steps(n, "how much longer packets take", timeSpan)
	if !ok {
		return nil
	}
	t := netem.DelayTrace{}
	for _, s := range steps {
		t.Points = append(t.Points, netem.DelayPoint{At: s.at, Delay: time.Duration(s.value)})
	}
	if !d.check(n, t) {
		return nil
	}
	return t
}
