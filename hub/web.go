package hub

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"ago": func(now, t time.Time) string {
		if t.IsZero() {
			return "never"
		}
		return now.Sub(t).Round(time.Second).String() + " ago"
	},
	"bytes": func(n uint64) string {
		switch {
		case n >= 10_000_000:
			return fmt.Sprintf("%d MB", n/1_000_000)
		case n >= 10_000:
			return fmt.Sprintf("%d kB", n/1000)
		}
		return fmt.Sprintf("%d B", n)
	},
	"join": func(s []string) string { return strings.Join(s, ", ") },
}).Parse(pageText))

// failure is an error with its HTTP status.
type failure struct {
	status int
	error
}

// Handler serves the page and the API.
func (h *Hub) Handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /{$}", h.guarded(func(w http.ResponseWriter) {
		var b bytes.Buffer
		if err := page.Execute(&b, h.View()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(b.Bytes()) // the client may be gone
	}))
	m.HandleFunc("GET /api/view", h.guarded(func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(h.View()) // the client may be gone
	}))
	for path, f := range map[string]func(*http.Request) (string, error){
		"POST /join": h.postJoin, "POST /lnx": h.postFile, "POST /report": h.postReport,
		"POST /teacher": h.postTeacher,
	} {
		m.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxReport)
			text, err := f(r)
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			if fail, ok := errors.AsType[failure](err); ok {
				w.WriteHeader(fail.status)
			} else if err != nil {
				w.WriteHeader(http.StatusBadRequest)
			}
			if err != nil {
				text = err.Error() + "\n"
			}
			_, _ = io.WriteString(w, text) // the client may be gone
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "+
				"frame-ancestors 'none'; base-uri 'none'")
		m.ServeHTTP(w, r)
	})
}

// guarded serves a page. If the hub is private, the client must present the token of the teacher or
// of a student, as a browser's password or in the Authorization header.
func (h *Hub) guarded(serve func(w http.ResponseWriter)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if h.cfg.Private && !h.mayRead(r) {
			w.Header().Set("WWW-Authenticate", `Basic realm="hub: any name, and your token"`)
			http.Error(w, "the page needs a token: yours, or the teacher's",
				http.StatusUnauthorized)
			return
		}
		serve(w)
	}
}

func (h *Hub) mayRead(r *http.Request) bool {
	_, token, ok := r.BasicAuth()
	if !ok {
		token = tokenOf(r)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.isTeacher(token) || h.withToken(token) != nil
}

// tokenOf returns the token in the Authorization header, or in the form of the body. tokenOf does
// not read a token in the URL, because URLs are logged.
func tokenOf(r *http.Request) string {
	if t, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return t
	}
	return r.PostFormValue("token")
}

// asking returns the student whose token a request has. The caller holds the lock.
func (h *Hub) asking(token string) (*student, error) {
	if s := h.withToken(token); s != nil {
		return s, nil
	}
	return nil, failure{http.StatusForbidden, errors.New("wrong token: ask the teacher for yours")}
}

// postJoin allows the next packet from the client's machine to pin the student's UDP address.
func (h *Hub) postJoin(r *http.Request) (string, error) {
	machine, err := machineOf(r)
	if err != nil {
		return "", err
	}
	token := tokenOf(r)
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.asking(token)
	if err != nil {
		return "", err
	}
	s.machine, s.until = machine, time.Now().Add(joinFor)
	return fmt.Sprintf("%s: start your node on %v within %v. The hub takes the UDP address of its "+
		"first packet from %v.\n", s.Name, machine, joinFor, h.host(s.Slot)), nil
}

// machineOf returns the address of the machine that runs the node. If the request does not take the
// same path as the node's packets, the field "machine" has that address; otherwise it is the
// client's address.
func machineOf(r *http.Request) (netip.Addr, error) {
	text := r.PostFormValue("machine")
	if text == "" {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			return netip.Addr{}, err
		}
		text = host
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return a, fmt.Errorf("machine %.50q: must be an IP address", text)
	}
	return a.Unmap(), nil
}

func (h *Hub) postFile(r *http.Request) (string, error) {
	form := FileForm{Grammar: r.PostFormValue("grammar")}
	if p := r.PostFormValue("port"); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return "", fmt.Errorf("port %.50q: must be 1 to 65535", p)
		}
		form.Port = uint16(n)
	}
	token := tokenOf(r)
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.asking(token)
	if err != nil {
		return "", err
	}
	return h.file(s, form)
}

// postReport accepts a report as the body. The student's token is in the Authorization header.
func (h *Hub) postReport(r *http.Request) (string, error) {
	token := tokenOf(r)
	h.mu.Lock()
	s, err := h.asking(token)
	h.mu.Unlock()
	if err != nil {
		return "", err
	}
	report, err := readReport(r.Body, time.Now())
	if err != nil {
		return "", err
	}
	h.mu.Lock()
	s.Report = report
	h.mu.Unlock()
	return fmt.Sprintf("%s: %d of the report's checks passed\n", s.Name,
		report.Verdicts["pass"]), h.Save()
}

func (h *Hub) postTeacher(r *http.Request) (string, error) {
	if !h.isTeacher(tokenOf(r)) {
		return "", failure{http.StatusForbidden, errors.New("wrong token: the hub prints the " +
			"teacher's when it starts")}
	}
	name := r.PostFormValue("name")
	switch action := r.PostFormValue("action"); action {
	case "add":
		token, err := h.Add(Listed{Name: name})
		return fmt.Sprintf("%s %s\n", name, token), err
	case "remove":
		return fmt.Sprintf("removed %s\n", name), h.Remove(name)
	case "reset":
		return fmt.Sprintf("%s has to join again\n", name), h.Reset(name)
	case "tokens":
		return h.Tokens(), nil
	default:
		return "", fmt.Errorf("action %.50q: must be add, remove, reset or tokens", action)
	}
}

// Tokens lists the students with their tokens, in the form of a students file.
func (h *Hub) Tokens() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	for _, s := range h.slots {
		if s != nil {
			fmt.Fprintf(&b, "%s %s\n", s.Name, s.Token)
		}
	}
	return b.String()
}

// View is the data that the page and the API show.
type View struct {
	Time           time.Time     `json:"time"`
	Network        string        `json:"network"`
	UDP            string        `json:"udp"`
	UnknownSources uint64        `json:"unknown_sources"` // packets from unknown addresses
	Students       []StudentView `json:"students"`
}

// StudentView is a student's data on the page. Cells are in the order of the students.
type StudentView struct {
	Name    string            `json:"name"`
	Subnet  string            `json:"subnet"`
	Joined  bool              `json:"joined"` // a UDP address is pinned
	Seen    time.Time         `json:"seen,omitzero"`
	Ping    time.Time         `json:"ping,omitzero"` // time of the last echo reply
	RTT     *float64          `json:"rtt_ms"`        // of the last ping; nil: no reply
	Packets uint64            `json:"packets"`
	Bytes   uint64            `json:"bytes"`
	Refused map[string]uint64 `json:"refused,omitempty"`
	RIP     RIP               `json:"rip"`
	Report  *Report           `json:"report,omitempty"`
	To      []CellView        `json:"to"`
}

// CellView is what the hub forwarded from one student to another.
type CellView struct {
	Reach string `json:"reach"` // one of self, none, one-way and both-ways
	Cell
}

// View returns the current state.
func (h *Hub) View() View {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := View{
		Time: time.Now(), Network: h.cfg.Network.String(), UDP: h.cfg.Public,
		UnknownSources: h.unknownSources, Students: []StudentView{},
	}
	for _, s := range h.slots {
		if s != nil {
			v.Students = append(v.Students, h.viewOf(s))
		}
	}
	return v
}

func (h *Hub) viewOf(s *student) StudentView {
	v := StudentView{
		Name: s.Name, Subnet: h.subnet(s.Slot).String(), Joined: s.Address.IsValid(),
		Seen: s.seen, Ping: s.pinged,
		Packets: s.Packets, Bytes: s.Bytes, Refused: map[string]uint64{}, RIP: s.rip,
		Report: s.Report,
	}
	if s.rtt > 0 {
		ms := float64(s.rtt.Microseconds()) / 1000
		v.RTT = &ms
	}
	if v.RIP.Routes == nil {
		v.RIP.Routes = []string{}
	}
	maps.Copy(v.Refused, s.Refused)
	for _, o := range h.slots {
		if o == nil {
			continue
		}
		c := CellView{Reach: "none"}
		there, back := h.cells[pair{s.Slot, o.Slot}], h.cells[pair{o.Slot, s.Slot}]
		if there != nil {
			c.Cell = *there
			c.Reach = "one-way"
			if back != nil {
				c.Reach = "both-ways"
			}
		}
		if o == s {
			c.Reach = "self"
		}
		v.To = append(v.To, c)
	}
	return v
}
