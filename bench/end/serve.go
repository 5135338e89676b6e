//go:build linux

package end

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// late reports whether err is a timeout: some stacks have their own errors for it.
func late(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// askBytes is the size of a request and of a reply.
const askBytes = 64

func (p *process) serve() error {
	ports := map[uint16]service{
		bulkPort: {do: p.receive}, askPort: {do: echo}, churnPort: {do: closeNow},
		usedPort: {do: reply, keep: true},
	}
	for i := range uint16(holdPorts) {
		ports[holdPort+i] = service{keep: true} // held connections need no handler
	}
	for port, s := range ports {
		l, err := p.host.Listen(port)
		if err != nil {
			return err
		}
		go p.accept(l, s)
	}
	return nil
}

// service describes how connections to a port are handled.
type service struct {
	do   func(net.Conn) error // nil: there is no handler
	keep bool                 // keep the connection open afterwards
}

func (p *process) accept(l net.Listener, s service) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // the host was closed
		}
		if s.do == nil {
			p.keep(c)
			continue
		}
		go func() {
			err := s.do(c)
			if err != nil && !errors.Is(err, net.ErrClosed) {
				p.report(&Report{Event: "failed", Error: err.Error()})
			}
			if s.keep && err == nil {
				p.keep(c)
				return
			}
			_ = c.Close()
		}()
	}
}

func (p *process) keep(c net.Conn) {
	p.keeping.Lock()
	p.kept = append(p.kept, c)
	p.keeping.Unlock()
}

// closeNow serves nothing: the server closes at once, so the TIME-WAIT state is at the server's
// end.
func closeNow(net.Conn) error { return nil }

func echo(c net.Conn) error {
	var b [askBytes]byte
	for {
		if _, err := io.ReadFull(c, b[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if _, err := c.Write(b[:]); err != nil {
			return err
		}
	}
}

// ask sends requests and reads replies until the time is over.
func (p *process) ask() (s Report, err error) {
	c, err := p.dial(askPort)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.SetDeadline(time.Now().Add(p.spec.Work.For + dialTimeout)); err != nil {
		return s, err
	}
	var b [askBytes]byte
	for start := time.Now(); s.Took < p.spec.Work.For; s.Count++ {
		if _, err := c.Write(b[:]); err != nil {
			return s, err
		}
		if _, err := io.ReadFull(c, b[:]); err != nil {
			return s, err
		}
		s.Took = time.Since(start)
	}
	return s, nil
}

// churn opens and closes connections until the time is over.
func (p *process) churn() (s Report, err error) {
	var b [1]byte
	w := p.spec.Work
	for start := time.Now(); s.Took < w.For && s.Count < int64(w.Count); s.Count++ {
		c, err := p.dial(churnPort)
		if err != nil {
			return s, err
		}
		if _, err := c.Read(b[:]); !errors.Is(err, io.EOF) {
			return s, errors.Join(err, errors.New("the server did not close"), c.Close())
		}
		if err := c.Close(); err != nil {
			return s, err
		}
		s.Took = time.Since(start)
	}
	return s, nil
}

// replyBytes is the size of the reply on a used connection: more than an initial window.
const replyBytes = 16 << 10

// reply answers one request.
func reply(c net.Conn) error {
	var b [askBytes]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return err
	}
	_, err := c.Write(pattern[:replyBytes])
	return err
}

func request(c net.Conn) error {
	var b [askBytes]byte
	if _, err := c.Write(b[:]); err != nil {
		return err
	}
	var all [replyBytes]byte
	if _, err := io.ReadFull(c, all[:]); err != nil {
		return err
	}
	if wrong(all[:], 0) > 0 {
		return errors.New("the reply differs from the data sent")
	}
	return nil
}

// idleWait lets stacks notice that their connections are idle.
const idleWait = 3 * time.Second

// used opens connections, transfers a reply over each one once, and keeps them open and idle.
func (p *process) used() (s Report, err error) {
	s, err = p.open(func(int) uint16 { return usedPort }, request)
	time.Sleep(idleWait)
	return s, err
}

// atOnce is the number of connections that are opened concurrently.
const atOnce = 64

func (p *process) hold() (s Report, err error) {
	return p.open(
		func(i int) uint16 { return holdPort + uint16(i%holdPorts) },
		func(net.Conn) error { return nil },
	)
}

// open opens connections to the given ports, calls do with each, and keeps them open.
func (p *process) open(port func(i int) uint16, do func(net.Conn) error) (s Report, err error) {
	next := make(chan int)
	errs := make([]error, atOnce)
	start := time.Now()
	var wg sync.WaitGroup
	for worker := range atOnce {
		wg.Go(func() {
			for i := range next {
				if errs[worker] != nil {
					continue
				}
				var c net.Conn
				if c, errs[worker] = p.dial(port(i)); c != nil {
					p.keep(c)
					errs[worker] = do(c)
				}
			}
		})
	}
	for i := range p.spec.Work.Count {
		next <- i
	}
	close(next)
	wg.Wait()
	return Report{Count: int64(len(p.kept)), Took: time.Since(start)}, errors.Join(errs...)
}

// HoldPorts returns the ports on which connections are held.
func HoldPorts() (list []uint16) {
	for i := range uint16(holdPorts) {
		list = append(list, holdPort+i)
	}
	return list
}
