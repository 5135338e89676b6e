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

// work is a running command with its cancel function.
type work struct {
	Running
	cancel context.CancelFunc
}

// works executes commands and streams, and lists those that are running.
type works struct {
	nodes *nodes
	files *files.Folder
	told  func(text string) // receives messages about stalled clients; may be nil

	mu   sync.Mutex
	last int
	list []*work
}

func (ws *works) add(node, command string, cancel context.CancelFunc) (*work, error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(ws.list) >= maxRunning {
		return nil, fmt.Errorf("%s: %w: %d are running", command, errTooMany, len(ws.list))
	}
	ws.last++
	j := &work{
		Running: Running{ID: ws.last, Node: node, Command: command, Since: time.Now().Round(0)},
		cancel:  cancel,
	}
	ws.list = append(ws.list, j)
	return j, nil
}

func (ws *works) remove(j *work) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.list = slices.DeleteFunc(ws.list, func(k *work) bool { return k == j })
}

// of lists the commands that run at a node.
func (ws *works) of(node string) []Running {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	list := []Running{}
	for _, j := range ws.list {
		if j.Node == node {
			list = append(list, j.Running)
		}
	}
	return list
}

// stop stops a command. It returns false if no command has that number.
func (ws *works) stop(node string, id int) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, j := range ws.list {
		if j.ID == id && j.Node == node {
			j.cancel()
			return true
		}
	}
	return false
}

func (ws *works) running(w http.ResponseWriter, r *http.Request) error {
	m, err := ws.nodes.of(r)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, typeJSON, ws.of(m.name))
}

// halt stops a command. The command answers with its result so far, such as the statistics of a
// ping.
func (ws *works) halt(w http.ResponseWriter, r *http.Request) error {
	m, err := ws.nodes.of(r)
	if err != nil {
		return err
	}
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil || !ws.stop(m.name, id) {
		return fmt.Errorf("%q: %w", r.PathValue("id"), errNotRunning)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
