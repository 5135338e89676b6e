package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/interchange"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/repl"
	"github.com/tidepool-net/tidepool/internal/topology"
)

type exportOptions struct {
	to     string
	out    string
	image  string
	subnet string
	force  bool
}

func netExportCommand() *cobra.Command {
	var o exportOptions
	c := &cobra.Command{
		Use:   "export FOLDER|FILE.net",
		Short: "write a network for compose, containerlab, Kubernetes or mininet",
		Long: "Write a network in the format of another tool, which starts each node as a\n" +
			"container or host of its own. The output contains the .lnx files, with the UDP\n" +
			"addresses of the containers; for containerlab they are files next to the\n" +
			"topology. The nodes apply the impairments. The image's entry point must be this\n" +
			"program. Standard error lists the steps that are left to you.",
		Example: "  node net export nets/ring --to compose -o compose.yaml && docker compose up\n" +
			"  node net export nets/ring --to containerlab -o lab/\n" +
			"  node net export nets/ring --to kubernetes | kubectl apply -f -\n" +
			"  node net export nets/ring --to mininet -o ring.py && sudo python3 ring.py",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	f := c.Flags()
	f.StringVar(&o.to, "to", "", "output `FORMAT`: "+diagnostic.OneOf(interchange.Formats()))
	f.StringVarP(&o.out, "out", "o", "",
		"write to the file `PATH`, or into the folder if it ends in /, instead of standard output")
	f.StringVar(&o.image, "image", defaultImage(), "container `IMAGE` with this program")
	f.StringVar(&o.subnet, "subnet", "172.30.0.0/16", "assign containers' addresses from `PREFIX`")
	f.BoolVar(&o.force, "force", false, "overwrite existing files")
	repl.CompleteFlag(c, "to", interchange.Formats()...)
	return c
}

func defaultImage() string {
	tag := strings.ReplaceAll(thisVersion().Version, "+", "-")
	if tag == noVersion {
		tag = "latest"
	}
	return "tidepool:" + tag
}

func (o *exportOptions) run(c *cobra.Command, arg string) error {
	if o.to == "" {
		return misuse(c, fmt.Errorf("--to FORMAT is missing: must be %s",
			diagnostic.OneOf(interchange.Formats())))
	}
	subnet, err := netip.ParsePrefix(o.subnet)
	if err != nil {
		return misuse(c, fmt.Errorf("--subnet %q: must be an IPv4 network such as 172.30.0.0/16",
			o.subnet))
	}
	if !interchange.IsImage(o.image) {
		return misuse(c, fmt.Errorf("--image %q: must be an image such as %s", o.image,
			defaultImage()))
	}
	network, err := readNetwork(arg)
	if err != nil {
		return err
	}
	n := interchange.Network{
		Name: network.name, Nodes: network.configs(), Image: o.image, Subnet: subnet,
	}
	done, err := n.Export(o.to)
	if errors.Is(err, interchange.ErrExport) {
		return misuse(c, err)
	}
	if err != nil {
		return err
	}
	for _, note := range done.Notes {
		_, _ = fmt.Fprintln(c.ErrOrStderr(), note)
	}
	if network.plan != nil && len(network.plan.Machines) > 0 {
		_, _ = fmt.Fprintf(c.ErrOrStderr(), "%s: note: its hosts are left out: %s chooses the "+
			"machine of each node\n", network.planFile, o.to)
	}
	if o.out == "" {
		_, err := c.OutOrStdout().Write(done.Files[0].Text)
		if others := len(done.Files) - 1; others > 0 && err == nil {
			_, _ = fmt.Fprintf(c.ErrOrStderr(), "note: this is only %s; `-o FOLDER/` also writes "+
				"the %s that it names\n", done.Files[0].Name, counted(others, "file"))
		}
		return err
	}
	folder := o.out
	if info, err := os.Stat(o.out); !strings.HasSuffix(o.out, "/") &&
		(err != nil || !info.IsDir()) {
		folder, done.Files[0].Name = filepath.Split(o.out)
		folder = filepath.Clean(folder)
	}
	written, err := writeFiles(folder, done.Files, o.force)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.ErrOrStderr(), "written: %s\n", strings.Join(written, " "))
	return err
}

// writeFiles writes all files into a folder, or none of them. It returns their paths.
func writeFiles(folder string, list []topology.File, force bool) (paths []string, err error) {
	for _, f := range list {
		path := filepath.Join(folder, f.Name)
		if info, err := os.Lstat(path); err == nil && (!force || info.IsDir()) {
			return nil, &usageError{fmt.Errorf("%s exists: use another --out, or --force", path)}
		}
		paths = append(paths, path)
	}
	_, err = os.Stat(folder)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	// Write every file completely under a temporary name before replacing the first one.
	var drafts []string
	defer func() {
		for _, draft := range drafts {
			_ = os.Remove(draft)
		}
		if err != nil && fresh {
			_ = os.Remove(folder)
		}
	}()
	for i, f := range list {
		draft := paths[i] + ".new"
		drafts = append(drafts, draft)
		if err := files.Overwrite(draft, f.Text, 0o644); err != nil {
			return nil, err
		}
	}
	for i, path := range paths {
		if err := os.Rename(drafts[i], path); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

func netImportCommand() *cobra.Command {
	var o generateOptions
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "make a network from a containerlab topology or a mininet script",
		Long: "Convert a containerlab topology (.yml, .yaml) or a mininet script (.py) into the\n" +
			".lnx files of a network. The command does not execute the script: it evaluates\n" +
			"its addHost, addSwitch and addLink calls, loops included. Switches and bridges\n" +
			"become routers. Standard error lists the parts that the command cannot convert,\n" +
			"with their lines and what to do.",
		Example: "  node net import lab.clab.yml && node net up lab\n" +
			"  node net import topo.py -o mine",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return o.importFile(c, args[0]) },
	}
	f := c.Flags()
	f.StringVarP(&o.out, "out", "o", "",
		"write to `FOLDER`; the default is FILE's name without its extension")
	f.IntVar(&o.port, "port", topology.DefaultPort, "first UDP `PORT` of 127.0.0.1")
	repl.Limit(c, 1, math.MaxUint16, "port")
	f.BoolVar(&o.json, "json", false, "print one JSON object with the written files")
	f.BoolVar(&o.force, "force", false, "overwrite existing .lnx files")
	return c
}

func (o *generateOptions) importFile(c *cobra.Command, path string) error {
	text, err := files.Text(path, files.MaxText)
	if err != nil {
		return &usageError{noFile(path, err, "a containerlab topology or a mininet script")}
	}
	plan, notes, err := interchange.Import(path, text, operator.CheckWords)
	for _, note := range notes {
		_, _ = fmt.Fprintln(c.ErrOrStderr(), note)
	}
	if err != nil {
		return &usageError{err}
	}
	plan.Port = o.port
	list, err := plan.Files()
	if err != nil {
		return misuse(c, err)
	}
	if o.out == "" {
		o.out, _, _ = strings.Cut(filepath.Base(path), ".")
	}
	return o.write(c, list)
}
