package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Host is an Operator that programs can use as their host, with its addresses. Inside serves the
// connection of one program until the connection ends.
type Host interface {
	control.Operator
	Inside(conn *net.UnixConn)
}

// insideProtocol is the protocol of Enter's connection, after the HTTP upgrade.
const insideProtocol = "tidepool-inside"

// inside passes a Unix socket's connection to the node. Descriptors can be sent over such a
// connection.
func (s *Server) inside(w http.ResponseWriter, r *http.Request) error {
	m, err := s.nodes.of(r)
	if err != nil {
		return err
	}
	host, ok := m.op.(Host)
	if !ok {
		return fmt.Errorf("enter %s: %w: the node is in another process",
			r.PathValue("node"), control.ErrUnsupported)
	}
	conn, ok := r.Context().Value(connKey{}).(*net.UnixConn)
	if !ok {
		return fmt.Errorf("enter %s: %w: it needs the node's Unix socket", r.PathValue("node"),
			control.ErrUnsupported)
	}
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", insideProtocol)
	w.WriteHeader(http.StatusSwitchingProtocols)
	if _, _, err := http.NewResponseController(w).Hijack(); err != nil {
		return err
	}
	defer conn.Close()
	host.Inside(conn)
	return nil
}

// Enter opens the connection that a node's Inside serves.
func Enter(socket, node string) (*net.UnixConn, error) {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", node, ErrGone, err)
	}
	request, err := http.NewRequest(http.MethodPost, "http://localhost/v1/nodes/"+node+"/inside",
		http.NoBody)
	if err != nil {
		_ = c.Close() // report the first error
		return nil, err
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", insideProtocol)
	if err = request.Write(c); err == nil {
		err = readSwitchingProtocols(c)
	}
	if err != nil {
		_ = c.Close() // report the first error
		return nil, fmt.Errorf("enter %s: %w", node, err)
	}
	return c, nil
}

// readSwitchingProtocols reads the response to Enter's request one byte at a time, as descriptors
// may follow.
func readSwitchingProtocols(c *net.UnixConn) error {
	var head []byte
	for one := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); {
		if _, err := c.Read(one); err != nil {
			return fmt.Errorf("%w: %w", ErrGone, err)
		}
		if head = append(head, one[0]); len(head) > maxHeader {
			return fmt.Errorf("%w: its answer is too long", ErrGone)
		}
	}
	r, err := http.ReadResponse(bufio.NewReader(io.MultiReader(bytes.NewReader(head), c)), nil)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	defer r.Body.Close()
	if r.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	var p struct {
		Detail string `json:"detail"`
	}
	if json.NewDecoder(r.Body).Decode(&p) != nil || p.Detail == "" {
		p.Detail = r.Status
	}
	return errors.New(p.Detail)
}
