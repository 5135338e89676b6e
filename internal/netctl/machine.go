package netctl

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
)

// Machine is another machine that runs nodes of a network. It has the same program and its own
// state folder. On it `node net part` executes requests about its nodes. ssh forwards the sockets
// of these nodes into the network's directory.
type Machine struct {
	Name    string `json:"name"`
	SSH     string `json:"ssh"`     // destination for ssh
	Folder  string `json:"folder"`  // state folder on the machine
	Program string `json:"program"` // path of the program on the machine

	Nodes []Member `json:"nodes"`
}

// connection is a connection to one machine of a network. Each command creates its own.
type connection struct {
	*Machine
	sshMaster

	network *Network
}

// connect logs in if necessary, and forwards the sockets of the nodes.
func (c *connection) connect(ctx context.Context) error {
	fresh, err := c.open(ctx)
	if err != nil || !fresh || c.Folder == "" {
		return err
	}
	return c.forwardAll(ctx)
}

func (c *connection) forwardAll(ctx context.Context) error {
	for _, m := range c.Nodes {
		if err := c.forward(ctx, "forward", m.Name); err != nil {
			return err
		}
	}
	return nil
}

// forward starts or cancels ssh's forwarding of a node's socket.
func (c *connection) forward(ctx context.Context, what, node string) error {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	here, there := c.network.Socket(node), path.Join(c.Folder, c.network.Name(), node+".sock")
	text, err := c.command(ctx, []string{"-O", what, "-L", here + ":" + there}).CombinedOutput()
	if err != nil && !api.Answers(ctx, here) { // a forward of the ssh configuration may have failed
		return c.failure(ctx, text, err)
	}
	return nil
}

// These sh scripts keep the program in a file node@DIGEST, next to folders with the names of hosts.
// probe prints the machine's platform, and whether it has the program. install writes the program,
// completely or not at all. It removes older programs first, because running nodes do not need
// them. execute runs the program.
const (
	probe = `umask 077; cd; d=${XDG_CACHE_HOME:-$HOME/.cache}/tidepool;
mkdir -p "$d" && cd "$d" || exit 1;
echo; echo "probed $(uname -s) $(uname -m) $(date +%%s) $(ls | grep -c ^node@)";
if [ -x node@%[1]s ]; then echo yes; else echo no; fi; pwd -P`
	install = `umask 077; cd %[2]s && rm -f node@* && f=node@%[1]s.$$ && trap "rm -f $f" EXIT &&
cat >$f && [ "$(wc -c <$f)" -eq %[3]d ] && chmod 700 $f && ./$f version >/dev/null &&
mv $f node@%[1]s`
	execute = `cd; p=%s;
[ -x "$p" ] || { echo "$p is gone; node net apply copies it" >&2; exit 1; };
exec "$p" net part`
)

// program is the executable of this process. It is copied to other machines.
type program struct {
	text []byte
	name string // contains a digest of the contents
}

func readProgram(path string) (program, error) {
	text, err := files.Text(path, 1<<30)
	sum := sha256.Sum256(text)
	return program{text, hex.EncodeToString(sum[:8])}, err
}

// prepare logs in, and copies the program unless the machine already has it. It calls tell with
// remarks for the user.
func (c *connection) prepare(ctx context.Context, p program, tell func(string)) error {
	if err := c.connect(ctx); err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	before := time.Now()
	out, err := c.run(short, fmt.Sprintf(probe, p.name), strings.NewReader(""), false)
	if errors.As(err, new(*UnreachableError)) || ctx.Err() != nil {
		return err
	} else if err != nil {
		return fmt.Errorf("%w; its login shell must run sh, and its home must be writable, or set "+
			"XDG_CACHE_HOME there", err)
	}
	_, text, _ := strings.Cut(string(out), "\nprobed ")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	is := strings.Fields(lines[0])
	if len(lines) != 3 || len(is) != 4 {
		return fmt.Errorf("host %s: its login shell does not run sh: nodes need a system such as "+
			"Linux or macOS", c.Name)
	}
	here, there := platform(runtime.GOOS, runtime.GOARCH), platform(is[0], is[1])
	if here != there {
		return fmt.Errorf("host %s (%s) is %s, and this program is for %s: it cannot run there; "+
			"give its nodes a host of the same kind", c.Name, c.SSH, there, here)
	}
	if clock, err := strconv.ParseInt(is[2], 10, 64); err == nil {
		if off := clockOffset(time.Unix(clock, 0), before, time.Now()); off != 0 {
			tell(fmt.Sprintf("note: the clock of host %s is %v %s: the times in its logs and "+
				"captures are, too; NTP sets it", c.Name, off.Abs(),
				map[bool]string{true: "ahead", false: "behind"}[off > 0]))
		}
	}
	folder := lines[2]
	if lines[1] != "yes" {
		if err := c.install(ctx, p, folder, is[3] != "0", tell); err != nil {
			return err
		}
	}
	c.Program, c.Folder = path.Join(folder, "node@"+p.name), path.Join(folder, c.Name)
	return nil
}

// install copies the program to the folder of the machine, which may contain an older one.
func (c *connection) install(
	ctx context.Context, p program, folder string, older bool, tell func(string),
) error {
	why := ""
	if older {
		why = ", which had another version"
	}
	tell(fmt.Sprintf("copying this program (%.1f MB) to host %s%s: %s", float64(len(p.text))/1e6,
		c.Name, why, path.Join(folder, "node@"+p.name)))
	_, err := c.run(ctx, fmt.Sprintf(install, p.name, diagnostic.ShellWord(folder), len(p.text)),
		bytes.NewReader(p.text), false)
	if err != nil && ctx.Err() == nil && !errors.As(err, new(*UnreachableError)) {
		return fmt.Errorf("%w: the program cannot be copied to %s, or does not run there; make "+
			"%.0f MB of room, or set XDG_CACHE_HOME there", err, folder, float64(len(p.text))/1e6)
	}
	return err
}

// platform converts the names that uname prints to those of Go.
func platform(system, machine string) string {
	known := map[string]string{
		"x86_64": "amd64", "aarch64": "arm64", "i686": "386", "i386": "386", "armv7l": "arm",
		"armv6l": "arm",
	}
	if other, ok := known[machine]; ok {
		machine = other
	}
	return strings.ToLower(system) + "/" + machine
}

// clockOffset returns the offset of a machine's clock, read between the times before and after.
// Offsets up to 2 s count as 0, because the reading is truncated to seconds.
func clockOffset(clock, before, after time.Time) time.Duration {
	const least = 2 * time.Second
	switch {
	case clock.Sub(after) > least:
		return clock.Sub(after).Round(time.Second)
	case before.Sub(clock) > least:
		return clock.Sub(before).Round(time.Second)
	}
	return 0
}

// part executes a request with the program on the machine.
func (c *connection) part(
	ctx context.Context, within time.Duration, r PartRequest,
) (a PartAnswer, err error) {
	r.State, r.Network = c.Folder, c.network.Name()
	text, err := json.Marshal(r)
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := c.connect(ctx); err != nil {
		return a, err
	}
	line := fmt.Sprintf(execute, diagnostic.ShellWord(c.Program))
	out, err := c.run(ctx, line, bytes.NewReader(text), true)
	if errors.As(err, new(*UnreachableError)) && ctx.Err() == nil { // the machine may answer again
		if err = c.connect(ctx); err == nil {
			out, err = c.run(ctx, line, bytes.NewReader(text), true)
		}
	}
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal([]byte(lastLine(out)), &a); err != nil {
		return a, fmt.Errorf("host %s: unexpected answer of %s: %w", c.Name, c.Program, err)
	}
	if a.Error != "" {
		return a, &PartError{c.Name, a.Error}
	}
	return a, nil
}

// each calls do for several machines at the same time and joins the errors.
func each(list []*connection, do func(*connection) error) error {
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, c := range list {
		wg.Go(func() { errs[i] = do(c) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
