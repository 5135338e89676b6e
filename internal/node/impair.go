package node

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// impairing is a device that has been made worse than it is. It stands in the way of
// packets as long as it does something to them.
type impairing struct {
	device *link.Impaired
	faces  []int
	seeds  map[int][2]uint64 // of each interface, out and in
	active bool
}

// The ways of an interface, as the arrays of this file are indexed.
const (
	wayOut = iota
	wayIn
)

var ways = [...]control.Way{wayOut: control.WayOut, wayIn: control.WayIn}

// impairLinks impairs a device that was just opened as its links are configured.
func (ds *Devices) impairLinks(token int, faces []link.Interface) error {
	for _, face := range faces {
		both := ds.node.cfg.Links[face.ID].Impair
		if both[wayOut] == nil && both[wayIn] == nil {
			continue
		}
		if err := ds.impair(token, face.ID, both); err != nil {
			return err
		}
	}
	return nil
}

// pick is one configuration for a way or for both.
func pick(way control.Way, cfg *netem.Config) (both [2]*netem.Config) {
	if way != control.WayIn {
		both[wayOut] = cfg
	}
	if way != control.WayOut {
		both[wayIn] = cfg
	}
	return both
}

// impair has an interface of a device do something to packets, each way that is not nil.
func (ds *Devices) impair(token, i int, both [2]*netem.Config) error {
	m, err := ds.impairable(token)
	if err != nil {
		return err
	}
	for way, cfg := range both {
		if cfg == nil {
			continue
		}
		seed := ds.node.cfg.seedFor(cfg)
		name := ds.node.FaceName(i)
		err := m.device.Change(i, way == wayIn, *cfg, func(part string) *rand.Rand {
			return netem.Streams(seed)(name + " " + part)
		})
		if err != nil {
			return fmt.Errorf("node: %w", err)
		}
		seeds := m.seeds[i]
		seeds[way] = seed
		m.seeds[i] = seeds
	}
	if !m.active && !m.device.Idle() {
		m.active = true
		ds.list[token] = m.device
	}
	if len(ds.node.Taps.observers) > 0 {
		ds.node.Taps.rewatch()
	}
	return nil
}

// seedFor is the seed of one way: its own, the node's, or one that is drawn.
func (c *Config) seedFor(cfg *netem.Config) uint64 {
	const short = 1_000_000 // somebody may have to type it
	switch {
	case cfg.Seed != 0:
		return cfg.Seed
	case c.Seed != 0:
		return c.Seed
	}
	return 1 + rand.Uint64N(short)
}

// impairable returns what impairs a device, made when it is asked for first.
func (ds *Devices) impairable(token int) (*impairing, error) {
	for len(ds.impaired) <= token {
		ds.impaired = append(ds.impaired, nil)
	}
	if ds.impaired[token] != nil {
		return ds.impaired[token], nil
	}
	m := &impairing{seeds: map[int][2]uint64{}}
	var list []link.Impairment
	for i, d := range ds.byIface {
		if d == token && ds.attached[i] {
			m.faces = append(m.faces, i)
			list = append(list, link.Impairment{Iface: i, Stream: netem.Streams(1)})
		}
	}
	var err error
	if m.device, err = link.Impair(ds.list[token], ds.node.Time.now, list...); err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	ds.impaired[token] = m
	return m, nil
}

// Impair has an interface do something to packets in a direction; empty: in both. The loop's.
func (ds *Devices) Impair(i int, way control.Way, cfg *netem.Config) error {
	return ds.impair(ds.byIface[i], i, pick(way, cfg))
}

// Impaired is what impairs the device of an interface; nil: nothing ever has. The loop's.
func (ds *Devices) Impaired(i int) *link.Impaired {
	if m := ds.impairingOf(i); m != nil {
		return m.device
	}
	return nil
}

// Seed is the seed of one direction of an interface that is impaired. The loop's.
func (ds *Devices) Seed(i int, way control.Way) uint64 {
	return ds.impairingOf(i).seeds[i][slices.Index(ways[:], way)]
}

// impairingOf is what impairs the device of an interface; nil: nothing ever has.
func (ds *Devices) impairingOf(i int) *impairing {
	if token := ds.byIface[i]; token < len(ds.impaired) {
		return ds.impaired[token]
	}
	return nil
}

// held is when a device hands over next what it holds back.
func (ds *Devices) held() clock.Time {
	first := clock.Never
	for _, m := range ds.impaired {
		if m != nil && m.active {
			first = clock.Earliest(first, m.device.Deadline())
		}
	}
	return first
}

// ripe has the next turn read the devices that hold something that is due. One that has
// nothing left to do steps out of the packets' way.
func (ds *Devices) ripe(tokens []int) []int {
	for token, m := range ds.impaired {
		if m == nil || !m.active {
			continue
		}
		if m.device.Deadline().Due(ds.node.Time.now()) {
			tokens = appendToken(tokens, token)
		} else if m.device.Idle() {
			m.active = false
			ds.list[token] = m.device.Unwrap()
		}
	}
	return tokens
}

// ParseImpairment reads words that describe a link, and the files of a folder that
// they name.
func ParseImpairment(words string, folder *files.Folder) (netem.Config, error) {
	return netem.ParseWith(words, func(name string) (string, error) {
		return readDistribution(folder, name)
	})
}

// maxDistribution is more than any table of tc's has, in bytes.
const maxDistribution = 256 << 10

// readDistribution reads a file of tc's with a distribution.
func readDistribution(folder *files.Folder, name string) (string, error) {
	f, _, err := folder.Read(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := files.All(name, f, maxDistribution)
	return string(text), err
}
