// Package netns runs programs in network namespaces of their own, as any user and without root. The
// namespace has a TUN device, whose other end the caller gets as a link.TUN: whatever reads and
// writes it is the program's network.
//
// A process of the caller's program sets the namespaces up and then executes the user's program
// (setup_linux.go). So the caller's main function calls Main first. It needs Linux.
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

// ErrUnsupported is the error on other systems than Linux.
var ErrUnsupported = errors.New("programs inside a network need Linux; this is " + runtime.GOOS +
	": use `node socks`, a Linux container or a virtual machine")

// Config describes the network of the namespaces.
type Config struct {
	// Device is the name of the TUN device, and MTU the largest packet.
	Device string
	MTU    int
	// Kernel are the addresses of the program's end, at most one of IPv4, and Gateway those of the
	// other end, at most one of each family, which are the default routes. Others are more IPv4
	// addresses of the program's end.
	Kernel  []netip.Prefix
	Gateway []netip.Addr
	Others  []netip.Addr
	// Files replace the contents of files, by path, such as /etc/resolv.conf.
	Files map[string]string
	// Ports is the range of ports that the kernel chooses from; zero: its own.
	Ports [2]uint16
	// Diag adds a socket of sock_diag(7) to what Process.Send sends.
	Diag bool
}

// Program is a program to run. It has the standard streams of the caller.
type Program struct {
	// Args are the program, as a name in PATH or a path, and its arguments.
	Args []string
	// Dir is the working directory, Env the environment. Empty: those of the caller.
	Dir string
	Env []string
}

// NewProgram returns a program with its arguments: without any, the user's shell.
func NewProgram(args []string) Program {
	if len(args) == 0 {
		args = []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh")}
	}
	return Program{Args: args}
}

// StatusError is the exit status of a program: 128 and the signal's number if a signal ended it.
type StatusError int

func (s StatusError) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// SetupError is an error of creating namespaces or devices.
type SetupError struct {
	// Op says what failed. Advice says what to do; it may be empty.
	Op, Advice string
	Err        error
}

// Error returns the error, and a command that may fix it.
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

// Status returns the exit status of env(1) and shells: 127 if the program was not found, 126 if it
// could not be executed.
func (e *ExecError) Status() int {
	if errors.Is(e.Err, fs.ErrNotExist) {
		return statusNotFound
	}
	return statusNotExecuted
}

const (
	statusNotExecuted = 126
	statusNotFound    = 127
	statusSignaled    = 128 // and the number of the signal
)

// Left says what happens to processes that the program leaves when it ends.
type Left struct {
	// Wait waits for them. Otherwise they get SIGTERM, and SIGKILL after Grace.
	Wait  bool
	Grace time.Duration
	// Tell is called with a message about these programs before Wait waits or sends SIGTERM.
	Tell func(text string)
}

// stdio are the standard streams of programs.
func stdio() []*os.File { return []*os.File{os.Stdin, os.Stdout, os.Stderr} }
