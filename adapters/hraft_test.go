package adapters

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internet"
)

const raftPort = 8300

// raftStream is a raft.StreamLayer on a host.
type raftStream struct {
	net.Listener
	host *internet.Host
	gone func() // the host has crashed, or the listener is closed
}

func (s raftStream) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil {
		s.gone()
	}
	return c, err
}

func (s raftStream) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.host.DialContext(ctx, "tcp", string(to))
}

func (s raftStream) Addr() net.Addr {
	return &net.TCPAddr{IP: s.host.Addrs()[0].AsSlice(), Port: raftPort}
}

// entries is a state machine that records what it applied.
type entries struct {
	mu   sync.Mutex
	list []string
}

func (e *entries) Apply(l *raft.Log) any {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, string(l.Data))
	return len(e.list)
}

func (e *entries) Snapshot() (raft.FSMSnapshot, error) { return nil, fmt.Errorf("not needed") }
func (e *entries) Restore(r io.ReadCloser) error       { return r.Close() }

func (e *entries) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clip(e.list)
}

// peer is a raft node on a host. Its log survives crashes, its state machine does not.
type peer struct {
	host  *internet.Host
	store *raft.InmemStore

	mu      sync.Mutex
	raft    *raft.Raft // nil: the node is not running
	applied *entries
	streams *raft.NetworkTransport
	gone    chan struct{}
}

func (p *peer) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	ln, err := p.host.Listen("tcp", fmt.Sprintf(":%d", raftPort))
	if err != nil {
		return err
	}
	logger, gone := hclog.NewNullLogger(), make(chan struct{})
	p.gone = gone
	p.streams = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream:  raftStream{ln, p.host, sync.OnceFunc(func() { close(gone) })},
		MaxPool: 3, Timeout: 2 * time.Second, Logger: logger,
	})
	config := raft.DefaultConfig()
	config.LocalID, config.Logger = raft.ServerID(p.host.Name()), logger
	p.applied = new(entries)
	p.raft, err = raft.NewRaft(config, p.applied, p.store, p.store, raft.NewDiscardSnapshotStore(),
		p.streams)
	return err
}

func (p *peer) running() *raft.Raft {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.raft
}

// crash crashes the host and then ends its program.
func (p *peer) crash(t *testing.T) {
	t.Helper()
	p.host.Crash()
	p.stop(t)
}

func (p *peer) stop(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	r := p.raft
	p.raft = nil
	p.mu.Unlock()
	if r == nil {
		return
	}
	assert.NoError(t, r.Shutdown().Error())
	assert.NoError(t, p.streams.Close())
	p.streams.CloseStreams() // Close would leave the pool's connections open
}

// raftCluster starts a cluster on the hosts n1 to nN.
func raftCluster(t *testing.T, w *internet.World, n int) []*peer {
	t.Helper()
	var list []*peer
	var all raft.Configuration
	for i := range n {
		p := &peer{host: w.Host(fmt.Sprintf("n%d", i+1)), store: raft.NewInmemStore()}
		require.NoError(t, p.start())
		list = append(list, p)
		all.Servers = append(all.Servers, raft.Server{
			ID:      raft.ServerID(p.host.Name()),
			Address: raft.ServerAddress(raftStream{host: p.host}.Addr().String()),
		})
	}
	require.NoError(t, list[0].raft.BootstrapCluster(all).Error())
	t.Cleanup(func() {
		for _, p := range list {
			p.stop(t)
		}
	})
	return list
}

// leader waits for a node that leads. A leader that is cut off does not notice that at once.
func leader(t *testing.T, list []*peer) *peer {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(50 * time.Millisecond) {
		for _, p := range list {
			if r := p.running(); r != nil && r.State() == raft.Leader {
				return p
			}
		}
	}
	require.Fail(t, "no leader after a minute")
	return nil
}

// Five nodes agree on the written entries, although each leader in turn crashes. The cluster loses
// no acknowledged entry.
func TestHashicorpRaft(t *testing.T) {
	internet.Test(t, star(5, "delay 5ms loss 1%"), func(t *testing.T, w *internet.World) {
		raftFor(t, w, time.Minute, 20*time.Second, 100*time.Millisecond)
	})
}

// raftFor writes an entry after each pause. At the end of each period it crashes the leader for 5
// s.
func raftFor(t *testing.T, w *internet.World, lasts, period, pause time.Duration) {
	t.Helper()
	list := raftCluster(t, w, 5)
	began, crashed := time.Now(), time.Now()
	var down *peer
	var acknowledged []string
	crashes, failed := 0, 0
	for i := 0; time.Since(began) < lasts; i++ {
		p := leader(t, list)
		entry := fmt.Sprintf("entry %d", i)
		if err := p.raft.Apply([]byte(entry), time.Second).Error(); err == nil {
			acknowledged = append(acknowledged, entry)
		} else {
			failed++
		}
		switch {
		case down != nil && time.Since(crashed) > 5*time.Second:
			down.host.Restart(nil)
			require.NoError(t, down.start())
			down = nil
		case down == nil && time.Since(crashed) > period:
			crashes, crashed, down = crashes+1, time.Now(), p
			p.crash(t)
		}
		time.Sleep(pause)
	}
	if down != nil {
		down.host.Restart(nil)
		require.NoError(t, down.start())
	}
	require.NoError(t, leader(t, list).raft.Barrier(time.Minute).Error())
	time.Sleep(10 * time.Second) // followers learn of the last commit with the next heartbeat
	var logs [][]string
	for _, p := range list {
		logs = append(logs, p.applied.all())
	}
	agree(t, logs, acknowledged)
	t.Logf("%v: %d entries acknowledged, %d failed, %d leaders crashed", time.Since(began),
		len(acknowledged), failed, crashes)
}

// agree checks that all nodes applied the same entries, and that the acknowledged entries are among
// them, in order.
func agree(t *testing.T, logs [][]string, acknowledged []string) {
	t.Helper()
	for i, log := range logs {
		assert.True(t, slices.Equal(logs[0], log), "n1 has %d entries, n%d has %d, or others",
			len(logs[0]), i+1, len(log))
	}
	for _, entry := range logs[0] {
		if len(acknowledged) > 0 && entry == acknowledged[0] {
			acknowledged = acknowledged[1:]
		}
	}
	assert.Empty(t, acknowledged, "acknowledged and lost, or out of order")
}

// raftFaults writes while nodes crash and links are cut or lossy. In the end, all nodes have
// applied the same entries, and no acknowledged entry is lost.
func raftFaults(t *testing.T, w *internet.World) {
	list := raftCluster(t, w, 3)
	for _, p := range list {
		started, turn := true, make(chan struct{}, 1)
		p.host.Go(func(*internet.Host) {
			turn <- struct{}{} // the last program may not have ended yet
			defer func() { <-turn }()
			if !started && p.start() != nil {
				return
			}
			started = false
			<-p.gone
			p.stop(t)
		})
	}
	var acknowledged []string
	i := 0
	faultyMinutes(t, w, func(ctx context.Context) error {
		i++
		for _, p := range list {
			r := p.running()
			if r == nil || r.State() != raft.Leader {
				continue
			}
			entry, result := fmt.Sprintf("entry %d", i), make(chan error, 1)
			go func() { result <- r.Apply([]byte(entry), time.Second).Error() }()
			select {
			case err := <-result:
				if err == nil {
					acknowledged = append(acknowledged, entry)
				}
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return raft.ErrNotLeader
	})
	time.Sleep(20 * time.Second) // followers learn of the last commit with the next heartbeat
	var logs [][]string
	for _, p := range list {
		logs = append(logs, p.applied.all())
	}
	agree(t, logs, acknowledged)
}
