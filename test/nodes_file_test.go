package e2e_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// RandomFile writes a file of bytes that do not repeat. The seed determines them.
func RandomFile(t *testing.T, size int64, seed uint64) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file-"+strconv.FormatInt(size, 10))
	f, err := os.Create(name)
	require.NoError(t, err)
	var key [32]byte
	binary.BigEndian.PutUint64(key[:], seed)
	_, err = io.CopyN(f, rand.NewChaCha8(key), size)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return name
}

// Digest returns the SHA-256 of a file, computed in the test.
func Digest(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, f)
	require.NoError(t, err)
	return hex.EncodeToString(hash.Sum(nil))
}

// Receive runs recvfile and waits until it listens.
func (n *Node) Receive(path string, port int) {
	n.t.Helper()
	n.MustDo("recvfile %s %d --json", path, port)
	n.Eventually(Soon, "a listener", func() bool {
		return slices.ContainsFunc(n.Sockets(), func(s control.Socket) bool {
			return s.State == "LISTEN" && s.Local.Port() == uint16(port)
		})
	})
}

// Transferred waits for the end of a transfer that was started with --json after the mark. Until
// then, the shell accepts no other command.
func (n *Node) Transferred(from Mark, path string, within time.Duration) control.Transfer {
	n.t.Helper()
	quoted, err := json.Marshal(path)
	require.NoError(n.t, err)
	begin := `{"path":` + string(quoted)
	n.Command("wait") // a script reports background errors only while it waits
	text, ok := n.out.await(int(from), within, func(text string) bool {
		return strings.HasPrefix(text, begin) || strings.Contains(text, path)
	})
	if !ok {
		n.t.Fatalf("node %s: %s was not transferred within %v", n.Name, path, within)
	}
	if !strings.HasPrefix(text, begin) {
		n.t.Fatalf("node %s: the transfer failed: %s", n.Name, text)
	}
	var transfer control.Transfer
	require.NoError(n.t, json.Unmarshal([]byte(text), &transfer))
	return transfer
}
