//go:build linux

package lead

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tidepool-net/tidepool/bench/end"
)

// Program is the built node command.
type Program struct {
	Path string
	Dir  string // folder for files
}

// Build builds cmd/node from the repository in root.
func Build(ctx context.Context, root, dir string) (*Program, error) {
	p := &Program{Path: filepath.Join(dir, "node"), Dir: dir}
	c := exec.CommandContext(ctx, "go", "build", "-o", p.Path, "./cmd/node")
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the node: %w: %s", err, bytes.TrimSpace(out))
	}
	return p, nil
}

// Shell is a running node that reads commands.
type Shell struct {
	process   *exec.Cmd
	in        io.WriteCloser
	lines     *bufio.Scanner
	complaint journal
	ended     bool
}

// Run starts a node with a network file.
func (p *Program) Run(ctx context.Context, name, network string) (*Shell, error) {
	path := filepath.Join(p.Dir, name+".lnx")
	if err := os.WriteFile(path, []byte(network), 0o644); err != nil {
		return nil, err
	}
	s := &Shell{process: exec.CommandContext(ctx, p.Path, "run", path)}
	s.process.Stderr = &s.complaint
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.process.WaitDelay = time.Second
	var err error
	if s.in, err = s.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.lines = bufio.NewScanner(out)
	s.lines.Buffer(nil, 1<<20)
	return s, s.process.Start()
}

// Ask sends a command and returns the next line.
func (s *Shell) Ask(command string) ([]byte, error) {
	if err := s.tell(command); err != nil {
		return nil, err
	}
	return s.next()
}

func (s *Shell) tell(command string) error {
	_, err := io.WriteString(s.in, command+"\n")
	return err
}

func (s *Shell) next() ([]byte, error) {
	if !s.lines.Scan() {
		return nil, fmt.Errorf("the node does not answer: %w: %s", io.ErrUnexpectedEOF,
			s.complaint.text())
	}
	return s.lines.Bytes(), nil
}

// answer sends a command and parses the answer, a line of JSON.
func (s *Shell) answer(command string, v any) error {
	line, err := s.Ask(command)
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return json.Unmarshal(line, v)
}

// Kill kills the node unless it has exited.
func (s *Shell) Kill() {
	if !s.ended {
		_ = s.process.Process.Kill() // the node may have exited already
		_ = s.process.Wait()
		s.ended = true
	}
}

var goroutine = regexp.MustCompile(`(?m)^goroutine \d+ `)

// goroutines ends the node with a signal that makes Go's runtime print the stack of every
// goroutine. It returns the number of stacks.
func (s *Shell) goroutines() (int, error) {
	if err := s.process.Process.Signal(syscall.SIGQUIT); err != nil {
		return 0, err
	}
	for s.lines.Scan() {
	}
	_ = s.process.Wait() // the exit status is an error after a signal
	s.ended = true
	return len(goroutine.FindAllString(s.complaint.text(), -1)), nil
}

// Conns describes a node with many connections.
type Conns struct {
	Count      int           `json:"connections"`
	Took       time.Duration `json:"took_ns"`
	Before     int64         `json:"resident_before_bytes"`
	Resident   int64         `json:"resident_bytes"`
	Each       float64       `json:"resident_bytes_per_connection"`
	Goroutines int           `json:"goroutines"`
	ClientHeap float64       `json:"client_heap_bytes_per_connection"`
}

// Hold opens connections to a node that accepts them by its shell command `accept`, and measures
// the node's memory and goroutines.
func (p *Program) Hold(ctx context.Context, count int) (c Conns, err error) {
	udp, err := loopback(2)
	if err != nil {
		return c, err
	}
	server := end.Spec{Sides: []end.Side{side(udp[0], udp[1], serverAddr, clientNear)}}
	s, err := p.Run(ctx, "many", end.Describe(&server))
	if err != nil {
		return c, err
	}
	defer s.Kill()
	for _, port := range end.HoldPorts() {
		if _, err := s.Ask(fmt.Sprintf("accept %d", port)); err != nil {
			return c, err
		}
	}
	client, _, err := Start(ctx, nil, &end.Spec{
		Stack: "tidepool", Far: serverAddr, Work: end.Work{Kind: end.Hold, Count: count},
		Sides: []end.Side{side(udp[1], udp[0], clientNear, serverAddr)},
	})
	if err != nil {
		return c, err
	}
	defer client.End()
	before, err := client.Ask("usage", "usage")
	if err != nil {
		return c, err
	}
	c.Before = end.Resident(s.process.Process.Pid)
	if err := client.Tell("go"); err != nil {
		return c, err
	}
	done, err := client.Await("done", readyTimeout+time.Duration(count)*2*time.Millisecond)
	if err != nil {
		return c, err
	}
	if err := s.awaitConns(ctx, count); err != nil {
		return c, err
	}
	after, err := client.Ask("usage", "usage")
	if err != nil {
		return c, err
	}
	c.Count, c.Took = count, done.Took
	c.Resident = end.Resident(s.process.Process.Pid)
	c.Each = float64(c.Resident-c.Before) / float64(count)
	c.ClientHeap = float64(after.Heap-before.Heap) / float64(count)
	c.Goroutines, err = s.goroutines()
	return c, err
}

// accepted begins the line that the shell prints for a new connection.
const accepted = "New connection on socket"

// awaitConns waits until the node has reported count connections.
func (s *Shell) awaitConns(ctx context.Context, count int) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for every := time.NewTicker(20 * time.Millisecond); ; {
		taken := strings.Count(s.complaint.text(), accepted)
		if taken == count {
			every.Stop()
			return nil
		}
		select {
		case <-ctx.Done():
			every.Stop()
			return fmt.Errorf("the node has accepted %d of %d connections: %w",
				taken, count, ctx.Err())
		case <-every.C:
		}
	}
}

// journal keeps a process's standard error; it can be read at any time.
type journal struct {
	mu   sync.Mutex
	said bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.said.Write(p)
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.TrimSpace(j.said.String())
}
