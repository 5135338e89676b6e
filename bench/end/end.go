//go:build linux

package end

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/bench/datagram"
)

// host is a stack with one address.
type host interface {
	Listen(port uint16) (net.Listener, error)
	Dial(ctx context.Context, port uint16) (net.Conn, error)
	// Account fills in the stack's own packet counters.
	Account(*Usage)
	// Describe fills in the stack's data about a connection.
	Describe(net.Conn, *Path)
	Close() error
}

// process is this process: one end of a connection, or a node between two ends.
type process struct {
	spec Spec
	host host // nil in a relay or a ceiling
	mu   sync.Mutex
	out  *json.Encoder

	keeping sync.Mutex
	kept    []net.Conn // connections that are kept open

	// Only a ceiling uses these fields.
	socket   *datagram.Socket
	received planeReceiver
	counting sync.Mutex
	counted  Report
}

// Run runs the whole process: it does the work of its spec until its input ends.
func Run(argument string, in io.Reader, out io.Writer) (err error) {
	p := &process{out: json.NewEncoder(out)}
	if err := json.Unmarshal([]byte(argument), &p.spec); err != nil {
		return fmt.Errorf("parse the spec: %w", err)
	}
	p.spec.MTU = cmp.Or(p.spec.MTU, 1400)
	if path := p.spec.Profile; path != "" && p.spec.Work.Kind == "" {
		stop, err := profile(path)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	stop, err := p.start()
	if err != nil {
		p.report(&Report{Event: "failed", Error: err.Error()})
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		switch lines.Text() {
		case "usage":
			p.report(&Report{Event: "usage", Usage: p.usage()})
		case "cpu":
			var u Usage
			u.CPU, u.User = cpu()
			p.report(&Report{Event: "cpu", Usage: u})
		case "count":
			p.counting.Lock()
			s := p.counted
			p.counting.Unlock()
			s.Event = "count"
			p.report(&s)
		case "go":
			go p.work()
		}
	}
	return stop()
}

// start opens the stack, router, relay or ceiling of the spec.
func (p *process) start() (stop func() error, err error) {
	switch p.spec.Stack {
	case "relay":
		return p.relay()
	case "router":
		p.host, err = openRouter(&p.spec)
	case "tidepool":
		p.host, err = openTidepool(&p.spec)
	case "gvisor", "gvisor-own":
		p.host, err = openGvisor(&p.spec)
	case "kernel":
		p.host = &kernel{spec: &p.spec}
	case "raw-plain", "raw-mmsg", "raw-gso", "plane":
		return p.ceiling()
	default:
		err = fmt.Errorf("unknown stack %q", p.spec.Stack)
	}
	if err != nil {
		return nil, err
	}
	if p.spec.Work.Kind == "" && p.spec.Stack != "router" {
		if err := p.serve(); err != nil {
			return nil, errors.Join(err, p.host.Close())
		}
	}
	p.report(&Report{Event: "ready"})
	return p.host.Close, nil
}

func (p *process) report(s *Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.out.Encode(s) // if the lead is gone, this process will end, too
}

func (p *process) work() {
	said, err := p.worked()
	if err != nil {
		said = Report{Event: "failed", Error: err.Error()}
	}
	p.report(&said)
}

func (p *process) worked() (s Report, err error) {
	if p.spec.Profile != "" {
		stop, err := profile(p.spec.Profile)
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	do, ok := map[string]func() (Report, error){
		Bulk: p.bulk, Ask: p.ask, Churn: p.churn, Hold: p.hold, Used: p.used, Blast: p.blast,
	}[p.spec.Work.Kind]
	if !ok {
		return s, fmt.Errorf("unknown work %q", p.spec.Work.Kind)
	}
	s, err = do()
	s.Event = "done"
	return s, err
}

// dialTimeout limits the time for connecting. No stack needs nearly as long.
const dialTimeout = 20 * time.Second

func (p *process) dial(port uint16) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	return p.host.Dial(ctx, port)
}

// profile starts a CPU profile. Calling stop ends the profile.
func profile(path string) (stop func() error, err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
