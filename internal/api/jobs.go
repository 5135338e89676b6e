package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/files"
)

// Running is a running command.
type Running struct {
	ID      int       `json:"id"`
	Node    string    `json:"node"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// job is a running command with its cancel function.
type job struct {
	Running
	cancel context.CancelFunc
}

// jobs executes commands and streams, and lists those that are running.
type jobs struct {
	nodes *nodes
	files *files.Folder
	warn  func(text string) // receives messages about stalled clients; may be nil

	mu   sync.Mutex
	last int
	list []*job
}

func (js *jobs) add(node, command string, cancel context.CancelFunc) (*job, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if len(js.list) >= maxRunning {
		return nil, fmt.Errorf("%s: %w: %d are running", command, errTooMany, len(js.list))
	}
	js.last++
	j := &job{
		Running: Running{ID: js.last, Node: node, Command: command, Since: time.Now().Round(0)},
		cancel:  cancel,
	}
	js.list = append(js.list, j)
	return j, nil
}

func (js *jobs) remove(j *job) {
	js.mu.Lock()
	defer js.mu.Unlock()
	js.list = slices.DeleteFunc(js.list, func(k *job) bool { return k == j })
}

// of lists the commands that run at a node.
func (js *jobs) of(node string) []Running {
	js.mu.Lock()
	defer js.mu.Unlock()
	list := []Running{}
	for _, j := range js.list {
		if j.Node == node {
			list = append(list, j.Running)
		}
	}
	return list
}

// stop stops a command. It returns false if no command has that number.
func (js *jobs) stop(node string, id int) bool {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.list {
		if j.ID == id && j.Node == node {
			j.cancel()
			return true
		}
	}
	return false
}

func (js *jobs) running(w http.ResponseWriter, r *http.Request) error {
	m, err := js.nodes.of(r)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, typeJSON, js.of(m.name))
}

// halt stops a command. The command answers with its result so far, such as the statistics of a
// ping.
func (js *jobs) halt(w http.ResponseWriter, r *http.Request) error {
	m, err := js.nodes.of(r)
	if err != nil {
		return err
	}
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil || !js.stop(m.name, id) {
		return fmt.Errorf("%q: %w", r.PathValue("id"), errNotRunning)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
