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

// impairedDevice impairs a device. Packets pass through it only while it is active.
type impairedDevice struct {
	device *link.Impaired
	faces  []int
	seeds  map[int][2]uint64 // seeds of each interface, out and in
	active bool
}

// These are the indexes of the directions in arrays.
const (
	wayOut = iota
	wayIn
)

var ways = [...]control.Way{wayOut: control.WayOut, wayIn: control.WayIn}

// impairLinks impairs a new device as the links' configuration says.
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

func pick(way control.Way, cfg *netem.Config) (both [2]*netem.Config) {
	if way != control.WayIn {
		both[wayOut] = cfg
	}
	if way != control.WayOut {
		both[wayIn] = cfg
	}
	return both
}

// impair impairs an interface in each direction whose configuration is not nil.
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
		name := ds.node.IfaceName(i)
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

// seedFor returns the seed of a direction: the configured one, one from the node's seed, or a
// random one.
func (c *Config) seedFor(cfg *netem.Config) uint64 {
	const short = 1_000_000 // a user can type seeds below this number
	switch {
	case cfg.Seed != 0:
		return cfg.Seed
	case c.Seed != 0:
		return c.Seed
	}
	return 1 + rand.Uint64N(short)
}

// impairable returns the device's impairedDevice. It creates it on the first call.
func (ds *Devices) impairable(token int) (*impairedDevice, error) {
	for len(ds.impaired) <= token {
		ds.impaired = append(ds.impaired, nil)
	}
	if ds.impaired[token] != nil {
		return ds.impaired[token], nil
	}
	m := &impairedDevice{seeds: map[int][2]uint64{}}
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

// Impair impairs an interface in one direction, or both if way is empty. Loop only.
func (ds *Devices) Impair(i int, way control.Way, cfg *netem.Config) error {
	return ds.impair(ds.byIface[i], i, pick(way, cfg))
}

// Impaired returns the impairments of an interface's device, or nil if it never had any. Loop only.
func (ds *Devices) Impaired(i int) *link.Impaired {
	if m := ds.impairedDeviceOf(i); m != nil {
		return m.device
	}
	return nil
}

// Seed returns the seed of a direction of an impaired interface. Loop only.
func (ds *Devices) Seed(i int, way control.Way) uint64 {
	return ds.impairedDeviceOf(i).seeds[i][slices.Index(ways[:], way)]
}

// impairedDeviceOf returns the impairedDevice of an interface's device, or nil if it never had one.
func (ds *Devices) impairedDeviceOf(i int) *impairedDevice {
	if token := ds.byIface[i]; token < len(ds.impaired) {
		return ds.impaired[token]
	}
	return nil
}

// deliverAt returns the time at which an impaired device delivers its next packet.
func (ds *Devices) deliverAt() clock.Time {
	first := clock.Never
	for _, m := range ds.impaired {
		if m != nil && m.active {
			first = clock.Earliest(first, m.device.Deadline())
		}
	}
	return first
}

// addDue adds the devices with packets that are due. It deactivates those without impairments.
func (ds *Devices) addDue(tokens []int) []int {
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

// ParseImpairment parses impairments in tc's syntax. They can name files in folder.
func ParseImpairment(words string, folder *files.Folder) (netem.Config, error) {
	return netem.ParseWith(words, func(name string, most int64) ([]byte, error) {
		f, _, err := folder.Read(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return files.All(name, f, most)
	})
}
