package api

import (
	_ "embed" // the document
	"net/http"
)

// openAPI is the description of the API. `go test ./internal/api -run OpenAPI -update` writes it.
//
//go:embed openapi.json
var openAPIDocument []byte

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", typeJSON)
	_ = write(w, openAPIDocument, hangs)
}
