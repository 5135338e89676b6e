package node

import (
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// ParseImpairment reads words that describe a link, and the files of a folder that
// they name.
func ParseImpairment(words string, folder *files.Folder) (netem.Config, error) {
	return netem.ParseWith(words, func(name string) (string, error) {
		return readDistribution(folder, name)
	})
}

// maxDistribution is more than any table of tc's has, in bytes.
const maxDistribution = 256 << 10

// readDistribution reads a file of tc's with a distribution.
func readDistribution(folder *files.Folder, name string) (string, error) {
	f, _, err := folder.Read(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := files.All(name, f, maxDistribution)
	return string(text), err
}
