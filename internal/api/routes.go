package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// handler answers a request, or returns an error if it has not written anything yet.
type handler func(http.ResponseWriter, *http.Request) error

// methods maps the methods of a path to their handlers.
type methods map[string]handler

func (s *Server) routes() {
	for path, m := range map[string]methods{
		"/metrics":                            {http.MethodGet: s.metrics},
		"/v1":                                 {http.MethodGet: s.index},
		"/v1/openapi.json":                    {http.MethodGet: openAPI},
		"/v1/process":                         {http.MethodGet: s.process},
		"/v1/network":                         {http.MethodGet: s.nodes.network},
		"/v1/stream":                          {http.MethodGet: s.live.stream},
		"/v1/transfers":                       {http.MethodPost: s.jobs.transfer},
		"/v1/problems/{sort}":                 {http.MethodGet: problem},
		"/v1/nodes":                           {http.MethodGet: s.nodes.list},
		"/v1/nodes/{node}":                    {http.MethodGet: s.nodes.about},
		"/v1/nodes/{node}/{resource}":         {http.MethodGet: s.nodes.resource},
		"/v1/nodes/{node}/capture":            {http.MethodGet: s.jobs.recording},
		"/v1/nodes/{node}/streams/{stream}":   {http.MethodGet: s.jobs.streaming},
		"/v1/nodes/{node}/counters":           {http.MethodGet: s.nodes.counters},
		"/v1/nodes/{node}/events":             {http.MethodGet: s.jobs.events},
		"/v1/nodes/{node}/commands":           {http.MethodGet: s.jobs.commands},
		"/v1/nodes/{node}/commands/{command}": {http.MethodPost: s.jobs.command},
		"/v1/nodes/{node}/running":            {http.MethodGet: s.jobs.running},
		"/v1/nodes/{node}/running/{id}":       {http.MethodDelete: s.jobs.halt},
	} {
		s.mux.Handle(path, m)
	}
	s.mux.Handle("/v1/nodes/{node}/inside", methods{http.MethodPost: s.inside})
	s.mux.Handle("/", s.page)
}

// ServeHTTP calls the handler of the request's method.
func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	answers, ok := m[method]
	if !ok {
		allowed := strings.Join(slices.Sorted(maps.Keys(m)), ", ")
		w.Header().Set("Allow", allowed)
		writeProblem(w, fmt.Errorf("%s %s: %w; use %s", r.Method, r.URL.Path, errMethod, allowed))
		return
	}
	if err := answers(w, r); err != nil {
		writeProblem(w, err)
	}
}
