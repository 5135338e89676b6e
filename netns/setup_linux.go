package netns

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/link"
)

// Main sets up namespaces and does not return if this process was started for that. A program that
// uses this package calls Main at the start of its main function.
func Main() {
	switch {
	case len(os.Args) > 2 && os.Args[0] == joinName:
		joined(os.Args[1:])
	case len(os.Args) == 0 || os.Args[0] != setupName:
		return
	}
	unix.CloseOnExec(socketFD)
	socket := os.NewFile(socketFD, "netns")
	c, err := net.FileConn(socket)
	if err != nil {
		os.Exit(statusNotExecuted)
	}
	conn, _ := c.(*net.UnixConn)
	s := setup{conn: conn, in: bufio.NewReader(conn)}
	s.run()
	os.Exit(statusNotExecuted)
}

// setup is a process that sets up namespaces for a program.
type setup struct {
	conn *net.UnixConn
	in   *bufio.Reader
}

func (s *setup) run() {
	var o order
	line, err := s.in.ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &o) != nil {
		return // the caller has exited
	}
	// The program must end when the process that has its network ends. The death signal belongs to
	// a thread, so this thread must execute the program.
	runtime.LockOSThread()
	if unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0) != nil ||
		os.Getppid() != o.Parent {
		return
	}
	tun, err := o.Config.open()
	if err != nil {
		s.fail(err)
		return
	}
	fds := []int{tun.FD()}
	for _, f := range o.Config.sockets() {
		fds = append(fds, int(f.Fd()))
		defer f.Close()
	}
	text, _ := json.Marshal(report{}) // the type has only strings and numbers
	if _, _, err := s.conn.WriteMsgUnix(text, unix.UnixRights(fds...), nil); err != nil {
		return
	}
	if _, err := s.in.ReadByte(); err != nil {
		return // the caller has abandoned this process
	}
	s.fail(execute(os.Args[1:]))
}

// sockets opens the sockets that the configuration asks for. It omits those that fail: the caller
// works without them.
func (c *Config) sockets() (list []*os.File) {
	if c.Diag {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC,
			unix.NETLINK_SOCK_DIAG)
		if err == nil { // the kernel may have been built without this
			list = append(list, os.NewFile(uintptr(fd), "sock_diag"))
		}
	}
	if !c.DNS {
		return list
	}
	if u, err := net.ListenUDP("udp", &net.UDPAddr{Port: dnsPort}); err == nil {
		if f, err := u.File(); err == nil {
			list = append(list, f)
		}
	}
	if l, err := net.ListenTCP("tcp", &net.TCPAddr{Port: dnsPort}); err == nil {
		if f, err := l.File(); err == nil {
			list = append(list, f)
		}
	}
	return list
}

const dnsPort = 53

// fail reports an error to the caller.
func (s *setup) fail(err error) {
	r := report{Error: err.Error()}
	if e, ok := errors.AsType[*SetupError](err); ok {
		r = report{Op: e.Op, Error: e.Err.Error(), Advice: e.Advice}
	}
	_ = errors.As(err, &r.Errno) // stays zero if there is no errno
	text, _ := json.Marshal(r)   // as in run, this cannot fail
	_, _ = s.conn.Write(text)    // the caller may have exited
}

// open sets up this process's namespaces, and creates the TUN device.
func (c *Config) open() (*link.TUN, error) {
	if err := loopbackUp(); err != nil {
		return nil, &SetupError{Op: "loopback interface", Err: err, Advice: deviceAdvice(err)}
	}
	// Programs may listen on low ports and send echo requests, as root can on a machine. Kernels
	// without these settings allow less.
	gid := strconv.Itoa(os.Getegid())
	last := gid
	if gid == "0" {
		last = strconv.Itoa(1<<31 - 1) // includes all groups, if they are mapped
	}
	settings := [][2]string{
		{"ipv4/ping_group_range", gid + " " + gid},
		{"ipv4/ping_group_range", gid + " " + last},
		{"ipv4/ip_unprivileged_port_start", "0"},
		{"ipv4/conf/all/rp_filter", "0"},
		{"ipv4/conf/default/rp_filter", "0"},
		// Errors that the host itself reports have the host's own address as source.
		{"ipv4/conf/default/accept_local", "1"},
		{"ipv6/conf/default/accept_ra", "0"}, // there is no router at the other end
	}
	if c.Ports != [2]uint16{} {
		settings = append(settings,
			[2]string{"ipv4/ip_local_port_range", fmt.Sprintf("%d %d", c.Ports[0], c.Ports[1])})
	}
	for _, s := range settings {
		_ = os.WriteFile("/proc/sys/net/"+s[0], []byte(s[1]), 0)
	}
	tun, err := link.OpenTUN(c.tun())
	if err != nil {
		e := &SetupError{Err: err}
		if e.Advice = deviceAdvice(err); e.Advice != "" {
			if t, ok := errors.AsType[*link.TUNError](err); ok {
				t.Advice = ""
			}
		}
		return nil, e
	}
	if err := c.addOthers(); err != nil {
		return nil, &SetupError{Op: "more addresses", Err: err}
	}
	return tun, c.bindFiles()
}

// addOthers adds the other IPv4 addresses to the device, with labels, which netdevice(7) requires.
func (c *Config) addOthers() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	for i, a := range c.Others {
		req, err := unix.NewIfreq(fmt.Sprintf("%s:%d", c.Device, i+1))
		if err == nil {
			err = req.SetInet4Addr(a.AsSlice())
		}
		if err == nil {
			err = unix.IoctlIfreq(s, unix.SIOCSIFADDR, req)
		}
		if err != nil {
			return fmt.Errorf("%v: %w", a, err)
		}
	}
	return nil
}

func (c *Config) tun() link.TUNConfig {
	cfg := link.TUNConfig{
		Device: c.Device, Kernel: c.Kernel,
		Interface: link.Interface{Name: c.Device, MTU: c.MTU},
	}
	for i, a := range c.Gateway {
		if i == 0 {
			cfg.Interface.Local = a
		} else {
			cfg.Interface.Others = append(cfg.Interface.Others, a)
		}
		cfg.Routes = append(cfg.Routes, defaultRoute(a))
	}
	return cfg
}

// loopbackUp brings the loopback interface up.
func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, req)
}

// execute replaces this process by the program. It returns only if that fails.
func execute(args []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		if e, ok := errors.AsType[*exec.Error](err); ok && errors.Is(e.Err, exec.ErrNotFound) {
			return fmt.Errorf("command not found%w", quiet{unix.ENOENT})
		}
		return err
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	return syscall.Exec(path, args, os.Environ())
}

// quiet is an error number without a text.
type quiet struct{ errno syscall.Errno }

func (quiet) Error() string   { return "" }
func (q quiet) Unwrap() error { return q.errno }
