package traffic

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// operatorBuffer is what may wait to be sent, for the document's buffers have no end, and
// operatorRTO is how long a packet waits for its timer at the most: the document's time-out.
const (
	operatorBuffer = 1 << 20
	operatorRTO    = 100 * time.Millisecond
)

func rcpConfig(o control.RCPOptions) node.RCPConfig {
	cfg := node.RCPConfig{
		Width: o.Width, Window: o.Window, Timer: o.Timer, Timeout: o.Timeout,
		SendBuffer: operatorBuffer,
	}
	cfg.MaxRTO = operatorRTO
	if cfg.Timeout != 0 {
		cfg.MaxRTO = min(cfg.Timeout, operatorRTO)
	}
	return cfg
}

// echoRCP opens an echo server, which ends with its port.
func (h *Host) echoRCP(r control.RCPEcho) (control.RCPPort, error) {
	on := netip.AddrPortFrom(netip.IPv4Unspecified(), r.Port)
	l, err := h.node.ListenRCP(on, 0, rcpConfig(r.Options))
	if err != nil {
		return control.RCPPort{}, fmt.Errorf("port %d: %w", r.Port, control.Reason(err))
	}
	go func() {
		for {
			c, err := l.AcceptRCP()
			if err != nil {
				return
			}
			go echoBack(c)
		}
	}()
	return control.RCPPort{Local: l.Local()}, nil
}

// echoBack writes back what comes, to its end. There are as many as the router has sockets.
func echoBack(c *node.RCPConn) {
	buf := make([]byte, 16<<10)
	for {
		k, err := c.Read(buf)
		if err == nil {
			_, err = c.Write(buf[:k])
		}
		if err != nil {
			_ = c.Close() // whoever was there has closed too, or is gone
			return
		}
	}
}
