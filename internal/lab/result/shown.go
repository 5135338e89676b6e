package result

import (
	"regexp"
	"strconv"
	"strings"
)

// longBytes matches numbers of bytes that are easier to read in a larger unit.
var longBytes = regexp.MustCompile(`\b[0-9]{5,15}B\b`)

// exactDigits is the maximum number of digits with which a number in a larger unit is shown
// exactly. Numbers that need more digits are rounded to roundDigits.
const exactDigits, roundDigits = 5, 3

// Shown returns a swept value in a readable unit: 5185067B is 5.19 MB. Files contain the original
// value.
func Shown(value string) string {
	return longBytes.ReplaceAllStringFunc(value, func(text string) string {
		n, err := strconv.ParseFloat(strings.TrimSuffix(text, "B"), 64)
		if err != nil {
			return text
		}
		unit := "kB"
		for _, larger := range []string{"MB", "GB", "TB"} {
			if n < 999.5e3 { // a larger value would be rounded to 1000
				break
			}
			n, unit = n/1e3, larger
		}
		exact := strconv.FormatFloat(n/1e3, 'f', -1, 64)
		if len(strings.Trim(strings.ReplaceAll(exact, ".", ""), "0")) > exactDigits {
			exact = strconv.FormatFloat(n/1e3, 'g', roundDigits, 64)
		}
		return exact + " " + unit
	})
}
