package adapters

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/tidepool-net/tidepool/internet"
)

// etcdPeer is a node of etcd's raft. The node leaves messages and storage to its user. Its log
// survives crashes.
type etcdPeer struct {
	host    *internet.Host
	id      uint64
	storage *raft.MemoryStorage
	node    raft.Node
	queues  []chan *raftpb.Message // queues to the peers, indexed by ID - 1
	done    chan struct{}
	ended   sync.WaitGroup

	mu      sync.Mutex
	applied []string
}

const etcdPort = 2380

// start starts the node, with the list of peers the first time, and without it after a crash.
func (p *etcdPeer) start(peers []raft.Peer) {
	config := &raft.Config{
		ID: p.id, ElectionTick: 10, HeartbeatTick: 1, Storage: p.storage, MaxSizePerMsg: 1 << 16,
		MaxInflightMsgs: 64, CheckQuorum: true, PreVote: true,
		Logger: &raft.DefaultLogger{Logger: log.New(io.Discard, "", 0)},
	}
	if p.done, p.applied = make(chan struct{}), nil; peers != nil {
		p.node = raft.StartNode(config, peers)
	} else {
		p.node = raft.RestartNode(config)
	}
	for i := range p.queues {
		p.queues[i] = make(chan *raftpb.Message, 256)
		if to := fmt.Sprintf("n%d:%d", i+1, etcdPort); uint64(i+1) != p.id {
			p.ended.Go(func() { p.send(to, p.queues[i]) })
		}
	}
	node := p.node
	main := func(h *internet.Host) {
		// receives until the connection breaks
		accept(h, etcdPort, func(c net.Conn) { _ = receive(c, node) })
	}
	if peers != nil {
		p.host.Go(main)
	} else {
		p.host.Restart(main)
	}
	p.ended.Go(p.run)
}

// run carries out what raft asks for (go.etcd.io/raft/v3's doc.go).
func (p *etcdPeer) run() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.node.Tick()
		case ready := <-p.node.Ready():
			if !raft.IsEmptyHardState(ready.HardState) {
				_ = p.storage.SetHardState(ready.HardState) // never fails
			}
			// fails only for entries older than a snapshot, and there are no snapshots
			_ = p.storage.Append(ready.Entries)
			for _, m := range ready.Messages {
				select {
				case p.queues[m.GetTo()-1] <- m:
				default:
					p.node.ReportUnreachable(m.GetTo())
				}
			}
			p.apply(ready.CommittedEntries)
			p.node.Advance()
		case <-p.done:
			return
		}
	}
}

func (p *etcdPeer) apply(list []*raftpb.Entry) {
	for _, e := range list {
		switch e.GetType() {
		case raftpb.EntryNormal:
			if len(e.Data) > 0 {
				p.mu.Lock()
				p.applied = append(p.applied, string(e.Data))
				p.mu.Unlock()
			}
		case raftpb.EntryConfChange:
			change := new(raftpb.ConfChange)
			if proto.Unmarshal(e.Data, change) == nil {
				p.node.ApplyConfChange(change)
			}
		default: // other entries have no waiting caller
		}
	}
}

func (p *etcdPeer) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clip(p.applied)
}

// send sends messages over a connection. If the connection breaks, it opens a new one, and messages
// are lost.
func (p *etcdPeer) send(to string, queue chan *raftpb.Message) {
	var c net.Conn
	for {
		select {
		case m := <-queue:
			var err error
			if c == nil {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				c, err = p.host.DialContext(ctx, "tcp", to)
				cancel()
			}
			if err == nil {
				err = write(c, m)
			}
			if err != nil && c != nil {
				_ = c.Close()
				c = nil
			}
		case <-p.done:
			if c != nil {
				_ = c.Close()
			}
			return
		}
	}
}

func write(c net.Conn, m *raftpb.Message) error {
	body, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	_, err = c.Write(append(binary.AppendUvarint(nil, uint64(len(body))), body...))
	return err
}

// receive passes the messages from a connection to the node.
func receive(c net.Conn, node raft.Node) error {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		// A running peer sends a heartbeat or an answer at least this often.
		if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			return err
		}
		n, err := binary.ReadUvarint(in)
		if err != nil {
			return err
		}
		body, m := make([]byte, n), new(raftpb.Message)
		if _, err := io.ReadFull(in, body); err != nil {
			return err
		}
		if err := proto.Unmarshal(body, m); err != nil {
			return err
		}
		if err := node.Step(context.Background(), m); err != nil && !errors.Is(err, raft.ErrStepPeerNotFound) {
			return err
		}
	}
}

func (p *etcdPeer) stop() {
	close(p.done)
	p.ended.Wait()
	p.node.Stop()
	p.node = nil
}

// etcdCluster starts a cluster on the hosts n1 to nN.
func etcdCluster(t *testing.T, w *internet.World, n int) []*etcdPeer {
	t.Helper()
	var peers []raft.Peer
	for i := range n {
		peers = append(peers, raft.Peer{ID: uint64(i + 1)})
	}
	var list []*etcdPeer
	for i := range n {
		p := &etcdPeer{
			host: w.Host(fmt.Sprintf("n%d", i+1)), id: peers[i].ID, storage: raft.NewMemoryStorage(),
			queues: make([]chan *raftpb.Message, n),
		}
		p.start(peers)
		list = append(list, p)
	}
	t.Cleanup(func() {
		for _, p := range list {
			if p.node != nil {
				p.stop()
			}
		}
	})
	return list
}

// etcdPropose writes an entry at the leader, and waits until that node has applied it. It returns
// nil if that takes too long.
func etcdPropose(t *testing.T, list []*etcdPeer, entry string, wait time.Duration) *etcdPeer {
	t.Helper()
	i := slices.IndexFunc(list, func(p *etcdPeer) bool {
		return p.node != nil && p.node.Status().RaftState == raft.StateLeader
	})
	if i < 0 {
		return nil
	}
	p := list[i]
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	if p.node.Propose(ctx, []byte(entry)) != nil {
		return nil
	}
	for began := time.Now(); time.Since(began) < wait; time.Sleep(5 * time.Millisecond) {
		// An older entry whose proposal took too long may come after it.
		if all := p.all(); slices.Contains(all[max(0, len(all)-10):], entry) {
			return p
		}
	}
	return nil
}

// Three nodes agree on the written entries, although each leader in turn crashes.
func TestEtcdRaft(t *testing.T) {
	internet.Test(t, star(3, "delay 5ms loss 1%"), func(t *testing.T, w *internet.World) {
		list := etcdCluster(t, w, 3)
		etcdFor(t, list, time.Minute, 20*time.Second, 100*time.Millisecond)
	})
}

// etcdFor writes an entry after each pause. At the end of each period it crashes the leader for 5
// s.
func etcdFor(t *testing.T, list []*etcdPeer, lasts, period, pause time.Duration) {
	t.Helper()
	var acknowledged []string
	var down *etcdPeer
	began, crashed := time.Now(), time.Now()
	failed, crashes := 0, 0
	for i := 0; time.Since(began) < lasts; i++ {
		entry := fmt.Sprintf("entry %d", i)
		p := etcdPropose(t, list, entry, 3*time.Second)
		if p != nil {
			acknowledged = append(acknowledged, entry)
		} else {
			failed++
		}
		switch {
		case down != nil && time.Since(crashed) > 5*time.Second:
			down.start(nil)
			down = nil
		case down == nil && p != nil && time.Since(crashed) > period:
			crashes, crashed, down = crashes+1, time.Now(), p
			p.host.Crash()
			p.stop()
		}
		time.Sleep(pause)
	}
	if down != nil {
		down.start(nil)
	}
	time.Sleep(10 * time.Second) // followers learn of the last commit with the next heartbeat
	var logs [][]string
	for _, p := range list {
		logs = append(logs, p.all())
	}
	agree(t, logs, acknowledged)
	t.Logf("%v: %d entries acknowledged, %d failed, %d leaders crashed", time.Since(began),
		len(acknowledged), failed, crashes)
}
