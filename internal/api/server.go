// Package api provides package control over HTTP. A Server answers with JSON. Errors are problem
// documents (RFC 9457), and streams are lines of JSON or server-sent events. openapi.json describes
// the API. A Client is the other end. It is a control.Operator, so a shell works in the same way
// with a node in its own process and in another one.
//
// A request passes through guard.go (authorization), routes.go (paths), resource.go and command.go
// (control's requests), the control.Operator, and write.go. The client's side is client.go.
package api

import (
	"context"
	_ "embed" // for openAPIDocument
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
)

// These are the limits of a server.
const (
	maxHeader  = 16 << 10
	maxBody    = 24 << 20        // enough for a Write of 16 MiB in base 64
	headerTime = 3 * time.Second // limit for sending the header of a request
	bodyTime   = time.Minute     // limit for sending the body of a request
	idleTime   = 2 * time.Minute // limit between two requests on a connection
	closeTime  = 2 * time.Second // limit for running requests when the server closes
	maxRunning = 256             // commands and streams that run at once
)

// Config configures a Server.
type Config struct {
	// Nodes are the nodes by name. Server.Replace replaces them.
	Nodes map[string]control.Operator
	// Version is the program's version.
	Version string
	// Shape says how the nodes are connected; nil: unknown.
	Shape *Shape
	// Page contains the files of the page, which starts with index.html; nil: no page.
	Page fs.FS
	// Tell is called with messages that no client can receive. It may be nil.
	Tell func(text string)
	// Files is the directory that file names in requests are relative to; nil: each node uses its
	// own.
	Files *files.Folder
	// Profile serves /debug/pprof/ to authorized clients. It is http.DefaultServeMux if the program
	// imports net/http/pprof, or nil for no profiles.
	Profile http.Handler
}

// Server answers HTTP requests about nodes. It is safe for concurrent use.
type Server struct {
	nodes nodes
	jobs  jobs
	live  feed
	page  page
	about Process // describes the process; Nodes is empty
	mux   *http.ServeMux
	// The end of this context ends all streams.
	ends   context.Context //nolint:containedctx // ends with the server
	finish context.CancelFunc
}

// Process is information on the server's process.
type Process struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Nodes   []string  `json:"nodes"`
	// Files is the directory that file names in requests are relative to. If it is empty, each node
	// has its own.
	Files string `json:"files,omitempty"`
}

// openAPIDocument describes the API. `go test ./internal/api -run OpenAPI -update` writes it.
//
//go:embed openapi.json
var openAPIDocument []byte

// New returns a server that does not listen yet: see Serve.
func New(cfg Config) *Server {
	s := &Server{mux: http.NewServeMux()}
	if cfg.Files == nil {
		cfg.Files = files.Elsewhere()
	}
	s.ends, s.finish = context.WithCancel(context.Background())
	s.about = Process{
		PID: os.Getpid(), Version: cfg.Version, Started: time.Now().Round(0),
		Files: cfg.Files.Path(),
	}
	s.Replace(cfg.Nodes, cfg.Shape)
	if cfg.Page != nil {
		var err error
		if s.page, err = readPage(cfg.Page); err != nil {
			panic("BUG: api: the page is embedded: " + err.Error())
		}
	}
	s.jobs.nodes, s.jobs.files, s.jobs.warn = &s.nodes, cfg.Files, cfg.Tell
	s.live.nodes, s.live.jobs, s.live.ends = &s.nodes, &s.jobs, s.ends
	s.routes()
	if cfg.Profile != nil {
		s.mux.Handle("/debug/pprof/", cfg.Profile)
	}
	return s
}

// Replace replaces the nodes and their shape, which is nil if unknown. A node stays if its name and
// its Operator stay. Commands that run at removed nodes end with ErrGone. The readers of /v1/stream
// get the new network.
func (s *Server) Replace(nodes map[string]control.Operator, shape *Shape) {
	s.nodes.replace(nodes, shape)
}

// ServeHTTP implements http.Handler. It does not check the authorization.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { //nolint:errorlint // the value itself is thrown
				panic(p)
			}
			writeProblem(w, fmt.Errorf("%s %s: %w (the node continues): %v", r.Method, r.URL.Path,
				errInside, p))
		}
	}()
	s.mux.ServeHTTP(w, r)
}

// Serve serves a listener until the server is closed or the listener fails.
func (s *Server) Serve(l *Listener) error {
	who := &connLimit{Listener: l, clients: map[net.Conn]struct{}{}}
	h := &http.Server{
		Handler:           l.guard(s, who.admitting(s)),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		ConnState:         who.note,
		ConnContext:       withConn,
		ErrorLog:          errorLog(s.jobs.warn),
		BaseContext:       func(net.Listener) context.Context { return s.ends },
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(who) }()
	var err error
	select {
	case err = <-ended:
	case <-s.ends.Done():
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if h.Shutdown(ctx) != nil {
			_ = h.Close() // closes stalled connections
		}
		err = <-ended
		s.live.done.Wait()
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close ends every running request and every Serve.
func (s *Server) Close() { s.finish() }

// Index is the start page of the API.
type Index struct {
	OpenAPI string   `json:"openapi"`
	Nodes   []string `json:"nodes"` // paths of the nodes
}

func (s *Server) index(w http.ResponseWriter, _ *http.Request) error {
	x := Index{OpenAPI: "/v1/openapi.json", Nodes: []string{}}
	for _, name := range s.nodes.now.Load().names {
		x.Nodes = append(x.Nodes, "/v1/nodes/"+name)
	}
	return answer(w, http.StatusOK, typeJSON, x)
}

func openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", typeJSON)
	_ = write(w, openAPIDocument, hangs)
	return nil
}

func (s *Server) process(w http.ResponseWriter, _ *http.Request) error {
	about := s.about
	about.Nodes = append([]string{}, s.nodes.now.Load().names...) // encodes an empty list, not null
	return answer(w, http.StatusOK, typeJSON, about)
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	s.nodes.metrics(w, r, &s.about)
	return nil
}

// Sort is a problem type.
type Sort struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
}

func problem(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("sort")
	i := slices.IndexFunc(sorts, func(s sort) bool { return s.name == name })
	if i < 0 {
		return fmt.Errorf("%s: %w: no problem type has this name", r.URL.Path, errNoSuchPath)
	}
	return answer(w, http.StatusOK, typeJSON,
		Sort{Type: problemPath + name, Title: sorts[i].title(), Status: sorts[i].status})
}
