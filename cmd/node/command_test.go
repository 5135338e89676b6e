package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// With -c, the exit status of `ping` is the same as that of the ping in iputils.
func TestPingExitStatus(t *testing.T) {
	ports := testenv.FreePorts(t, 2)
	file := filepath.Join(t.TempDir(), "A.lnx")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "interface if0 10.0.0.1/24 127.0.0.1:%d\n"+
		"neighbor 10.0.0.2 at 127.0.0.1:%d via if0\n", ports[0], ports[1]), 0o600))
	for _, tt := range []struct {
		lines  string // command lines, separated by ;
		status int
		has    string
	}{
		{"ping -c 2 -i 0.01 10.0.0.1", 0, "2 packets transmitted, 2 received, 0% packet loss"},
		{"ping -c 1 -W 0.05 10.0.0.2", 1, "1 packets transmitted, 0 received, 100% packet loss"},
		{"ping -c 1 10.0.0.3", 1, "From 10.0.0.1 icmp_seq=1 Destination Host Unreachable"},
		{"ping -c 9 -w 0.02 -i 0.01 10.0.0.1", 1, "0% packet loss"},
		{"ping -c 1 10.9.0.1", 2, "ping: connect: Network is unreachable"},
		{"ping -c 1 nobody", 2, "ping: nobody: no such host"},
		{"ping -c 1 10.0.0.255", 2, "do you want to ping broadcast? Then -b"},
		{"ping -c 1 -I 10.0.0.7 10.0.0.1", 2, "this node has if0 (10.0.0.1)"},
		{"traceroute -n 10.0.0.1", 0, " 1  10.0.0.1  "},
		{"traceroute -n 10.0.0.3", 0, " 1  10.0.0.1  0.000 ms !H"},
		{"traceroute -n 10.9.0.1", 1, "connect: Network is unreachable"},
		{"traceroute -m 0 10.9.0.1", 2, "-m 0: must be 1 to 255"},
		{"interfaces;lr", 0, "LOCAL:if0"},
		{"up nothing;routes", 1, "command:1: up: \"nothing\": no such interface"},
	} {
		t.Run(tt.lines, func(t *testing.T) {
			args := []string{file}
			for line := range strings.SplitSeq(tt.lines, ";") {
				args = append(args, "-c", line)
			}
			var out bytes.Buffer
			assert.Equal(t, tt.status, run(args, strings.NewReader("never read"), &out, &out))
			assert.Contains(t, out.String(), tt.has)
		})
	}
}

// Both `node validate` and a starting node print the warnings about a file.
func TestWarningsArePrinted(t *testing.T) {
	ports := testenv.FreePorts(t, 1)
	file := filepath.Join(t.TempDir(), "A.lnx")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "interface if0 10.0.0.1/24 127.0.0.1:%d\n"+
		"routing rip\nrip key if0 1 md5 tide\n", ports[0]), 0o600))
	for _, args := range [][]string{{"validate", file}, {file, "-c", "routes"}} {
		var out bytes.Buffer
		assert.Zero(t, run(args, strings.NewReader(""), &out, &out))
		assert.Contains(t, out.String(),
			`A.lnx:3:9: note: authentication has no effect without "routing rip2"`)
	}
}

// The error names the missing or unexpected argument.
func TestMissingAndExtraArgumentsAreNamed(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"attach", "node attach: NODE is missing (see `node attach --help`)"},
		{"net up", "node net up: FOLDER|FILE.lnx|FILE.net is missing"},
		{"lab compare one", "node lab compare: DIR is missing"},
		{"attach A B", `node attach: unexpected argument: "B"`},
		{"version now please", `node version: unexpected argument: "now please"`},
		{"net fly", `node net: unknown command "fly"`},
	} {
		var out bytes.Buffer
		assert.Equal(t, 2, run(strings.Fields(tt.args), strings.NewReader(""), &out, &out), tt.args)
		assert.Contains(t, out.String(), tt.want)
	}
}

// TestErrorsOfSeveralFilesArePrinted checks that errors in one file do not hide errors in others.
func TestErrorsOfSeveralFilesArePrinted(t *testing.T) {
	bad := lnx.Errors{{File: "a.net", Line: 1, Msg: "is wrong"}}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{machineError{bad}, "a.net:1: is wrong\n"},
		{fmt.Errorf("read: %w", bad), "a.net:1: is wrong\n"},
		{
			errors.Join(errors.New("host b: gone"), machineError{bad}, errors.New("no node was changed")),
			"host b: gone\na.net:1: is wrong\nno node was changed\n",
		},
	} {
		assert.Equal(t, tt.want, explain(rootCommand(), tt.err))
	}
}
