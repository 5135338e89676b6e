package examine

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/files"
)

// Course is a subject that runs a node of the course: a program with an .lnx file. The examiner
// plays the node's neighbors over UDP on the loopback interface, and types the node's commands.
type Course struct {
	Profile *Profile
	// Folder is the folder in which each run of the node gets its own folder. Empty: a temporary
	// folder.
	Folder string
}

// Name implements Subject.
func (c *Course) Name() string {
	p := c.Profile
	return cmp.Or(p.Name, strings.Join(p.Host, " "), strings.Join(p.Router, " "))
}

// Has implements Subject.
func (c *Course) Has(f Feature) bool { return c.Profile.has(f) }

// RIPPeriod implements Subject.
func (c *Course) RIPPeriod() time.Duration { return c.Profile.period() }

// RIPTimeout implements Subject.
func (c *Course) RIPTimeout() time.Duration { return c.Profile.timeout() }

// Names of the files of a transfer, in the folder of a run.
const (
	sentFile     = "send.bin"
	receivedFile = "recv.bin"
)

// startTime is how long a node may take to bind its UDP ports, if its profile does not set that.
const startTime = 15 * time.Second

// Start implements Subject.
func (c *Course) Start(s *Setup) (Run, error) {
	p := c.Profile
	command := p.Host
	if s.Router {
		command = p.Router
	}
	if len(command) == 0 {
		return nil, fmt.Errorf("the profile has no command for this kind of node")
	}
	folder, err := os.MkdirTemp(c.Folder, "examine-")
	if err != nil {
		return nil, err
	}
	r := &courseRun{
		inbox: newInbox(), profile: p, setup: s, folder: folder, sid: p.FirstSocket,
	}
	if s.Announce = p.old(); s.Announce {
		for i := range s.Links {
			s.Links[i].Addr = netip.PrefixFrom(s.Links[i].Addr.Addr(), 32)
		}
	}
	if err := r.open(command); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// courseRun is a running node of the course.
type courseRun struct {
	inbox
	profile *Profile
	setup   *Setup
	folder  string
	sockets []*net.UDPConn // the examiner's sockets, by link
	to      []netip.AddrPort
	process *process
	sid     int // number of the connection's socket
	readers sync.WaitGroup
	read    time.Time // when the received file was last read
	stored  []byte
	exists  bool
}

// open binds the examiner's sockets, starts the node and waits until the node has bound its own.
func (r *courseRun) open(command []string) error {
	var peer []int
	for range r.setup.Links {
		s, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return err
		}
		_ = s.SetReadBuffer(4 << 20) // an error does not matter
		r.sockets = append(r.sockets, s)
		peer = append(peer, s.LocalAddr().(*net.UDPAddr).Port)
	}
	subject, err := freePorts(len(r.setup.Links))
	if err != nil {
		return err
	}
	for i := range r.setup.Links {
		port := subject[i]
		if r.profile.old() {
			port = subject[0]
		}
		r.to = append(r.to, netip.AddrPortFrom(loopback, uint16(port)))
	}
	file := filepath.Join(r.folder, "node.lnx")
	text := r.profile.file(r.setup, subject, peer)
	if err := files.Overwrite(file, []byte(text), 0o644); err != nil {
		return err
	}
	args := make([]string, len(command))
	for i, a := range command {
		args[i] = strings.ReplaceAll(a, "{lnx}", file)
	}
	if r.process, err = startProcess(args); err != nil {
		return &EndError{Ending{Exited, "start " + args[0] + ": " + err.Error()}}
	}
	r.ended = r.process.done
	for i, s := range r.sockets {
		r.readers.Go(func() { r.receive(i, s) })
	}
	return r.bound(subject)
}

// bound waits until the node has bound its ports, and then until the node reads commands. The
// examiner does not bind the ports itself to find out, because the node would then fail.
func (r *courseRun) bound(ports []int) error {
	if r.profile.old() {
		ports = ports[:1]
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	most := cmp.Or(r.profile.StartTime, startTime)
	for limit := time.Now().Add(most); time.Now().Before(limit); {
		if all, known := portsBound(ports); all || !known {
			return r.ready()
		}
		select {
		case <-tick.C:
		case <-r.process.done:
			return &EndError{*r.process.ended()}
		}
	}
	return &EndError{Ending{Hung, fmt.Sprintf("the node has not bound its UDP ports within %s",
		most)}}
}

// portsBound reports whether all UDP ports are bound, and whether the system can tell.
func portsBound(ports []int) (all, known bool) {
	for _, family := range []string{"udp", "udp6"} {
		text, err := files.Text("/proc/net/"+family, files.MaxText)
		if err != nil {
			continue
		}
		known = true
		ports = slices.DeleteFunc(slices.Clone(ports), func(port int) bool {
			return strings.Contains(string(text), fmt.Sprintf(":%04X 00000000", port))
		})
	}
	return len(ports) == 0, known
}

// answerTime is how long the node may take to carry out a command.
const answerTime = 2 * time.Second

// ready waits until the node has carried out the commands typed so far: until it answers the ready
// command or, without such a command, for 300 ms.
func (r *courseRun) ready() error {
	const look, blind = 2 * time.Millisecond, 300 * time.Millisecond
	tick := time.NewTicker(look)
	defer tick.Stop()
	mark := r.setup.Links[0].Addr.Addr().String()
	limit, answers := time.Now().Add(blind), -1
	if r.profile.Ready != "" {
		limit, answers = time.Now().Add(answerTime), strings.Count(r.process.printed(), mark)
		if err := r.process.enter(r.profile.Ready); err != nil {
			return err
		}
	}
	for time.Now().Before(limit) {
		select {
		case <-tick.C:
		case <-r.process.done:
			return &EndError{*r.process.ended()}
		}
		if answers >= 0 && strings.Count(r.process.printed(), mark) > answers {
			return nil
		}
	}
	return nil
}

// receive reads one of the examiner's sockets.
func (r *courseRun) receive(link int, s *net.UDPConn) {
	b := make([]byte, 1<<16)
	for {
		n, _, err := s.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		r.put(link, b[:n])
	}
}

// nextPort is where the search for free ports begins. It moves on, because several runs search for
// ports at the same time.
var nextPort atomic.Int64

// freePorts returns free UDP ports of the loopback interface.
func freePorts(n int) ([]int, error) {
	const first, count = 21000, 10000
	var ports []int
	for range count {
		port := first + int((nextPort.Add(1)+int64(os.Getpid())*97)%count)
		s, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			continue
		}
		_ = s.Close()
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("not enough free UDP ports from %d to %d", first, first+count-1)
}

// Send implements Run. If the subject has closed its socket, the packet is lost.
func (r *courseRun) Send(link int, packet []byte) error {
	_, err := r.sockets[link].WriteToUDPAddrPort(packet, r.to[link])
	if err != nil && r.Ended() == nil {
		return nil // while a port is closed, packets are lost
	}
	return nil
}

// Do implements Run.
func (r *courseRun) Do(c Command) error {
	text := r.profile.Commands[commandNames[c.Kind]]
	if text == "" && c.Kind == CommandShutdown {
		text = r.profile.Commands[commandNames[CommandClose]]
	}
	if text == "" {
		return ErrUnsupported
	}
	file := receivedFile
	switch c.Kind {
	case CommandListen:
		r.sid = r.profile.FirstSocket + 1 // the socket of the first accepted connection
	case CommandSendFile:
		file = sentFile
		if err := files.Overwrite(filepath.Join(r.folder, file), c.Data, 0o644); err != nil {
			return err
		}
	default: // needs no preparation
	}
	iface := strconv.Itoa(c.N)
	if !r.profile.old() && c.N < len(r.setup.Links) {
		iface = r.setup.Links[c.N].Name
	}
	line := strings.NewReplacer(
		"{port}", strconv.Itoa(int(c.Port)), "{addr}", c.Addr.String(), "{n}", strconv.Itoa(c.N),
		"{sid}", strconv.Itoa(r.sid), "{text}", string(c.Data), "{if}", iface,
		"{file}", filepath.Join(r.folder, file),
	).Replace(text)
	if err := r.process.enter(line); err != nil {
		return err
	}
	switch c.Kind {
	case CommandListen, CommandReceiveFile, CommandUp, CommandDown:
		return r.ready() // only the ready command shows that the command is done
	default:
		return nil
	}
}

// Printed implements Run.
func (r *courseRun) Printed() string { return r.process.printed() }

// File implements Run. It calls any stored file complete, because a node does not report when it
// has written the last byte.
func (r *courseRun) File() ([]byte, bool) {
	const often = 5 * time.Millisecond
	if now := time.Now(); now.Sub(r.read) > often {
		b, err := files.Text(filepath.Join(r.folder, receivedFile), maxBytes)
		r.stored, r.exists, r.read = b, err == nil, now
	}
	return r.stored, r.exists
}

// Ended implements Run.
func (r *courseRun) Ended() *Ending { return r.process.ended() }

// Close implements Run.
func (r *courseRun) Close() {
	if r.process != nil {
		r.process.stop()
	}
	for _, s := range r.sockets {
		_ = s.Close()
	}
	r.readers.Wait()
	r.close()
	_ = os.RemoveAll(r.folder)
}
