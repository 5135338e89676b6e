package result_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

func TestShown(t *testing.T) {
	for value, want := range map[string]string{
		"5185067B":            "5.19 MB",
		"92339236B":           "92.3 MB",
		"26400B":              "26.4 kB",
		"53680B":              "53.68 kB",
		"448880B":             "448.88 kB",
		"999999B":             "1 MB",
		"1000000B":            "1 MB",
		"30000B":              "30 kB",
		"1234567890123B":      "1.23 TB",
		"1500B":               "1500B",
		"5185067":             "5185067",
		"5MB":                 "5MB",
		"12Mbit/s":            "12Mbit/s",
		"droptail 26400B":     "droptail 26.4 kB",
		"cafe12345B":          "cafe12345B",
		"99999999999999999B":  "99999999999999999B",
		"{limit: 26400B, a}":  "{limit: 26.4 kB, a}",
		"at 26400B and 1500B": "at 26.4 kB and 1500B",
	} {
		assert.Equal(t, want, result.Shown(value), value)
	}
}
