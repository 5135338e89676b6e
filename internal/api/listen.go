package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The bounds of a Unix socket's path: some systems have 104 bytes for it with the zero that ends
// it, Linux 108. It is made in a folder of its own below the one that it is for: /.s1234567890/s.
const (
	longestPath   = 103
	longestFolder = longestPath - 15
)

// CheckSocket reports why a Unix socket cannot have a path, whatever is there; nil: it can.
func CheckSocket(path string) error {
	folder := len(filepath.Dir(path))
	if len(path) <= longestPath && folder <= longestFolder {
		return nil
	}
	return fmt.Errorf("%s: %w: a socket's path may have %d bytes and its folder's %d; these "+
		"have %d and %d", path, ErrListen, longestPath, longestFolder, len(path), folder)
}

// Listener is where a server is asked: a Unix socket, or a TCP address with a token.
type Listener struct {
	net.Listener
	path  string // of the Unix socket; empty: TCP
	own   os.FileInfo
	token string
}

// Token is what every request over TCP has to show; empty: a Unix socket, whose file's mode says
// who may ask.
func (l *Listener) Token() string { return l.token }

// ErrListen marks what is wrong with where a server is asked to listen.
var ErrListen = errors.New("cannot listen")

// TakenError is a place that would do if somebody did not have it now. It is an ErrListen.
type TakenError struct {
	At  string         // as it was asked for
	TCP netip.AddrPort // not valid: a Unix socket
}

func (e *TakenError) Error() string {
	what := "address already in use"
	if !e.TCP.IsValid() {
		what = "a node already listens there"
	}
	return fmt.Sprintf("%s: %v: %s", e.At, ErrListen, what)
}

func (e *TakenError) Unwrap() error { return ErrListen }

// ListenUnix makes a Unix socket that its owner alone may use (mode 0600). A socket that nobody
// answers at any more, left by a crash, is replaced; one that somebody answers at is not, and
// neither is a file of another kind.
func ListenUnix(ctx context.Context, path string) (*Listener, error) {
	if err := CheckSocket(path); err != nil {
		return nil, err
	}
	if err := vacant(ctx, path); err != nil {
		return nil, err
	}
	// The socket is made where nobody else gets to, and moved when its mode is right.
	room, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrListen, err)
	}
	defer os.RemoveAll(room)
	made := filepath.Join(room, "s")
	var config net.ListenConfig
	nl, err := config.Listen(ctx, "unix", made)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrListen, err)
	}
	if u, ok := nl.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // not what has its old name by then
	}
	l := &Listener{Listener: nl, path: path}
	err = errors.Join(os.Chmod(made, 0o600), os.Rename(made, path))
	if err == nil {
		l.own, err = os.Lstat(path)
	}
	if err != nil {
		_ = nl.Close()
		return nil, fmt.Errorf("%s: %w: %w", path, ErrListen, err)
	}
	return l, nil
}

// vacant reports why a path may not be taken.
func vacant(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", ErrListen, err)
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s: %w: the file exists and is not a socket", path, ErrListen)
	case Answers(ctx, path):
		return &TakenError{At: path}
	}
	return nil
}

// Answers reports whether somebody listens at a Unix socket. A file that a crash has left is there
// too, and refuses.
func Answers(ctx context.Context, path string) bool {
	dialer := net.Dialer{Timeout: 2 * time.Second}
	c, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// Close stops listening, and removes the socket unless another has taken its place.
func (l *Listener) Close() error {
	err := l.Listener.Close()
	if l.path == "" {
		return err
	}
	if now, e := os.Lstat(l.path); e == nil && os.SameFile(now, l.own) {
		_ = os.Remove(l.path)
	}
	return err
}

// ListenTCP listens on an address of this machine's loopback: PORT, :PORT or HOST:PORT; port 0 is
// one that is free. Any other address is refused: HTTP without encryption shows its token to
// everybody on the way.
func ListenTCP(ctx context.Context, address string) (*Listener, error) {
	at, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	var config net.ListenConfig
	nl, err := config.Listen(ctx, "tcp", at.String())
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &TakenError{At: at.String(), TCP: at}
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%v: %w: ports below 1024 usually need root: use one from 1024, "+
			"or 0 to choose a free one", at, ErrListen)
	case err != nil:
		return nil, fmt.Errorf("%v: %w: %w", at, ErrListen, err)
	}
	return &Listener{Listener: nl, token: rand.Text()}, nil
}

func parseAddress(address string) (netip.AddrPort, error) {
	host, port := "", address
	if strings.Contains(address, ":") {
		var err error
		if host, port, err = net.SplitHostPort(address); err != nil {
			return netip.AddrPort{}, fmt.Errorf("%q: %w: must be PORT or 127.0.0.1:PORT", address,
				ErrListen)
		}
	}
	if host == "" || host == "localhost" {
		host = "127.0.0.1"
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q: %w: %q is not a port (0 to 65535)", address,
			ErrListen, port)
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.IsLoopback() {
		return netip.AddrPort{}, fmt.Errorf("%s: %w: other machines could reach %s, "+
			"and nothing is encrypted; listen on 127.0.0.1 and use ssh -L", address, ErrListen,
			host)
	}
	return netip.AddrPortFrom(ip, uint16(number)), nil
}
