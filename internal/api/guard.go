package api

import (
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// guard rejects unauthorized requests. A Unix socket is protected by its file mode. The files of
// the page are public.
func (l *Listener) guard(s *Server, next http.Handler) http.Handler {
	if l.token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := admitted(r)
		if err == nil && s.page.asset(r) != nil {
			s.ServeHTTP(w, r)
			return
		}
		if err == nil {
			err = l.admit(r)
		}
		if err != nil {
			w.Header().Set("Connection", "close")
			if problemOf(err).Status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="tidepool"`)
			}
			writeProblem(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admitted checks where a request over TCP comes from. A browser on this machine that shows a page
// of another site can send requests to this server, through a DNS name for its address or across
// origins. The Host and Origin headers show this.
func admitted(r *http.Request) error {
	if !local(r.Host) {
		return fmt.Errorf("%w: Host %q is not a name of this server", errOrigin, r.Host)
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !local(u.Host) {
			return fmt.Errorf("%w: Origin %q is another site", errOrigin, origin)
		}
	}
	return nil
}

// admit checks the token in the Authorization header (RFC 6750 §2.1). The page uses the same
// header. Cookies are not used: a browser sends cookies to every port of a host, so another server
// on this machine would receive the token and could use it.
func (l *Listener) admit(r *http.Request) error {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") ||
		subtle.ConstantTimeCompare([]byte(token), []byte(l.token)) != 1 {
		return fmt.Errorf("%w: send `Authorization: Bearer TOKEN` with the token that the "+
			"server printed; in a browser, open the address that it printed", errToken)
	}
	return nil
}

// local reports whether a host, with or without a port, is the loopback of this machine.
func local(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
