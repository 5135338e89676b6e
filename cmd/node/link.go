package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/portforward"
	"github.com/tidepool-net/tidepool/internal/repl"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/netns"
)

type linkOptions struct {
	config    operator.Config
	mtu       int
	wait      bool
	endpoints endpoints
	logs      [2]*linkLog // logs of mm-link; nil: no log
}

// The node sends to the program on the downlink and receives on the uplink.
const (
	downlink = iota
	uplink
)

var linkWays = [...]control.Way{downlink: control.WayOut, uplink: control.WayIn}

func linkCommand() *cobra.Command {
	var o linkOptions
	c := &cobra.Command{
		Use:   "link [flags] [LINK-ARG...] [-- COMMAND [ARG...]]",
		Short: "run a program behind a link to this machine's network",
		Long: "Run a program behind one link to this machine's network, as any user and\n" +
			"without root. The LINK-ARGs describe the link, in the syntax of tc-netem(8):\n" +
			"delay, loss, rate, codel and others. `trace FILE` sends packets at the times in\n" +
			"a mahimahi trace. LINK-ARGs apply to both directions; those after uplink or\n" +
			"downlink apply to that direction only. Without a COMMAND it runs a shell.\n\n" +
			"The program reaches what this machine reaches, with TCP, UDP and ping, and over\n" +
			"IPv6 if this machine has it. At the address of its default gateway, the program\n" +
			"reaches this machine's loopback. Links can be nested. The exit status is the\n" +
			"program's: 128 plus the signal number if a signal killed it, 126 or 127 if it\n" +
			"could not be executed. This command needs Linux.",
		Example: "  node link delay 20ms loss 1% rate 10mbit codel -- curl -s example.org\n" +
			"  node link delay 20ms downlink rate 2mbit -- bash\n" +
			"  node link --listen 8080 delay 100ms -- chromium    # with the page",
		RunE: func(c *cobra.Command, args []string) error {
			words, program, err := cutAtDash(c, args)
			if err != nil {
				return err
			}
			both, err := linkWords(words)
			if err != nil && c.ArgsLenAtDash() < 0 {
				err = fmt.Errorf("%w\n%w", err, errNoDash) // the hint follows the excerpt
			}
			if err = cmp.Or(err, o.endpoints.unused()); err != nil {
				return misuse(c, err)
			}
			return o.run(c, both, program)
		},
	}
	c.SetFlagErrorFunc(dashError)
	o.flags(c)
	return c
}

func (o *linkOptions) flags(c *cobra.Command) {
	f := c.Flags()
	o.endpoints.flags(f)
	f.StringVar(&o.config.Pcap, "pcap", "", "write every packet to `FILE`, as pcapng")
	f.IntVar(&o.config.Snaplen, "pcap-snaplen", 0, "capture `N` bytes of each packet; 0: all")
	f.BoolVar(&o.config.Node.Overwrite, "force", false, "let --pcap replace an existing file")
	f.Uint64Var(&o.config.Node.Seed, "seed", 0,
		"`SEED` of the link's random draws; 0: different draws each time")
	f.IntVar(&o.mtu, "mtu", defaultLinkMTU, "limit packets to `BYTES`")
	f.BoolVar(&o.wait, "wait", false,
		"keep the link until COMMAND's background processes have ended, too")
	repl.Limit(c, 0, repl.Unlimited, "pcap-snaplen")
	repl.Limit(c, minLinkMTU, maxLinkMTU, "mtu")
}

const (
	linkDevice = "link0"

	defaultLinkMTU = 1500
	minLinkMTU     = 68 // smallest MTU of IPv4 (RFC 791 §3.2)
	maxLinkMTU     = 65535
)

// linkWords parses the arguments that describe a link, for both directions.
func linkWords(words []string) (both [2]netem.Config, err error) {
	text, at := [2][]string{}, [2][]int{} // the words of each direction, and their offsets
	ways, offset, line := []int{downlink, uplink}, 0, strings.Join(words, " ")
	for _, w := range words {
		switch w {
		case "uplink":
			ways = []int{uplink}
		case "downlink":
			ways = []int{downlink}
		default:
			for _, way := range ways {
				text[way], at[way] = append(text[way], w), append(at[way], offset)
			}
		}
		offset += len(w) + 1
	}
	for way := range both {
		if len(text[way]) == 0 {
			continue
		}
		both[way], err = node.ParseImpairment(strings.Join(text[way], " "), files.Machine())
		w, _ := errors.AsType[*netem.WordError](err)
		if w != nil { // the excerpt shows the words of both directions
			i := min(strings.Count(w.Text[:w.At], " "), len(at[way])-1)
			if w.At = at[way][i]; w.Word == "" {
				w.At += len(text[way][i])
			}
			w.Text = line
		}
		if w != nil && w.Msg == netem.Twice && len(ways) == 1 {
			err = fmt.Errorf("%w\narguments before uplink or downlink apply to both directions: "+
				"write `uplink %[2]s … downlink %[2]s …`", err, w.Word)
		}
		if err != nil {
			return both, err
		}
	}
	return both, nil
}

var errNoDash = errors.New("write -- before COMMAND")

// dashError adds a hint to a flag's error, because the flag may be meant for the program.
func dashError(c *cobra.Command, err error) error {
	if err = flagError(err); c.Flags().NArg() > 0 {
		err = fmt.Errorf("%w; write -- before COMMAND if the flag is COMMAND's", err)
	}
	return misuse(c, err)
}

// cutAtDash splits the arguments at --. A -- without a program after it is an error.
func cutAtDash(c *cobra.Command, args []string) (words, program []string, err error) {
	switch at := c.ArgsLenAtDash(); at {
	case -1:
		return args, nil, nil
	case len(args):
		return nil, nil, misuse(c, errors.New("COMMAND is missing after --"))
	default:
		return args[:at], args[at:], nil
	}
}

// leftGrace is how long processes that outlive the program may run after SIGTERM.
const leftGrace = 2 * time.Second

func (o *linkOptions) run(c *cobra.Command, both [2]netem.Config, program []string) (err error) {
	if err := o.endpoints.openFiles(); err != nil {
		return err
	}
	if err := o.endpoints.open(c.Context()); err != nil {
		return err
	}
	defer o.endpoints.close()
	ends, err := netns.FreeLink()
	if err != nil {
		return err
	}
	if o.mtu < netns.MinMTU6 {
		ends.Gateway6, ends.Program6 = netip.Addr{}, netip.Addr{}
	}
	// Ignore the error: without the file, programs query the loopback address.
	was, _ := files.Text(netns.ResolvConf, files.MaxText)
	resolv, dns := ends.ResolvConf(string(was))
	p, err := netns.Start(netns.Config{
		Device: linkDevice, MTU: o.mtu,
		Kernel: ends.Kernel(), Gateway: ends.Gateways(),
		Files: map[string]string{netns.ResolvConf: resolv},
	}, netns.NewProgram(program))
	if err != nil {
		return err
	}
	n, err := o.open(ends, p.TUN(), both, portforward.Gateway{
		Addrs: ends.Gateways(), DNS: dns,
		NoEcho: func(err error) {
			_, _ = fmt.Fprintf(c.ErrOrStderr(), "%s: %v\n", commandPath(c), err)
		},
	})
	if err != nil {
		p.Abandon()
		return err
	}
	defer func() {
		o.unwatch(n)
		err = errors.Join(err, n.Close())
	}()
	name := o.config.LNX.Name
	_, leave := o.endpoints.serve(map[string]control.Operator{name: n}, func(text string) {
		n.Node.Watchers.Announce(control.Message{Text: text})
	})
	defer func() { err = errors.Join(err, leave()) }()
	if p := o.endpoints.place(); p.Page != "" {
		_, _ = fmt.Fprintln(c.ErrOrStderr(), p)
	}
	return o.program(c, p)
}

// program waits for the program and returns its exit status.
func (o *linkOptions) program(c *cobra.Command, p *netns.Process) error {
	if err := netns.Adopt(); err != nil {
		return err
	}
	if err := p.Run(); err != nil {
		return err
	}
	return p.Wait(netns.Left{
		Wait: o.wait, Grace: leftGrace,
		Tell: func(text string) {
			_, _ = fmt.Fprintf(c.ErrOrStderr(), "%s: %s\n", commandPath(c), text)
		},
	})
}

// linkFile is the template of the .lnx file of a link's node.
const linkFile = `interface %[1]s %[2]v/%[3]d tun:%[1]s kernel %[4]s
link %[1]s mtu %[5]d
routing static
tcp rto-min 200000
tcp rto-max 120000000
`

const linkFile6 = "address %s %v/%d\n"

func (o *linkOptions) file(e netns.LinkEnds) (*lnx.Config, error) {
	kernel := e.Program.String()
	if e.Program6.IsValid() {
		kernel += " " + e.Program6.String()
	}
	text := fmt.Appendf(nil, linkFile, linkDevice, e.Gateway, netns.LinkBits, kernel, o.mtu)
	if e.Gateway6.IsValid() {
		text = fmt.Appendf(text, linkFile6, linkDevice, e.Gateway6, netns.LinkBits6)
	}
	c, errs := lnx.Read("link.lnx", text)
	return c, errs.Err()
}

// open starts the node at the other end of the link.
func (o *linkOptions) open(
	e netns.LinkEnds, tun *link.TUN, both [2]netem.Config, gateway portforward.Gateway,
) (*operator.Node, error) {
	var err error
	if o.config.LNX, err = o.file(e); err != nil {
		_ = tun.Close() // report the first error
		return nil, err
	}
	o.config.Node.Devices = map[string]link.Device{linkDevice: tun}
	n, err := openNode(o.config)
	if err != nil {
		return nil, err
	}
	_, err = n.Forwards.Gateway(gateway)
	if err == nil {
		err = n.Node.Ask(func(*stack.Stack, clock.Time) error {
			for way := range both {
				if both[way].None() {
					continue
				}
				if err := n.Node.Devices.Impair(0, linkWays[way], &both[way]); err != nil {
					return err
				}
			}
			o.watch(n)
			return nil
		})
	}
	if err != nil {
		_ = n.Close() // report the first error
		return nil, err
	}
	return n, nil
}
