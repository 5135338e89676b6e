package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/sim/convergence"
)

// runRouting runs an experiment with RIP routers. It has one run and no file.
func runRouting(c *cobra.Command, name string, o *labRunOptions) error {
	for _, flag := range o.changed(c) {
		switch flag {
		case "seed", "dialect", "json":
		default:
			return misuse(c, fmt.Errorf("--%s: %s accepts only --dialect, --seed and --json", flag,
				name))
		}
	}
	seed := uint64(1)
	if c.Flags().Changed("seed") {
		seed = o.seed
	}
	out, err := convergence.Run(name, convergence.Options{Dialect: o.dialect, Seed: seed})
	switch {
	case errors.Is(err, convergence.ErrCase):
		return misuse(c, fmt.Errorf("%w%s; `node lab list` lists them",
			err, diagnostic.DidYouMean(name, experimentNames())))
	case errors.Is(err, convergence.ErrDialect):
		return misuse(c, err)
	case err != nil:
		return err
	case o.json:
		return json.NewEncoder(c.OutOrStdout()).Encode(out)
	}
	return out.Print(c.OutOrStdout())
}

// isRouting reports whether a name has the form of a RIP experiment's name.
func isRouting(name string) bool {
	return strings.HasPrefix(name, "rip-") && !strings.ContainsAny(name, "./\\")
}
