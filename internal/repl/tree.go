package repl

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

// These are the groups of the help, in order.
const (
	groupNetwork = "Network"
	groupSocket  = "Sockets"
	groupDoor    = "Port forwards"
	groupFile    = "Files"
	groupProbe   = "Probes"
	groupSession = "Session"
)

// nodeCommands are the commands of the node, by group. Each command's file contains its help,
// arguments, completion and output.
var nodeCommands = []struct {
	group string
	make  []func(*env) *cobra.Command
}{
	{groupNetwork, []func(*env) *cobra.Command{
		interfacesCommand, courseInterfaces, neighborsCommand, courseNeighbors, routesCommand,
		courseRoutes, routeCommand, ripCommand, upCommand, downCommand, lossyForwardCommand,
		lossyCommand, delayCommand, impairCommand, dnsCommand,
		natCommand,
	}},
	{groupSocket, []func(*env) *cobra.Command{
		socketsCommand, courseSockets, acceptCommand, connectCommand, udpCommand, rcpCommand,
		rdtCommand, writeCommand, recvCommand, shutdownCommand, closeCommand, windowCommand,
		infoCommand, congestionCommand, courseAlgorithms,
	}},
	{groupDoor, []func(*env) *cobra.Command{
		publishCommand, exposeCommand, spliceCommand, socksCommand, doorsCommand,
	}},
	{groupFile, []func(*env) *cobra.Command{
		sendFileCommand, recvFileCommand, httpCommand, serveCommand, fetchCommand,
		transfersCommand, cancelCommand,
	}},
	{groupProbe, []func(*env) *cobra.Command{
		sendCommand, pingCommand, tracerouteCommand, hostCommand, perfCommand, echoCommand,
		discardCommand, chargenCommand, verboseCommand, captureCommand, traceCommand, pcapCommand,
	}},
	{groupSession, []func(*env) *cobra.Command{
		showCommand, setCommand, reloadCommand, sleepCommand, clearCommand,
	}},
}

func (s *Shell) tree() *cobra.Command {
	root := &cobra.Command{
		Use:           "shell",
		SilenceErrors: true,
		SilenceUsage:  true,
		// Only completion executes the root command, because arguments rejects unknown words.
		Run: func(*cobra.Command, []string) {},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		s.env.screen.data(describeCommand(s.env, c))
	})
	for _, g := range nodeCommands {
		var commands []*cobra.Command
		for _, f := range g.make {
			commands = append(commands, f(s.env))
		}
		group(root, g.group, commands...)
	}
	help := helpCommand(s.env)
	root.SetHelpCommand(help) // otherwise Cobra adds its own help command
	group(root, groupFile, waitCommand(s))
	group(root, groupSession, repeatCommand(s), eventsCommand(s), historyCommand(s),
		sourceCommand(s),
		quitCommand(s), help)
	everyJSON(s.env, root)
	everyName(s.env, root)
	return root
}

// everyJSON adds --json to commands that do not define it. Lines of a `source` file have their own.
func everyJSON(e *env, c *cobra.Command) {
	for _, sub := range c.Commands() {
		everyJSON(e, sub)
	}
	if c.HasParent() && !c.HasSubCommands() && c.Flags().Lookup("json") == nil &&
		c.Name() != "source" {
		e.jsonFlag(c).Flags().Lookup("json").Annotations = map[string][]string{inHelpAlone: nil}
	}
}

// inHelpAlone is the annotation of a flag that the usage line omits.
const inHelpAlone = "in-help-alone"

// group adds commands to a group, with the common check of their arguments.
func group(root *cobra.Command, id string, cs ...*cobra.Command) {
	if !root.ContainsGroup(id) {
		root.AddGroup(&cobra.Group{ID: id, Title: id})
	}
	for _, c := range cs {
		c.GroupID = id
		if c.Args == nil && !c.DisableFlagParsing && !c.HasSubCommands() {
			c.Args = positional
		}
		root.AddCommand(c)
	}
}

func lookup(root *cobra.Command, word string) *cobra.Command {
	for _, c := range root.Commands() {
		if c.Name() == word || c.HasAlias(word) {
			return c
		}
	}
	return nil
}

func helpCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND|TOPIC]",
		Aliases: []string{"h", "?"},
		Short:   "list commands, or explain a command",
		Long: "List all commands, explain a COMMAND, or list the commands of a TOPIC: a heading\n" +
			"of the list, as in `help sockets`, or a word that occurs in a command's line, as\n" +
			"in `help loss`.",
		Args:              positional,
		ValidArgsFunction: commandNames,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return e.answer(c, entries(c.Root().Commands()), overview(c.Root(), e.width()))
			}
			about := lookup(c.Root(), args[0])
			if about == nil {
				topic := ofTopic(c.Root(), args[0])
				if len(topic) == 0 {
					return unknown(c.Root(), args[0])
				}
				return e.answer(c, entries(topic), listed(topic, e.width()))
			}
			if e.json(c) {
				return e.document(entries([]*cobra.Command{about})[0])
			}
			e.screen.data(describeCommand(e, about))
			return nil
		},
	}
}

// ofTopic lists the commands of a topic. The topic is a group, or else a prefix of a word in a
// command's name or description.
func ofTopic(root *cobra.Command, topic string) (list []*cobra.Command) {
	topic = strings.ToLower(topic)
	for _, c := range root.Commands() {
		if strings.ToLower(c.GroupID) == topic {
			list = append(list, c)
		}
	}
	if len(list) > 0 || len(topic) < 3 {
		return list
	}
	for _, c := range root.Commands() {
		text := strings.ToLower(c.Use + " " + c.Short)
		words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, topic) }) {
			list = append(list, c)
		}
	}
	return list
}

// overview lists every command by group, one per line, or in two lines on a narrow terminal.
func overview(root *cobra.Command, width int) string {
	var b strings.Builder
	for _, g := range root.Groups() {
		b.WriteString(g.Title + "\n")
		b.WriteString(listed(slices.DeleteFunc(slices.Clone(root.Commands()),
			func(c *cobra.Command) bool { return c.GroupID != g.ID }), width))
	}
	b.WriteString(fold(width, "`help COMMAND` says more, `help network` lists one topic.\n"+
		"Tab completes, Ctrl-C stops a command, Ctrl-D leaves.\n"))
	return b.String()
}

// listed formats one line for each command, or two on a narrow terminal.
func listed(commands []*cobra.Command, width int) string {
	var b strings.Builder
	for _, c := range commands {
		use := c.Use
		if len(c.Aliases) > 0 {
			use += " (" + strings.Join(c.Aliases, ", ") + ")"
		}
		line := "  " + pad(use, 35) + " " + c.Short
		if width > 0 && width < textWidth {
			line = foldUnder(width, "    ", "  "+use+"\n    "+c.Short)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// settingsAbout is the annotation of a command whose help lists the settings with this prefix.
const settingsAbout = "settings"

func describeCommand(e *env, c *cobra.Command) string {
	prefix, ok := c.Annotations[settingsAbout]
	if !ok {
		text := describe(c, "")
		if e.cfg.Named != nil {
			text = e.cfg.Named(text)
		}
		return fold(e.width(), text)
	}
	list, err := control.Ask(c.Root().Context(), e.op, control.Show{Key: prefix})
	if err != nil {
		return fold(e.width(), describe(c, "(the node did not answer: "+err.Error()+")\n"))
	}
	return fold(e.width(), describe(c, "\n"+printSettings(e, list)))
}

func longText(c *cobra.Command) string {
	return cmp.Or(c.Long, strings.ToUpper(c.Short[:1])+c.Short[1:]+".")
}

// describe formats the description of a command, with the node's answer before the flags.
func describe(c *cobra.Command, answer string) string {
	var b strings.Builder
	b.WriteString(usageLines(textWidth, useLine(c)) + "\n")
	if len(c.Aliases) > 0 {
		b.WriteString("also:  " + strings.Join(c.Aliases, ", ") + "\n")
	}
	b.WriteString("\n" + longText(c) + "\n" + answer)
	if !c.DisableFlagParsing && c.HasAvailableLocalFlags() {
		b.WriteString("\n" + c.LocalFlags().FlagUsages())
	}
	return b.String()
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}
