package examine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
)

// Profile describes how to start a node of the course and which commands it has.
type Profile struct {
	Name string `yaml:"name"`
	// Base is the built-in profile that a file changes.
	Base string `yaml:"base"`
	// Host and Router are the commands that start the node. {lnx} stands for its file.
	Host   []string `yaml:"host"`
	Router []string `yaml:"router"`
	// Grammar is the grammar of the node's .lnx file, named by the last year in which it was used:
	// 2016, 2022, 2023, or 2024 with the times of RIP and TCP.
	Grammar int `yaml:"grammar"`
	// FirstSocket is the number of the node's first socket.
	FirstSocket int `yaml:"first-socket"`
	// Commands are the texts to type, by the name of the command. A command with an empty text is
	// not available.
	Commands map[string]string `yaml:"commands"`
	// Ready is a command whose output contains the addresses of the interfaces. The output shows
	// that the node has carried out the commands typed before. Empty: the examiner waits for a
	// fixed time instead.
	Ready string `yaml:"ready"`
	// StartTime is how long the node may take to start; zero: 15 s.
	StartTime time.Duration `yaml:"start-time"`
	// Without are features that the node does not have.
	Without []string `yaml:"without"`
	// RIPPeriod and RIPTimeout are the node's RIP times, unless its .lnx file sets them.
	RIPPeriod  time.Duration `yaml:"rip-period"`
	RIPTimeout time.Duration `yaml:"rip-timeout"`
}

// commandNames are the commands of a profile, by kind.
var commandNames = map[CommandKind]string{
	CommandListen: "listen", CommandConnect: "connect", CommandWrite: "write",
	CommandRead: "read", CommandShutdown: "shutdown", CommandClose: "close",
	CommandSendFile: "sendfile", CommandReceiveFile: "recvfile", CommandUp: "up",
	CommandDown: "down", CommandTest: "test",
}

// Grammars of .lnx files.
const (
	grammar2016 = 2016 // neighbors are host:port
	grammar2022 = 2022 // neighbors are host port
	grammar2023 = 2023 // directives
	grammar2024 = 2024 // directives with times
)

// RIP times of a node of the course. The examiner writes them into the .lnx file if the node reads
// them.
const (
	coursePeriod  = 5 * time.Second
	courseTimeout = 12 * time.Second
	fastPeriod    = time.Second
	fastTimeout   = 2400 * time.Millisecond
)

// Profiles returns the built-in profiles by name.
func Profiles() map[string]*Profile {
	short := map[string]string{
		"listen": "a {port}", "connect": "c {addr} {port}", "write": "s {sid} {text}",
		"read": "r {sid} {n}", "close": "cl {sid}", "sendfile": "sf {file} {addr} {port}",
		"recvfile": "rf {file} {port}", "up": "up {if}", "down": "down {if}",
		"test": "send {addr} {text}",
	}
	with := func(changes map[string]string) map[string]string {
		m := maps.Clone(short)
		maps.Copy(m, changes)
		return m
	}
	return map[string]*Profile{
		"course-2016": {Grammar: grammar2016, Ready: "interfaces", Commands: map[string]string{
			"listen": "accept {port}", "connect": "connect {addr} {port}",
			"write": "send {sid} {text}", "read": "recv {sid} {n} n",
			"shutdown": "shutdown {sid} write", "close": "close {sid}",
			"sendfile": "sendfile {file} {addr} {port}", "recvfile": "recvfile {file} {port}",
			"up": "up {if}", "down": "down {if}",
		}},
		"course-2022": {Grammar: grammar2022, Ready: "li", Commands: with(map[string]string{
			"shutdown": "sd {sid} write", "test": "send {addr} 0 {text}",
		})},
		"course-2023": {Grammar: grammar2023, Ready: "li", Commands: short},
		"course-2024": {Grammar: grammar2024, Ready: "li", Commands: short},
	}
}

// ProfileNames returns the names of the built-in profiles.
func ProfileNames() []string { return slices.Sorted(maps.Keys(Profiles())) }

// ReadProfile reads a profile in YAML. A profile that names a base changes that built-in profile.
func ReadProfile(file string) (*Profile, error) {
	text, err := files.Text(file, files.MaxText)
	if err != nil {
		return nil, err
	}
	var base struct {
		Base string `yaml:"base"`
	}
	if err := yaml.Unmarshal(text, &base); err != nil {
		return nil, YAMLError(file, text, err)
	}
	p := &Profile{}
	if base.Base != "" {
		known, ok := Profiles()[base.Base]
		if !ok {
			return nil, placed(file, text, base.Base, "unknown profile "+
				diagnostic.Quote(base.Base)+diagnostic.DidYouMean(base.Base, ProfileNames()),
				"one of "+diagnostic.OneOf(ProfileNames()))
		}
		p = known
	}
	commands := p.Commands
	p.Commands = nil
	if err := yaml.UnmarshalWithOptions(text, p, yaml.Strict()); err != nil {
		return nil, YAMLError(file, text, err)
	}
	merged := maps.Clone(commands)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, p.Commands)
	p.Commands = merged
	return p, p.check(file, text)
}

// check reports the first error of a profile.
func (p *Profile) check(file string, text []byte) error {
	names := slices.Sorted(maps.Values(commandNames))
	for name := range p.Commands {
		if !slices.Contains(names, name) {
			return placed(file, text, name, "unknown command "+diagnostic.Quote(name)+
				diagnostic.DidYouMean(name, names), "one of "+diagnostic.OneOf(names))
		}
	}
	for _, f := range p.Without {
		if !slices.Contains(features, f) {
			return placed(file, text, f, "unknown feature "+diagnostic.Quote(f)+
				diagnostic.DidYouMean(f, features), "one of "+diagnostic.OneOf(features))
		}
	}
	grammars := []int{grammar2016, grammar2022, grammar2023, grammar2024}
	if !slices.Contains(grammars, p.Grammar) {
		return placed(file, text, "grammar", fmt.Sprintf("unknown grammar %d", p.Grammar),
			"2016, 2022, 2023 or 2024")
	}
	return nil
}

// placed returns an error at the first occurrence of a word in a file.
func placed(file string, text []byte, word, msg, want string) error {
	e := &diagnostic.Error{File: file, Text: word, Msg: msg, Want: want}
	line := 0
	for source := range strings.Lines(string(text)) {
		line++
		if before, _, ok := strings.Cut(source, word); ok {
			e.Line, e.Col = line, len([]rune(before))+1
			e.Source = strings.TrimRight(source, "\r\n")
			break
		}
	}
	return e
}

// YAMLError adds the position to an error of the YAML reader.
func YAMLError(file string, text []byte, err error) error {
	e := &diagnostic.Error{File: file, Msg: err.Error()}
	if y := yaml.Error(nil); errors.As(err, &y) {
		e.Msg = y.GetMessage()
		if t := y.GetToken(); t != nil {
			e.Line, e.Col, e.Text = t.Position.Line, t.Position.Column, t.Value
			lines := strings.Split(string(text), "\n")
			if e.Line <= len(lines) {
				e.Source = lines[e.Line-1]
			}
		}
	}
	if wrong, ok := errors.AsType[*yaml.TypeError](err); ok {
		e.Msg, e.Want = diagnostic.Quote(e.Text)+" has the wrong type", kindOf(wrong.DstType)
	}
	return e
}

// kindOf returns the YAML type of a Go type, for messages.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Uint16:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.String:
		return "text"
	default:
		return "keys and values"
	}
}

// old reports whether the node has one UDP socket and links without prefixes.
func (p *Profile) old() bool { return p.Grammar <= grammar2022 }

// period and timeout return the node's RIP times.
func (p *Profile) period() time.Duration {
	return p.time(p.RIPPeriod, fastPeriod, coursePeriod)
}

func (p *Profile) timeout() time.Duration {
	return p.time(p.RIPTimeout, fastTimeout, courseTimeout)
}

func (p *Profile) time(own, fast, course time.Duration) time.Duration {
	switch {
	case own > 0:
		return own
	case p.Grammar == grammar2024:
		return fast
	default:
		return course
	}
}

// has reports whether the node claims a feature.
func (p *Profile) has(f Feature) bool {
	if slices.Contains(p.Without, string(f)) {
		return false
	}
	switch f {
	case FeatureMasks:
		return p.Grammar != grammar2016
	case FeatureTest:
		return p.Commands["test"] != ""
	case FeatureShutdown:
		return p.Commands["shutdown"] != ""
	case FeatureFiles:
		return p.Commands["sendfile"] != "" && p.Commands["recvfile"] != ""
	case FeatureRouter, FeatureRIP:
		return len(p.Router) > 0
	case FeatureTCP, FeatureUser:
		return len(p.Host) > 0
	default:
		return true
	}
}

// file returns the text of a node's .lnx file. subject has the UDP ports of the node's links, peer
// those of the examiner.
func (p *Profile) file(s *Setup, subject, peer []int) string {
	var b strings.Builder
	if p.old() {
		sep := " "
		if p.Grammar == grammar2016 {
			sep = ":"
		}
		fmt.Fprintf(&b, "localhost%s%d\n", sep, subject[0])
		for i, l := range s.Links {
			fmt.Fprintf(&b, "localhost%s%d %s %s\n", sep, peer[i], l.Addr.Addr(), l.Peer)
		}
		return b.String()
	}
	for i, l := range s.Links {
		fmt.Fprintf(&b, "interface %s %s 127.0.0.1:%d\n", l.Name, l.Addr, subject[i])
		fmt.Fprintf(&b, "neighbor %s at 127.0.0.1:%d via %s\n", l.Peer, peer[i], l.Name)
	}
	if s.Router {
		b.WriteString("routing rip\n")
		for _, l := range s.Links {
			fmt.Fprintf(&b, "rip advertise-to %s\n", l.Peer)
		}
	} else {
		fmt.Fprintf(&b, "routing static\nroute 0.0.0.0/0 via %s\n", s.Links[0].Peer)
	}
	if p.Grammar == grammar2024 {
		if s.Router {
			fmt.Fprintf(&b, "rip periodic-update-rate %d\nrip route-timeout-threshold %d\n",
				p.period().Milliseconds(), p.timeout().Milliseconds())
		} else {
			b.WriteString("tcp rto-min 100000\ntcp rto-max 5000000\n")
		}
	}
	return b.String()
}

// Starts sets the commands that start a host and a router; an empty one is replaced by both. To a
// command without {lnx}, Starts appends the file as the course's nodes expect it.
func (p *Profile) Starts(both, host, router string) {
	words := func(command string) []string {
		list := strings.Fields(command)
		if !strings.Contains(command, "{lnx}") {
			if !p.old() {
				list = append(list, "--config")
			}
			list = append(list, "{lnx}")
		}
		return list
	}
	if text := cmp.Or(host, both); text != "" {
		p.Host = words(text)
	}
	if text := cmp.Or(router, both); text != "" {
		p.Router = words(text)
	}
}
