package examine

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"
)

// Limits of a subject's process.
const (
	maxPrinted = 8 << 20 // bytes of output
	maxTyped   = 256     // lines that wait for the program to read them
)

// process is a running program whose input and output we control. It cannot block the examiner,
// even if it prints without end, ignores its input, or exits.
type process struct {
	command *exec.Cmd
	typed   chan string
	done    chan struct{} // closed when the process has exited
	mu      sync.Mutex
	output  strings.Builder
	end     *Ending
	killed  bool
}

// startProcess starts a program.
func startProcess(args []string) (*process, error) {
	p := &process{
		command: exec.Command(args[0], args[1:]...), typed: make(chan string, maxTyped),
		done: make(chan struct{}),
	}
	p.command.Stdout, p.command.Stderr = p, p
	stdin, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	screen, tty, err := pty.Open()
	if err == nil { // without a terminal, a C program would buffer its output
		p.command.Stdout, p.command.Stderr = tty, tty
	}
	group(p.command)
	err = p.command.Start()
	if tty != nil {
		_ = tty.Close()
	}
	if err != nil {
		if screen != nil {
			_ = screen.Close()
		}
		return nil, err
	}
	restrict(p.command.Process.Pid)
	go p.write(stdin)
	shown := make(chan struct{})
	go p.show(screen, shown)
	go p.wait(shown)
	return p, nil
}

// show reads what the process prints on its terminal.
func (p *process) show(screen *os.File, shown chan<- struct{}) {
	if screen != nil {
		_, _ = io.Copy(p, screen) // returns an error when the last program closes the terminal
		_ = screen.Close()
	}
	close(shown)
}

// write types the lines until stop closes the channel.
func (p *process) write(stdin io.WriteCloser) {
	for line := range p.typed {
		if _, err := io.WriteString(stdin, line+"\n"); err != nil {
			break // the process has closed its input or exited
		}
	}
	for range p.typed { // drop the remaining lines
	}
	_ = stdin.Close()
}

// wait waits until the process exits.
func (p *process) wait(shown <-chan struct{}) {
	err := p.command.Wait()
	select {
	case <-shown:
	case <-time.After(time.Second): // a child still has the terminal
	}
	p.mu.Lock()
	if p.end == nil && !p.killed {
		p.end = &Ending{Exited, "exit status 0" + p.tail()}
		if err != nil {
			p.end = &Ending{Crashed, err.Error() + p.tail()}
		}
	}
	p.mu.Unlock()
	close(p.done)
}

// tail returns the first lines of a crash message in the output or, without one, of all output.
func (p *process) tail() string {
	text := strings.TrimSpace(p.output.String())
	if text == "" {
		return ", without output"
	}
	for _, mark := range []string{
		"panic: ", "fatal error: ", "Segmentation fault", "Traceback",
		"terminate called", "thread '", "Assertion",
	} {
		if at := strings.Index(text, mark); at >= 0 {
			text = text[at:]
			break
		}
	}
	const lines, bytes = 3, 400
	if list := strings.SplitN(text, "\n", lines+1); len(list) > lines {
		text = strings.Join(list[:lines], "\n")
	}
	return "; it printed " + fmt.Sprintf("%q", text[:min(len(text), bytes)])
}

// Write records output of the process.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.output.Len()+len(b) > maxPrinted {
		if p.end == nil {
			p.end = &Ending{Flooded, fmt.Sprintf("it printed more than %d bytes", maxPrinted)}
		}
		kill(p.command)
		return 0, io.ErrShortWrite
	}
	return p.output.Write(b)
}

// enter types a line.
func (p *process) enter(line string) error {
	select {
	case p.typed <- line:
		return nil
	default:
		return fmt.Errorf("the stack does not read its input: %d lines wait", maxTyped)
	}
}

func (p *process) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

func (p *process) ended() *Ending {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end
}

// stop kills the process and waits until it has exited.
func (p *process) stop() {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	kill(p.command)
	close(p.typed)
	<-p.done
}
