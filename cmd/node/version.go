package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/link"
)

// version is the output of `node version --json`.
type version struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built with uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Features are the features that links can use on this machine.
	Features *link.Features `json:"features,omitempty"`
}

// noVersion is the Version of a build without version information.
const noVersion = "unknown"

func versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "print the version and the kernel features in use",
		Long: "Print the version of this program, and which features of this machine's kernel\n" +
			"links can use.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			v := thisVersion()
			found := link.Probe()
			v.Features = &found
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(v)
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "%v\n%s\n", v, features(found))
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func features(f link.Features) string {
	var b strings.Builder
	b.WriteString("features:")
	for _, one := range []struct {
		name string
		has  bool
	}{{"GSO", f.GSO}, {"GRO", f.GRO}, {"TUN", f.TUN}, {"TUN trains", f.TUN && f.VNet}} {
		sign := " -"
		if one.has {
			sign = " +"
		}
		b.WriteString(sign + one.name)
	}
	if f.TUNProblem != "" {
		b.WriteString(" (TUN: " + f.TUNProblem + ")")
	}
	return b.String()
}

func (v version) String() string {
	text := "node " + v.Version
	if v.Version == noVersion && v.Commit == "" {
		text += " (built without VCS)"
	}
	if v.Commit != "" {
		text += " (" + v.Commit[:min(12, len(v.Commit))]
		if v.Modified {
			text += ", modified"
		}
		text += ")"
	}
	return text + " " + v.Go + " " + v.Platform
}

func thisVersion() version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unstamped()
	}
	return versionOf(info)
}

// versionOf converts build information. Go writes (devel) for an unknown version, for example after
// -buildvcs=false.
func versionOf(info *debug.BuildInfo) version {
	v := unstamped()
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func unstamped() version {
	return version{
		Version: noVersion, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// buildMark identifies a build by its commit. If the commit is unknown or the tree was modified,
// the mark also contains a hash of the program.
func buildMark() string {
	v := thisVersion()
	mark := strings.TrimSpace(v.Version + " " + v.Commit)
	if v.Commit != "" && !v.Modified {
		return mark
	}
	path, err := os.Executable()
	if err != nil {
		return mark
	}
	digest, err := digestOf(path)
	if err != nil {
		return mark
	}
	return mark + lab.Unpublished + digest[:12]
}
