package hub

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidepool-net/tidepool/internal/files"
)

// state is the content of the state file.
type state struct {
	Teacher  string      `json:"teacher"` // token
	Network  string      `json:"network"`
	Public   string      `json:"public"`
	Students []*student  `json:"students"`
	Cells    []savedCell `json:"cells"`
}

type savedCell struct {
	From int `json:"from"`
	To   int `json:"to"`
	Cell
}

const maxState = 64 << 20

func readState(name string) (*state, error) {
	text, err := files.Text(name, maxState)
	if err != nil {
		return nil, err
	}
	var st state
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&st); err != nil {
		return nil, fmt.Errorf("%s: not a state file of a hub: %w; remove it to start over", name,
			err)
	}
	return &st, nil
}

// load reads the state file, then adds the students of the students file.
func (h *Hub) load() error {
	h.teacher = rand.Text()
	if h.cfg.State != "" {
		st, err := readState(h.cfg.State)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		default:
			if err := h.restore(st); err != nil {
				return fmt.Errorf("%s: %w", h.cfg.State, err)
			}
		}
	}
	for _, l := range h.cfg.Students {
		s := h.named(l.Name)
		if s == nil {
			if _, err := h.enter(l); err != nil {
				return err
			}
		} else if l.Token != "" {
			s.Token = l.Token
		}
	}
	return h.Save()
}

func (h *Hub) restore(st *state) error {
	if st.Network != h.cfg.Network.String() {
		return fmt.Errorf("the state is for network %s, but this hub has %v", st.Network,
			h.cfg.Network)
	}
	if len(st.Teacher) >= minToken {
		h.teacher = st.Teacher
	}
	for _, s := range st.Students {
		switch {
		case s == nil || s.Slot < 1 || s.Slot > MaxStudents || !nameForm.MatchString(s.Name) ||
			!tokenForm.MatchString(s.Token):
			return errors.New("a student has an invalid name, token or slot; remove the file to " +
				"start over")
		case s.Slot >= len(h.slots):
			return fmt.Errorf("student %s has slot %d, and the limit is %d students: raise "+
				"the limit", s.Name, s.Slot, h.cfg.Most)
		case h.slots[s.Slot] != nil || h.named(s.Name) != nil:
			return fmt.Errorf("student %s: the name or slot %d appears twice", s.Name, s.Slot)
		}
		h.slots[s.Slot] = s
		if s.Address.IsValid() {
			if h.pinned[s.Address] != nil {
				return fmt.Errorf("student %s: UDP address %v appears twice", s.Name, s.Address)
			}
			h.pinned[s.Address] = s
		}
	}
	for i := range st.Cells {
		c := &st.Cells[i]
		if c.From > 0 && c.From < len(h.slots) && c.To > 0 && c.To < len(h.slots) {
			h.cells[pair{c.From, c.To}] = &c.Cell
		}
	}
	return nil
}

// Save replaces the state file. After a crash the file has the old state or the new one.
func (h *Hub) Save() (err error) {
	if h.cfg.State == "" {
		return nil
	}
	h.saving.Lock()
	defer h.saving.Unlock()
	text, err := h.marshal()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(h.cfg.State), ".hub-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // report only the first error
		}
	}()
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), h.cfg.State)
}

func (h *Hub) marshal() ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	st := state{
		Teacher: h.teacher, Network: h.cfg.Network.String(), Public: h.cfg.Public,
	}
	for _, s := range h.slots {
		if s != nil {
			st.Students = append(st.Students, s)
		}
	}
	for p, c := range h.cells {
		st.Cells = append(st.Cells, savedCell{p.from, p.to, *c})
	}
	return json.MarshalIndent(st, "", " ")
}

// Teacher returns the teacher's token.
func (h *Hub) Teacher() string { return h.teacher }

func (h *Hub) isTeacher(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(h.teacher)) == 1
}

// withToken returns the student with this token, or nil.
func (h *Hub) withToken(token string) (found *student) {
	for _, s := range h.slots {
		if s != nil && subtle.ConstantTimeCompare([]byte(s.Token), []byte(token)) == 1 {
			found = s
		}
	}
	return found
}

// ReadFile returns the .lnx file of a student, from a hub's state file.
func ReadFile(stateFile, name string, f FileForm) (string, error) {
	st, err := readState(stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; a hub writes this file when it starts", err)
	}
	if err != nil {
		return "", err
	}
	h := &Hub{}
	if err := h.cfg.Network.UnmarshalText([]byte(st.Network)); err != nil {
		return "", fmt.Errorf("%s: %w", stateFile, err)
	}
	h.cfg.Public = st.Public
	if h.cfg.Network.Bits() != 16 || !h.cfg.Network.Addr().Is4() {
		return "", fmt.Errorf("%s: network %q: must be an IPv4 prefix of 16 bits", stateFile,
			st.Network)
	}
	for _, s := range st.Students {
		if s != nil && strings.EqualFold(s.Name, name) {
			return h.file(s, f)
		}
	}
	return "", fmt.Errorf("%s: %w", stateFile, unknown(name))
}
