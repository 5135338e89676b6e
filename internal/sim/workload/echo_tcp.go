package workload

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// AttachEchoTCP is like AttachEcho, but over TCP. The hosts' configurations determine TCP's, and
// cfg.RCP has no effect.
func AttachEchoTCP(onto, server *sim.Host, at netip.AddrPort, cfg EchoConfig) (*EchoApp, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	_, err := server.Listen(at.Port(), 1, func(*sim.Conn) sim.App {
		return &echoServer{buf: make([]byte, 1<<16)}
	})
	if err != nil {
		return nil, err
	}
	a := &EchoApp{client: newEchoClient(onto, cfg)}
	t := &tcpClient{app: a}
	a.counts = func(r *EchoResult) {
		if t.conn == nil {
			return
		}
		i := t.conn.TCP().Info()
		r.Sent, r.Data, r.Again = i.SegsOut, i.DataSegsOut, i.TotalRetrans
		r.Acks = r.Sent - r.Data
		r.Timeouts, r.Recoveries = i.TotalRTO, i.FastRecoveries
	}
	c, err := onto.Dial(at, t)
	if err != nil {
		return nil, err
	}
	if cfg.Opened != nil {
		cfg.Opened(c)
	}
	return a, nil
}

// tcpClient is a client on a TCP connection.
type tcpClient struct {
	app  *EchoApp
	conn *sim.Conn
}

func (t *tcpClient) Turn(now clock.Time, conn *sim.Conn, e tcp.Event) {
	t.conn = conn
	a := t.app
	if a.over {
		return
	}
	a.client.turn(now, conn)
	if !a.checkEnd(e&tcp.Closed != 0, conn.TCP().Err()) {
		conn.Wake(a.client.due())
		return
	}
	conn.Wake(clock.Never)
	conn.Close()
}

// echoServer is the server on a TCP connection.
type echoServer struct{ buf []byte }

func (s *echoServer) Turn(_ clock.Time, c *sim.Conn, e tcp.Event) {
	if e&tcp.Closed != 0 {
		return
	}
	echo(c, c.TCP().Tx().Free(), s.buf)
	if c.EOF() {
		c.Close()
	}
}
