package lab

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/formula"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// What returns the expectation's description, or the value that it checks.
func (v *Verdict) What() string {
	switch {
	case v.About != "":
		return v.About
	case len(v.Claim.Operators) == 1:
		return v.Claim.Terms[0].String()
	}
	return v.Claim.String()
}

// Case describes the cell by its settings that the claim does not select.
func (v *Verdict) Case() string {
	return settingsText(v.Open, " ", ", ")
}

// Expected returns the expected value.
func (v *Verdict) Expected() string {
	if len(v.Claim.Operators) > 1 {
		return v.Claim.String()
	}
	sign := signs[v.Claim.Operators[0]]
	if len(v.Values) < 2 {
		return sign + v.Claim.Terms[1].String()
	}
	return sign + Quantity(v.Values[1], v.Unit)
}

// signs are the operators in front of an expected value.
var signs = map[formula.Operator]string{
	formula.AtLeast: "≥ ", formula.AtMost: "≤ ", formula.Above: "> ", formula.Below: "< ",
}

// Got returns the result, with its 95 % interval if there is one, or the error.
func (v *Verdict) Got() string {
	if v.Unsteady {
		return v.got() + ", not steady"
	}
	return v.got()
}

func (v *Verdict) got() string {
	switch {
	case v.Err != nil:
		return v.Err.Error()
	case len(v.Claim.Operators) == 1:
		if v.Reach > 0 {
			return spread(v.Values[0], v.Reach, v.Unit)
		}
		return Quantity(v.Values[0], v.Unit)
	}
	parts := make([]string, len(v.Values))
	for i := range v.Values {
		parts[i] = Quantity(v.Values[i], v.Unit)
	}
	return strings.Join(parts, ", ")
}

// Tolerance returns the tolerance of an equality; empty for other comparisons.
func (v *Verdict) Tolerance() string {
	switch {
	case v.Claim.Within == 0:
		return ""
	case v.Claim.Absolute:
		return "± " + Quantity(v.Claim.Within, v.Unit)
	}
	return "± " + decimal(v.Claim.Within*100, 2) + " %"
}

// Quantity formats a number with its unit, to four digits.
func Quantity(x float64, unit formula.Unit) string {
	s := scaleOf(x, unit)
	return decimal(s.Of(x), 4) + s.Name
}

// scaleOf returns the scale of a number, with a space in front of the unit's name. Pure numbers
// have no name.
func scaleOf(x float64, unit formula.Unit) result.Scale {
	if !unit.Scaled() {
		return result.Scale{Size: 1}
	}
	s := result.ScaleOf(unit, x)
	s.Name = " " + s.Name
	return s
}

// spread formats a mean and the half-width of its interval in one unit. It gives the half-width two
// digits.
func spread(x, reach float64, unit formula.Unit) string {
	s := scaleOf(max(math.Abs(x), reach), unit)
	reach = s.Of(reach)
	places := min(result.Decimals(reach, 2), 9)
	return fmt.Sprintf("%.*f ± %.*f%s", places, s.Of(x), places, reach, s.Name)
}

// decimal formats x with at least a number of digits, without an exponent.
func decimal(x float64, digits int) string {
	text := strconv.FormatFloat(x+0, 'f', min(result.Decimals(x, digits), 12), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
