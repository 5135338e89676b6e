package netns

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/link"
)

// Process is a program in its namespaces. The program starts when Run is called.
type Process struct {
	pid  int
	name string
	conn *net.UnixConn // connection to the process until it executes the program
	tun  *link.TUN

	sockets []*os.File // sockets in the network namespace, for Send

	arrived chan os.Signal // signals to this process that are for the program, until Wait ends
}

// socketFD is the descriptor of the socket to the caller, in a process that Start has created.
const socketFD = 3

// setupName is the name (Args[0]) of a process that sets up namespaces.
const setupName = "tidepool-netns"

// order is the caller's message to the process that sets up namespaces. The program is in the
// process's arguments.
type order struct {
	Config Config `json:"config"`
	Parent int    `json:"parent"`
}

// report is the process's answer: the TUN device's descriptor, or an error.
type report struct {
	Op     string        `json:"op,omitempty"`
	Error  string        `json:"error,omitempty"`
	Errno  syscall.Errno `json:"errno,omitempty"`
	Advice string        `json:"advice,omitempty"`
}

func (r *report) err() error {
	if r.Error == "" {
		return nil
	}
	if r.Errno != 0 {
		return &reported{r.Error, r.Errno}
	}
	return errors.New(r.Error)
}

// reported is an error that occurred in another process.
type reported struct {
	text  string
	errno syscall.Errno
}

func (r *reported) Error() string { return r.text }
func (r *reported) Unwrap() error { return r.errno }

// Start creates the namespaces and the TUN device. The program runs after Run. Errors are
// SetupErrors.
func Start(cfg Config, p Program) (*Process, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, &SetupError{Op: "socketpair", Err: err}
	}
	defer theirs.Close()
	pid, err := fork(theirs, p)
	if err != nil {
		_ = ours.Close()
		return nil, forkError(err)
	}
	q := &Process{pid: pid, name: p.Args[0], conn: ours}
	if err := q.order(cfg); err != nil {
		q.abandon()
		return nil, err
	}
	return q, nil
}

func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	near := os.NewFile(uintptr(fds[0]), "netns")
	defer near.Close() // the connection has a copy of the descriptor
	theirs = os.NewFile(uintptr(fds[1]), "netns")
	c, err := net.FileConn(near)
	if err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	ours, _ = c.(*net.UnixConn)
	return ours, theirs, nil
}

// allIDs is the size of a mapping of all user or group numbers.
const allIDs = 1<<32 - 1

// fork starts a process of this program in new namespaces. Root keeps all users, so that programs
// can change theirs; others keep only their own.
func fork(socket *os.File, p Program) (pid int, err error) {
	uid, gid := os.Geteuid(), os.Getegid()
	attr := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWNS,
		// These capabilities end when the process executes the user's program.
		AmbientCaps: []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN},
	}
	files, env := append(stdio(), socket), p.Env
	if env == nil {
		env = os.Environ()
	}
	start := func() (int, error) {
		var fds []uintptr
		for _, f := range files {
			fds = append(fds, f.Fd())
		}
		return syscall.ForkExec("/proc/self/exe", append([]string{setupName}, p.Args...),
			&syscall.ProcAttr{Dir: p.Dir, Env: env, Files: fds, Sys: attr})
	}
	if uid == 0 {
		all := []syscall.SysProcIDMap{{Size: allIDs}}
		attr.UidMappings, attr.GidMappings, attr.GidMappingsEnableSetgroups = all, all, true
		if pid, err = start(); err == nil {
			return pid, nil
		}
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	attr.GidMappingsEnableSetgroups = false
	return start()
}

// order sends the order and receives the device.
func (q *Process) order(cfg Config) error {
	text, err := json.Marshal(order{cfg, os.Getpid()})
	if err != nil {
		return &SetupError{Op: "configuration", Err: err}
	}
	if _, err := q.conn.Write(append(text, '\n')); err != nil {
		return &SetupError{Op: "start in new namespaces", Err: err, Advice: userNamespaceAdvice()}
	}
	var r report
	fds, err := Receive(q.conn, &r)
	switch {
	case err != nil:
		return &SetupError{Op: "set up the namespaces", Err: err}
	case r.Error != "":
		return &SetupError{Op: r.Op, Err: r.err(), Advice: r.Advice}
	case len(fds) == 0:
		return &SetupError{Op: "set up the namespaces", Err: errors.New("no device was received")}
	}
	q.tun, err = link.AdoptTUN(link.TUNConfig{
		Device: cfg.Device, Interface: link.Interface{Name: cfg.Device, MTU: cfg.MTU},
	}, fds[0])
	for _, fd := range fds[1:] {
		q.sockets = append(q.sockets, os.NewFile(uintptr(fd), "socket"))
	}
	if err != nil {
		_ = unix.Close(fds[0])
		return &SetupError{Err: err}
	}
	return nil
}

// maxRights limits the number of descriptors in a message.
const maxRights = 8

// maxMessage limits the size in bytes of a message from another process.
const maxMessage = 64 << 10

// Receive reads a JSON message from a Unix socket, with the attached descriptors. At the end of the
// stream it returns io.EOF.
func Receive(c *net.UnixConn, into any) (fds []int, err error) {
	text, rights := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4*maxRights))
	n, size, _, _, err := c.ReadMsgUnix(text, rights)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return nil, err
	}
	if list, err := unix.ParseSocketControlMessage(rights[:size]); err == nil && len(list) == 1 {
		fds, _ = unix.ParseUnixRights(&list[0]) // if this fails, the caller reports an error
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return fds, json.Unmarshal(text[:n], into)
}

// TUN returns the other end of the program's network. The caller attaches it to a node or closes
// it.
func (q *Process) TUN() *link.TUN { return q.tun }

// PID returns the process's number.
func (q *Process) PID() int { return q.pid }

// Namespaces opens the process's user, network and mount namespaces. Call it before Run.
func (q *Process) Namespaces() (list []*os.File, err error) {
	for _, name := range []string{"user", "net", "mnt"} {
		f, err := os.Open("/proc/" + strconv.Itoa(q.pid) + "/ns/" + name)
		if err != nil {
			for _, f := range list {
				_ = f.Close()
			}
			return nil, &SetupError{Op: "namespaces", Err: err}
		}
		list = append(list, f)
	}
	return list, nil
}

// Send sends a byte with the descriptors of the TUN device and of the user, network and mount
// namespaces, and with the sockets that Config.Diag and Config.DNS have added. Send closes these
// sockets.
func (q *Process) Send(c *net.UnixConn) error {
	list, err := q.Namespaces()
	if err != nil {
		return err
	}
	list = append(list, q.sockets...)
	fds := []int{q.tun.FD()}
	for _, f := range list {
		fds = append(fds, int(f.Fd()))
		defer f.Close()
	}
	_, _, err = c.WriteMsgUnix([]byte{'\n'}, unix.UnixRights(fds...), nil)
	return err
}

// Run executes the program. Its errors are ExecErrors. Call Wait after Run: Wait passes the signals
// that arrive in between.
func (q *Process) Run() error {
	defer q.conn.Close()
	q.catchSignals()
	err := q.run()
	if err != nil {
		signal.Stop(q.arrived)
		return &ExecError{q.name, err}
	}
	return nil
}

func (q *Process) run() error {
	if _, err := q.conn.Write([]byte{'\n'}); err != nil {
		return err
	}
	var r report
	_, err := Receive(q.conn, &r)
	if errors.Is(err, io.EOF) {
		return nil // executing the program closes the socket
	}
	if err == nil {
		err = r.err()
	}
	q.reap()
	return err
}

// abandon ends a process that does not run the program.
func (q *Process) abandon() {
	_ = q.conn.Close() // the process then exits
	q.reap()
}

// Abandon ends a process instead of running its program. The caller closes the device.
func (q *Process) Abandon() { q.abandon() }

func (q *Process) reap() {
	for {
		_, err := unix.Wait4(q.pid, nil, 0, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// forkError explains why the namespaces could not be created.
func forkError(err error) error {
	e := &SetupError{Op: "create a user namespace", Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Op = "start this program again"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EUSERS):
		e.Err = fmt.Errorf("%w: the limit of namespaces on this machine is reached", err)
		e.Advice = "sudo sysctl -w user.max_user_namespaces=10000 user.max_net_namespaces=10000"
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		e.Advice = "the kernel was built without user namespaces (CONFIG_USER_NS): use a kernel " +
			"with them, or a virtual machine"
	default:
		e.Advice = userNamespaceAdvice()
	}
	return e
}
