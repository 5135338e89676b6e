package formula

import "math"

// These are parameters of RFC 9438 §4.1.1 and §4.6.
const (
	cubicC    = 0.4
	cubicBeta = 0.7
	renoBeta  = 0.5
)

// randomConstant is the mean over time of a window w, in units of 1/√p. The window grows by 1/w
// with each packet and is halved with probability p.
const randomConstant = 1.3098

// theory has the formulas of papers and RFCs. Windows are in segments; shares and probabilities are
// from 0 to 1.
var theory = map[string]function{
	"reno_utilisation": {
		params: []param{{"b", Pure, must}}, about: "utilisation of a link with a buffer of b " +
			"bandwidth-delay products by one Reno: the area under its sawtooth",
		source: "the sawtooth of RFC 5681 §3.1; Appenzeller, Keslassy, McKeown 2004 for b of 1",
		value:  func(x []float64) float64 { return sawtooth(renoBeta, x[0]) },
	},
	"aimd_utilisation": {
		params: []param{{"beta", Pure, must}, {"b", Pure, must}}, about: "as reno_utilisation, " +
			"for a window that falls to beta of itself and grows linearly: CUBIC has .7",
		source: "the sawtooth of RFC 5681 §3.1",
		value:  func(x []float64) float64 { return sawtooth(x[0], x[1]) },
	},
	"mathis": {
		params: []param{{"p", Pure, must}}, of: Packets,
		about:  "mean window of Reno when every 1/p-th packet is lost: 1.2247/√p",
		source: "Mathis, Semke, Mahdavi, Ott 1997",
		value:  func(x []float64) float64 { return math.Sqrt(1.5 / x[0]) },
	},
	"random_window": {
		params: []param{{"p", Pure, must}}, of: Packets,
		about:  "as mathis, when each packet is lost with probability p, independently: 1.31/√p",
		source: "Mathis, Semke, Mahdavi, Ott 1997, table 1",
		value:  func(x []float64) float64 { return randomConstant / math.Sqrt(x[0]) },
	},
	"cubic_window": {
		params: []param{{"p", Pure, must}, {"rtt", Seconds, must}}, of: Packets,
		about:  "mean window of CUBIC when every 1/p-th packet is lost, Reno's if that is more",
		source: "RFC 9438 §5",
		value: func(x []float64) float64 {
			const reno = 1.2
			factor := math.Sqrt(math.Sqrt(cubicC * (3 + cubicBeta) / (4 * (1 - cubicBeta))))
			return max(factor*math.Pow(x[1]/x[0], .75), reno/math.Sqrt(x[0]))
		},
	},
	"cubic_k": {
		params: []param{{"w", Packets, must}}, of: Seconds,
		about: "time that CUBIC takes to return to a window of w", source: "RFC 9438 §4.2",
		value: func(x []float64) float64 { return math.Cbrt(x[0] * (1 - cubicBeta) / cubicC) },
	},
	"pftk": {
		params: []param{
			{"mss", Bytes, must},
			{"p", Pure, must},
			{"rtt", Seconds, must},
			{"rto", Seconds, 1},
			{"b", Pure, 1},
		}, of: Rate,
		about:  "rate of Reno with timeouts, with one acknowledgment for b segments",
		source: "Padhye, Firoiu, Towsley, Kurose 1998; RFC 5348 §3.1",
		value:  pftk,
	},
	"slow_start_rounds": {
		params: []param{{"w", Packets, must}, {"iw", Packets, 10}}, of: Pure,
		about: "round trips of slow start from a window of iw to one of w", source: "RFC 5681 §3.1",
		value: func(x []float64) float64 { return math.Ceil(math.Log2(x[0] / x[1])) },
	},
	"slow_start_trips": {
		params: []param{{"n", Packets, must}, {"iw", Packets, 10}}, of: Pure,
		about:  "round trips that n segments take in slow start, with the handshake's",
		source: "RFC 5681 §3.1", value: func(x []float64) float64 {
			return 1 + math.Ceil(math.Log2(x[0]/x[1]+1))
		},
	},
	"avoidance_packets": {
		params: []param{{"t", Seconds, must}, {"rtt", Seconds, must}, {"w", Packets, 1}},
		of:     Packets,
		about: "packets that a window starting at w and growing by one per round trip " +
			"delivers in t",
		source: "RFC 5681 §3.1",
		value: func(x []float64) float64 {
			rounds := x[0] / x[1]
			return x[2]*rounds + rounds*rounds/2
		},
	},
	"overflow_window": {
		params: []param{
			{"rate", Rate, must},
			{"rtt", Seconds, must},
			{"queue", Bytes, must},
			{"size", Bytes, must},
		}, of: Packets,
		about:  "window that fills a path and its queue with packets of a size",
		source: "Little's law",
		value:  func(x []float64) float64 { return (x[0]*x[1]/8 + x[2]) / x[3] },
	},
	"fixed_goodput": {
		params: []param{
			{"window", Bytes, must}, {"rtt", Seconds, must}, {"rate", Rate, must},
		}, of: Rate,
		about: "rate of a fixed window without loss", source: "Little's law",
		value: func(x []float64) float64 { return min(x[0]*8/x[1], x[2]) },
	},
	"stop_and_wait": {
		params: []param{{"p", Pure, must}, {"a", Pure, must}},
		about:  "utilisation of stop-and-wait, where a is the one-way delay in packet times",
		source: "Stallings, Data and Computer Communications, appendix on performance",
		value:  func(x []float64) float64 { return (1 - x[0]) / (1 + 2*x[1]) },
	},
	"gbn_utilisation": {
		params: []param{{"p", Pure, must}, {"w", Packets, must}, {"a", Pure, must}},
		about: "utilisation of go-back-N with a window of w, where a is the one-way delay in " +
			"packet times",
		source: "Stallings, Data and Computer Communications, appendix on performance",
		value: func(x []float64) float64 {
			p, w, round := x[0], x[1], 1+2*x[2]
			if w >= round {
				return (1 - p) / (1 + (round-1)*p)
			}
			return w * (1 - p) / (round * (1 - p + w*p))
		},
	},
	"sr_utilisation": {
		params: []param{{"p", Pure, must}, {"w", Packets, must}, {"a", Pure, must}},
		about:  "utilisation of selective repeat with a window of w, a as in gbn_utilisation",
		source: "Stallings, Data and Computer Communications, appendix on performance",
		value: func(x []float64) float64 {
			return (1 - x[0]) * min(1, x[1]/(1+2*x[2]))
		},
	},
	"sr_packets": {
		params: []param{{"n", Packets, must}, {"p", Pure, must}}, of: Packets,
		about:  "minimum number of packets that selective repeat sends for n packets",
		source: "the mean of a geometric distribution",
		value:  func(x []float64) float64 { return x[0] / (1 - x[1]) },
	},
	"fence": {
		params: []param{
			{"n", Packets, must}, {"p", Pure, must}, {"t", Seconds, must}, {"tick", Seconds, .01},
		}, of: Packets,
		about: "packets that the sliding fence sends for n of data in a time t when each " +
			"direction loses p: the outstanding ones and one acknowledgment at every tick",
		source: "founding document 000: n(1+p)/(1-p) + t/tick",
		value: func(x []float64) float64 {
			return x[0]*(1+x[1])/(1-x[1]) + x[2]/x[3]
		},
	},
	"bursts_loss": {
		params: []param{{"p", Pure, must}, {"r", Pure, must}, {"bad", Pure, 1}, {"good", Pure, 0}},
		about:  "mean loss of a Gilbert-Elliott chain", source: "Gilbert 1960; Elliott 1963",
		value: func(x []float64) float64 { return (x[0]*x[2] + x[1]*x[3]) / (x[0] + x[1]) },
	},
	"overtaking": {
		params: []param{{"gap", Seconds, must}, {"sd", Seconds, must}},
		about:  "probability that normal jitter reorders two packets sent a gap apart",
		source: "the difference of two normal distributions",
		value:  func(x []float64) float64 { return math.Erfc(x[0]/(2*x[1])) / 2 },
	},
	"codel_drop": {
		params: []param{{"n", Pure, must}, {"interval", Seconds, .1}}, of: Seconds,
		about:  "time from CoDel's first drop to its n-th",
		source: "RFC 8289 §5.6",
		value:  codelDrop,
	},
	"codel_drops": {
		params: []param{{"t", Seconds, must}, {"interval", Seconds, .1}}, of: Packets,
		about: "number of packets that CoDel drops in a time from the first drop on, while " +
			"the delay stays too long",
		source: "RFC 8289 §5.6",
		value:  codelDrops,
	},
}

// sawtooth returns the mean share of the path that a window uses. The window grows by one per round
// trip until it exceeds 1+b, the path and its buffer. Then it falls to beta times 1+b. A window
// below 1 is delivered once per round trip; above 1, the round trip grows instead.
func sawtooth(beta, b float64) float64 {
	top := 1 + b
	low := beta * top
	if low >= 1 {
		return 1
	}
	full := top*top - 1
	return (1 - low*low + full) / (2*(1-low) + full)
}

func pftk(x []float64) float64 {
	size, p, rtt, rto, b := x[0], x[1], x[2], x[3], x[4]
	wait := rtt*math.Sqrt(2*b*p/3) +
		rto*min(1, 3*math.Sqrt(3*b*p/8))*p*(1+32*p*p)
	return 8 * size / wait
}

// codelDrop adds the intervals between drops. For many drops it uses an integral instead of the
// sum.
func codelDrop(x []float64) float64 {
	const exact = 10_000
	sum, n := 0.0, math.Floor(x[0])
	for i := 1.0; i < min(n, exact); i++ {
		sum += 1 / math.Sqrt(i)
	}
	if n > exact {
		sum += 2 * (math.Sqrt(n) - math.Sqrt(exact))
	}
	return sum * x[1]
}

// codelDrops counts the drops up to a time after the first one. The n-th drop comes 1/√n of an
// interval after the one before.
func codelDrops(x []float64) float64 {
	const most = 1e7
	n := 1.0
	for at := 0.0; n < most; n++ {
		if at += x[1] / math.Sqrt(n); !(at <= x[0]) {
			break
		}
	}
	return n
}
