package examine

import (
	"context"
	"slices"
	"sync"
	"time"
)

// equalRuns is the number of runs with equal outcomes that make a verdict. Failed runs during which
// the examiner itself was late do not count, up to maxVoid of them.
const (
	equalRuns = 3
	maxVoid   = 5
)

// Result is the result of one check.
type Result struct {
	Check   *Check
	Verdict Verdict
	// Failure is why the check did not pass; Missing is the feature for which it was skipped.
	Failure *Failure
	Missing Feature
	// Runs are the verdicts of the single runs.
	Runs []Verdict
	// Ladder has the events of the run that failed, or of the last run.
	Ladder []Event
	// Links are the links in that run.
	Links []Link
	// Took is the duration of the longest run, by the subject's clock.
	Took time.Duration
}

// Report is the result of an examination.
type Report struct {
	Subject  string
	Began    time.Time
	Took     time.Duration // by the wall clock
	Units    Units
	Features []Feature
	Results  []Result // in the order of the checks
}

// Count returns the number of results with a verdict.
func (r *Report) Count(v Verdict) int {
	n := 0
	for i := range r.Results {
		if r.Results[i].Verdict == v {
			n++
		}
	}
	return n
}

// Good reports whether all checks passed or were skipped.
func (r *Report) Good() bool { return r.Count(Pass)+r.Count(Skipped) == len(r.Results) }

// Exam examines a subject.
type Exam struct {
	Subject Subject
	Checks  []*Check
	// Workers is the number of checks that run at the same time; zero: one.
	Workers int
	// Runs is the number of equal runs that make a verdict; zero: three.
	Runs int
	// Long includes checks that take minutes. They run once.
	Long bool
	// Done is called with each result, by one goroutine at a time.
	Done func(*Result)
}

// Run carries out all checks. When ctx ends, it returns early, and the remaining results are Void.
func (e *Exam) Run(ctx context.Context) *Report {
	began := time.Now()
	m := measure(e.Subject)
	m.features[FeatureLong] = e.Long
	r := &Report{
		Subject: e.Subject.Name(), Began: began, Units: m.units, Features: m.list(),
		Results: make([]Result, len(e.Checks)),
	}
	var wait sync.WaitGroup
	var report sync.Mutex
	queue := make(chan int)
	for range max(1, e.Workers) {
		wait.Go(func() {
			for i := range queue {
				r.Results[i] = e.one(ctx, e.Checks[i], m)
				if report.Lock(); e.Done != nil {
					e.Done(&r.Results[i])
				}
				report.Unlock()
			}
		})
	}
	for i := range e.Checks {
		queue <- i
	}
	close(queue)
	wait.Wait()
	r.Took = time.Since(began)
	return r
}

// one runs a check until its verdict is certain.
func (e *Exam) one(ctx context.Context, c *Check, m *measured) Result {
	r := Result{Check: c, Verdict: Skipped}
	for _, f := range c.needs() {
		if !m.features[f] {
			r.Missing = f
			return r
		}
	}
	need := e.Runs
	if need == 0 {
		need = equalRuns
	}
	if slices.Contains(c.Needs, FeatureLong) {
		need = 1
	}
	late := false
	for void := 0; len(r.Runs) < need; {
		if ctx.Err() != nil {
			r.Verdict, r.Failure = Void, &Failure{Reason: "the examination was stopped"}
			return r
		}
		o := execute(e.Subject, c, m.units)
		if (o.late || o.verdict == Void) && void < maxVoid {
			void++
			continue
		}
		r.add(o)
		late = late || o.late
	}
	if r.Verdict == Flaky && late {
		r.Verdict = Void
	}
	return r
}

// add adds the outcome of a run.
func (r *Result) add(o *outcome) {
	if len(r.Runs) == 0 {
		r.Verdict = o.verdict
	} else if r.Runs[0] != o.verdict {
		r.Verdict = Flaky
	}
	r.Runs = append(r.Runs, o.verdict)
	if r.Failure == nil {
		r.Failure, r.Ladder, r.Links = o.failure, o.ladder, o.setup.Links
	}
	r.Took = max(r.Took, o.took)
}

// needs returns the features that a check needs, including those that its kind implies.
func (c *Check) needs() []Feature {
	list := c.Needs
	if c.Router {
		return append(list, FeatureRouter)
	}
	if c.given != "" && c.given != "CLOSED" {
		list = append(list, FeatureTCP, FeatureUser)
	}
	return list
}

// measured holds what an exam measures at the subject before the checks.
type measured struct {
	units    Units
	features map[Feature]bool
}

func (m *measured) list() []Feature {
	var list []Feature
	for _, f := range features {
		if m.features[Feature(f)] {
			list = append(list, Feature(f))
		}
	}
	return list
}

// Bounds of the units, and the RTO of a subject that does not answer. A shorter RTO would only
// measure the load of the machine.
const (
	leastRTT   = 20 * time.Millisecond
	leastRTO   = 200 * time.Millisecond
	defaultRTO = time.Second
)

// overrideTimeout is the minimum time after which a sender may fill a small window (RFC 9293
// §3.8.6.2.1). Nodes whose timers take milliseconds send earlier.
const overrideTimeout = 100 * time.Millisecond

// measure measures the subject's RTO and finds out its features.
func measure(subject Subject) *measured {
	m := &measured{features: map[Feature]bool{}, units: Units{
		RTT: leastRTT, RTO: defaultRTO, Period: subject.RIPPeriod(), Timeout: subject.RIPTimeout(),
	}}
	for _, f := range features {
		m.features[Feature(f)] = subject.Has(Feature(f))
	}
	for _, f := range []Feature{
		FeatureMSS, FeatureWScale, FeatureSACK, FeatureStamps,
		FeatureICMP, FeatureFragment, FeatureControl, FeatureTimers, FeatureLong,
	} {
		m.features[f] = false
	}
	if m.probe(subject, "send packet type 8 data \"examiner\"\nexpect packet type 0") != nil {
		m.features[FeatureICMP] = true
		m.features[FeatureFragment] = m.probe(subject,
			"send packet type 8 len 64 id 7 fragments 32\nexpect packet type 0 len 72") != nil
	}
	x := m.probe(subject, "listen\nwait 2 rtt\nsend S mss 1360 sackok 0 wscale 7 tsval 1\n"+
		"expect S.")
	if x != nil {
		for i, f := range map[int]Feature{
			0: FeatureMSS, 1: FeatureWScale, 2: FeatureSACK,
			5: FeatureStamps,
		} {
			_, m.features[f] = optionKeys[i].value(x.last.tcp)
		}
	}
	if m.probe(subject, "listen\nwait 2 rtt\nsend S\nexpect S.") == nil {
		return m // the other measurements need a connection
	}
	x = m.probe(subject, "listen\nwait 2 rtt\nsend S\nexpect S.\nsend .\nwait 2 rtt\n"+
		"write 100\nexpect . len 100 seq 1 within 2 s\nexpect . len 100 seq 1 within 4 s")
	if x != nil {
		rto := x.last.at.Sub(x.before.at)
		m.units.RTO = max(rto, leastRTO)
		m.features[FeatureTimers] = rto >= overrideTimeout
	}
	m.features[FeatureControl] = m.probe(subject, "sendfile 60000\nexpect S within 2 s\n"+
		"send S. mss 1000\nexpect . len >0 within 2 s\nmost 30 . len >0 for 5 rtt") != nil
	return m
}

// probe carries out steps on a new start of the subject. It returns nil if they failed.
func (m *measured) probe(subject Subject, steps string) *execution {
	p := &parser{file: "probe", seen: map[string]bool{}}
	p.readSteps(steps)
	if len(p.errs) > 0 {
		panic("BUG: examine: " + p.errs.Error())
	}
	x, done, err := start(subject, &p.check, m.units)
	if err != nil {
		return nil
	}
	defer done()
	if f, _ := x.all(); f != nil {
		return nil
	}
	return x
}
