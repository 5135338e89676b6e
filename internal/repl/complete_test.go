package repl

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestComplete(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"big.bin", "big two.bin", ".hidden", filepath.Join("folder", "in")} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, nil, 0o600))
	}
	s := open(t, &fake{}, Config{})
	for line, want := range map[string][]string{
		"":                     nil, // lists everything: tested below
		"ne":                   {"neighbors"},
		"lo":                   {"lossy", "lossyforward"},
		"up ":                  {"if0", "if1"},
		"down if1":             {"if1"},
		"up if0 ":              nil,
		"lossyforward 2 ":      {"if0", "if1"},
		"drop 0.5 i":           {"if0", "if1"},
		"s ":                   {"1"},
		"r ":                   {"1"},
		"r 1 5 ":               {"y", "n"},
		"cl ":                  {"0", "1"},
		"shutdown 1 ":          {"read", "write", "both"},
		"sd 1 r":               {"read"},
		"verbose o":            {"on", "off"},
		"verbose on ":          {"1"},
		"set tcp.r":            {"tcp.rto_min"},
		"set tcp.congestion ":  {"bbr", "cubic", "reno"},
		"set tcp.congestion c": {"cubic"},
		"set tcp.rto_min ":     {"1ms"},
		"set bogus ":           nil,
		"cc 1 b":               {"bbr"},
		"perf -C c":            {"cubic"},
		"route ":               {"add", "del", "get"},
		"show ":                {"tcp.congestion", "tcp.options", "tcp.rto_min"},
		"pcap ":                {"start", "stop"},
		"pcap start b":         {`big\ two.bin`, "big.bin"},
		"sf big\\ ":            {`big\ two.bin`},
		"sf ":                  {`big\ two.bin`, "big.bin", "folder/"},
		"sf .":                 {".hidden"},
		"rf folder/":           {"folder/in"},
		"source nowhere/x":     nil,
		"help up":              {"up"},
		"hel":                  {"help"},
		"help h":               {"help", "history", "host", "http"},
		"help _":               nil,
		"interfaces --j":       {"--json"},
		"bogus ":               nil,
		`up "`:                 nil,
		"connect 10.0.0.1 ":    nil,
		"ping ":                {"10.0.0.1"},
		"traceroute -n ":       {"10.0.0.1"},
		"ping 10.0.0.1 -I ":    {"if0", "if1"},
		"ping -M d":            {"do", "dont"},
		"traceroute -i if1":    {"if1"},
		"udp ":                 {"listen", "send"},
	} {
		if line == "" {
			assert.Greater(t, len(s.Complete(line)), 25)
			continue
		}
		assert.ElementsMatch(t, want, s.Complete(line), line)
	}
}

func TestTabReplacesTheLastWord(t *testing.T) {
	s := open(t, &fake{}, Config{})
	tails, length := tab(s.Complete).Do([]rune("up if and more"), len("up i"))
	assert.Equal(t, [][]rune{[]rune("f0 "), []rune("f1 ")}, tails)
	assert.Equal(t, 1, length)
}

// TestTabAfterAnUnknownFlag checks that Tab completes nothing and prints nothing into the prompt.
func TestTabAfterAnUnknownFlag(t *testing.T) { //nolint:paralleltest // it replaces stderr
	said, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer said.Close()
	old := os.Stderr
	os.Stderr = said
	defer func() { os.Stderr = old }()
	s := open(t, &fake{}, Config{})
	for line, want := range map[string][]string{
		"ping -zz 10":         nil,
		"ping -c x 10":        nil,
		"watch ping -zz 10":   nil,
		"http get -zz ":       nil,
		"ping -c 3 10.0":      {"10.0.0.1"},
		"ping --json 10.0":    {"10.0.0.1"},
		"ping -c ":            nil,
		"watch ping -c 3 10.": {"10.0.0.1"},
	} {
		assert.Equal(t, want, s.Complete(line), line)
	}
	info, err := said.Stat()
	require.NoError(t, err)
	assert.Zero(t, info.Size(), "it is in the midst of the prompt")
}

// TestUnclosedQuotes checks that the error names the open quote, also in a command's name.
func TestUnclosedQuotes(t *testing.T) {
	s := open(t, &fake{}, Config{})
	for line, want := range map[string]string{
		`"ping 10`:         `unclosed quote: "ping 10`,
		`ping 10.0.0.1 'x`: `ping: unclosed quote: 'x`,
		`watch "ping`:      `unclosed quote: "ping`,
	} {
		require.EqualError(t, s.Execute(t.Context(), line), want)
	}
}
