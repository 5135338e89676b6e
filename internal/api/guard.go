package api

import (
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// sessionPath is where a page changes the token for a cookie.
const sessionPath = "/v1/session"

// guard lets in who may ask. Over a Unix socket that is whoever may open it.
// The page's files, which are for everybody, come from s.
func (l *Listener) guard(s *Server, next http.Handler) http.Handler {
	if l.token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := admitted(r)
		if err == nil && s.assetOf(r) != nil {
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
			refuse(w, err)
			return
		}
		if r.URL.Path == sessionPath && r.Method == http.MethodPost {
			http.SetCookie(w, l.cookie())
		}
		next.ServeHTTP(w, r)
	})
}

// admitted judges where a request over TCP comes from. A page of another site that a browser on
// this machine shows can send requests here too: by a name of its own for our address, or across
// origins. The names in Host and Origin tell.
func admitted(r *http.Request) error {
	if !local(r.Host) {
		return fmt.Errorf("%w: this server is not called %q", errStranger, r.Host)
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !local(u.Host) {
			return fmt.Errorf("%w: a page of %q may not ask", errStranger, origin)
		}
	}
	return nil
}

// admit looks for the token (RFC 6750 §2.1), or for the cookie that it was changed for. A browser
// shows the cookie whoever made it ask, so then the request has to come from the page itself: one
// of another port here is of the same site, and of another origin.
func (l *Listener) admit(r *http.Request) error {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") && same(token, l.token) {
		return nil
	}
	c, err := r.Cookie(l.cookieName())
	if err != nil || !same(c.Value, l.cookieValue) {
		return fmt.Errorf("%w: `Authorization: Bearer TOKEN`, with the one that was printed when "+
			"the server began; a browser opens the address that was printed with it", errToken)
	}
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	looks := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case origin != "" && origin != "http://"+r.Host:
		return fmt.Errorf("%w: %q is another one", errForeign, origin)
	case site != "" && site != "same-origin" && !(site == "none" && looks): // none: it was typed
		return fmt.Errorf("%w: Sec-Fetch-Site is %s", errForeign, site)
	case origin == "" && site == "" && !looks:
		return fmt.Errorf("%w: neither Origin nor Sec-Fetch-Site says so", errForeign)
	}
	return nil
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// cookieName has the port in it: cookies do not tell ports apart, and several servers may be here.
func (l *Listener) cookieName() string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return "tidepool-" + port
}

func (l *Listener) cookie() *http.Cookie {
	return &http.Cookie{
		Name: l.cookieName(), Value: l.cookieValue, Path: "/v1", HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
	}
}

// local reports whether a host with or without a port is this machine's loopback.
func local(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
