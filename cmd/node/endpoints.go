package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	_ "net/http/pprof" // for http.DefaultServeMux
	"sync"

	"github.com/spf13/pflag"

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/link"
)

// endpoints are the listeners of a node's server.
type endpoints struct {
	socket, listen string
	pprof          bool
	folder         string        // base directory of file names that clients send
	files          *files.Folder // folder, opened; nil: each node uses its own directory
	listeners      []*api.Listener
	shape          *api.Shape // topology of the network; nil: unknown
}

func (d *endpoints) flags(f *pflag.FlagSet) {
	f.StringVar(&d.socket, "socket", "",
		"serve HTTP at the Unix socket `PATH`, for node attach, node ctl and curl")
	f.StringVar(&d.listen, "listen", "",
		"serve HTTP and the web page at `[HOST:]PORT` of the loopback; clients need a token")
	f.BoolVar(&d.pprof, "pprof", false,
		"serve profiles of this process at /debug/pprof/, for go tool pprof")
	f.StringVar(&d.folder, "files", ".",
		"let clients of the socket and of HTTP use only files below `DIR`")
}

// unused returns an error for a flag that does nothing without a listener.
func (d *endpoints) unused() error {
	if d.socket == "" && d.listen == "" && (d.pprof || d.folder != ".") {
		return errors.New("--files and --pprof need --socket or --listen")
	}
	return nil
}

func (d *endpoints) openFiles() (err error) {
	if d.socket == "" && d.listen == "" {
		return nil
	}
	if d.files, err = files.OpenFolder(d.folder); err != nil {
		return &usageError{fmt.Errorf("--files: %w", err)}
	}
	return nil
}

// open opens the listeners before anything is started. If one fails, it closes the others.
func (d *endpoints) open(ctx context.Context) error {
	if d.socket != "" {
		l, err := api.ListenUnix(ctx, d.socket)
		if err != nil {
			return refused("--socket", err)
		}
		d.listeners = append(d.listeners, l)
	}
	if d.listen != "" {
		l, err := api.ListenTCP(ctx, d.listen)
		if err != nil {
			d.close()
			return refused("--listen", err)
		}
		d.listeners = append(d.listeners, l)
	}
	return nil
}

// refused converts a listener's error: a busy address is a failure, any other error is wrong usage.
func refused(flag string, err error) error {
	taken, ok := errors.AsType[*api.TakenError](err)
	if !ok {
		return &usageError{fmt.Errorf("%s %w", flag, err)}
	}
	if !taken.TCP.IsValid() {
		return fmt.Errorf("%s %w", flag, err)
	}
	who := cmp.Or(link.Holder("tcp", taken.TCP),
		fmt.Sprintf("`ss -tlpn sport = :%d` shows the process", taken.TCP.Port()))
	return fmt.Errorf("%s %w by %s: use a free port, or 0 to choose one",
		flag, err, who)
}

func (d *endpoints) close() {
	for _, l := range d.listeners {
		_ = l.Close() // closing twice does no harm
	}
}

// place contains the addresses of a server: the page, the API, and the Unix socket.
type place struct {
	Page   string `json:"page,omitempty"`
	API    string `json:"api,omitempty"`
	Token  string `json:"token,omitempty"`
	Socket string `json:"socket,omitempty"`
}

func (d *endpoints) place() (p place) {
	for _, l := range d.listeners {
		if l.Token() == "" {
			p.Socket = d.socket
			continue
		}
		p.Page = fmt.Sprintf("http://%s/#token=%s", l.Addr(), l.Token())
		p.API = fmt.Sprintf("http://%s/v1", l.Addr())
		p.Token = l.Token()
	}
	return p
}

// String describes the HTTP addresses. It is empty if the server has only a socket.
func (p place) String() string {
	if p.Page == "" {
		return ""
	}
	return fmt.Sprintf("page: %s\nAPI: %s, with the same token", p.Page, p.API)
}

// serve starts a server for nodes. It calls tell with each message that no client can receive.
func (d *endpoints) serve(
	nodes map[string]control.Operator, tell func(text string),
) (s *api.Server, stop func() error) {
	cfg := api.Config{
		Nodes: nodes, Version: thisVersion().String(), Shape: d.shape, Page: api.Page(),
		Files: d.files, Tell: tell,
	}
	if d.pprof {
		cfg.Profile = http.DefaultServeMux
	}
	s = api.New(cfg)
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed error
	)
	for _, l := range d.listeners {
		wg.Go(func() {
			err := s.Serve(l)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
	}
	return s, func() error {
		s.Close()
		wg.Wait()
		return failed
	}
}
