// Package batch runs the parts of a sweep on existing batch systems: Slurm, Kubernetes, and
// processes of this machine. It queues one task for each part, waits, and queues failed parts
// again.
//
// A task is a process that runs one part. It writes the part's results into the directory that all
// machines share (lab.RunPart). This package does not read results; it only knows which parts lack
// them.
package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/interchange"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Job is a sweep as a batch system runs it. The job is stored in the folder of results, so that a
// later process can find what was queued.
type Job struct {
	Name string `json:"name"`
	// Dir is the absolute path of the folder of results, which all machines share.
	Dir string `json:"-"`
	// Args are the arguments of the program in Dir, without --index=PART.
	Args  []string `json:"args"`
	Parts int      `json:"parts"`
	// AtOnce limits how many parts run at the same time; 0: as many as the batch system allows.
	AtOnce int `json:"at_once,omitempty"`
	// Time and Memory are the limits of a part. They are several times the measured need.
	Time   time.Duration `json:"time"`
	Memory int64         `json:"memory_bytes"`
	// Extra holds arguments for the batch system's own command.
	Extra []string `json:"extra,omitempty"`
	// Pod is for Kubernetes.
	Pod Pod `json:"pod,omitzero"`
	// Files has the experiment's files by path, for engines whose machines do not share Dir.
	Files map[string][]byte `json:"-"`
	// Engine is the engine that last queued the parts, and Task its name for them.
	Engine string `json:"engine"`
	Task   string `json:"task,omitempty"`
	// Tries counts how often parts were queued.
	Tries int `json:"tries"`
}

// Pod is the configuration of the pods on Kubernetes.
type Pod struct {
	// Image is the container image, and Claim the volume claim for the results.
	Image string `json:"image,omitempty"`
	Claim string `json:"claim,omitempty"`
	// ClaimSize is the size of the volume if Submit makes the claim.
	ClaimSize string `json:"claim_size,omitempty"`
}

var (
	claimName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	claimSize = regexp.MustCompile(`^[1-9][0-9]*(\.[0-9]+)?([KMGTPE]i|[kMGTPE])?$`)
)

// Check returns an error for values that Kubernetes would reject. Empty values stand for the
// defaults.
func (p Pod) Check() error {
	switch {
	case p.Image != "" && !interchange.IsImage(p.Image):
		return fmt.Errorf("--image %q: must be an image such as registry.example/tidepool:v1",
			p.Image)
	case p.Claim != "" && !claimName.MatchString(p.Claim):
		return fmt.Errorf("--claim %q: must be lower-case letters, digits, - and dots", p.Claim)
	case p.ClaimSize != "" && !claimSize.MatchString(p.ClaimSize):
		return fmt.Errorf("--claim-size %q: must be a size such as 500Mi or 10Gi", p.ClaimSize)
	}
	return nil
}

// Tasks counts the parts that an engine has not finished.
type Tasks struct {
	Waiting, Running int
	// Done counts the parts that the engine reports as completed.
	Done int
	// Reason is the engine's reason why parts are waiting, or empty.
	Reason string
}

// Engine is a batch system.
type Engine interface {
	// Name is the value of --on.
	Name() string
	// Limit returns the largest number of parts in one job; 0: no limit.
	Limit(ctx context.Context) (int, error)
	// Script returns the input that Submit passes to the engine.
	Script(j *Job, parts []int) (string, error)
	// Submit queues parts and returns the engine's name for them, TASK. The output of a part goes
	// to the file TASK-PART.txt in the folder of logs, which exists from the part's start.
	Submit(ctx context.Context, j *Job, parts []int) (task string, err error)
	// Tasks returns the unfinished parts of a Submit. The error is ErrSilent if the engine does not
	// answer.
	Tasks(ctx context.Context, j *Job) (Tasks, error)
	// After the job's end, Gather copies the results, and the messages of failed parts, to Dir. It
	// returns true when Dir has everything. It does nothing and returns false if the machines share
	// Dir. After an error other than ErrSilent, queueing the parts again does not help.
	Gather(ctx context.Context, j *Job) (bool, error)
}

// ErrSilent means that the engine does not answer now but may answer later.
var ErrSilent = errors.New("no answer")

// The files in a folder of results.
const (
	folder  = "batch"
	jobFile = "job.json"
	logs    = "log"
	program = "node"
	lock    = ".lock"

	stopped = "stopped" // last line of a part that its context stopped
)

// LockFile is a file in a folder of results. The process that queues the parts holds its lock.
func LockFile(dir string) string { return filepath.Join(dir, folder, lock) }

// Program is the path of the program that runs parts. Install copies it there.
func (j *Job) Program() string { return filepath.Join(j.Dir, folder, program) }

func (j *Job) logs() string { return filepath.Join(j.Dir, folder, logs) }

// command returns the command line of one part for a POSIX shell. part may be any shell text.
func (j *Job) command(part string) string {
	words := []string{diagnostic.ShellWord(j.Program())}
	for _, a := range j.Args {
		words = append(words, diagnostic.ShellWord(a))
	}
	return strings.Join(append(words, "--index="+part), " ")
}

// Install copies the running program and makes the folder of the parts' output.
func (j *Job) Install() error {
	if err := os.MkdirAll(j.logs(), 0o777); err != nil {
		return err
	}
	from, err := os.Executable()
	if err != nil {
		return err
	}
	if from == j.Program() {
		return nil
	}
	text, err := files.Text(from, maxProgram)
	if err != nil {
		return err
	}
	// Overwriting a running program on NFS would crash it on other machines.
	if old, err := files.Text(j.Program(), maxProgram); err != nil || !bytes.Equal(old, text) {
		if err := result.WriteFile(j.Program(), text); err != nil {
			return err
		}
	}
	return os.Chmod(j.Program(), 0o755)
}

const maxProgram = 1 << 30

// Read reads the job from a folder of results. The error is os.ErrNotExist if the folder has no
// job.
func Read(dir string) (*Job, error) {
	path := filepath.Join(dir, folder, jobFile)
	text, err := files.Text(path, files.MaxData)
	if err != nil {
		return nil, err
	}
	j := &Job{Dir: dir}
	if err := json.Unmarshal(text, j); err != nil {
		return nil, fmt.Errorf("%s: %w; remove the file to queue all parts that are missing",
			path, err)
	}
	return j, nil
}

// Forget removes the file that Read reads.
func (j *Job) Forget() error { return os.Remove(filepath.Join(j.Dir, folder, jobFile)) }

func (j *Job) write() error {
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	return result.WriteFile(filepath.Join(j.Dir, folder, jobFile), append(text, '\n'))
}

// log returns the path of the file with a part's output.
func (j *Job) log(part int) string {
	return filepath.Join(j.logs(), fmt.Sprintf("%s-%d.txt", j.Task, part))
}

// lastLine returns the last line that a part of the last task wrote. A part that finished wrote the
// path of its results. The error is os.ErrNotExist if the folder has no log of the part.
func (j *Job) lastLine(part int) (line string, done bool, err error) {
	text, err := files.Text(j.log(part), files.MaxData)
	if err != nil {
		return "", false, err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	line = lines[len(lines)-1]
	return line, strings.HasSuffix(line, ".csv"), nil
}

// ReadLogs reads the last task's logs of parts without results. It returns their messages, how many
// Submit's context stopped, how many did not finish, and how many have a log at all.
func (j *Job) ReadLogs(parts []int) (messages []string, ended, failed, logs int) {
	for _, p := range parts {
		line, done, err := j.lastLine(p)
		if err != nil {
			continue
		}
		logs++
		if done {
			continue
		}
		failed++
		if line == stopped {
			ended++
		} else if line != "" {
			messages = append(messages, fmt.Sprintf("part %d: %s (%s)", p, line, j.log(p)))
		}
	}
	return messages, ended, failed, logs
}

// ranges formats ascending numbers as Slurm does: 0-3,7,9-10.
func ranges(numbers []int) string {
	var words []string
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		word := strconv.Itoa(numbers[i])
		if last > i {
			word += "-" + strconv.Itoa(numbers[last])
		}
		words = append(words, word)
		i = last + 1
	}
	return strings.Join(words, ",")
}
