package node

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

func TestErrorsNameTheirSubject(t *testing.T) {
	a, b := twoNodes(t, Config{})
	testenv.Ask(t, a, control.Listen{Port: 700})
	_, err := a.Do(t.Context(), control.Listen{Port: 700})
	require.ErrorIs(t, err, control.ErrPortInUse)
	assert.ErrorContains(t, err, "port 700")

	client, server := connect(t, a, b, "10.0.0.2:80")
	require.NoError(t, client.Close())
	_, err = server.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the client closes first, so it is in TIME-WAIT")
	require.NoError(t, server.Close())
	<-client.ended.passed()
	require.Eventually(t, func() bool {
		_, err = a.Do(t.Context(), control.Close{SID: client.sid})
		return err != nil
	}, 5*time.Second, time.Millisecond)
	require.ErrorIs(t, err, control.ErrClosed, "not ErrNotConnected")
	assert.ErrorContains(t, err, "TIME_WAIT")
}

// A UDP socket has a number in the socket table, and close closes it.
func TestCloseRequestClosesAUDPSocket(t *testing.T) {
	a, _ := twoNodes(t, Config{})
	u := listenPacket(t, a, "0.0.0.0:53")
	read := make(chan error, 1)
	go func() {
		_, err := u.Read(make([]byte, 1))
		read <- err
	}()
	testenv.Ask(t, a, control.Close{SID: u.sid})
	require.ErrorIs(t, <-read, net.ErrClosed)
	err := control.Order(t.Context(), a.Operator(), control.Close{SID: u.sid})
	require.ErrorIs(t, err, control.ErrNoSuchSocket)
	listenPacket(t, a, "0.0.0.0:53") // succeeds because the port is free
}
