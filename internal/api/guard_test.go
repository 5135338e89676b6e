package api

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEveryPathNeedsAToken checks that no path of the API answers a client without the token, with
// any method.
func TestEveryPathNeedsAToken(t *testing.T) {
	d := newDoor(t)
	paths := []string{"/nowhere", "/debug/pprof/", "//v1", "/v1/../v1", "/v1/nodes/A/"}
	for path := range describe(t, openAPIDocument).paths {
		paths = append(paths, path)
	}
	require.Greater(t, len(paths), 20)
	for _, path := range paths {
		for _, method := range []string{
			"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "FETCH", "get",
		} {
			for _, headers := range []map[string]string{
				nil, {"Authorization": "Bearer x"}, {"Cookie": "tidepool=x"},
			} {
				status, body, head := d.ask(t, method, path, headers)
				assert.Equal(t, http.StatusUnauthorized, status, "%s %s: %s", method, path, body)
				assert.Empty(t, head.Get("Set-Cookie"))
			}
		}
	}
}
