package repl

import (
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

func interfacesCommand(e *env) *cobra.Command {
	var stats int
	var zero bool
	c := &cobra.Command{
		Use:   "interfaces",
		Short: "a line each; -s: counters, -s -s: all",
		Long: "A line an interface, like `ip -s -br link`: name, state, address, flags, MTU,\n" +
			"packets and bytes received and sent, and what was dropped.\n" +
			"`li` is the course's table.",
		RunE: func(c *cobra.Command, _ []string) error {
			if zero {
				return e.done(c, control.Order(c.Context(), e.op, control.ClearCounters{}))
			}
			list, err := control.Ask(c.Context(), e.op, control.Interfaces{})
			if err != nil {
				return failed(c, err)
			}
			return e.answer(c, list, briefInterfaces(list, stats))
		},
	}
	c.Flags().CountVarP(&stats, "stats", "s", "packets, bytes, errors, drops; twice: all there is")
	c.Flags().BoolVar(&zero, "clear", false, "set the counters to zero, those of impair too")
	return e.jsonFlag(c)
}

func neighborsCommand(e *env) *cobra.Command {
	var stats bool
	c := &cobra.Command{
		Use:   "neighbors",
		Short: "who is on the links; with -s how they are",
		Long: "The nodes on the links and what is wrong with them; with -s the state of each.\n" +
			"`ln` is the course's table.",
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := control.Ask(c.Context(), e.op, control.Neighbors{})
			if err != nil {
				return failed(c, err)
			}
			return e.answer(c, list, printNeighbors(list, stats))
		},
	}
	c.Flags().BoolVarP(&stats, "stats", "s", false, "the state of each, when it was heard, packets")
	return e.jsonFlag(c)
}

func routesCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:   "routes",
		Short: "routes in use, like `ip route`",
		Long: "The routes in use, like `ip route`: proto kernel are those to our own links,\n" +
			"static those of the file or of `route add`, rip those that were learned, with\n" +
			"their cost as metric. `lr` is the course's table.",
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := control.Ask(c.Context(), e.op, control.Routes{})
			if err != nil {
				return failed(c, err)
			}
			if e.json(c) {
				return e.document(list)
			}
			faces, err := control.Ask(c.Context(), e.op, control.Interfaces{})
			if err != nil {
				return failed(c, err)
			}
			return e.answer(c, list, fieldRoutes(list, faces))
		},
	})
}

func upCommand(e *env) *cobra.Command   { return linkCommand(e, "up", true) }
func downCommand(e *env) *cobra.Command { return linkCommand(e, "down", false) }

// linkCommand takes an interface up or down.
func linkCommand(e *env, verb string, up bool) *cobra.Command {
	return &cobra.Command{
		Use:               verb + " IF",
		Short:             "take an interface " + verb + ", by name or number",
		ValidArgsFunction: at(e.interfaceNames),
		RunE: func(c *cobra.Command, args []string) error {
			face, err := control.Ask(c.Context(), e.op, control.SetLink{Iface: args[0], Up: up})
			if err != nil {
				return failed(c, err)
			}
			return e.answer(c, face, "")
		},
	}
}

func lossyForwardCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:   "lossyforward [PERCENT] [IF]",
		Short: "drop that share of what is forwarded",
		Long: "Drop PERCENT percent of the packets that this node forwards, in both\n" +
			"directions, on every interface or on one. Fractions like 0.5 are fine.\n" +
			"Without PERCENT it shows what is set.",
		ValidArgsFunction: at(nil, e.interfaceNames),
		RunE: func(c *cobra.Command, args []string) error {
			return setLoss(e, c, args, 100)
		},
	})
}

func lossyCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:     "lossy [FRACTION] [IF]",
		Aliases: []string{"drop"},
		Short:   "lossyforward, but 0.02 is 2 percent",
		Long: "Drop a FRACTION (0 to 1) of the packets that this node forwards, as\n" +
			"`lossyforward` does by percent. Without FRACTION it shows what is set.",
		ValidArgsFunction: at(nil, e.interfaceNames),
		RunE: func(c *cobra.Command, args []string) error {
			return setLoss(e, c, args, 1)
		},
	})
}

// setLoss carries out lossyforward (whole is 100) and lossy (whole is 1).
func setLoss(e *env, c *cobra.Command, args []string, whole float64) error {
	if len(args) == 0 {
		list, err := control.Ask(c.Context(), e.op, control.Loss{})
		if err != nil {
			return failed(c, err)
		}
		return e.answer(c, list, printLoss(list))
	}
	share, err := strconv.ParseFloat(args[0], 64)
	if err != nil || math.IsNaN(share) || share < 0 || share > whole {
		return wrong(c, "%q is not a number from 0 to %v", args[0], whole)
	}
	req := control.SetLoss{Percent: share * (100 / whole)}
	if len(args) > 1 {
		req.Iface = args[1]
	}
	list, err := control.Ask(c.Context(), e.op, req)
	if err != nil {
		return failed(c, err)
	}
	return e.answer(c, list, printLossSet(req, list))
}
