package repl

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
)

// This file has the commands of the course's nodes that have no long name here, or that print their
// own table under a short name. The course's specification defines headers and rows exactly.

const (
	interfacesHead = "Name  Addr/Prefix State\n"
	neighborsHead  = "Iface          VIP          UDPAddr\n"
	routesHead     = "T       Prefix   Next hop   Cost\n"
)

func courseInterfaces(e *env) *cobra.Command {
	return courseTable(e, "li", "interfaces", "list interfaces, as the course prints them",
		func(c *cobra.Command) (any, string, error) {
			list, err := control.Ask(c.Context(), e.op, control.Interfaces{})
			var b strings.Builder
			b.WriteString(interfacesHead)
			for _, i := range list {
				for _, a := range i.Addrs() {
					fmt.Fprintf(&b, "%4s  %11s %4s\n", i.Name, a, upDown(i.Up))
				}
			}
			return list, b.String(), err
		})
}

func upDown(up bool) string {
	if up {
		return "up"
	}
	return "down"
}

// courseNeighbors omits the neighbors of interfaces that are down, as the course requires.
func courseNeighbors(e *env) *cobra.Command {
	return courseTable(e, "ln", "neighbors", "list neighbors, as the course prints them",
		func(c *cobra.Command) (any, string, error) {
			faces, err := control.Ask(c.Context(), e.op, control.Interfaces{})
			if err != nil {
				return nil, "", err
			}
			list, err := control.Ask(c.Context(), e.op, control.Neighbors{})
			list = slices.DeleteFunc(list, func(n control.Neighbor) bool {
				return slices.ContainsFunc(faces, func(i control.Interface) bool {
					return i.Name == n.Iface && !i.Up
				})
			})
			var b strings.Builder
			b.WriteString(neighborsHead)
			for _, n := range list {
				fmt.Fprintf(&b, "%4s    %9s  %15s\n", n.Iface, n.Addr, n.UDP)
			}
			return list, b.String(), err
		})
}

func courseRoutes(e *env) *cobra.Command {
	return courseTable(e, "lr", "routes", "list routes: L local, R rip, S static",
		func(c *cobra.Command) (any, string, error) {
			list, err := control.Ask(c.Context(), e.op, control.Routes{})
			var b strings.Builder
			b.WriteString(routesHead)
			for _, r := range list {
				hop, cost := "LOCAL:"+r.Iface, strconv.Itoa(r.Cost)
				if r.NextHop.IsValid() {
					hop = r.NextHop.String()
				}
				if r.Kind != "" {
					hop = string(r.Kind)
				}
				if r.Origin == control.OriginStatic {
					cost = "-"
				}
				fmt.Fprintf(&b, "%s  %11s   %-10s %4s\n", r.Origin, r.Prefix, hop, cost)
			}
			return list, b.String(), err
		})
}

// courseTable returns a command that prints a table, or writes it to a file, as the course's nodes
// of 2022 do.
func courseTable(e *env,
	name, kind, short string, ask func(*cobra.Command) (any, string, error),
) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:   name + " [FILE]",
		Short: short,
		Long: "Print the " + kind + " in the course's format, or write them to FILE. The\n" +
			"command replaces an existing FILE only if it is empty or begins with a table of\n" +
			"li, ln or lr.",
		ValidArgsFunction: at(fileNames),
		RunE: func(c *cobra.Command, args []string) error {
			list, text, err := ask(c)
			switch {
			case err != nil:
				return failed(c, err)
			case len(args) == 0:
				return e.answer(c, list, text)
			}
			if err := writeTable(args[0], text); err != nil {
				return failed(c, unwritten(args[0], err))
			}
			return e.done(c, nil)
		},
	})
}

// writeTable writes a table to a file. It replaces a file only if the file is empty or begins with
// such a table, and does not follow symbolic links.
func writeTable(path, text string) error {
	file, err := files.Machine().Edit(path, 0o666)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	var head [64]byte
	n, err := file.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if info.Size() > 0 && !slices.ContainsFunc(
		[]string{interfacesHead, neighborsHead, routesHead},
		func(table string) bool { return strings.HasPrefix(string(head[:n]), table) },
	) {
		return fmt.Errorf("%s: %w and has no table of li, ln or lr; use another name",
			printable(path), fs.ErrExist)
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	if _, err := file.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	return file.Close()
}

// unwritten explains why a file could not be written.
func unwritten(path string, err error) error {
	folder := filepath.Dir(path)
	if info, e := os.Stat(path); e == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory; use a file name", printable(path))
	}
	if _, e := os.Stat(folder); errors.Is(e, fs.ErrNotExist) {
		return fmt.Errorf("%s: no such directory: %s", printable(path), printable(folder))
	}
	return err
}

// courseAlgorithms returns the course's command `lc`, which lists the congestion controls.
func courseAlgorithms(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:   "lc",
		Short: "list the congestion control algorithms",
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := ask(e, c, control.Show{Key: congestionKey})
			if err != nil {
				return err
			}
			return e.answer(c, list[0].Values, strings.Join(list[0].Values, "\n"))
		},
	})
}

// infoCommand returns the short form of `sockets -i -o` for one connection.
func infoCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:               "info SID",
		Short:             "print one socket, like `sockets -i -o`",
		ValidArgsFunction: at(e.conversations),
		RunE: func(c *cobra.Command, args []string) error {
			sid := sidOf(args[0])
			list, err := ask(e, c, control.Sockets{Info: true, Timers: true})
			if err != nil {
				return err
			}
			list = slices.DeleteFunc(list, func(k control.Socket) bool { return k.SID != sid })
			if len(list) == 0 {
				return failed(c, fmt.Errorf("%d: %w", sid, control.ErrNoSuchSocket))
			}
			return e.answer(c, list[0], fieldSockets(list, &socketFlags{info: true, timers: true}))
		},
	})
}

// maxDelay is the maximum argument of `delay`, in seconds.
const maxDelay = 3600

func delayCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:   "delay [SECONDS] [FRACTION]",
		Short: "delay some or all sent packets",
		Long: "Delay the packets that this node sends, on every interface, by SECONDS.\n" +
			"FRACTION (0 to 1, default 1) is the share of packets that are delayed. The\n" +
			"delay replaces all settings of `impair` for outgoing packets; `impair IF out\n" +
			"delay` has more options. `delay 0` removes these settings. Without SECONDS the\n" +
			"command shows the settings of all interfaces, like `impair`.",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return runImpair(e, c, nil)
			}
			words, err := delayWords(c, args)
			if err != nil {
				return err
			}
			req := control.Impair{Way: control.WayOut, Words: words}
			return show(e, c, req, func(list []control.Impairment) string {
				return printImpairments(list, true)
			})
		},
	})
}

// delayWords converts the arguments SECONDS [FRACTION] of `delay` to arguments of impair. FRACTION
// is the share of delayed packets; `reorder` lets the others pass without the delay.
func delayWords(c *cobra.Command, args []string) (string, error) {
	number := func(word string, most float64) (float64, error) {
		n, err := strconv.ParseFloat(word, 64)
		if err != nil || math.IsNaN(n) || n < 0 || n > most {
			return 0, wrong(c, "%q is not a number from 0 to %v", word, most)
		}
		return n, nil
	}
	late, err := number(args[0], maxDelay)
	if err != nil {
		return "", err
	}
	share := 1.0
	if len(args) > 1 {
		if share, err = number(args[1], 1); err != nil {
			return "", err
		}
	}
	if late == 0 || share == 0 {
		return "off", nil
	}
	words := "delay " + strconv.FormatFloat(late*1000, 'f', -1, 64) + "ms"
	if share < 1 {
		words += " reorder " + strconv.FormatFloat(100*(1-share), 'f', 4, 64) + "%"
	}
	return words, nil
}
