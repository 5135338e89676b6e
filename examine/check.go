package examine

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// Levels of a requirement.
const (
	LevelMust   = "MUST"
	LevelShould = "SHOULD"
	LevelCourse = "course"
)

// Check is one behavior that a subject must have.
type Check struct {
	// Name is the path of the file below the folder of the checks, without its extension. A check
	// for several states has the state at its end.
	Name string
	// RFC is the source of the requirement, such as "RFC 9293 §3.5", or "course".
	RFC string
	// Level is MUST, SHOULD or course.
	Level string
	// Area is the part of a stack that the check tests.
	Area string
	// Story says in one sentence what happens, and Rule what the source requires.
	Story, Rule string
	// Bug is the most common bug of stacks that fail.
	Bug string
	// Router is set if the subject is a router with several links.
	Router bool
	// Needs are features without which the check is skipped.
	Needs []Feature
	// Limit is the time that the check may take with a slow subject; zero: the default.
	Limit time.Duration

	given string // the state of the connection before the steps; may be empty
	steps []step
	file  string
}

// step is one line of a check.
type step struct {
	verb    string
	line    int
	source  string // text of the line
	pattern *pattern
	span    span
	command Command
	words   []string
	count   *expr
	factor  float64
	acking  bool
	lossy   impairment
	text    []byte
}

// impairment is the impairment of a transfer's link.
type impairment struct{ loss, reorder, duplicate float64 }

// span is a time in units of the subject, or in seconds.
type span struct {
	n    float64
	unit string // rtt, rto, period, timeout or s
}

//go:embed checks
var embedded embed.FS

// Checks returns the checks of this package in the order of their names.
func Checks() ([]*Check, error) {
	sub, err := fs.Sub(embedded, "checks")
	if err != nil {
		return nil, err
	}
	return Load(sub)
}

// Load reads all files whose names end in .check, in a folder and the folders below it. Its error
// lists the errors of all files.
func Load(folder fs.FS) ([]*Check, error) {
	var list []*Check
	var errs diagnostic.Errors
	err := fs.WalkDir(folder, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, extension) {
			return err
		}
		text, err := fs.ReadFile(folder, path)
		if err != nil {
			return err
		}
		checks, bad := Parse(path, text)
		list, errs = append(list, checks...), append(errs, bad...)
		return nil
	})
	if err == nil {
		err = errs.Err()
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b *Check) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// LoadFolder is Load for a folder of the file system. Its errors have the paths of the files.
func LoadFolder(name string) ([]*Check, error) {
	list, err := Load(os.DirFS(name))
	if bad, ok := errors.AsType[diagnostic.Errors](err); ok {
		for _, e := range bad {
			e.File = filepath.Join(name, e.File)
		}
	} else if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: no such folder", name)
	}
	return list, err
}

const extension = ".check"
