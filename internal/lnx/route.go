package lnx

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// Route is a static route.
type Route struct {
	// Prefix is the destination, without host bits.
	Prefix netip.Prefix
	// Via is the next hop. It is invalid if Kind is set.
	Via netip.Addr
	// Metric orders routes to the same prefix: the route with the smallest metric is used.
	Metric int
	// Kind is "blackhole", "unreachable" or "prohibit" for a route without a next hop. Otherwise it
	// is empty.
	Kind string
	// Pos is where the file names the prefix.
	Pos Pos

	viaAt Pos
}

// dropKinds are the kinds of routes without a next hop.
var dropKinds = []string{"blackhole", "unreachable", "prohibit"}

// MaxMetric is the largest metric of a route.
const MaxMetric = 1<<31 - 1

func (p *parser) readRoute(l line) {
	if len(l.words) > 2 && slices.Contains(dropKinds, l.words[2].Text) {
		prefix, ok := p.report.prefix(l.words[1])
		if p.report.words(l, 3, 3, usageRoute) && ok {
			p.cfg.Routes = append(p.cfg.Routes, Route{
				Prefix: prefix, Kind: l.words[2].Text, Pos: l.words[1].Pos,
			})
		}
		return
	}
	okForm := p.report.fixed(l, 2, "via", usageRoute)
	if !okForm && len(l.words) < 4 || !p.report.words(l, 4, 6, usageRoute) {
		return
	}
	prefix, okPrefix := p.report.prefix(l.words[1])
	via, okVia := p.report.nextHop(l.words[3])
	metric, okMetric := p.report.metric(l)
	if okForm && okPrefix && okVia && okMetric {
		p.cfg.Routes = append(p.cfg.Routes, Route{
			Prefix: prefix, Via: via, Metric: metric, Pos: l.words[1].Pos, viaAt: l.words[3].Pos,
		})
	}
}

// metric reads the metric at the end of a route line, if there is one.
func (r *report) metric(l line) (int, bool) {
	if len(l.words) == 4 {
		return 0, true
	}
	if !r.fixed(l, 4, "metric", usageRoute) || !r.words(l, 6, 6, usageRoute) {
		return 0, false
	}
	return r.number(l.words[5], 0, MaxMetric, "")
}

// words returns the words of the route's line after the prefix.
func (r *Route) words() string {
	switch {
	case r.Kind != "":
		return r.Kind
	case r.Metric != 0:
		return "via " + r.Via.String() + " metric " + strconv.Itoa(r.Metric)
	}
	return "via " + r.Via.String()
}

// checkRoutes records errors for routes that are invalid or contradict each other.
func (p *parser) checkRoutes() {
	type rank struct {
		prefix netip.Prefix
		words  string // words after the prefix: a next hop, a kind, or a metric
	}
	seen := map[rank]Pos{}
	for _, r := range p.cfg.Routes {
		to := rank{r.Prefix, r.Via.String() + r.Kind}
		metric := rank{r.Prefix, strconv.Itoa(r.Metric)}
		before, again := seen[to]
		want := "only one such line"
		if !again {
			before, again = seen[metric]
			want = "another metric"
		}
		if again {
			p.report.add(r.Pos, r.Prefix.String(), r.Prefix.String()+
				" already has a route on "+before.lineText(), want)
		}
		seen[to], seen[metric] = r.Pos, r.Pos
		if r.Kind == "" {
			p.checkNextHop(r)
		}
	}
	if len(p.cfg.Routes) > 0 && p.cfg.Routing == RoutingNone {
		at := p.seen["routing"]
		p.report.add(at.Pos, at.Text, "routing none, but the file has static routes",
			"routing static, or no routes")
	}
}

func (p *parser) readRouting(l line) {
	kinds := []Routing{
		RoutingRIP, RoutingRIP2, RoutingRIPng, RoutingStatic, RoutingNone, RoutingBoth,
	}
	names := []string{"rip", "rip2", "ripng", "static", "none", "rip ripng"}
	said := l.words[1].Text
	if len(l.words) > 2 {
		said += " " + l.words[2].Text
	}
	i := slices.Index(names, said)
	if i < 0 && slices.Contains(names, l.words[1].Text) {
		p.report.bad(l.words[2], "not a protocol that runs with "+l.words[1].Text,
			"rip ripng; rip2 includes RIPng")
		return
	}
	if i < 0 {
		p.report.bad(l.words[1], "not a protocol"+diagnostic.DidYouMean(l.words[1].Text, names),
			diagnostic.OneOf(names[:len(names)-1])+"; `rip ripng` runs both")
		return
	}
	if p.once("routing", l.keyword()) {
		p.cfg.Routing = kinds[i]
	}
}
