package api

import "net/http/pprof"

// profile serves what the runtime knows of the program, to whoever may ask for the rest.
func (s *Server) profile() {
	const at = "/debug/pprof/"
	s.mux.HandleFunc(at, pprof.Index)
	s.mux.HandleFunc(at+"cmdline", pprof.Cmdline)
	s.mux.HandleFunc(at+"profile", pprof.Profile)
	s.mux.HandleFunc(at+"symbol", pprof.Symbol)
	s.mux.HandleFunc(at+"trace", pprof.Trace)
}
