// Package api carries package control over HTTP. A Server answers with JSON, errors are problem
// documents (RFC 9457), what goes on is lines of JSON or server-sent events, and openapi.json
// describes all of it. A Client is the other end: a control.Operator again, so that a shell does
// not know whether its node is in the same process.
//
// A request's way: guard.go (who may ask) -> server.go (paths) -> resource.go and command.go
// (control's requests) -> control.Operator -> write.go. Back it is client.go.
package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
)

// Limits of a server.
const (
	maxHeader  = 16 << 10
	maxBody    = 24 << 20        // a Write of 16 MiB, in base 64
	headerTime = 3 * time.Second // to send a request's header
	bodyTime   = time.Minute     // and its body
	idleTime   = 2 * time.Minute // between requests of a connection
	closeTime  = 2 * time.Second // for requests under way when the server ends
	maxRunning = 256             // commands and streams at once
)

// Config is what a server speaks for.
type Config struct {
	// Nodes are the nodes by name; Server.Replace has others take their place.
	Nodes map[string]control.Operator
	// Version is that of the program.
	Version string
	// Shape is how they are connected; nil: nobody knows.
	Shape *Shape
	// Page are the files of the page, whose first is index.html; nil: there is none.
	Page fs.FS
	// Tell is told in a line of text what no client can be; nil: nobody is.
	Tell func(text string)
	// Files is the folder in which requests name files; nil: where the nodes' own servers say.
	Files *files.Folder
	// Profile has /debug/pprof/ served, to whoever may ask for the rest.
	Profile bool
}

// Server answers HTTP requests about nodes. It is safe for use by several goroutines.
type Server struct {
	now   atomic.Pointer[served]
	about Process // without the nodes
	mux   *http.ServeMux
	works works
	page  map[string]*asset // by path
	live  hub
	files *files.Folder
	tell  func(text string) // nil: nobody
	// One Replace after another.
	replacing sync.Mutex
	// Its end is that of what streams too.
	ends   context.Context //nolint:containedctx // the life of the server
	finish context.CancelFunc
}

// Process is the program that answers.
type Process struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Nodes   []string  `json:"nodes"`
	// Files is the folder in which requests name files; empty: that of each node's own process.
	Files string `json:"files,omitempty"`
}

// New makes a server. It answers nothing until it has a listener: see Serve.
func New(cfg Config) *Server {
	s := &Server{mux: http.NewServeMux(), tell: cfg.Tell, files: cfg.Files}
	if s.files == nil {
		s.files = files.Elsewhere()
	}
	s.ends, s.finish = context.WithCancel(context.Background())
	s.about = Process{PID: os.Getpid(), Version: cfg.Version, Started: time.Now().Round(0)}
	s.Replace(cfg.Nodes, cfg.Shape)
	if cfg.Page != nil {
		var err error
		if s.page, err = readPage(cfg.Page); err != nil {
			panic("BUG: api: the page is embedded: " + err.Error())
		}
	}
	s.live.server = s
	s.routes()
	if cfg.Profile {
		s.profile()
	}
	return s
}

// methods are the handlers of one path.
type methods map[string]http.HandlerFunc

func (s *Server) routes() {
	for path, m := range map[string]methods{
		"/metrics":                            {http.MethodGet: s.metrics},
		"/v1":                                 {http.MethodGet: s.index},
		"/v1/openapi.json":                    {http.MethodGet: s.openAPI},
		"/v1/process":                         {http.MethodGet: s.process},
		"/v1/network":                         {http.MethodGet: s.network},
		"/v1/stream":                          {http.MethodGet: s.stream},
		"/v1/transfers":                       {http.MethodPost: s.transfer},
		"/v1/problems/{sort}":                 {http.MethodGet: s.problem},
		"/v1/nodes":                           {http.MethodGet: s.list},
		"/v1/nodes/{node}":                    {http.MethodGet: s.node},
		"/v1/nodes/{node}/{resource}":         {http.MethodGet: s.resource},
		"/v1/nodes/{node}/capture":            {http.MethodGet: s.recording},
		"/v1/nodes/{node}/streams/{stream}":   {http.MethodGet: s.streaming},
		"/v1/nodes/{node}/counters":           {http.MethodGet: s.counters},
		"/v1/nodes/{node}/events":             {http.MethodGet: s.events},
		"/v1/nodes/{node}/commands":           {http.MethodGet: s.commands},
		"/v1/nodes/{node}/commands/{command}": {http.MethodPost: s.command},
		"/v1/nodes/{node}/running":            {http.MethodGet: s.running},
		"/v1/nodes/{node}/running/{id}":       {http.MethodDelete: s.stop},
	} {
		s.mux.HandleFunc(path, s.dispatch(m))
	}
	s.mux.HandleFunc("/", s.pages)
}

// dispatch finds the handler of a method.
func (s *Server) dispatch(m methods) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		handler, ok := m[method]
		switch {
		case !ok:
			var allowed []string
			for name := range m {
				allowed = append(allowed, name)
			}
			slices.Sort(allowed)
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			refuse(w, fmt.Errorf("%s %s: %w; %s does", r.Method, r.URL.Path, errMethod,
				strings.Join(allowed, ", ")))
		default:
			handler(w, r)
		}
	}
}

// ServeHTTP implements http.Handler, for whoever may ask.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { //nolint:errorlint // it is thrown as it is
				panic(p)
			}
			refuse(w, fmt.Errorf("%s %s: %w (the node goes on): %v", r.Method, r.URL.Path,
				errInside, p))
		}
	}()
	s.mux.ServeHTTP(w, r)
}

// Serve answers what comes to a listener until the server is closed or the listener fails.
func (s *Server) Serve(l *Listener) error {
	who := newCrowd(l)
	h := &http.Server{
		Handler:           l.guard(s, who.admitting(s)),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		ConnState:         who.note,
		ConnContext:       withConn,
		ErrorLog:          s.errorLog(),
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
			_ = h.Close() // who hangs is left
		}
		err = <-ended
		s.live.done.Wait()
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close ends every request under way and every Serve.
func (s *Server) Close() { s.finish() }

// Index is where to begin.
type Index struct {
	OpenAPI string   `json:"openapi"`
	Nodes   []string `json:"nodes"` // their paths
}

func (s *Server) index(w http.ResponseWriter, _ *http.Request) {
	x := Index{OpenAPI: "/v1/openapi.json", Nodes: []string{}}
	for _, name := range s.now.Load().names {
		x.Nodes = append(x.Nodes, "/v1/nodes/"+name)
	}
	answer(w, http.StatusOK, typeJSON, x)
}

func (s *Server) process(w http.ResponseWriter, _ *http.Request) {
	about := s.about
	about.Files = s.files.Path()
	about.Nodes = append([]string{}, s.now.Load().names...) // a list, if an empty one
	answer(w, http.StatusOK, typeJSON, about)
}

// Sort is a sort of problems.
type Sort struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
}

func (s *Server) problem(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("sort")
	i := slices.IndexFunc(sorts, func(s sort) bool { return s.name == name })
	if i < 0 {
		refuse(w, fmt.Errorf("%s: %w: no sort of problem has that name", r.URL.Path, errNoSuchPath))
		return
	}
	answer(w, http.StatusOK, typeJSON,
		Sort{Type: problemPath + name, Title: sorts[i].title(), Status: sorts[i].status})
}

// member finds the node of a path, or refuses.
func (s *Server) member(w http.ResponseWriter, r *http.Request) (*member, bool) {
	now, name := s.now.Load(), r.PathValue("node")
	m := now.member(name)
	if m == nil {
		refuse(w, now.noSuch(name))
	}
	return m, m != nil
}
