package plan

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// chain is a mahimahi command line: nested shells, the outermost first.
type chain struct {
	d        *decoder
	words    []*node
	down, up *link
	linked   bool
	loss     map[*link]float64
}

// shells maps the supported programs to the functions that read their arguments.
var shells map[string]func(*chain, *node)

func init() { // shells is set in init, because its functions refer to it
	shells = map[string]func(*chain, *node){
		"mm-delay": (*chain).readDelay, "mm-loss": (*chain).readLoss,
		"mm-link": (*chain).readLink, "mm-onoff": (*chain).readOnOff,
	}
}

var shellNames = []string{"mm-delay", "mm-link", "mm-loss", "mm-onoff"}

const maxChainWords = 200

// readMahimahi reads a mahimahi command line. Data uses the downlink, like a download by a program
// in the shells.
func readMahimahi(d *decoder, n *node, down, up *link) {
	text, ok := d.scalar(n, "a chain such as mm-delay 88 mm-link T T")
	if !ok {
		return
	}
	down.at, up.at = n, n
	c := &chain{d: d, down: down, up: up, loss: map[*link]float64{}}
	for at := 0; at < len(text); {
		word, rest, _ := strings.Cut(text[at:], " ")
		if word != "" && word != "--" {
			skip := utf8.RuneCountInString(text[:at])
			c.words = append(c.words, &node{place: n.within(skip, word), text: word})
		}
		at = len(text) - len(rest)
		if rest == "" {
			break
		}
	}
	if len(c.words) > maxChainWords {
		d.bad(n, "the chain is too long", "200 arguments at most")
		return
	}
	for len(c.words) > 0 {
		w := c.words[0]
		c.words = c.words[1:]
		read, ok := shells[w.text]
		if !ok {
			d.bad(w, diagnostic.Quote(w.text)+" is not a mahimahi shell that node lab supports"+
				diagnostic.DidYouMean(w.text, shellNames), diagnostic.OneOf(shellNames))
			return
		}
		before := d.report.added
		read(c, w)
		if d.report.added > before {
			return // the next word may be an argument of this command
		}
	}
	for _, l := range []*link{down, up} {
		if share, lossy := c.loss[l]; lossy && l.Loss == nil {
			l.Loss = netem.UniformLoss(share)
		}
	}
}

// next returns the next argument of a shell. It returns nil if it has reported an error.
func (c *chain) next(shell *node, usage string) *node {
	if len(c.words) == 0 || slices.Contains(shellNames, c.words[0].text) {
		c.d.bad(shell, shell.text+" needs more arguments", usage)
		return nil
	}
	w := c.words[0]
	c.words = c.words[1:]
	return w
}

func (c *chain) readDelay(shell *node) {
	w := c.next(shell, "mm-delay MILLISECONDS")
	if w == nil {
		return
	}
	v, ok := c.d.number(w, "milliseconds", 0, int64(maxDelay/time.Millisecond))
	if !ok {
		return
	}
	for _, l := range []*link{c.down, c.up} {
		if l.Delay += time.Duration(v) * time.Millisecond; l.Delay > maxDelay {
			c.d.bad(w, "more than "+maxDelay.String()+" in total", "")
		}
	}
}

// direction reads uplink or downlink. It returns nil if it has reported an error.
func (c *chain) direction(shell *node, usage string) *link {
	w := c.next(shell, usage)
	if w == nil {
		return nil
	}
	switch word, _ := c.d.word(w, "a direction", []string{"uplink", "downlink"}); word {
	case "uplink":
		return c.up
	case "downlink":
		return c.down
	}
	return nil
}

// readLoss reads mm-loss, a share from 0 to 1. Several shares apply one after the other.
func (c *chain) readLoss(shell *node) {
	const usage = "mm-loss uplink RATE or mm-loss downlink RATE"
	l := c.direction(shell, usage)
	if l == nil {
		return
	}
	w := c.next(shell, usage)
	if w == nil {
		return
	}
	m, ok := c.d.quantity(w, "a share from 0 to 1", result.Pure)
	switch {
	case !ok:
	case m.value > 1:
		c.d.bad(w, w.text+" is above 1", "a share from 0 to 1")
	case l.Loss != nil:
		c.d.bad(shell, "mm-loss and mm-onoff cannot be used in the same direction",
			"only one of them")
	default:
		c.loss[l] += (1 - c.loss[l]) * m.value
	}
}

// readOnOff reads mm-onoff: the means of exponentially distributed times, in seconds.
func (c *chain) readOnOff(shell *node) {
	const usage = "mm-onoff uplink MEAN-ON-SECONDS MEAN-OFF-SECONDS"
	l := c.direction(shell, usage)
	if l == nil {
		return
	}
	var times [2]time.Duration
	for i := range times {
		w := c.next(shell, usage)
		if w == nil {
			return
		}
		m, ok := c.d.quantity(w, "seconds", result.Pure)
		if !ok {
			return
		}
		if m.value > maxSpan.Seconds() {
			c.d.bad(w, "out of range", "seconds")
			return
		}
		times[i] = time.Duration(m.value * float64(time.Second))
	}
	if _, lossy := c.loss[l]; lossy || l.Loss != nil {
		c.d.bad(shell, "a second loss in the same direction", "only one of them")
		return
	}
	o := netem.OnOff{On: times[0], Off: times[1], Poisson: true}
	if c.d.check(shell, o) {
		l.Loss = o
	}
}

// readLink reads mm-link: the traces of the uplink and the downlink, and options.
func (c *chain) readLink(shell *node) {
	const usage = "mm-link UPLINK-TRACE DOWNLINK-TRACE"
	if c.linked {
		c.d.bad(shell, "a second mm-link", "one bottleneck")
	}
	c.linked = true
	for _, l := range []*link{c.up, c.down} {
		w := c.next(shell, usage)
		if w == nil {
			return
		}
		if strings.HasPrefix(w.text, "-") {
			c.d.bad(w, diagnostic.Quote(w.text)+" is not a trace", usage)
			return
		}
		unlessNone(l.readTrace)(c.d, w)
		l.queue = &node{place: w.place, text: "infinite"}
	}
	queues := map[*link]*mmQueue{c.down: {}, c.up: {}}
	for len(c.words) > 0 && strings.HasPrefix(c.words[0].text, "-") {
		c.readOption(queues)
	}
	for _, l := range []*link{c.up, c.down} {
		c.queue(l, queues[l])
	}
}

// mmQueue has the values of a direction's options --…-queue and --…-queue-args.
type mmQueue struct{ kind, args *node }

func (c *chain) readOption(queues map[*link]*mmQueue) {
	w := c.words[0]
	c.words = c.words[1:]
	name, value, found := strings.Cut(strings.TrimLeft(w.text, "-"), "=")
	v := *w
	v.text = strings.Trim(value, `"'`)
	v.place = w.within(utf8.RuneCountInString(strings.TrimSuffix(w.text, value)), value)
	if !found && strings.Contains(name, "queue") && len(c.words) > 0 {
		v = *c.words[0]
		c.words = c.words[1:]
	}
	switch name {
	case "uplink-queue":
		queues[c.up].kind = &v
	case "downlink-queue":
		queues[c.down].kind = &v
	case "uplink-queue-args":
		queues[c.up].args = &v
	case "downlink-queue-args":
		queues[c.down].args = &v
	case "once":
		for _, l := range []*link{c.up, c.down} {
			if o, ok := l.Rate.(netem.Opportunities); ok {
				o.Once = true
				l.Rate = o
			}
		}
	case "uplink-log", "downlink-log", "meter-uplink", "meter-uplink-delay", "meter-downlink",
		"meter-downlink-delay", "meter-all", "uplink-meter", "downlink-meter":
		// These options only log or display.
	default:
		known := []string{
			"--uplink-queue", "--downlink-queue", "--uplink-queue-args", "--downlink-queue-args",
			"--uplink-log", "--downlink-log", "--once",
		}
		c.d.bad(w, diagnostic.Quote(w.text)+" is not a supported option of mm-link"+
			diagnostic.DidYouMean("--"+name, known), diagnostic.OneOf(known))
	}
}

// mmArguments maps the arguments of mahimahi's queues to the units of limits and to the keys of
// experiment files.
var mmArguments = map[string]map[string]string{
	"droptail": {"bytes": "B", "packets": "pkt"},
	"drophead": {"bytes": "B", "packets": "pkt"},
	"codel":    {"bytes": "B", "packets": "pkt", "target": "target", "interval": "interval"},
	"pie":      {"bytes": "B", "packets": "pkt", "qdelay_ref": "target", "max_burst": "burst"},
}

// queue writes a direction's queue in the notation of the file, for readQueue.
func (c *chain) queue(l *link, q *mmQueue) {
	if q.kind == nil {
		if q.args != nil {
			c.d.bad(q.args, "queue arguments need a queue", "--downlink-queue=droptail")
		}
		return
	}
	kinds := []string{"infinite", "droptail", "drophead", "codel", "pie"}
	kind, ok := c.d.word(q.kind, "a mahimahi queue", kinds)
	if !ok || kind == "infinite" {
		return
	}
	out := &node{place: q.kind.place, kind: mapping}
	set := func(name string, v *node) {
		out.pairs = append(out.pairs, pair{&node{place: v.place, text: name}, v})
	}
	set("type", q.kind)
	limits := &node{place: q.kind.place, kind: list}
	if q.args != nil {
		for arg := range strings.SplitSeq(q.args.text, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(arg), "=")
			ahead, _, _ := strings.Cut(q.args.text, arg)
			v := &node{place: q.args.within(utf8.RuneCountInString(ahead), arg), text: value}
			as, known := mmArguments[kind][name]
			switch {
			case !known:
				c.d.bad(v, diagnostic.Quote(name)+" is not an argument of the mahimahi queue "+kind,
					"")
				return
			case as == "B" || as == "pkt":
				v.text += as
				limits.items = append(limits.items, v)
			default:
				v.text += "ms"
				set(as, v)
			}
		}
	}
	if len(limits.items) > 0 {
		set("limit", limits)
	} else if kind == "droptail" || kind == "drophead" {
		c.d.bad(q.kind, "a mahimahi queue needs a limit", "--downlink-queue-args=bytes=26400")
		return
	}
	if kind == "pie" { // mahimahi's own update period
		set("update", &node{place: q.kind.place, text: "30ms"})
	}
	l.queue = out
}
