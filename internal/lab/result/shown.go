package result

import (
	"regexp"
	"strconv"
	"strings"
)

// longBytes matches numbers of bytes that are more readable in a larger unit.
var longBytes = regexp.MustCompile(`\b[0-9]{5,15}B\b`)

// exactDigits is the maximum number of digits of a number that is shown exactly in a larger unit.
// Others are rounded to roundDigits.
const exactDigits, roundDigits = 5, 3

// Shown returns a swept value in a readable unit: 5185067B is 5.19 MB. Files keep the original.
func Shown(value string) string {
	return longBytes.ReplaceAllStringFunc(value, func(text string) string {
		n, err := strconv.ParseFloat(strings.TrimSuffix(text, "B"), 64)
		if err != nil {
			return text
		}
		unit := "kB"
		for _, larger := range []string{"MB", "GB", "TB"} {
			if n < 999.5e3 { // larger values would be rounded to 1000
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
