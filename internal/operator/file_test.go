package operator

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/node"
)

func TestImpairmentOfAFile(t *testing.T) {
	parse := func(line string) netem.Config {
		cfg, err := lnx.Parse("x.lnx", []byte("interface if0 10.0.0.1/24 127.0.0.1:1\nlink if0 "+line))
		require.NoError(t, err)
		both, err := impairmentsOf(cfg, "if0")
		require.NoError(t, err)
		assert.Equal(t, both[0], both[1])
		return *both[0]
	}
	assert.Equal(t, netem.Config{
		Delay: 5 * time.Millisecond, Jitter: netem.UniformJitter(time.Millisecond),
		Loss: netem.UniformLoss(0.02), Duplicate: 0.01,
		Corrupt: netem.Corrupt{Share: 0.005}, Reorder: netem.Reorder{Share: 0.03},
		Rate: netem.BitsPerSecond(10e6), Queue: netem.DropTail{Bytes: 250_000},
	}, parse("delay 5ms jitter 1ms loss 2% dup 1% corrupt 0.5% reorder 3% rate 10mbit"))
	assert.Equal(t, netem.Reorder{Share: 0.1, Late: netem.Lateness}, parse("reorder 10%").Reorder)
	assert.Equal(t, netem.DropTail{Bytes: 32 << 10}, parse("rate 10kbit").Queue)
}

// An impair line that cannot be parsed is an error with its position in the file.
func TestInvalidImpairLines(t *testing.T) {
	text := "interface if0 10.0.0.1/24 127.0.0.1:1\nimpair if0 delay 1s  lss 2%\n" +
		"impair if0 both off\n"
	cfg, err := lnx.Parse("x.lnx", []byte(text[:len(text)-len("impair if0 both off\n")]))
	require.NoError(t, err)
	err = Check(cfg).Err()
	require.Error(t, err)
	assert.Contains(t, err.Error(), `x.lnx:2:22: "lss" is not an impairment (did you mean loss?)`)
	assert.Contains(t, err.Error(), "\n    impair if0 delay 1s  lss 2%\n"+
		"                         ^^^")
}

// A UDP address that is not available is an error with its position in the file.
func TestUnavailableAddressHasAPosition(t *testing.T) {
	p := testenv.FreePorts(t, 1)
	file := filepath.Join("nets", "A.lnx")
	open := func(udp string) error {
		c, err := lnx.Parse(file, []byte("# A\ninterface if0 10.0.0.1/24 "+udp+"\n"))
		require.NoError(t, err)
		for _, e := range checkHere(t.Context(), c) {
			assert.Equal(t, []any{file, 2, 27}, []any{e.File, e.Line, e.Col})
		}
		n, err := OpenNode(node.Config{}, c)
		if err == nil {
			t.Cleanup(func() { _ = n.Close() })
		}
		return err
	}
	taken := fmt.Sprintf("127.0.0.1:%d", p[0])
	require.NoError(t, open(taken))
	err := open(taken)
	require.Error(t, err)
	assert.Contains(t, err.Error(), file+":2:27: interface if0 cannot have "+taken+
		": address already in use; expected a free port")
	assert.Contains(t, err.Error(), "\n                              ^^^^")
	_, ok := errors.AsType[*link.BindError](err)
	assert.True(t, ok)
	err = open("192.0.2.77:5000")
	require.Error(t, err)
	assert.Contains(t, err.Error(), "not an address of this machine; expected one of this machine's: ")
}

// CheckHere also finds errors in the neighbors' addresses.
func TestCheckHere(t *testing.T) {
	p := testenv.FreePorts(t, 1)
	c, err := lnx.Parse("A.lnx", fmt.Appendf(nil, "interface if0 10.0.0.1/24 127.0.0.1:%d\n"+
		"neighbor 10.0.0.2 at 127.0.0.1:9 via if0\nneighbor 10.0.0.3 at no.such.invalid:9 via if0\n", p[0]))
	require.NoError(t, err)
	list := checkHere(t.Context(), c)
	require.Len(t, list, 1)
	assert.Contains(t, list[0].Error(),
		"A.lnx:3:22: neighbor 10.0.0.3 via if0 cannot be reached at no.such.invalid:9: ")
}
