package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/examine"
	"github.com/tidepool-net/tidepool/examine/report"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/repl"
)

type examineOptions struct {
	profile, host, router, command string
	tun                            bool
	only                           []string
	checks, out, rubric            string
	junit, gradescope              string
	jobs, runs                     int
	json, list, long               bool
}

var errExamined = errors.New("the examined stack did not pass all checks")

func examineCommand() *cobra.Command {
	var o examineOptions
	c := &cobra.Command{
		Use:   "examine",
		Short: "test a TCP/IP stack by exchanging packets with it",
		Long: "Test a TCP/IP stack by exchanging packets with it. The examiner plays the\n" +
			"neighbors of the stack and compares the stack's answers with RFCs, and with the\n" +
			"assignments of a university course whose students write IP and TCP nodes. It\n" +
			"prints a line for each check. --out writes a page with the packets of the failed\n" +
			"checks. Each check runs three times and is reported as flaky if the results\n" +
			"differ. The exit status is 0 if all checks passed or were skipped.\n\n" +
			"--profile names the stack. `self` is this program's own stack, in virtual time.\n" +
			"`course-2022` is a node written for that course in 2022. A YAML file describes\n" +
			"any other node (docs/examiner.md).",
		Example: "  node examine --profile self\n" +
			"  node examine --profile course-2022 --command './node {lnx}' --out report\n" +
			"  node examine --profile course-2024 --host './vhost --config {lnx}' \\\n" +
			"    --router './vrouter --config {lnx}' --only 'tcp/fin-*'\n" +
			"  sudo unshare --net node examine --tun   # the kernel's own TCP",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	f := c.Flags()
	f.StringVar(&o.profile, "profile", "self",
		"examine the stack of profile `NAME` or of a YAML file: self, "+
			strings.Join(examine.ProfileNames(), ", "))
	f.StringVar(&o.command, "command", "",
		"start the node with `COMMAND`; {lnx} stands for its .lnx file")
	f.StringVar(&o.host, "host", "", "start hosts with `COMMAND` instead of the one in --command")
	f.StringVar(&o.router, "router", "",
		"start routers with `COMMAND` instead of the one in --command")
	f.BoolVar(&o.tun, "tun", false, "examine this machine's kernel through TUN devices")
	f.StringArrayVar(&o.only, "only", nil, "run only checks whose names match `PATTERN`")
	f.StringVar(&o.checks, "checks", "", "read the checks from `FOLDER`")
	f.StringVarP(&o.out, "out", "o", "", "write report.html, report.json and captures to `FOLDER`")
	f.StringVar(&o.junit, "junit", "", "write JUnit XML to `FILE`")
	f.StringVar(&o.gradescope, "gradescope", "", "write Gradescope's results.json to `FILE`")
	f.StringVar(&o.rubric, "rubric", "", "take the points for --gradescope from `FILE`")
	f.IntVarP(&o.jobs, "jobs", "j", 0, "run `N` checks at a time; 0: as many as suit the stack")
	f.IntVar(&o.runs, "runs", 3, "run each check `N` times; it is flaky if the results differ")
	f.BoolVar(&o.long, "long", false,
		"also run the transfers of 100 MB, each once; they may take minutes")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	f.BoolVar(&o.list, "list", false, "list the checks and run nothing")
	repl.Limit(c, 1, repl.Unlimited, "runs")
	repl.Limit(c, 0, repl.Unlimited, "jobs")
	c.AddCommand(examineFuzzCommand())
	return c
}

func (o *examineOptions) run(c *cobra.Command) error {
	checks, err := o.selected()
	if err != nil {
		return &usageError{err}
	}
	out := c.OutOrStdout()
	if o.list {
		return listChecks(out, checks)
	}
	var rubric *report.Rubric
	if o.rubric != "" {
		if rubric, err = report.ReadRubric(o.rubric, checks); err != nil {
			return &usageError{err}
		}
	}
	subject, jobs, err := o.subject()
	if err != nil {
		return misuse(c, err)
	}
	exam := &examine.Exam{
		Subject: subject, Checks: checks, Workers: cmp.Or(o.jobs, jobs), Runs: o.runs, Long: o.long,
	}
	if !o.json {
		exam.Done = func(r *examine.Result) { _, _ = io.WriteString(out, report.Line(r)) }
	}
	r := exam.Run(c.Context())
	if err := o.write(out, r, rubric); err != nil {
		return err
	}
	if !r.Good() && o.json {
		return jsonError{errExamined}
	}
	if !r.Good() {
		return errExamined
	}
	return nil
}

func (o *examineOptions) write(out io.Writer, r *examine.Report, rubric *report.Rubric) error {
	if o.json {
		if err := report.JSON(out, r); err != nil {
			return err
		}
	} else if _, err := io.WriteString(out, report.Summary(r)); err != nil {
		return err
	}
	type output struct {
		file  string
		write func(w io.Writer) error
	}
	outputs := []output{
		{o.junit, func(w io.Writer) error { return report.JUnit(w, r) }},
		{o.gradescope, func(w io.Writer) error { return report.Gradescope(w, r, rubric) }},
	}
	if o.out != "" {
		if err := os.MkdirAll(o.out, 0o755); err != nil {
			return err
		}
		if err := report.Captures(o.out, r); err != nil {
			return err
		}
		outputs = append(outputs,
			output{filepath.Join(o.out, "report.html"), func(w io.Writer) error {
				return report.Page(w, r, o.words(), true)
			}},
			output{filepath.Join(o.out, "report.json"), func(w io.Writer) error {
				return report.JSON(w, r)
			}})
	}
	for _, f := range outputs {
		if f.file == "" {
			continue
		}
		if err := writeOutput(f.file, f.write); err != nil {
			return err
		}
	}
	return nil
}

func writeOutput(name string, write func(w io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return files.Overwrite(name, b.Bytes(), 0o644)
}

// words returns the command line that examines the same stack. report.Rerun adds --only.
func (o *examineOptions) words() []string {
	words := []string{called(), "examine", "--profile", o.profile}
	if o.tun {
		words = []string{called(), "examine", "--tun"}
	}
	for _, f := range []struct{ name, value string }{
		{"--command", o.command},
		{"--host", o.host},
		{"--router", o.router},
		{"--checks", o.checks},
	} {
		if f.value != "" {
			words = append(words, f.name, f.value)
		}
	}
	return words
}

// selected returns the checks that --only and --checks select.
func (o *examineOptions) selected() ([]*examine.Check, error) {
	all, err := examine.Checks()
	if o.checks != "" {
		all, err = examine.LoadFolder(o.checks)
	}
	if err != nil || len(o.only) == 0 {
		return all, err
	}
	var names []string
	for _, check := range all {
		names = append(names, check.Name)
	}
	var list []*examine.Check
	for _, pattern := range o.only {
		before := len(list)
		for _, check := range all {
			if report.Matches(pattern, check.Name) && !slices.Contains(list, check) {
				list = append(list, check)
			}
		}
		if len(list) == before {
			return nil, fmt.Errorf("--only %s: no check has this name%s; `%s examine --list` "+
				"lists them", pattern, diagnostic.DidYouMean(pattern, names), called())
		}
	}
	return list, nil
}

// realJobs is how many checks of an external stack run in parallel. They mostly wait.
const realJobs = 16

// subject returns what to examine, and how many checks to run in parallel.
func (o *examineOptions) subject() (examine.Subject, int, error) {
	if o.tun {
		s, err := examine.Kernel()
		return s, realJobs, err
	}
	if o.profile == "self" {
		if o.command+o.host+o.router != "" {
			return nil, 0, fmt.Errorf("--command needs a --profile that says how to talk to "+
				"the node: %s or a file", strings.Join(examine.ProfileNames(), ", "))
		}
		return &examine.Self{}, runtime.GOMAXPROCS(0), nil
	}
	p, ok := examine.Profiles()[o.profile]
	if !ok {
		var err error
		if p, err = examine.ReadProfile(o.profile); errors.Is(err, os.ErrNotExist) {
			names := append([]string{"self"}, examine.ProfileNames()...)
			err = fmt.Errorf("unknown profile %q%s; use %s or a file in YAML", o.profile,
				diagnostic.DidYouMean(o.profile, names), strings.Join(names, ", "))
		}
		if err != nil {
			return nil, 0, err
		}
	}
	p.Starts(o.command, o.host, o.router)
	if len(p.Host)+len(p.Router) == 0 {
		return nil, 0, fmt.Errorf("profile %s: --command must say how to start the node, such as "+
			"--command './node {lnx}'", o.profile)
	}
	return &examine.Course{Profile: p}, realJobs, nil
}

func listChecks(w io.Writer, checks []*examine.Check) error {
	for _, c := range checks {
		if _, err := fmt.Fprintf(w, "%-36s %-7s %-18s %s\n", c.Name, c.Level, c.RFC,
			c.Story); err != nil {
			return err
		}
	}
	return nil
}
