package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/netctl"
	"github.com/tidepool-net/tidepool/internal/topology"
)

type netOptions struct {
	state string
	json  bool
	files string // the value of --files
	one   bool   // one process for all nodes
	user  string // user to run the nodes as, if root starts them
}

func netCommand() *cobra.Command {
	var o netOptions
	c := &cobra.Command{
		Use:   "net",
		Short: "start, change and stop whole networks",
		Long: "Run whole networks, by default with one process for each node. The sockets and\n" +
			"logs of all nodes are in one folder. A network is a folder of .lnx files, or the\n" +
			"plan FILE.net, and is named after the folder or the file.",
		Example: "  node net up nets/ring\n" +
			"  node attach A\n" +
			"  node net down",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	o.stateFlag(c)
	c.AddCommand(o.upCommand(), o.applyCommand(), o.downCommand(), o.statusCommand(),
		o.execCommand(), o.graphCommand(), o.serveCommand(), netGenerateCommand(),
		netExportCommand(), netImportCommand(), netNamesCommand(), netValidateCommand(),
		netPartCommand(), o.processCommand())
	return c
}

func (o *netOptions) stateFlag(c *cobra.Command) {
	c.PersistentFlags().StringVar(&o.state, "state", defaultState(),
		"`FOLDER` with the sockets and logs of networks")
}

// defaultState returns the directory of the networks' state. It is below the user's runtime
// directory, or else below the temporary directory, with the user ID in its name.
func defaultState() string {
	if folder := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(folder) {
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			return filepath.Join(folder, "tidepool")
		}
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("tidepool-%d", os.Getuid()))
}

func (o *netOptions) open() (*netctl.State, error) {
	s, err := netctl.OpenState(o.state)
	return s, netError(err)
}

func netError(err error) error {
	switch {
	case errors.Is(err, netctl.ErrUsage), errors.Is(err, netctl.ErrAmbiguous):
		return &usageError{err}
	}
	return err
}

type changeFunc func(*netctl.State, context.Context, netctl.Plan) (netctl.Change, error)

func (o *netOptions) upCommand() *cobra.Command {
	c := o.bringCommand("up", (*netctl.State).Up)
	c.Short = "start all nodes of a network"
	c.Long = "Start all nodes of a network that are not running, and return when all of them\n" +
		"answer. If files have errors, it prints all errors and starts nothing. If one\n" +
		"node cannot start, none does. FILE.net is a plan: the command makes the .lnx\n" +
		"files from it, as `node net generate FILE.net` does. The lines\n" +
		"`host NAME ssh USER@MACHINE` and `node A NAME` in a plan start A on another\n" +
		"machine, over ssh."
	c.Example = "  node net up nets/ring"
	c.Flags().BoolVar(&o.one, "one-process", false,
		"run the nodes in one process, which is faster; they stop and crash together")
	return c
}

func (o *netOptions) applyCommand() *cobra.Command {
	c := o.bringCommand("apply", (*netctl.State).Apply)
	c.Use = "apply [FOLDER|FILE.lnx|FILE.net]"
	c.Args = usageArgs(cobra.MaximumNArgs(1))
	c.Short = "apply changed files to a running network"
	c.Long = "Apply changed files to a running network. New nodes start. Nodes whose file\n" +
		"has changed reload it and keep their connections; they restart only for\n" +
		"changes that need it, such as another routing protocol. Nodes without a file\n" +
		"stop. UDP ports may move between nodes. If one node cannot apply its file, no\n" +
		"node changes. Without an argument, it applies the files that the only\n" +
		"running network was started from."
	return c
}

// bringCommand returns the command up or apply, without its help texts.
func (o *netOptions) bringCommand(word string, do changeFunc) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:  word + " FOLDER|FILE.lnx|FILE.net",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return o.bring(c, args[0], name, do)
			}
			_, n, err := o.network(nil)
			if err != nil {
				return err
			}
			return o.bring(c, n.Source(), cmp.Or(name, n.Name()), do)
		},
	}
	c.Flags().StringVar(&name, "name", "", "name the network `NAME` (default: its folder's name)")
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON object with the changes")
	c.Flags().StringVar(&o.files, "files", ".",
		"let node ctl, the page and the API use only files below `DIR`")
	c.Flags().StringVar(&o.user, "user", "",
		"if started as root, run the nodes as the user `NAME` after opening devices and ports")
	return c
}

// nodeFlags returns the flags that up and apply pass to each node.
func (o *netOptions) nodeFlags() ([]string, error) {
	dir, err := filepath.Abs(o.files)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, &usageError{fmt.Errorf("--files %s: no such folder", o.files)}
	}
	flags := []string{"--files", dir}
	if o.user != "" {
		if _, err := findAccount(o.user, "", false); err != nil {
			return nil, &usageError{err}
		}
		flags = append(flags, "--user", o.user)
	}
	return flags, nil
}

func (o *netOptions) bring(c *cobra.Command, arg, name string, do changeFunc) error {
	network, err := readNetwork(arg)
	if err != nil {
		return err
	}
	s, err := netctl.MakeState(o.state)
	if err != nil {
		return netError(err)
	}
	ctx, stop := endBySignal(c.Context())
	defer stop()
	for _, note := range network.notes {
		_, _ = fmt.Fprintln(c.ErrOrStderr(), note)
	}
	if err := network.resolve(ctx); err != nil {
		return err
	}
	p := network.wanted(ctx, s, name)
	p.OneProcess = o.one
	p.PartFlags = netctl.PartFlags{Files: o.files, User: o.user}
	p.Tell = func(text string) { _, _ = fmt.Fprintln(c.ErrOrStderr(), text) }
	if p.Program, err = os.Executable(); err != nil {
		return err
	}
	if p.Flags, err = o.nodeFlags(); err != nil {
		return err
	}
	done, err := do(s, ctx, p)
	if err != nil {
		if ctx.Err() != nil {
			_, _ = fmt.Fprintf(c.ErrOrStderr(), "interrupted; `%s net status` lists what runs\n",
				called())
			return context.Cause(ctx)
		}
		return netError(err)
	}
	if o.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(done)
	}
	printChange(c.ErrOrStderr(), s, done)
	return nil
}

type networkFiles struct {
	source   string
	plan     *topology.Plan // the plan that generated the files; nil: no plan
	planFile string
	name     string
	nodes    []networkNode // nodes, sorted by name
	notes    lnx.Errors
}

// networkNode is a node of a network with its file.
type networkNode struct {
	config *lnx.Config
	path   string
	text   []byte // content of a generated file
	host   string // the other machine that the node runs on; empty: this machine
}

func (f *networkFiles) configs() (list []*lnx.Config) {
	for _, n := range f.nodes {
		list = append(list, n.config)
	}
	return list
}

func isPlan(path string, info fs.FileInfo) bool {
	return filepath.Ext(path) == topology.Extension && !info.IsDir()
}

// readNetwork reads a directory of .lnx files, one .lnx file, or a plan. Its error contains all
// errors in the files.
func readNetwork(arg string) (*networkFiles, error) {
	source, err := filepath.Abs(arg)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(arg)
	if err == nil && isPlan(arg, info) {
		return readPlan(arg)
	}
	if err != nil {
		return nil, &usageError{noFile(arg, err,
			"a folder of .lnx files, a single .lnx file or a "+topology.Extension+" file")}
	}
	f := &networkFiles{source: source, name: networkName([]string{arg})}
	paths := []string{arg}
	if info.IsDir() {
		if paths, err = filepath.Glob(filepath.Join(arg, "*.lnx")); err != nil {
			return nil, err
		}
		if len(paths) == 0 {
			return nil, &usageError{fmt.Errorf("%s: no .lnx file in this folder", arg)}
		}
	}
	var v validation
	var configs []*lnx.Config // parsed files; nil: an invalid file
	for _, path := range paths {
		c, err := v.parse(path)
		if err != nil {
			return nil, &usageError{err}
		}
		configs = append(configs, c)
		if c != nil {
			f.nodes = append(f.nodes, networkNode{config: c, path: path})
		}
	}
	v.errs = append(v.errs, lnx.CheckNetwork(configs...)...)
	for _, e := range v.errs {
		if e.Note {
			f.notes = append(f.notes, e)
		}
	}
	return f, v.errs.Err()
}

// wanted returns the plan for netctl. If name is empty, the network gets the name of its files.
func (f *networkFiles) wanted(ctx context.Context, s *netctl.State, name string) netctl.Plan {
	p := netctl.Plan{Name: cmp.Or(name, f.name), Source: f.source}
	for _, n := range f.nodes {
		m := netctl.Member{Name: n.config.Name, File: n.path, Text: n.text, Host: n.host}
		if n.host == "" {
			p.Nodes = append(p.Nodes, m)
		}
	}
	f.addMachines(&p)
	p.Check = f.checker(ctx, s, p.Name)
	return p
}

func (f *networkFiles) checker(
	ctx context.Context, s *netctl.State, name string,
) func(start, reload []netctl.Member) error {
	byName := map[string]*lnx.Config{}
	for _, n := range f.nodes {
		byName[n.config.Name] = n.config
	}
	of := func(nodes []netctl.Member) (configs []*lnx.Config) {
		for _, m := range nodes {
			configs = append(configs, byName[m.Name])
		}
		return configs
	}
	return func(start, reload []netctl.Member) error {
		all := checkHere(ctx, s, of(start))
		if len(reload) > 0 {
			all = append(all, heldBy(s.Holders(ctx), of(reload), name)...)
		}
		if all.Err() == nil {
			return nil
		}
		return machineError{f.place(all)}
	}
}

type downed struct {
	Network string   `json:"network"`
	Ended   []string `json:"ended"`
	Dead    []string `json:"dead"` // nodes that had already crashed
	Logs    []string `json:"logs"` // logs of crashed nodes, which `down` keeps
}

func (o *netOptions) downCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "down [NETWORK|FOLDER]",
		Short: "stop the nodes of a network",
		Long: "Stop the nodes of a network; without an argument, of the only running network.\n" +
			"The log of a node that crashed stays until the network is started again.",
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case all && len(args) > 0:
				return misuse(c, fmt.Errorf("unexpected argument: %q; --all stops every network",
					args[0]))
			case len(args) > 1:
				return misuse(c, fmt.Errorf("unexpected argument: %q (use --all to stop every "+
					"network)", args[1]))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			s, names, err := o.selected(args, all)
			if err != nil {
				return err
			}
			ctx, stop := endBySignal(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			list := []downed{}
			for _, name := range names {
				done, err := s.Down(ctx, name)
				if err != nil {
					return netError(err)
				}
				if o.json {
					list = append(list, downed{
						name, append([]string{}, done.Ended...), append([]string{}, done.Dead...),
						append([]string{}, done.Logs...),
					})
					continue
				}
				text := name + " is down: " + counted(len(done.Ended), "node") + " stopped"
				if len(done.Dead) > 0 {
					text += "; crashed before: " + strings.Join(done.Dead, ", ")
				}
				if len(done.Logs) > 0 {
					text += " (their logs stay until the next up: " +
						filepath.Dir(done.Logs[0]) + ")"
				}
				_, _ = fmt.Fprintln(c.ErrOrStderr(), text)
			}
			if o.json {
				return json.NewEncoder(c.OutOrStdout()).Encode(list)
			}
			return nil
		},
		ValidArgsFunction: o.completeNetworks,
	}
	c.Flags().BoolVar(&all, "all", false, "stop every network")
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON array with the stopped nodes")
	return c
}

// selected opens the state and returns the selected networks: the named ones, all of them, or the
// only one.
func (o *netOptions) selected(args []string, all bool) (*netctl.State, []string, error) {
	if !all {
		s, n, err := o.network(args)
		if err != nil {
			return nil, nil, err
		}
		return s, []string{n.Name()}, nil
	}
	s, err := o.open()
	if err != nil {
		return nil, nil, err
	}
	list, err := s.Networks()
	var names []string
	for _, n := range list {
		names = append(names, n.Name())
	}
	return s, names, err
}

func (o *netOptions) network(args []string) (*netctl.State, *netctl.Network, error) {
	s, err := o.open()
	if err != nil {
		return nil, nil, err
	}
	n, err := s.Network(networkName(args))
	return s, n, netError(err)
}

// networkName returns the network's name from an argument. For a directory this is the base name.
func networkName(args []string) string {
	if len(args) == 0 {
		return ""
	}
	path, err := filepath.Abs(args[0]) // "." also has a name
	if err != nil {
		path = args[0]
	}
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".lnx"), topology.Extension)
}

func (o *netOptions) completeNetworks(
	*cobra.Command, []string, string,
) ([]string, cobra.ShellCompDirective) {
	_, list, err := o.selected(nil, true)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

func netValidateCommand() *cobra.Command {
	c := validateCommand()
	c.Example = "  node net validate nets/ring --here"
	return c
}

func printChange(out io.Writer, s *netctl.State, done netctl.Change) {
	name := done.Network.Name()
	tell := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	where := "" // the flag that suggested commands need
	if s.Folder() != defaultState() {
		where = " --state " + diagnostic.ShellWord(s.Folder())
	}
	for _, part := range []struct {
		what  string
		nodes []string
		why   map[string][]string
	}{
		{"started", done.Started, nil},
		{"reloaded", done.Reloaded, nil},
		{"restarted", done.Restarted, done.Why},
		{"stopped", done.Ended, nil},
		{"already running", done.Left, nil},
	} {
		if len(part.nodes) > 0 {
			tell("%s: %s", part.what, strings.Join(part.nodes, " "))
		}
		for _, node := range slices.Sorted(maps.Keys(part.why)) {
			tell("  %s, because of %s", node, strings.Join(part.why[node], "; "))
		}
	}
	if len(done.Stale) > 0 {
		tell("changed since they were started: %s; `%s` applies the changes",
			strings.Join(done.Stale, " "), named(done.Network.ApplyCommand()+where))
	}
	members := done.Network.Members()
	if len(members) == 0 {
		return
	}
	node, down := members[0].Name, "node net down"
	if _, err := s.Find(node); err != nil {
		node = name + "/" + node // the name alone may be ambiguous
	}
	if _, err := s.Network(""); err != nil {
		down += " " + name
	}
	tell("%s", named(fmt.Sprintf("%s is up; `node attach %s`, `node net status%s`, `%s`", name,
		node+where, where, down+where)))
}
