package node

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// Founding document 001 has a verbose option with this output.
func TestVerboseAnnouncesSegments(t *testing.T) {
	a, b := twoNodes(t, Config{})
	client, server := connect(t, a, b, "10.0.0.2:80")
	told := make(chan control.Segment, 100)
	defer b.Watch(func(e control.Event) {
		if s, ok := e.(control.Segment); ok {
			select {
			case told <- s:
			default:
			}
		}
	})()
	testenv.Ask(t, b, control.Verbose{On: true, SID: control.AllSockets})
	_, err := client.Write([]byte("hello"))
	require.NoError(t, err)
	buf := make([]byte, 10)
	_, err = server.Read(buf)
	require.NoError(t, err)
	timeout := time.After(10 * time.Second)
	for {
		select {
		case s := <-told:
			if !s.Sent && strings.HasSuffix(s.Text, "[next]") {
				require.Equal(t, server.sid, s.SID)
				return
			}
		case <-timeout:
			require.Fail(t, "the segment was not announced")
		}
	}
}
