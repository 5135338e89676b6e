package repl

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// leaves calls each for every command without subcommands.
func leaves(c *cobra.Command, each func(*cobra.Command)) {
	if !c.HasSubCommands() {
		each(c)
	}
	for _, sub := range c.Commands() {
		leaves(sub, each)
	}
}

// TestEveryCommand checks that --help prints to standard output only, that an unknown flag is a
// usage error with nothing on standard output, and that every command with an answer has --json.
func TestEveryCommand(t *testing.T) {
	count := 0
	leaves(open(t, &fake{}, Config{}).tree(), func(c *cobra.Command) {
		count++
		name := nameOf(c)
		s := open(t, &fake{}, Config{})
		err := s.Execute(t.Context(), name+" --help")
		require.NoError(t, err, name)
		assert.Contains(t, s.out.String(), "usage: "+strings.Fields(name)[0], name)
		assert.Empty(t, s.err.String(), name)
		if c.DisableFlagParsing {
			return
		}
		s = open(t, &fake{}, Config{})
		err = s.Command(t.Context(), append(strings.Fields(name), "--no-such-flag")...)
		require.ErrorIs(t, err, control.ErrUsage, name)
		assert.Equal(t, 2, ExitCode(err), name)
		assert.Empty(t, s.out.String(), name)
		assert.Contains(t, s.err.String(), "unknown flag: --no-such-flag", name)
		assert.Equal(t, name != "source", c.Flags().Lookup("json") != nil, "%s: its --json", name)
	})
	assert.Greater(t, count, 40)
}

// inJSON has a line for every command that is not in alone, by the command's name. The test does
// not run commands with an empty line.
var inJSON = map[string]string{
	"events": "", // TestEventsUntilCtrlC tests it
	"source": "", // the file contains other commands
	"up":     "up if0", "down": "down if0", "route add": "route add default via 10.0.0.2",
	"route get": "route get 10.0.0.9",
	"route del": "route del default", "lossyforward": "lossyforward 2", "lossy": "lossy 0.02",
	"impair": "impair if0 delay 1ms", "delay": "delay 0.1", "info": "info 1", "accept": "accept 80", "connect": "connect 10.0.0.1 80",
	"udp": "udp send 10.0.0.1 53 hello", "rcp echo": "rcp echo 9000", "rcp close": "rcp close 9000",
	"rcp count": "rcp count 10.0.0.1 9000", "rdt serve": "rdt serve 9000 x",
	"rdt list": "rdt list 10.0.0.1 9000", "rdt fetch": "rdt fetch 10.0.0.1 9000",
	"rdt close": "rdt close 9000", "s": "s 1 hello", "recv": "recv 1 5", "shutdown": "shutdown 1",
	"close": "close 1", "window": "window 1", "cc": "cc 1 reno",
	"publish": "publish 8080 10.0.0.1:80", "expose": "expose 80 3000", "splice": "splice 10.0.0.2",
	"socks":  "socks 1080",
	"nat on": "nat on if0 symmetric", "nat forward": "nat forward if0 tcp 80 10.0.0.2:80",
	"nat off": "nat off if0", "nat clear": "nat clear", "nat serve": "nat serve", "nat probe": "nat probe 10.0.0.2",
	"doors close": "doors close 0", "sendfile": "sendfile a 10.0.0.1 80",
	"recvfile": "recvfile a 80", "http serve": "http serve 80", "http get": "http get 10.0.0.1",
	"serve": "serve 80", "fetch": "fetch 10.0.0.1", "cancel": "cancel 3",
	"send": "send 10.0.0.1 hello", "ping": "ping 10.0.0.1 -c 1", "traceroute": "traceroute 10.0.0.1",
	"perf": "perf 10.0.0.1", "host": "host C", "dns show": "dns show",
	"dns name": "dns name C 10.1.0.2", "dns server": "dns server 10.0.0.1", "dns off": "dns off",
	"echo serve": "echo serve", "discard": "discard", "chargen": "chargen",
	"verbose": "verbose on", "capture": "capture", "trace": "trace 1",
	"pcap start": "pcap start x", "pcap stop": "pcap stop", "set": "set tcp.congestion bbr",
	"watch": "watch -c 1 routes", "sleep": "sleep 0", "help": "help",
}

// alone lists the commands that are valid lines without arguments.
var alone = strings.Fields(`interfaces li neighbors ln routes lr rip sockets ls lc doors transfers wait show
	reload clear history quit`)

// TestEveryCommandInJSON checks that with --json each command prints only JSON documents to
// standard output, one per line. A session with --json prints the same.
func TestEveryCommandInJSON(t *testing.T) {
	answering := func() *fake {
		f := &fake{}
		f.do = func(_ context.Context, req any) (any, error, bool) {
			if answer, err := f.fixed(req); err == nil {
				return answer, nil, true
			}
			for _, k := range control.Kinds() {
				if k.Request == reflect.TypeOf(req) {
					return reflect.Zero(k.Answer).Interface(), nil, true
				}
			}
			return nil, nil, false
		}
		return f
	}
	check := func(line, out string) {
		assert.NotEmpty(t, out, "%s: unexpected answer nothing", line)
		for text := range strings.Lines(out) {
			assert.True(t, json.Valid([]byte(text)), "%s: %s", line, text)
		}
	}
	leaves(open(t, &fake{}, Config{}).tree(), func(c *cobra.Command) {
		name := nameOf(c)
		line, ok := inJSON[name]
		if slices.Contains(alone, name) {
			line, ok = name, true
		}
		require.True(t, ok, "%s: a new command? inJSON wants a line for it", name)
		if line == "" {
			return
		}
		s := open(t, answering(), Config{})
		err := s.Command(t.Context(), append(strings.Fields(line), "--json")...)
		require.NoError(t, err, line)
		check(line, s.out.String())
		s = open(t, answering(), Config{JSON: true})
		require.NoError(t, s.Command(t.Context(), strings.Fields(line)...), line)
		check(line, s.out.String())
	})
}

// TestTextAndJSON checks that --json precedes an argument that takes the rest of the line.
func TestTextAndJSON(t *testing.T) {
	s := open(t, &fake{}, Config{})
	require.NoError(t, s.Execute(t.Context(), "s --json 1 a --json b"))
	assert.Equal(t, "{\"bytes\":10}\n", s.out.String())
	assert.Equal(t, []any{control.Write{SID: 1, Data: []byte("a --json b")}}, s.node.requests())
	require.NoError(t, s.Execute(t.Context(), "s 1 a --json"))
	assert.Equal(t, "Sent 8 bytes\n", s.out.String())
}

// TestManual checks that the manual describes each command of the shell with its flags.
func TestManual(t *testing.T) {
	list := Manual()
	names := map[string]Entry{}
	for _, e := range list {
		assert.NotEmpty(t, e.Text, e.Use)
		names[strings.Fields(e.Use)[0]] = e
	}
	for _, c := range open(t, &fake{}, Config{}).tree().Commands() {
		assert.Contains(t, names, c.Name())
	}
	assert.Equal(t, "capture [IF|all] [FILTER...]", names["capture"].Use)
	assert.Len(t, names["capture"].Flags, 7)
	assert.Equal(t, "Probes", names["trace"].Group)
}
