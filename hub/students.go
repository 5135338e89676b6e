package hub

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
)

// Listed is a line of a students file.
type Listed struct {
	Name  string
	Token string // empty: the hub chooses one
}

// student is a student of the hub. The state file contains the exported fields.
type student struct {
	Name    string            `json:"name"`
	Token   string            `json:"token"`
	Slot    int               `json:"slot"`
	Address netip.AddrPort    `json:"address,omitzero"` // pinned UDP address
	Packets uint64            `json:"packets"`
	Bytes   uint64            `json:"bytes"`
	Refused map[string]uint64 `json:"refused,omitempty"`
	Report  *Report           `json:"report,omitempty"`

	machine  netip.Addr // machine that presented the token
	until    time.Time  // until then, the first packet may arrive
	seen     time.Time
	rtt      time.Duration
	pinged   time.Time
	rip      RIP
	budget   float64
	budgeted time.Time
}

const (
	minToken  = 16
	maxToken  = 64
	nameRules = "1 to 32 letters, digits, '.', '_' or '-'"
	rules     = "16 to 64 letters, digits, '_' or '-'"
)

var (
	nameForm  = regexp.MustCompile(`^[A-Za-z0-9._-]{1,32}$`)
	tokenForm = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9_-]{%d,%d}$`, minToken, maxToken))
)

// ReadStudents reads a students file: each line has a name and, optionally, a token. `#` starts a
// comment.
func ReadStudents(name string) ([]Listed, error) {
	text, err := files.Text(name, 1<<20)
	if err != nil {
		return nil, err
	}
	return parseStudents(name, string(text))
}

func parseStudents(file, text string) (list []Listed, err error) {
	var faults diagnostic.Errors
	first, tokens := map[string]int{}, map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		before, _, _ := strings.Cut(line, "#")
		words := strings.Fields(before)
		if len(words) == 0 {
			continue
		}
		fault := func(word, msg, want string) {
			at := strings.LastIndex(before, word)
			if word == words[0] {
				at = strings.Index(before, word)
			}
			faults = append(faults, &diagnostic.Error{
				File: file, Line: i + 1, Col: len([]rune(before[:at])) + 1, Text: word,
				Msg: msg, Want: want, Source: line,
			})
		}
		l := Listed{Name: words[0]}
		if !nameForm.MatchString(l.Name) {
			fault(l.Name, "invalid name", nameRules)
		} else if at := first[strings.ToLower(l.Name)]; at != 0 {
			fault(l.Name, fmt.Sprintf("this student is already on line %d", at), "")
		}
		first[strings.ToLower(l.Name)] = i + 1
		if len(words) > 1 {
			l.Token = words[1]
			if !tokenForm.MatchString(l.Token) {
				fault(l.Token, "invalid token", rules)
			} else if at := tokens[l.Token]; at != 0 {
				fault(l.Token, fmt.Sprintf("line %d has the same token", at), "")
			}
			tokens[l.Token] = i + 1
		}
		if len(words) > 2 {
			fault(words[len(words)-1], "unexpected word", "a name and a token")
		}
		list = append(list, l)
	}
	return list, faults.Err()
}

// Add adds a student and returns the token.
func (h *Hub) Add(l Listed) (string, error) {
	h.mu.Lock()
	s, err := h.enter(l)
	h.mu.Unlock()
	if err != nil {
		return "", err
	}
	if err := h.node.SetUp(ifaceName(s.Slot), true); err != nil {
		return "", err
	}
	return s.Token, h.Save()
}

// enter gives a student a free slot.
func (h *Hub) enter(l Listed) (*student, error) {
	if !nameForm.MatchString(l.Name) {
		return nil, fmt.Errorf("name %s: must be %s", diagnostic.Quote(l.Name), nameRules)
	}
	free := 0
	for i := len(h.slots) - 1; i > 0; i-- {
		switch s := h.slots[i]; {
		case s == nil:
			free = i
		case strings.EqualFold(s.Name, l.Name):
			return nil, fmt.Errorf("student %s already exists", l.Name)
		case s.Token == l.Token:
			return nil, fmt.Errorf("student %s has the token of %s", l.Name, s.Name)
		}
	}
	if free == 0 {
		return nil, fmt.Errorf("student %s: the hub is full: at most %d students", l.Name,
			h.cfg.Most)
	}
	s := &student{Name: l.Name, Token: l.Token, Slot: free}
	if s.Token == "" {
		s.Token = rand.Text()
	}
	h.slots[free] = s
	return s, nil
}

// Remove removes a student. From then on, the hub refuses packets from the student's address.
func (h *Hub) Remove(name string) error {
	slot, err := h.unpin(name, func(s *student) {
		h.slots[s.Slot] = nil
		for p := range h.cells {
			if p.from == s.Slot || p.to == s.Slot {
				delete(h.cells, p)
			}
		}
		for key := range h.flows {
			own := h.subnet(s.Slot)
			if own.Contains(key.a.Addr()) || own.Contains(key.b.Addr()) {
				delete(h.flows, key)
			}
		}
	})
	if err != nil {
		return err
	}
	if err := h.node.SetUp(ifaceName(slot), false); err != nil {
		return err
	}
	return h.Save()
}

// Reset forgets a student's UDP address, so the student has to join again.
func (h *Hub) Reset(name string) error {
	_, err := h.unpin(name, func(s *student) {
		s.Address, s.until = netip.AddrPort{}, time.Time{}
	})
	if err != nil {
		return err
	}
	return h.Save()
}

// unpin releases a student's address, so that the hub refuses packets from it. Then it calls change
// with the student, and returns the slot.
func (h *Hub) unpin(name string, change func(s *student)) (slot int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.named(name)
	if s == nil {
		return 0, unknown(name)
	}
	delete(h.pinned, s.Address)
	change(s)
	return s.Slot, nil
}

func unknown(name string) error {
	return fmt.Errorf("no student is called %s", diagnostic.Quote(name))
}

func (h *Hub) named(name string) *student {
	for _, s := range h.slots {
		if s != nil && strings.EqualFold(s.Name, name) {
			return s
		}
	}
	return nil
}
