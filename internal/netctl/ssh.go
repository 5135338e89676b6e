package netctl

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
)

// ssh itself detects a dead connection after twice aliveTime.
const (
	loginTime  = 8 * time.Second  // limit for a login
	tellTime   = 4 * time.Second  // limit for a quick request
	statusTime = 5 * time.Second  // limit for logging in and reporting the state of the nodes
	partTime   = 60 * time.Second // limit for starting or stopping the nodes
	aliveTime  = 2 * time.Second
)

// UnreachableError is the error of a machine that does not answer or refuses the login.
type UnreachableError struct {
	Machine, SSH string
	Problem      string // description on one line
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("host %s (%s) is unreachable: %s", e.Machine, e.SSH, e.Problem)
}

// sshMaster is the connection to a machine that all commands share. It is a process of ssh, the
// master, with a control socket in the network's directory. The user's ssh configuration applies.
type sshMaster struct {
	name, ssh string
	dir       string // directory of the network
}

func (l sshMaster) control() string {
	sum := crc32.ChecksumIEEE([]byte(l.name + " " + l.ssh)) // the path of a socket must be short
	return filepath.Join(l.dir, fmt.Sprintf("ssh-%08x", sum))
}

// options are the options of every call of ssh. No call asks the user a question, or forwards the
// user's agent or X11.
func (l sshMaster) options() []string {
	return []string{
		"-T", "-a", "-x", "-S", l.control(), "-o", "BatchMode=yes",
		"-o", fmt.Sprintf("ConnectTimeout=%d", loginTime/time.Second/2),
		"-o", fmt.Sprintf("ServerAliveInterval=%d", aliveTime/time.Second),
		"-o", "ServerAliveCountMax=2", "-o", "ControlPersist=no", "-o", "RemoteCommand=none",
		"-o", "StreamLocalBindUnlink=yes", "-o", "LogLevel=ERROR",
	}
}

// command returns a call of ssh with a deadline. The call ends soon after ctx.
func (l sshMaster) command(ctx context.Context, options []string, words ...string) *exec.Cmd {
	all := slices.Concat(l.options(), options, []string{"--", l.ssh}, words)
	c := exec.CommandContext(ctx, "ssh", all...)
	c.WaitDelay = time.Second
	detach(c)
	return c
}

// open logs in, unless the master is running. A lock prevents two commands from each starting one.
func (l sshMaster) open(ctx context.Context) (fresh bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	if l.runs(ctx) {
		return false, nil
	}
	log, err := l.lock(ctx)
	if err != nil {
		return false, err
	}
	defer log.Close()
	if l.runs(ctx) {
		return false, nil
	}
	if err := ctx.Err(); err != nil { // the master may still be running
		return false, l.failure(ctx, nil, err)
	}
	_ = os.Remove(l.control()) // left by a master that was killed
	if err := log.Truncate(0); err != nil {
		return false, err
	}
	// After a successful login the master goes to the background. It must not keep a pipe open.
	c := l.command(ctx, []string{"-f", "-N", "-M", "-o", "ClearAllForwardings=yes"})
	c.Stdout, c.Stderr = log, log
	if err := c.Run(); err != nil {
		said, _ := io.ReadAll(io.NewSectionReader(log, 0, files.MaxText))
		return false, l.failure(ctx, said, err)
	}
	return true, nil
}

// lock opens and locks the file for the master's messages.
func (l sshMaster) lock(ctx context.Context) (*os.File, error) {
	path := l.control() + ".log"
	log, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if !until(ctx, loginTime, func() bool { return tryLock(log) }) || !isAt(log, path) {
		_ = log.Close()
		return nil, l.unreachable("another command is logging in or stopping the network")
	}
	return log, nil
}

func (l sshMaster) runs(ctx context.Context) bool {
	if _, err := os.Lstat(l.control()); err != nil {
		return false
	}
	return l.command(ctx, []string{"-O", "check"}).Run() == nil
}

// close stops the master and waits for it. No command can log in until the caller closes the
// returned file, which may be nil.
func (l sshMaster) close(ctx context.Context) *os.File {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*tellTime)
	defer cancel()
	lock, _ := l.lock(ctx) // the master is stopped even without the lock
	if l.runs(ctx) && l.command(ctx, []string{"-O", "exit"}).Run() == nil {
		until(ctx, tellTime, func() bool {
			_, err := os.Lstat(l.control())
			return err != nil
		})
	}
	return lock
}

// run runs a command line of sh on the machine and returns its standard output. An error contains
// the last line of standard error. It is an UnreachableError if ssh itself failed. With hold,
// standard input stays open after in was sent, until this process ends. The remote command thus
// detects that end.
func (l sshMaster) run(
	ctx context.Context, line string, in io.Reader, hold bool,
) (out []byte, err error) {
	var said, answer bytes.Buffer
	line = strings.ReplaceAll(line, "\n", " ") // csh does not accept line breaks in quotes
	c := l.command(ctx, []string{"-o", "ControlMaster=no"}, "exec sh -c "+
		diagnostic.ShellWord(line))
	c.Stdout, c.Stderr = &answer, &said
	stdin, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, l.failure(ctx, nil, err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.Copy(stdin, in) // the command reports missing input
		if !hold {
			_ = stdin.Close()
		}
	}()
	err = c.Wait()
	<-sent
	if err == nil {
		return answer.Bytes(), nil
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil &&
		exit.ExitCode() != sshFailed {
		return nil, fmt.Errorf("host %s: %s", l.name, cmp.Or(lastLine(said.Bytes()), err.Error()))
	}
	return nil, l.failure(ctx, said.Bytes(), err)
}

// sshFailed is the exit status of ssh for its own errors.
const sshFailed = 255

func (l sshMaster) unreachable(problem string) error {
	return &UnreachableError{l.name, l.ssh, problem}
}

func (l sshMaster) failure(ctx context.Context, said []byte, err error) error {
	text := string(said)
	try := "`ssh " + l.ssh + " true`"
	has := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("host %s: the program ssh is not in PATH: install an OpenSSH client",
			l.name)
	case has("usage: ssh"):
		return fmt.Errorf("host %s: ssh rejects the destination %q: must be like user@alpha, or "+
			"ssh://user@alpha:2222 with a port up to 65535", l.name, l.ssh)
	case has("IDENTIFICATION HAS CHANGED"):
		return l.unreachable("its host key is not the one in known_hosts: find out why before " +
			"you remove the old one with `ssh-keygen -R`")
	case has("Host key verification failed"):
		return l.unreachable("its host key is unknown: run " + try + " once and compare the key")
	case has("Permission denied"):
		return l.unreachable(strings.TrimRight(lastLine(said), ".") + ": " + try + " must log in " +
			"without a password: ssh-copy-id installs a key there, ssh-add unlocks one")
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return l.unreachable("no answer in time; check its power and network, and " + try)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return l.unreachable(cmp.Or(lastLine(said), err.Error()) + "; check " + try)
}

// lastLine returns the last nonblank line of a text.
func lastLine(text []byte) string {
	text = bytes.TrimSpace(text)
	return strings.TrimSpace(string(text[bytes.LastIndexByte(text, '\n')+1:]))
}

// SSHAddress returns the address of an ssh destination, preferably IPv4, after applying the user's
// configuration, and this machine's address on the path to it.
func SSHAddress(ctx context.Context, name, ssh string) (there, here netip.Addr, err error) {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	l := sshMaster{name: name, ssh: ssh}
	text, err := exec.CommandContext(ctx, "ssh", "-G", "--", ssh).Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			text = exit.Stderr
		}
		return there, here, l.failure(ctx, text, err)
	}
	for line := range strings.Lines(string(text)) {
		host, ok := strings.CutPrefix(strings.TrimSpace(line), "hostname ")
		if !ok {
			continue
		}
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil || len(found) == 0 {
			return there, here, l.unreachable(host + " has no address; check the name, or " +
				"add `address ADDRESS` to the host's line")
		}
		for _, a := range found { // prefers IPv4, which every machine has
			if there = a.Unmap(); there.Is4() {
				break
			}
		}
	}
	here, err = AddressToward(ctx, name, there)
	return there, here, err
}

// AddressToward returns this machine's address on the path to another address. It sends no packet.
func AddressToward(
	ctx context.Context, name string, there netip.Addr,
) (here netip.Addr, err error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "udp", netip.AddrPortFrom(there, 9).String())
	if err != nil {
		return here, fmt.Errorf("host %s: no path to its address %v: %w", name, there, err)
	}
	defer c.Close()
	at, err := netip.ParseAddrPort(c.LocalAddr().String())
	return at.Addr(), err
}
