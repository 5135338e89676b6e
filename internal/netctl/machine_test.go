package netctl

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

func TestFailuresOfSSHSayWhatToDo(t *testing.T) {
	l := sshMaster{name: "alpha", ssh: "u@a"}
	failed := errors.New("exit status 255")
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for _, tt := range []struct {
		late bool
		said string
		err  error
		want string
	}{
		{
			false, "", exec.ErrNotFound,
			"host alpha: the program ssh is not in PATH: install an OpenSSH client",
		},
		{
			false, "Host key verification failed.\r\n", failed,
			"host alpha (u@a) is unreachable: its host key is unknown: run `ssh u@a true` once and " +
				"compare the key",
		},
		{
			false, "note\nssh: connect to host a port 22: Connection refused\r\n", failed,
			"host alpha (u@a) is unreachable: ssh: connect to host a port 22: Connection refused; " +
				"check `ssh u@a true`",
		},
		{
			false, "usage: ssh [-46]\n  destination\n", failed,
			`host alpha: ssh rejects the destination "u@a": must be like user@alpha, or ` +
				"ssh://user@alpha:2222 with a port up to 65535",
		},
		{
			false, "", failed,
			"host alpha (u@a) is unreachable: exit status 255; check `ssh u@a true`",
		},
		{true, "", failed, "host alpha (u@a) is unreachable: no answer in time; check its power and " +
			"network, and `ssh u@a true`"},
	} {
		ctx := t.Context()
		if tt.late {
			ctx = late
		}
		assert.EqualError(t, l.failure(ctx, []byte(tt.said), tt.err), tt.want)
	}
}

func TestClocksAreCompared(t *testing.T) {
	at := time.Unix(1000, 0)
	for _, tt := range []struct{ clock, want time.Duration }{
		{0, 0},
		{-2 * time.Second, 0},
		{3 * time.Second, 0},
		{time.Hour, time.Hour - time.Second},
		{-time.Hour, -time.Hour},
	} {
		assert.Equal(t, tt.want, clockOffset(at.Add(tt.clock), at, at.Add(time.Second)), tt.clock)
	}
}

func TestPlatformsHaveGoNames(t *testing.T) {
	assert.Equal(t, "linux/amd64", platform("Linux", "x86_64"))
	assert.Equal(t, "darwin/arm64", platform("Darwin", "arm64"))
	assert.Equal(t, "linux/arm64", platform("Linux", "aarch64"))
}

func TestWordsAreQuoted(t *testing.T) {
	const word = `a 'b' $c; "d`
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+diagnostic.ShellWord(word)).Output()
	assert.NoError(t, err)
	assert.Equal(t, word, string(out))
}
