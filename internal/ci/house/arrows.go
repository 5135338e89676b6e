package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
)

const module = "github.com/tidepool-net/tidepool"

// purity limits what a package may do besides computing.
type purity int

const (
	pure       purity = iota // no goroutines, locks, clocks or sockets; few standard packages
	sequential               // no goroutines and no locks, any standard package
	driver                   // goroutines, locks, clocks, sockets, processes
)

// folderRule is one folder with Go files. It lists the tidepool packages that the folder may import
// and, if the folder is pure, the other packages that it may import besides those in common.
type folderRule struct {
	dir  string // path from the module's root
	kind purity
	// short names: "tcp" stands for internal/tcp, "lab/*" for every package below internal/lab
	ours   string
	others string
}

// folderRules is the architecture. It is the only list of permitted imports between packages.
var folderRules = []folderRule{
	{".", driver, "clock control files link lnx node operator portforward rdt " +
		"services stack tcp", ""},
	{"cmd/node", driver, "api clock control diagnostic files lab lab/* link lnx netctl " +
		"netem node observe operator portforward repl stack table sim/convergence " +
		"tcp tcp/starlark topology batch " +
		"hub interchange judge/ns3 examine examine/* netns playground/bridge", ""},
	{"examine", driver, "buffer checksum clock diagnostic files ip link netem rip " +
		"stack tcp", ""},
	{"examine/fuzz", driver, "checksum clock examine files ip tcp", ""},
	{"examine/mutants", driver, "checksum examine ip tcp", ""},
	{"examine/report", driver, "capture diagnostic examine files", ""},
	{"hub", driver, "capture diagnostic files ip rip", ""},
	{"netns", driver, "link", ""},
	{"batch", driver, "diagnostic files interchange lab/result", ""},
	{"interchange", driver, "diagnostic lnx topology", ""},
	{"judge/ns3", driver, "lab/plan lab/result lab/simulation netem", ""},
	{"judge/mutants", driver, "", ""},
	{"playground", driver, "api clock control diagnostic files link lnx node operator repl stack " +
		"tcp tcp/congestion tcp/starlark topology", ""},
	{"playground/bridge", driver, "api files link lnx", ""},
	{"playground/build", driver, "api files lab", ""},
	{"playground/build/tls", driver, "", ""},
	{"playground/wasm/guest", driver, "diagnostic", ""},
	{"playground/wasm/lab", driver, "diagnostic files lab playground/wasm/guest tcp/starlark", ""},
	{"playground/wasm", driver, "playground playground/wasm/guest", ""},

	{"internal/clock", pure, "", ""},
	{"internal/checksum", pure, "", "golang.org/x/sys/cpu"},
	{"internal/diagnostic", pure, "", ""},
	{"internal/table", pure, "control", ""},
	// a ring has two owners, so it needs atomics
	{"internal/buffer", pure, "", "runtime sync sync/atomic"},

	{"internal/icmp", pure, "checksum clock", "crypto/sha256"},
	{"internal/ip", pure, "checksum clock", "crypto/sha256"},
	{"internal/udp", pure, "buffer checksum clock", ""},
	{"internal/nat", pure, "checksum clock", ""},
	{"internal/rcp", pure, "buffer clock", ""},
	{"internal/rdt", pure, "clock", "compress/zlib crypto/md5 encoding/hex"},
	{"internal/rip", pure, "clock", "crypto/hmac crypto/md5 crypto/sha1 crypto/sha256 " +
		"crypto/sha512 " +
		"crypto/subtle"},
	{"internal/netem", pure, "buffer checksum clock diagnostic", ""},
	{"internal/tcp", pure, "buffer clock tcp/congestion tcp/recovery", "crypto/sha256"},
	{"internal/tcp/recovery", pure, "buffer clock tcp/congestion", ""},
	{"internal/tcp/congestion", pure, "clock", ""},
	{"internal/tcp/drill", pure, "", ""},
	{"internal/tcp/starlark", pure, "clock diagnostic tcp/congestion", "go.starlark.net"},
	{"internal/lnx", pure, "diagnostic nat rip", ""},
	{"internal/stack", pure, "buffer checksum clock control icmp ip nat rcp rdt rip " +
		"tcp udp", ""},

	{"internal/capture", pure, "checksum", "bufio github.com/gopacket/gopacket"},
	{"internal/sim", pure, "buffer capture checksum clock ip netem rip stack tcp udp", ""},
	{"internal/sim/convergence", pure, "clock netem rip sim stack", ""},
	{"internal/sim/workload", pure, "clock netem rcp rdt sim tcp", "encoding/base64"},

	{"internal/control", sequential, "icmp tcp/recovery", ""},
	{"internal/files", sequential, "", ""},
	{"internal/topology", pure, "diagnostic lnx", ""},

	{"internal/link", driver, "buffer checksum clock netem", ""},
	{"internal/observe", driver, "capture clock control files ip stack tcp", ""},
	{"internal/node", driver, "buffer capture clock control files icmp ip link netem " +
		"observe rcp rdt rip stack tcp udp", ""},
	{"internal/portforward", driver, "clock control icmp lnx node stack", ""},
	{"internal/iperf", driver, "control node rdt services tcp udp", ""},
	{"internal/services", driver, "clock control files nat node rdt stack tcp udp", ""},
	{"internal/operator", driver, "clock control files icmp iperf ip link lnx nat netem node " +
		"observe portforward rip services stack tcp udp", ""},
	{"internal/repl", driver, "control diagnostic files table", ""},
	{"internal/api", driver, "control diagnostic files topology", ""},
	{"internal/netctl", driver, "api control diagnostic files", ""},

	{"internal/lab", driver, "diagnostic files lab/* table", ""},
	{"internal/lab/plan", driver, "diagnostic lab/formula lab/result netem rcp rdt " +
		"sim/workload tcp tcp/congestion tcp/starlark", ""},
	{"internal/lab/simulation", driver, "capture clock lab/plan lab/result netem sim " +
		"sim/workload stack tcp tcp/congestion tcp/starlark", ""},
	{"internal/lab/emulation", driver, "buffer clock lab/plan lab/result lab/simulation link " +
		"lnx netem node operator rdt services sim sim/workload stack tcp tcp/starlark", ""},
	{"internal/lab/figure", driver, "lab/chart lab/result table", ""},
	{"internal/lab/chart", driver, "", ""},
	{"internal/lab/formula", driver, "diagnostic lab/result", ""},
	{"internal/lab/result", driver, "diagnostic files netem", ""},

	// Commands for this tree, and test helpers.
	{"internal/ci/*", driver, "", ""},
	{"internal/ci/testenv", driver, "control lnx", ""},
	{"internal/operator/operatortest", driver, "ci/testenv control lnx node operator", ""},
	{"test", driver, "", ""},
	{"test/internal/*", driver, "", ""},

	// Separate modules.
	{"bench", driver, "bench/* examine examine/*", ""},
	{
		"bench/*", driver,
		"bench/* buffer control examine ip lab/chart link lnx node operator tcp", "",
	},
	{"quic", driver, "lab/emulation lab/plan lab/result", ""},
	{"adapters", driver, "", ""},
	{"adapters/upstream", driver, "", ""},
	{"internet", driver, "capture control files lnx observe operator table topology", ""},
}

// common lists the standard packages that every pure folder may import.
var common = strings.Fields(`bytes cmp container/heap encoding/binary errors fmt hash hash/crc32 io
	iter maps math math/bits math/rand/v2 net/netip slices strconv strings time unicode
	unicode/utf8`)

// onlyIn names the folders that may import a package, or a package below it.
var onlyIn = map[string]string{
	"go.starlark.net":            "internal/tcp/starlark interchange",
	"github.com/gopacket":        "internal/capture",
	"github.com/ergochat":        "internal/repl",
	"github.com/stretchr":        "tests",
	"github.com/google/gopacket": "nowhere: github.com/gopacket/gopacket is maintained",
	"github.com/pkg/errors":      "nowhere: errors and fmt.Errorf with %w do the same",
	"gopkg.in/yaml.v3":           "nowhere: it is archived; goccy/go-yaml reads YAML",
	"math/rand":                  "nowhere: math/rand/v2 with a seed",
}

// short returns the name of a folder in the table: tcp for internal/tcp.
func short(dir string) string { return strings.TrimPrefix(dir, "internal/") }

// under reports whether a slash-separated name is root or below it.
func under(name, root string) bool { return name == root || strings.HasPrefix(name, root+"/") }

// drawing renders the table for docs/ARCHITECTURE.md: a line for each folder with arrows.
func drawing() string {
	var b strings.Builder
	width := 0
	for _, r := range folderRules {
		width = max(width, len(short(r.dir)))
	}
	for _, r := range folderRules {
		if r.ours == "" || under(r.dir, "test") || under(r.dir, "internal/ci") {
			continue
		}
		name := cmp.Or(strings.TrimPrefix(short(r.dir), "."), "tidepool")
		line := fmt.Sprintf("%-*s ->", width, name)
		for to := range strings.FieldsSeq(r.ours) {
			if len(line)+1+len(to) > 100 {
				b.WriteString(line + "\n")
				line = strings.Repeat(" ", width+3)
			}
			line += " " + to
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// arrowsBegin and arrowsEnd delimit the drawing in a document.
const (
	arrowsBegin = "<!-- written by: go run ./internal/ci/house -arrows -->\n```text\n"
	arrowsEnd   = "```\n<!-- arrows end -->"
)

// drawn returns a document with the current drawing.
func drawn(page string) (string, error) {
	before, rest, ok := strings.Cut(page, arrowsBegin)
	_, after, ok2 := strings.Cut(rest, arrowsEnd)
	if !ok || !ok2 {
		return "", fmt.Errorf("no block between %q and %q", arrowsBegin, arrowsEnd)
	}
	return before + arrowsBegin + drawing() + arrowsEnd + after, nil
}

// writeArrows updates the drawing in a document.
func writeArrows(name string) error {
	page, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	now, err := drawn(string(page))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(name, []byte(now), 0o644)
}
