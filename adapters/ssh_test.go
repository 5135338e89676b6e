package adapters

import (
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/tidepool-net/tidepool/internet"
)

// sshServer is the program of a server whose only command is cat.
func sshServer(config *ssh.ServerConfig) func(*internet.Host) {
	return func(h *internet.Host) {
		accept(h, 22, func(c net.Conn) {
			_, channels, requests, err := ssh.NewServerConn(c, config)
			if err != nil {
				return
			}
			go ssh.DiscardRequests(requests)
			for offered := range channels {
				channel, requests, err := offered.Accept()
				if err != nil {
					return
				}
				go func() {
					for r := range requests {
						_ = r.Reply(r.Type == "exec", nil) // if this fails, the client reports it
						if r.Type == "exec" {
							_, _ = io.Copy(channel, channel)
							_, _ = channel.SendRequest("exit-status", false, make([]byte, 4))
							_ = channel.Close()
						}
					}
				}()
			}
		})
	}
}

// A command answers over a lossy network, also after the network was cut for 20 s. A crashed server
// answers no keepalive, and the connection ends when the client closes it.
func TestSSH(t *testing.T) {
	internet.Test(t, lossy, func(t *testing.T, w *internet.World) {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		require.NoError(t, err)
		signer, err := ssh.NewSignerFromKey(key)
		require.NoError(t, err)
		config := &ssh.ServerConfig{PasswordCallback: func(
			_ ssh.ConnMetadata, password []byte,
		) (*ssh.Permissions, error) {
			if string(password) != "tide" {
				return nil, os.ErrPermission
			}
			return &ssh.Permissions{}, nil
		}}
		config.AddHostKey(signer)
		w.Host("server").Go(sshServer(config))
		conn, err := w.Host("client").Dial("tcp", "server:22")
		require.NoError(t, err)
		c, channels, requests, err := ssh.NewClientConn(conn, "server:22", &ssh.ClientConfig{
			User: "a", Auth: []ssh.AuthMethod{ssh.Password("tide")},
			HostKeyCallback: ssh.FixedHostKey(signer.PublicKey()),
		})
		require.NoError(t, err)
		client := ssh.NewClient(c, channels, requests)
		text := strings.Repeat("over a lossy network\n", 10_000)
		cat := func() string {
			session, err := client.NewSession()
			require.NoError(t, err)
			session.Stdin = strings.NewReader(text)
			out, err := session.Output("cat")
			require.NoError(t, err)
			return string(out)
		}
		assert.Equal(t, text, cat())

		w.Link("client", "r").Cut()
		time.AfterFunc(20*time.Second, w.Link("client", "r").Restore)
		began := time.Now()
		assert.Equal(t, text, cat())
		assert.Greater(t, time.Since(began), 20*time.Second)

		w.Host("server").Crash()
		answered := make(chan error, 1)
		go func() {
			_, _, err := client.SendRequest("keepalive@openssh.com", true, nil)
			answered <- err
		}()
		select {
		case err := <-answered:
			require.Fail(t, "a crashed server answers", "%v", err)
		case <-time.After(time.Minute):
		}
		require.NoError(t, client.Close())
		require.ErrorIs(t, <-answered, io.EOF)
	})
}
