package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/topology"
)

func netNamesCommand() *cobra.Command {
	var server, zone string
	var off bool
	c := &cobra.Command{
		Use:   "names FOLDER",
		Short: "give the nodes of a network names, for DNS",
		Long: "Give names to the nodes of a folder: write `dns` lines into their .lnx files,\n" +
			"in place of existing ones. One node becomes the DNS server for the names of all\n" +
			"nodes, and the others query it. `ping C` then reaches the node of C.lnx. If the\n" +
			"network is running, run `node net apply` afterward. Nodes of a FILE.net have\n" +
			"names already.",
		Example: "  node net names lab && node net up lab",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if off && (server != "" || zone != "") {
				return misuse(c, errors.New("--off cannot be used with --server or --zone"))
			}
			if zone != "" && !lnx.IsHostName(zone) {
				return misuse(c, fmt.Errorf("--zone %q: must be a domain name such as internal",
					zone))
			}
			return nameNodes(c, args[0], func(configs []*lnx.Config) ([]string, error) {
				if off {
					return make([]string, len(configs)), nil
				}
				return topology.Names(configs, server, zone)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&server, "server", "", "let `NODE` serve the names; the default is the first host")
	f.StringVar(&zone, "zone", "", "use `ZONE` as the domain of the names (default \"internal\")")
	f.BoolVar(&off, "off", false, "remove the dns lines")
	return c
}

// nameNodes replaces the dns lines of a folder's files.
func nameNodes(
	c *cobra.Command, folder string, lines func([]*lnx.Config) ([]string, error),
) error {
	network, err := readNetwork(folder)
	if err != nil {
		return err
	}
	if network.plan != nil || filepath.Ext(folder) == ".lnx" {
		return misuse(c, fmt.Errorf("%s: must be a folder of .lnx files", folder))
	}
	added, err := lines(network.configs())
	if err != nil {
		return misuse(c, fmt.Errorf("%s: %w", folder, err))
	}
	var list []topology.File
	for i, n := range network.nodes {
		old, err := files.Text(n.path, files.MaxText)
		if err != nil {
			return err
		}
		var kept strings.Builder
		for line := range strings.Lines(string(old)) {
			if words := strings.Fields(line); len(words) == 0 || words[0] != "dns" {
				kept.WriteString(line)
			}
		}
		text := strings.TrimRight(kept.String(), "\n") + "\n" + added[i]
		if text == string(old) {
			continue
		}
		list = append(list, topology.File{Name: filepath.Base(n.path), Text: []byte(text)})
	}
	if _, err := writeFiles(folder, list, true); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.ErrOrStderr(), "%s: %s changed; `%s net up %s` runs them\n", folder,
		counted(len(list), "file"), called(), diagnostic.ShellWord(folder))
	return err
}
