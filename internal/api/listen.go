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

	"github.com/tidepool-net/tidepool/internal/control"
)

// The path of a Unix socket has at most 104 bytes including the final zero on some systems, and 108
// on Linux. The socket is first created in a temporary directory next to its path: /.s1234567890/s.
const (
	longestPath   = 103
	longestFolder = longestPath - 15
)

// CheckSocket returns an error if a path is too long for a Unix socket.
func CheckSocket(path string) error {
	what, n, limit := "path", len(path), longestPath
	if n <= limit {
		what, n, limit = "folder's path", len(filepath.Dir(path)), longestFolder
	}
	if n <= limit {
		return nil
	}
	return fmt.Errorf("%s: %w: the %s has %d bytes: must be at most %d", path, ErrListen, what, n,
		limit)
}

// Listener is a Unix socket, or a TCP address with a token, at which a Server listens.
type Listener struct {
	net.Listener
	path  string // path of a Unix socket; empty: TCP
	own   os.FileInfo
	token string
}

// Token returns the token that every request over TCP must have. It is empty for a Unix socket,
// which the mode of its file protects.
func (l *Listener) Token() string { return l.token }

// ErrListen is wrapped by the errors of listening.
var ErrListen = errors.New("cannot listen")

// TakenError is an ErrListen about an address that another program uses.
type TakenError struct {
	At  string         // the requested address
	TCP netip.AddrPort // address of a TCP listener; invalid for a Unix socket
}

func (e *TakenError) Error() string {
	what := "address already in use"
	if !e.TCP.IsValid() {
		what = "a node already listens there"
	}
	return fmt.Sprintf("%s: %v: %s", e.At, ErrListen, what)
}

func (e *TakenError) Unwrap() error { return ErrListen }

// ListenUnix creates a Unix socket with mode 0600. It replaces a socket without a listener, which a
// crash left behind, but no other file.
func ListenUnix(ctx context.Context, path string) (*Listener, error) {
	if err := CheckSocket(path); err != nil {
		return nil, err
	}
	if err := vacant(ctx, path); err != nil {
		return nil, err
	}
	// Create the socket where only this user has access, and move it when its mode is set.
	room, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrListen, err)
	}
	defer os.RemoveAll(room)
	made := filepath.Join(room, "s")
	var config net.ListenConfig
	nl, err := config.Listen(ctx, "unix", made)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrListen, err)
	}
	if u, ok := nl.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // by then another socket may have this name
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

func vacant(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w: %w", path, ErrListen, err)
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s: %w: the file exists and is not a socket", path, ErrListen)
	case Answers(ctx, path):
		return &TakenError{At: path}
	}
	return nil
}

// Answers reports whether a program listens at a Unix socket. The file alone does not show this,
// because it survives a crash.
func Answers(ctx context.Context, path string) bool {
	dialer := net.Dialer{Timeout: 2 * time.Second}
	c, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// Close stops listening. It removes the socket, unless another has replaced it.
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

// ListenTCP listens on a loopback address: PORT, :PORT or HOST:PORT. Port 0 chooses a free one. Any
// other address is an error, because HTTP without encryption reveals the token to everyone on the
// path.
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
		return nil, fmt.Errorf("%v: %w: ports below 1024 usually need root: use a port of "+
			"1024 or above, or 0 to choose a free one", at, ErrListen)
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
			return netip.AddrPort{}, noAddress("%q: must be PORT or 127.0.0.1:PORT", address)
		}
	}
	if host == "" || host == "localhost" {
		host = "127.0.0.1"
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, noAddress("%q: must be a port from 0 to 65535, or 127.0.0.1:PORT",
			address)
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.IsLoopback() {
		return netip.AddrPort{}, noAddress("%q: must be a loopback address, because other "+
			"machines could reach %s and nothing is encrypted; listen on 127.0.0.1 and use ssh -L",
			address, host)
	}
	return netip.AddrPortFrom(ip, uint16(number)), nil
}

func noAddress(format string, args ...any) error {
	return control.Also(fmt.Errorf(format, args...), ErrListen)
}
