// Package netns runs programs in network namespaces of their own, as any user and without root. The
// namespace has a TUN device. The caller gets its other end as a link.TUN. The code that reads and
// writes this end is the program's network.
//
// A process of the caller's program sets the namespaces up and then executes the user's program
// (setup_linux.go). So the caller's main function must call Main first. The package needs Linux.
package netns

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"runtime"
	"time"
)

// ErrUnsupported is the error on systems other than Linux.
var ErrUnsupported = errors.New("programs inside a network need Linux; this is " + runtime.GOOS +
	": use `node socks`, a Linux container or a virtual machine")

// Config describes the network of the namespaces.
type Config struct {
	// Device is the name of the TUN device, and MTU its maximum packet size.
	Device string
	MTU    int
	// Kernel are the addresses of the program's end, at most one IPv4 address. Gateway are the
	// addresses of the other end, at most one per family; they are the default routes. Others are
	// further IPv4 addresses of the program's end.
	Kernel  []netip.Prefix
	Gateway []netip.Addr
	Others  []netip.Addr
	// Files has the new contents of files, by path, such as /etc/resolv.conf.
	Files map[string]string
	// Ports is the range from which the kernel chooses ports; zero: the kernel's own range.
	Ports [2]uint16
	// Diag adds a socket for sock_diag(7) to what Process.Send sends. DNS adds a UDP and a TCP
	// socket that are bound to port 53.
	Diag, DNS bool
}

// Program is a program to run. It uses the caller's standard streams.
type Program struct {
	// Args are the program, as a name in PATH or a path, and its arguments.
	Args []string
	// Dir is the working directory, Env the environment. Empty: the caller's.
	Dir string
	Env []string
}

// NewProgram returns a program with its arguments. Without arguments it returns the user's shell.
func NewProgram(args []string) Program {
	if len(args) == 0 {
		args = []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh")}
	}
	return Program{Args: args}
}

// StatusError is the exit status of a program. If a signal ended the program, the status is 128
// plus the signal's number.
type StatusError int

func (s StatusError) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// SetupError is an error of creating namespaces or devices.
type SetupError struct {
	// Op is the operation that failed. Advice says what to do; it may be empty.
	Op, Advice string
	Err        error
}

// Error returns the error, and a command that may fix the problem.
func (e *SetupError) Error() string {
	text := e.Op + ": " + e.Err.Error()
	if e.Op == "" {
		text = e.Err.Error()
	}
	if e.Advice != "" {
		text += "\n" + e.Advice
	}
	return text
}

// Unwrap returns the system's error.
func (e *SetupError) Unwrap() error { return e.Err }

// ExecError is an error of executing the program.
type ExecError struct {
	Name string
	Err  error
}

// Error names the program.
func (e *ExecError) Error() string { return fmt.Sprintf("%s: %v", e.Name, e.Err) }

// Unwrap returns the system's error.
func (e *ExecError) Unwrap() error { return e.Err }

// Status returns the exit status that env(1) and shells use: 127 if the program was not found, 126
// if it could not be executed.
func (e *ExecError) Status() int {
	if errors.Is(e.Err, fs.ErrNotExist) {
		return statusNotFound
	}
	return statusNotExecuted
}

const (
	statusNotExecuted = 126
	statusNotFound    = 127
	statusSignaled    = 128 // plus the number of the signal
)

// Left says how to treat processes that remain when the program has ended.
type Left struct {
	// Wait waits for them. Otherwise they get SIGTERM, and SIGKILL after Grace.
	Wait  bool
	Grace time.Duration
	// Tell is called with a message about these processes before Wait waits or sends SIGTERM.
	Tell func(text string)
}

// stdio returns the standard streams of programs.
func stdio() []*os.File { return []*os.File{os.Stdin, os.Stdout, os.Stderr} }
