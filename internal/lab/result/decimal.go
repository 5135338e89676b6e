package result

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// appendTime writes a time as a decimal number of units, exactly: what is read again is what was
// written, to the nanosecond. The unit is a power of ten of nanoseconds.
func appendTime(dst []byte, d, unit time.Duration) []byte {
	if d < 0 {
		dst = append(dst, '-')
		d = -d
	}
	dst = strconv.AppendInt(dst, int64(d/unit), 10)
	rest := d % unit
	if rest == 0 {
		return dst
	}
	dst = append(dst, '.')
	for rest > 0 {
		unit /= 10
		dst = append(dst, byte('0'+rest/unit))
		rest %= unit
	}
	return dst
}

// parseTime reads what appendTime wrote.
func parseTime(text string, unit time.Duration) (time.Duration, error) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, rest, _ := strings.Cut(digits, ".")
	n, err := strconv.ParseUint(whole, 10, 63)
	if err != nil || n > uint64((1<<63-1)/unit) {
		return 0, fmt.Errorf("%q is not a time", text)
	}
	d := time.Duration(n) * unit
	for _, c := range []byte(rest) {
		unit /= 10
		if c < '0' || c > '9' || unit == 0 {
			return 0, fmt.Errorf("%q is not a time", text)
		}
		d += time.Duration(c-'0') * unit
	}
	if d < 0 {
		return 0, fmt.Errorf("%q is too long a time", text)
	}
	if negative {
		d = -d
	}
	return d, nil
}
