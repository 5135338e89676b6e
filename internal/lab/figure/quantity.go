package figure

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// quantityForm matches a number with a unit, as in experiment files.
var quantityForm = regexp.MustCompile(
	`^(-?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-zµ%]*(?:/s)?)$`)

type quantities struct {
	values []float64
	unit   string
}

// measure parses values as numbers of one unit. This is the unit in which all are written, or else
// a unit that suits the largest. It returns false if the values are not such numbers.
func measure(texts []string) (quantities, bool) {
	var q quantities
	same := true
	first, base := "", result.Pure
	values := make([]float64, len(texts))
	units := make([]string, len(texts))
	for i, s := range texts {
		m := quantityForm.FindStringSubmatch(strings.TrimSpace(s))
		if m == nil {
			return q, false
		}
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil || math.IsInf(v, 0) {
			return q, false
		}
		values[i], units[i] = v, m[2]
		if i == 0 {
			first = m[2]
		}
		same = same && m[2] == first
	}
	if same {
		u := result.Measures[first].Unit
		if !u.Scaled() || slices.Max(values) < longNumber { // the values stay as written
			if u == result.Rate && !strings.HasSuffix(first, "/s") {
				first += "/s"
			}
			return quantities{values, first}, true
		}
	}
	greatest := 0.0
	for i := range values {
		u := result.Measures[units[i]]
		ok := u.Unit.Scaled()
		if !ok && values[i] != 0 || base != result.Pure && ok && u.Unit != base {
			return q, false
		}
		if ok {
			base = u.Unit
			values[i] = u.Metric(values[i])
		}
		greatest = max(greatest, values[i])
	}
	u := result.ScaleOf(base, greatest)
	for i := range values {
		values[i] = u.Of(values[i])
	}
	return quantities{values, u.Name}, true
}

// longNumber is the value from which a number is shown in a larger unit than in the file: 5185067B
// is 5.19 MB.
const longNumber = 10_000

// Quantity converts a number with a unit, such as 211.3 ms, to a metric's unit, here seconds. It
// returns false for any other text.
func Quantity(text string, m result.Metric) (float64, bool) {
	d := m.Definition()
	form := quantityForm.FindStringSubmatch(strings.TrimSpace(strings.ReplaceAll(text, ",", "")))
	if form == nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(form[1], 64)
	if err != nil {
		return 0, false
	}
	u, known := result.Measures[form[2]]
	switch {
	case known && (u.Unit == d.Unit || u.Unit == result.Percent && d.Unit == result.Pure):
		return u.Metric(v), true
	case form[2] == "":
		return v, d.Unit == result.Pure || d.Unit == result.PacketCount
	}
	return 0, false
}

// geometric reports whether values grow by factors rather than by steps. This requires at least
// three positive values, the last 8 times the first, whose ratios are more alike than their
// differences.
func geometric(values []float64) bool {
	list := slices.Clone(values)
	slices.Sort(list)
	list = slices.Compact(list)
	if len(list) < 3 || list[0] <= 0 || list[len(list)-1]/list[0] < 8 {
		return false
	}
	var steps, factors []float64
	for i := 1; i < len(list); i++ {
		steps = append(steps, list[i]-list[i-1])
		factors = append(factors, math.Log(list[i]/list[i-1]))
	}
	return slices.Max(factors)/slices.Min(factors) < slices.Max(steps)/slices.Min(steps)
}
