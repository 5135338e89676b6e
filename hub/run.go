package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// Run runs a hub with its UDP socket and its page until the context ends. It writes the page's
// address to out, and the teacher's token and warnings to log.
func Run(ctx context.Context, cfg Config, out, log io.Writer) error {
	packets, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp", cfg.ListenUDP)
	if err != nil {
		return notListening("listen-udp", cfg.ListenUDP, err)
	}
	socket := packets.(*net.UDPConn) //nolint:forcetypeassert // the socket's network is udp
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.HTTP)
	if err != nil {
		return errors.Join(notListening("http", cfg.HTTP, err), socket.Close())
	}
	if cfg.Public == "" {
		cfg.Public = socket.LocalAddr().String()
	}
	cfg.Warn = func(err error) { _, _ = fmt.Fprintf(log, "state not saved: %v\n", err) }
	h, err := New(cfg, func(to netip.AddrPort, packet []byte) {
		_, _ = socket.WriteToUDPAddrPort(packet, to) // the packet is lost, as on any link
	})
	if err != nil {
		return errors.Join(err, l.Close(), socket.Close())
	}
	server := &http.Server{
		Handler: h.Handler(), ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
		MaxHeaderBytes: 16 << 10,
	}
	_, err = fmt.Fprintf(out, "http://%v\n", l.Addr())
	_, _ = fmt.Fprintf(log, "packets at %v, teacher's token %s; Ctrl-C ends the hub\n",
		cfg.Public, h.Teacher())
	ended := make(chan error, 2)
	if len(h.View().Students) == 0 {
		_, _ = fmt.Fprintln(log, "no students yet: the teacher adds them on the page")
	}
	go func() { ended <- server.Serve(l) }()
	go func() { ended <- h.Serve(socket) }()
	if err == nil {
		select {
		case err = <-ended:
		case <-ctx.Done():
		}
	}
	return errors.Join(err, server.Close(), socket.Close(), h.Close())
}

// notListening returns the error of a listener. It is an InvalidError if the configured address is
// invalid.
func notListening(name, address string, err error) error {
	_, malformed := errors.AsType[*net.AddrError](err)
	_, unknown := errors.AsType[*net.DNSError](err)
	if malformed || unknown {
		return invalid("%s %q: must be HOST:PORT, such as 127.0.0.1:5300", name, address)
	}
	return err
}
