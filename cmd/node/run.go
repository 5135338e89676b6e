package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/repl"
)

// offloads are the values of --offload.
var offloads = []string{"auto", "gso", "mmsg", "plain"}

type runOptions struct {
	config    operator.Config
	script    string
	tun       []string
	lines     []string // port forwards
	commands  []string
	keepGoing bool
	json      bool
	daemon    bool
	grace     time.Duration // how long a daemon waits for connections to close
	user      string
	log       logFlags
	endpoints endpoints
}

func runCommand() *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run FILE.lnx",
		Short: "run the node of a file, with a shell",
		Long: "Run the node that FILE.lnx describes. At a terminal it opens a shell, in which\n" +
			"`help` lists the commands. Otherwise it runs a script: from standard input,\n" +
			"from the file of --script, or the lines of --command. The script stops at the\n" +
			"first line that fails, and the program exits with that line's status. At the\n" +
			"end of the script, the program waits for open transfers and stops the node. With\n" +
			"--daemon there is no shell: clients connect through --socket or --listen, and\n" +
			"SIGHUP makes the node reload FILE.lnx.",
		Example: "  node run nets/a-b-c/B.lnx\n" +
			"  printf 'interfaces\\nroutes\\n' | node run nets/a-b-c/B.lnx\n" +
			"  node run nets/a-b-c/A.lnx -c 'ping -c 3 10.1.0.2'\n" +
			"  node run A.lnx --pcap A.pcapng --script send.txt\n" +
			"  node run A.lnx --daemon --socket A.sock    # then: node ctl ./A.sock routes",
		Args: usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: cobra.FixedCompletions(
			[]cobra.Completion{"lnx"}, cobra.ShellCompDirectiveFilterFileExt),
		RunE: func(c *cobra.Command, args []string) error {
			v := o.messages(c.ErrOrStderr(), "")
			if err := o.validate(); err != nil {
				return v.failed(c, misuse(c, err))
			}
			if err := o.findUser(); err != nil {
				return v.failed(c, err)
			}
			return v.failed(c, o.run(c, args[0]))
		},
	}
	f := c.Flags()
	f.StringVar(&o.script, "script", "", "run the lines of `FILE` (- is standard input), then stop")
	f.StringArrayVarP(&o.commands, "command", "c", nil,
		"run the shell command `LINE`, then stop; may be repeated")
	f.BoolVar(&o.keepGoing, "keep-going", false, "continue after a line that fails")
	f.BoolVar(&o.json, "json", false, "print answers and events as JSON, one document a line")
	f.BoolVar(&o.daemon, "daemon", false,
		"run without a shell and log to standard error, until SIGTERM or Ctrl-C;\n"+
			"needs --socket or --listen")
	f.DurationVar(&o.grace, "grace", 0,
		"with --daemon: wait up to `TIME` after SIGTERM for connections to close")
	f.StringVar(&o.user, "user", "",
		"if started as root, become the user `NAME` after opening devices and ports; without\n"+
			"it a daemon becomes the owner of the socket's folder")
	o.log.flags(c)
	o.endpoints.flags(f)
	f.StringVar(&o.config.Pcap, "pcap", "", "write every packet to `FILE`, as pcapng")
	f.IntVar(&o.config.Snaplen, "pcap-snaplen", 0, "capture `N` bytes of each packet; 0: all")
	f.BoolVar(&o.config.Node.Overwrite, "force", false,
		"let --pcap and --probe replace existing files")
	f.StringVar(&o.config.Node.Probe, "probe", "", "write a row for each ACK into `FILE.csv`")
	f.Uint64Var(&o.config.Node.Seed, "seed", 0,
		"`SEED` of random losses and delays; 0: different ones each time")
	f.StringVar(&o.config.Node.Offload, "offload", "auto",
		"send packets by `METHOD`: "+diagnostic.OneOf(offloads))
	f.StringArrayVar(&o.tun, "tun", nil,
		"add the TUN interface `NAME=ADDR/LEN`, which links the node to this machine's kernel")
	f.StringArrayVar(&o.lines, "door", nil,
		"open the port forward of `LINE`, such as 'publish 8080 10.1.0.2:80' or 'expose 80 3000'")
	repl.Choose(c, "offload", offloads...)
	repl.Limit(c, 0, repl.Unlimited, "pcap-snaplen")
	return c
}

func (o *runOptions) validate() error {
	if len(o.commands) > 0 && o.script != "" {
		return errors.New("--command and --script cannot be used together")
	}
	switch {
	case o.daemon && (len(o.commands) > 0 || o.script != ""):
		return errors.New("--daemon has no shell: use it without --command and --script")
	case o.config.Node.Probe != "" && filepath.Ext(o.config.Node.Probe) != ".csv":
		return fmt.Errorf("--probe %q: must be the name of a .csv file", o.config.Node.Probe)
	case o.grace < 0:
		return fmt.Errorf("--grace %v: must be 0 or more", o.grace)
	case !o.daemon && o.grace > 0:
		return errors.New("--grace needs --daemon")
	case !o.daemon && o.log.format == "json":
		return errors.New("--log-format json needs --daemon; use " +
			"--json for the answers of the shell")
	case o.daemon && o.endpoints.socket == "" && o.endpoints.listen == "":
		return errors.New("--daemon needs --socket or --listen")
	}
	return o.endpoints.unused()
}

// messages returns the output for messages. A daemon with a JSON log writes its messages to that
// log.
func (o *runOptions) messages(to io.Writer, name string) *messageWriter {
	v := &messageWriter{lines: to}
	if o.daemon && o.log.format == "json" {
		v.log = o.log.newLog(to, name)
	}
	return v
}

func (o *runOptions) text(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, noFile(path, err, "an .lnx file")
	case info.IsDir():
		return nil, fmt.Errorf("%s: a folder is a network: `node net up %s` runs it; use an .lnx "+
			"file of one node", path, diagnostic.ShellWord(path))
	case isPlan(path, info):
		return nil, fmt.Errorf("%s: a plan is a network: `node net up %s` runs it; use an .lnx "+
			"file of one node", path, diagnostic.ShellWord(path))
	}
	text, err := files.Text(path, files.MaxText)
	if err != nil {
		return nil, err
	}
	for _, t := range o.tun {
		line, err := tunLine(t)
		if err != nil {
			return nil, err
		}
		text = append(text, line...)
	}
	for _, line := range o.lines {
		if !lnx.IsForward(line) {
			return nil,
				fmt.Errorf("--door %q: must be a publish, expose, splice or socks line of an "+
					".lnx file",
					line)
		}
		text = append(append(text, '\n'), line...)
	}
	return text, nil
}

func (o *runOptions) read(path string) (*lnx.Config, error) {
	text, err := o.text(path)
	if err != nil {
		return nil, &usageError{err}
	}
	c, errs := lnx.Read(path, text)
	errs = append(errs, operator.Check(c)...)
	errs.Sort()
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// prepare reads the file of the node.
func (o *runOptions) prepare(path string) (err error) {
	o.config.LNX, err = o.read(path)
	o.config.Reread = func() (*lnx.Config, error) { return o.read(path) }
	o.config.Node.LogLevel = &o.log.level
	return err
}

// open starts the node and its servers. leave stops them.
func (o *runOptions) open(
	ctx context.Context, path string, v *messageWriter,
) (n *operator.Node, leave func() error, err error) {
	if err := o.openEndpoints(ctx); err != nil {
		return nil, nil, err
	}
	n, err = openNode(o.config)
	if err != nil {
		o.endpoints.close()
		if _, ok := errors.AsType[*lnx.Error](err); ok {
			return nil, nil, err // the error contains the positions
		}
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	v.remarks(o.config.LNX)
	nodes := map[string]control.Operator{o.config.LNX.Name: n}
	_, stop := o.endpoints.serve(nodes, func(text string) {
		n.Node.Watchers.Announce(control.Message{Text: text})
	})
	return n, func() error {
		err := errors.Join(stop(), n.Close())
		o.endpoints.close()
		return err
	}, nil
}

// openNode opens a node. An error about an existing file mentions --force.
func openNode(cfg operator.Config) (*operator.Node, error) {
	n, err := operator.Open(cfg)
	if errors.Is(err, fs.ErrExist) && !cfg.Node.Overwrite {
		err = fmt.Errorf("%w; --force replaces it", err)
	}
	return n, err
}

func (o *runOptions) run(c *cobra.Command, path string) (err error) {
	if err := o.prepare(path); err != nil {
		return err
	}
	in, name := c.InOrStdin(), "stdin"
	switch {
	case len(o.commands) > 0:
		in, name = strings.NewReader(strings.Join(o.commands, "\n")), "command"
	case o.script != "" && o.script != "-":
		f, err := openScript(o.script)
		if err != nil {
			return &usageError{fmt.Errorf("--script: %w", err)}
		}
		defer f.Close()
		in, name = f, o.script
	}
	console := newConsole(in, c.OutOrStdout(), c.ErrOrStderr())
	typed := console.typed && o.script == "" && len(o.commands) == 0 && !o.daemon
	signals := endSignals(typed)
	if o.daemon {
		signals = []os.Signal{syscall.SIGTERM, os.Interrupt} // SIGHUP reloads the file instead
	}
	ctx, stop := endBySignal(c.Context(), signals...)
	defer stop() // after leave: a first signal must not end the process before the files are closed
	self := o.config.LNX.Name
	v := o.messages(console.err, self)
	n, leave, err := o.open(ctx, path, v)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	if p := o.endpoints.place(); p.Page != "" {
		v.say(p.String(), slog.LevelInfo, "serving", "page", p.Page, "api", p.API)
	}
	switch {
	case o.daemon:
		return o.runDaemon(ctx, n, o.log.newLog(console.err, self))
	case typed:
		hello := "node " + self + " is up; `help` lists the commands"
		return o.runShell(ctx, n, console, hello)
	}
	return o.runScript(ctx, n, console, name)
}

// findUser finds the user to switch to. It runs first, because it may execute the program again.
func (o *runOptions) findUser() error {
	as, err := findAccount(o.user, o.endpoints.socket, o.daemon)
	if err != nil {
		return &usageError{err}
	}
	if as == nil {
		return nil
	}
	o.config.Node.Drop = as.become
	if err := noNewPrivileges(); err != nil {
		return fmt.Errorf("become another user: set no_new_privs: %w", err)
	}
	return nil
}

// openEndpoints opens the directory for clients' files and the listeners.
func (o *runOptions) openEndpoints(ctx context.Context) error {
	if err := o.endpoints.openFiles(); err != nil {
		return err
	}
	return o.endpoints.open(ctx)
}

func openScript(path string) (*os.File, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, noFile(path, err, "a script, with commands of the shell")
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder; must be a file", path)
	}
	return files.Input(path)
}

// endSignals returns the signals that end a session. On a terminal, Ctrl-C stops the current
// command and not the node.
func endSignals(typed bool) []os.Signal {
	signals := []os.Signal{syscall.SIGTERM, syscall.SIGHUP}
	if !typed {
		signals = append(signals, os.Interrupt)
	}
	return signals
}

func (o *runOptions) shell(
	ctx context.Context, op control.Operator, t *console,
) (*repl.Shell, error) {
	return repl.New(ctx, repl.Config{
		Operator: op, Out: t.out, Err: t.err, KeepGoing: o.keepGoing, JSON: o.json,
		Color: t.color, Plain: t.plain, Width: t.width, Height: t.height,
		Keyboard: t.keyboard(), Endless: t.endless, Named: named,
	})
}

func (o *runOptions) runScript(
	ctx context.Context, op control.Operator, t *console, name string,
) error {
	ctx, leave := t.untilReaderGone(ctx)
	defer leave()
	shell, err := o.shell(ctx, op, t)
	if err != nil {
		return err
	}
	defer suspending(shell)()
	return markPrinted(shell.Script(ctx, name, t.in))
}

func (o *runOptions) runShell(
	ctx context.Context, op control.Operator, t *console, hello string,
) error {
	shell, err := o.shell(ctx, op, t)
	if err != nil {
		return err
	}
	editor, err := t.editor(shell.Complete)
	if err != nil {
		return err
	}
	shell.Say(hello)
	defer keys(shell)()
	defer suspending(shell)()
	return markPrinted(shell.Interactive(ctx, editor))
}

// markPrinted marks a session's error as already printed, unless the error is a signal.
func markPrinted(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[signalError](err); ok {
		return err
	}
	return printedError{err}
}

// endBySignal returns a context that ends with the first of the signals, which is its cause. By
// default it uses all signals that end a program. The second signal ends the process.
func endBySignal(ctx context.Context, signals ...os.Signal) (context.Context, context.CancelFunc) {
	if len(signals) == 0 {
		signals = endSignals(false)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, signals...)
	go func() {
		select {
		case s := <-arrived:
			signal.Stop(arrived)
			cancel(signalError{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(arrived)
		cancel(nil)
	}
}
