package node

import (
	"fmt"
	"io"
	"os"

	"github.com/tidepool-net/tidepool/internal/netem"
)

// parseImpairment reads words that describe a link, and the files that they name.
func parseImpairment(words string) (netem.Config, error) {
	return netem.ParseWith(words, readDistribution)
}

// maxDistribution is more than any table of tc's has, in bytes.
const maxDistribution = 256 << 10

// readDistribution reads a file of tc's with a distribution.
func readDistribution(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", name)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxDistribution+1))
	if err == nil && len(text) > maxDistribution {
		err = fmt.Errorf("%s has more than %d bytes", name, maxDistribution)
	}
	return string(text), err
}
