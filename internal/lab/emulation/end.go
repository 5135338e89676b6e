package emulation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/tcp/starlark"
)

// Arm carries out the task of one end of a flow, sender or receiver. Before the run begins, it
// opens its sockets, and calls Ready or Wait. It returns when the task is done or ctx ends. Errors
// that it returns after ctx has ended are ignored.
type Arm func(ctx context.Context, e *End) error

// End is one end of a flow, for its Arm.
type End struct {
	Start *Start
	// Flow is the flow of the experiment. Node is the end's node in the virtual network.
	Flow *plan.Flow
	Node *node.Node
	// Origin is the start of the run.
	Origin time.Time

	seen      measurements
	sleeps    armSleeps
	out       *messageWriter
	readiness sync.Once
	started   chan struct{} // closed when the run begins
}

// Arms maps protocols to the arms in this package.
func Arms() map[plan.Protocol]Arm {
	return map[plan.Protocol]Arm{plan.TCP: tcpArm, plan.RCP: rcpArm, plan.RDT: rdtArm}
}

// Serve is the main function of an end's process. It reads and writes the messages that this
// package describes, and runs the arm of its flow's protocol. It returns when the run is over, or
// when its input ends.
func Serve(in io.Reader, out io.Writer, arms map[plan.Protocol]Arm) error {
	return runProcess(out, func(to *messageWriter) error { return serve(in, to, arms) })
}

func serve(in io.Reader, to *messageWriter, arms map[plan.Protocol]Arm) error {
	start, cell, lines, err := readStart(in)
	if err != nil {
		return err
	}
	if start.Flow < 0 || start.Flow >= len(cell.Flows) {
		return fmt.Errorf("the experiment has no flow %d", start.Flow)
	}
	e := &End{
		Start: start, Flow: &cell.Flows[start.Flow], out: to, started: make(chan struct{}),
	}
	arm := arms[e.Flow.Protocol]
	if arm == nil {
		return fmt.Errorf("flow %s: protocol %s is not supported in real time", e.Flow.Name,
			e.Flow.Protocol)
	}
	defer spareProcessors()()
	e.prepare(len(cell.Flows))
	if err := e.open(); err != nil {
		return err
	}
	return e.run(lines, arm)
}

func (e *End) open() error {
	c, bad := lnx.Parse(e.Flow.Name, []byte(e.Start.LNX))
	if bad != nil {
		return bad
	}
	hooks := starlark.Hooks{Failed: e.fail}
	if e.Start.Record && e.Start.Role == Sender {
		hooks.Recorded = e.seen.recorder.Own
	}
	transport, err := simulation.TCPConfig(e.Flow, hooks)
	if err != nil {
		return err
	}
	cfg := node.Config{
		Seed: e.Start.Seed,
		Tune: func(cfg *tcp.Config) {
			secret := cfg.Secret
			*cfg = transport
			cfg.Secret = secret
		},
	}
	if e.Start.Role == Sender && e.Flow.Protocol == plan.TCP {
		cfg.Sampled = e.sampled
		if e.Start.Record {
			cfg.Tap = e.tracer(e.Start.Host)
		}
	}
	e.Node, err = operator.OpenNode(cfg, c)
	return err
}

func (e *End) run(lines *bufio.Scanner, arm Arm) error {
	incoming := orders(lines)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sleeper, err := startSleeper()
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		err := arm(ctx, e)
		e.Ready() // has no effect if the arm has called it
		e.ended(ctx, err)
		e.out.send(&Message{Type: "over"})
		close(ended)
	}()
	if err := e.execute(incoming, "go", cancel); err != nil {
		return err
	}
	if err := e.execute(incoming, "stop", cancel); err != nil {
		return err
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(armTimeout):
		return errors.New("the flow did not stop at its end time")
	}
	e.seen.late = sleeper.stop().worse(e.sleeps.lateness())
	e.seen.dropped = e.drops()
	if err := e.Node.Close(); err != nil {
		return err
	}
	e.report()
	return nil
}

// execute waits for an order and executes it. The order "go" sets the start of the run.
func (e *End) execute(incoming <-chan order, want string, cancel context.CancelFunc) error {
	for {
		select {
		case err := <-e.seen.failed:
			return err
		case o, ok := <-incoming:
			if !ok || o.Type != want {
				return errAbandoned
			}
			if want == "go" {
				e.begin(time.Unix(0, o.At))
				until := e.Start.Duration
				if e.Start.Stop > 0 {
					until = e.Start.Stop
				}
				_ = e.drops() // when the node's loop has handled this call, it has seen Origin
				time.AfterFunc(time.Until(e.Origin.Add(seconds(until))), cancel)
				close(e.started)
			}
			return nil
		}
	}
}

// armTimeout is how long an arm may take to return after its time is over.
const armTimeout = 5 * time.Second

// Dials reports whether this end dials the other one. The sender of data dials, unless the receiver
// requests the data.
func (e *End) Dials() bool {
	asked := e.Flow.App.Requests > 0 || e.Flow.App.Objects != nil
	return (e.Start.Role == Sender) != asked
}

// There returns the address at which the end that does not dial listens.
func (e *End) There() netip.AddrPort {
	if e.Dials() {
		return netip.AddrPortFrom(e.Start.Peer, e.Start.Port)
	}
	return netip.AddrPortFrom(e.Start.Host, e.Start.Port)
}

// Ready reports that this end is listening, so the other end may start.
func (e *End) Ready() {
	e.readiness.Do(func() { e.out.send(&Message{Type: "ready"}) })
}

// Wait reports that this end is ready, and waits until the flow begins. It returns false if ctx
// ends first.
func (e *End) Wait(ctx context.Context) bool {
	e.Ready()
	select {
	case <-e.started:
	case <-ctx.Done():
		return false
	}
	return e.sleeps.until(ctx, e.Origin.Add(seconds(e.Start.Begin)))
}

// Now returns the time since the start of the run.
func (e *End) Now() time.Duration { return time.Since(e.Origin) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
