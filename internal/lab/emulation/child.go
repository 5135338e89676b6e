package emulation

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

type child struct {
	name    string
	process *exec.Cmd
	in      io.WriteCloser
	orders  chan any // messages to write
	delay   time.Duration
	index   int
	to      chan<- childMessage // messages from the child process
	over    chan struct{}       // closed when the child has exited
	stderr  stderrTail
}

type childMessage struct {
	from *child
	*Message
	// gone means that the child sends no more messages. err is nil if the child exited normally.
	gone bool
	err  error
}

// killDelay is how long a process may run after its input has ended, before it is killed.
const killDelay = 2 * time.Second

// maxOrders is the number of messages to a process: Start, go and stop.
const maxOrders = 3

// startChild starts a process. The caller must call end, which stops the process. After ctx has
// ended, messages from the process are discarded.
func startChild(
	ctx context.Context, name string, command []string, to chan<- childMessage,
) (*child, error) {
	c := &child{
		name: name, to: to, over: make(chan struct{}), orders: make(chan any, maxOrders),
		delay: killDelay,
	}
	c.process = exec.Command(command[0], command[1:]...) //nolint:noctx // end ends it
	c.process.Stderr = &c.stderr
	detach(c.process)
	in, err := c.process.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	out, err := c.process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	c.in = in
	if err := withPriority(c.process.Start); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go c.readMessages(ctx, out)
	go c.writeOrders()
	return c, nil
}

func (c *child) readMessages(ctx context.Context, out io.Reader) {
	defer close(c.over)
	pass := func(h childMessage) {
		h.from = c
		select {
		case c.to <- h:
		case <-ctx.Done():
		}
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxLine)
	var wrong error
	for wrong == nil && lines.Scan() {
		m := new(Message)
		if err := json.Unmarshal(lines.Bytes(), m); err != nil {
			wrong = fmt.Errorf("%w: %.80q", ErrProtocol, lines.Text())
			continue
		}
		pass(childMessage{Message: m})
	}
	if wrong == nil {
		wrong = lines.Err()
	}
	if wrong != nil { // report the error now: the process may continue until the end of the run
		pass(childMessage{gone: true, err: fmt.Errorf("%s %w", c.name, wrong)})
	}
	_, _ = io.Copy(io.Discard, out) // drain the output so that the process can exit
	err := c.process.Wait()
	switch said := c.stderr.last(); {
	case wrong != nil:
		return
	case err != nil && said != "":
		err = fmt.Errorf("%s: %w: %s", c.name, err, said)
	case err != nil:
		err = fmt.Errorf("%s: %w", c.name, err)
	}
	pass(childMessage{gone: true, err: err})
}

// send queues a message for the process without blocking.
func (c *child) send(v any) { c.orders <- v }

func (c *child) writeOrders() {
	to := json.NewEncoder(c.in)
	for {
		select {
		case v := <-c.orders:
			if to.Encode(v) != nil {
				return
			}
		case <-c.over:
			return
		}
	}
}

// end closes the process's input and waits until the process has exited. After a delay it kills the
// process and its children, which may keep the output open.
func (c *child) end() {
	_ = c.in.Close() // the process may have exited already
	select {
	case <-c.over:
		return
	case <-time.After(c.delay):
	}
	kill(c.process)
	<-c.over
}

// stderrTail keeps the last part of a process's standard error.
type stderrTail struct {
	mu   sync.Mutex
	text []byte
}

const maxTalk = 4 << 10

func (t *stderrTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if n := len(t.text) - maxTalk; n > 0 {
		t.text = append(t.text[:0], t.text[n:]...)
	}
	return len(p), nil
}

func (t *stderrTail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := bytes.TrimSpace(t.text)
	return strings.TrimSpace(string(text[bytes.LastIndexByte(text, '\n')+1:]))
}
