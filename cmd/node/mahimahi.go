package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// mahimahiShells are mahimahi's programs that `node` imitates, and their positional arguments.
var mahimahiShells = []struct {
	name, usage, part, means string
	args                     int
}{
	{"mm-delay", "MILLISECONDS", "a delay", "The delay applies to each direction.", 1},
	{"mm-loss", "uplink|downlink RATE", "a lossy link", "RATE is a probability from 0 to 1.", 2},
	{
		"mm-onoff", "uplink|downlink ON OFF", "a link with outages",
		"ON and OFF are mean times in seconds.", 3,
	},
	{
		"mm-link", "UPLINK DOWNLINK", "a link with traces", "UPLINK and DOWNLINK are trace files." +
			" Options follow them:\n--uplink-queue, --downlink-queue, --uplink-queue-args, " +
			"--downlink-queue-args,\n--uplink-log, --downlink-log and --once.", 2,
	},
}

// mahimahiArgs returns the arguments of the program. If a symbolic link with the name of a mahimahi
// program was called, that name is the first argument.
func mahimahiArgs(args []string) []string {
	if len(args) > 0 && isMahimahi(filepath.Base(args[0])) {
		return append([]string{filepath.Base(args[0])}, args[1:]...)
	}
	return args[min(1, len(args)):]
}

func isMahimahi(name string) bool {
	for _, s := range mahimahiShells {
		if s.name == name {
			return true
		}
	}
	return false
}

func mahimahiCommands() (list []*cobra.Command) {
	for _, s := range mahimahiShells {
		list = append(list, &cobra.Command{
			Use:   s.name + " " + s.usage + " [COMMAND [ARG...]]",
			Short: "run a program behind " + s.part + ", with mahimahi's command line",
			Long: "Run a program behind a link, with the options of mahimahi's " + s.name + ".\n" +
				s.means + " `node link` has more kinds of links.\nA symbolic link to this " +
				"program, named " + s.name + ", does the same. This command needs Linux.",
			DisableFlagParsing: true, DisableFlagsInUseLine: true, // the flags are mahimahi's
			RunE: func(c *cobra.Command, args []string) error {
				if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
					return c.Help()
				}
				return runMahimahi(c, s.name, s.args, args)
			},
		})
	}
	return list
}

// runMahimahi runs a program behind a link, as one of mahimahi's shells does.
func runMahimahi(c *cobra.Command, name string, count int, args []string) error {
	o := linkOptions{mtu: defaultLinkMTU}
	chain, left, program := []string{name}, count, []string(nil)
	for i, a := range args {
		isOption := strings.HasPrefix(a, "-") && name == "mm-link"
		if left == 0 && !isOption {
			program = args[i:]
			break
		}
		if !isOption {
			left--
		}
		log, err := o.logOption(a, args)
		if err != nil {
			return err
		}
		if !log {
			chain = append(chain, a)
		}
	}
	both, err := mahimahiLink(chain)
	if err != nil {
		return misuse(c, err)
	}
	if len(program) > 0 && program[0] == "--" {
		program = program[1:]
	}
	if len(program) > 0 && isMahimahi(program[0]) {
		if _, err := exec.LookPath(program[0]); err != nil { // a nested shell that is not installed
			self, err := os.Executable()
			if err != nil {
				return err
			}
			program = append([]string{self}, program...)
		}
	}
	err = o.run(c, both, program)
	for _, l := range o.logs {
		err = errors.Join(err, l.close())
	}
	return err
}

// mahimahiLink returns both directions of the link that a chain of shells describes.
func mahimahiLink(chain []string) (both [2]netem.Config, err error) {
	line := strings.ReplaceAll(strings.Join(chain, " "), "'", "''")
	text := "name: mm\nmm: '" + line + "'\n" +
		"flows: [{size: 1MB}]\nduration: 1s\n"
	f, err := plan.Parse(chain[0], []byte(text))
	var cells []plan.Cell
	if err == nil {
		f.Load = func(name string) ([]byte, error) { return files.Text(name, files.MaxText) }
		cells, err = f.Cells()
	}
	if list := diagnostic.Errors(nil); errors.As(err, &list) { // there is no line to name
		err = fmt.Errorf("%s; expected %s", list[0].Msg, list[0].Want)
	}
	if err != nil {
		return both, err
	}
	path := cells[0].Experiment.Path
	both[downlink], both[uplink] = path.Down, path.Up
	return both, nil
}

// linkLog is a log of one direction of a link in mm-link's format.
type linkLog struct {
	file  *os.File
	out   *bufio.Writer
	start clock.Time
}

// logOption opens the log of an option --uplink-log=FILE or --downlink-log=FILE.
func (o *linkOptions) logOption(option string, args []string) (ok bool, err error) {
	for way, name := range [...]string{downlink: "Downlink", uplink: "Uplink"} {
		path, ok := strings.CutPrefix(option, "--"+strings.ToLower(name)+"-log=")
		if !ok {
			continue
		}
		f, err := files.Machine().Edit(path, 0o666)
		if err != nil {
			return false, err
		}
		if err := f.Truncate(0); err != nil { // mahimahi truncates an existing log, too
			return false, errors.Join(err, f.Close())
		}
		traces := slices.DeleteFunc(slices.Clone(args), func(a string) bool {
			return strings.HasPrefix(a, "-")
		})
		h := result.LogHeader{
			Link: name, Command: strings.Join(os.Args, " "), Queue: "see the command line",
		}
		if i := 1 - way; i < len(traces) { // the uplink's trace is the first argument
			h.Trace = traces[i]
		}
		if err := (&result.LinkRecord{}).WriteLog(f, h); err != nil {
			return false, errors.Join(err, f.Close())
		}
		o.logs[way] = &linkLog{file: f, out: bufio.NewWriter(f)}
		return true, nil
	}
	return false, nil
}

var linkEvents = map[netem.EventKind]result.LinkEventKind{
	netem.Arrive: result.Arrival, netem.Drop: result.Drop, netem.Depart: result.Departure,
	netem.Opportunity: result.Opportunity,
}

// watch writes the events of the link to the logs. Loop only.
func (o *linkOptions) watch(n *operator.Node) {
	impaired := n.Node.Devices.Impaired(0)
	if impaired == nil {
		return
	}
	out, in := impaired.Links(0)
	for way, l := range []*netem.Link{downlink: out, uplink: in} {
		log := o.logs[way]
		if log == nil {
			continue
		}
		l.WatchOpportunities(func(e *netem.Event) {
			kind, ok := linkEvents[e.Kind]
			if !ok {
				return
			}
			if log.start == 0 {
				log.start = e.At
			}
			event := result.LinkEvent{
				At: time.Duration(max(0, e.At-log.start)), Kind: kind, Bytes: e.Size,
				Wait: e.Sojourn,
			}
			event.WriteLine(log.out) // close reports a failed write
		})
	}
}

// unwatch completes the logs. It runs before the node closes, because closing empties the links.
func (o *linkOptions) unwatch(n *operator.Node) {
	_ = n.Node.Ask(func(_ *stack.Stack, now clock.Time) error { // the node may already be closed
		if impaired := n.Node.Devices.Impaired(0); impaired != nil {
			out, in := impaired.Links(0)
			for _, l := range []*netem.Link{out, in} {
				l.Advance(now)
				l.Watch(nil)
			}
		}
		return nil
	})
}

func (l *linkLog) close() error {
	if l == nil {
		return nil
	}
	return errors.Join(l.out.Flush(), l.file.Close())
}
