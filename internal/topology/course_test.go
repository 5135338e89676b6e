package topology

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCoursePlans checks that the course's own .net files yield the files of its net2lnx in
// nets/old.
func TestCoursePlans(t *testing.T) {
	for folder, text := range map[string]string{
		"a-b":   "port 5140\nnode A localhost\nnode B localhost\nA <-> B\n",
		"a-b-c": "port 5160\nnode A localhost\nnode B localhost\nnode C localhost\nA <-> B\nB <-> C\n",
		"loop": "port 5180\nnode src localhost\nnode dst localhost\nnode srcR localhost\nnode dstR localhost\n" +
			"node short localhost\nnode long1 localhost\nnode long2 localhost\n" +
			"src <-> srcR\nsrcR <-> short\nshort <-> dstR\nsrcR <-> long1\nlong1 <-> long2\n" +
			"long2 <-> dstR\ndstR <-> dst\n",
	} {
		p, err := Parse(folder+".net", []byte(text), nil)
		require.NoError(t, err)
		files, err := p.Files()
		require.NoError(t, err)
		dir := filepath.Join("..", "..", "nets", "old", folder)
		there, err := filepath.Glob(filepath.Join(dir, "*.lnx"))
		require.NoError(t, err)
		assert.Len(t, files, len(there), folder)
		for _, f := range files {
			want, err := os.ReadFile(filepath.Join(dir, f.Name+".lnx"))
			require.NoError(t, err)
			assert.Equal(t, string(want), string(f.Text), "%s/%s", folder, f.Name)
		}
		assert.Len(t, made(t, p), len(there))
		assert.Equal(t, text, string(p.Format()))
	}
}

func TestErrorsInCoursePlans(t *testing.T) {
	for text, want := range map[string]string{
		"node A localhost\nA <-> B": `x.net:2:7: "B" is not a node; expected a line ` +
			"`node B localhost` above",
		"node A\n": "x.net:1:1: the line must have a node's name and a host; expected node A localhost",
		"node A far.example": `x.net:1:8: "far.example" is not a host; expected localhost, an IPv4 ` +
			"address, or a line `host far.example ssh USER@MACHINE` above",
		"node A localhost\nnode A localhost": "x.net:2:6: A is already a node; expected another name",
		"node A localhost\nA <-> A":          "x.net:2:7: A is linked to itself; expected another node",
		"node A localhost\nA <->":            "x.net:2:3: the link must have two ends; expected A <-> B",
		"node A localhost\nlink A B": "x.net:2:1: line 1 uses the other .net syntax; expected " +
			"either `link A B`, or `node A localhost` and `A <-> B`",
		"node A localhost": "x.net:1:6: A has no link; expected A <-> OTHER",
		"node A localhost\nnode B localhost\nnode C localhost\nA <-> B": "x.net:3:6: C has no link; " +
			"expected C <-> B",
		"port 65535\nnode A localhost\nnode B localhost\nA <-> B": "x.net:1:6: the plan needs ports 65535 " +
			"to 65536; ports are 1 to 65535; expected a smaller first port",
	} {
		_, err := Parse("x.net", []byte(text), nil)
		require.Error(t, err, text)
		assert.Contains(t, err.Error(), want)
	}
}
