// Package bridge joins pages of the playground to a network of processes. A page becomes the node
// of an .lnx file. The bridge binds that node's UDP addresses and carries its packets through a
// WebSocket (RFC 6455). A binary message contains the number of an interface and an IP packet.
package bridge

import (
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // RFC 6455 §4.2.2 has no other
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// Bridge is a server for pages. Flags adds its options to a command, Open starts it and Close ends
// it.
type Bridge struct {
	names   []string // .lnx files of the nodes
	origins []string // origins of pages that are allowed, besides those of this machine
	listen  string
	tell    func(format string, args ...any)

	nodes  map[string]*place
	token  string
	server *http.Server    // nil: the bridge is not open
	ends   context.Context //nolint:containedctx // lasts as long as the bridge
	finish context.CancelFunc
	busy   sync.WaitGroup
}

// place is a node that a page can become.
type place struct {
	config *lnx.Config
	text   string
	taken  atomic.Bool
}

// Flags adds the options to those of a command.
func (b *Bridge) Flags(f *pflag.FlagSet) {
	f.StringArrayVar(&b.names, "bridge", nil,
		"let a page of the playground be the node of `FILE.lnx`; may be repeated")
	f.StringVar(&b.listen, "bridge-listen", "0", "wait for such pages at `PORT` of the loopback")
	f.StringArrayVar(&b.origins, "bridge-origin", nil,
		"let pages from `https://SITE` join, as well as pages from this machine")
}

// Open starts to wait for pages, if there are nodes for them. The members are the nodes of the
// network that the pages join; nil stands for an unknown network. tell gets messages for the user.
func (b *Bridge) Open(
	ctx context.Context, members []*lnx.Config, tell func(format string, args ...any),
) error {
	if len(b.names) == 0 {
		return nil
	}
	b.tell, b.nodes = tell, map[string]*place{}
	for _, name := range b.names {
		if err := b.add(name); err != nil {
			return fmt.Errorf("--bridge: %w", err)
		}
	}
	if err := b.check(members); err != nil {
		return fmt.Errorf("--bridge: %w", err)
	}
	for _, o := range b.origins {
		if u, err := url.Parse(o); err != nil || u.Host == "" || o != u.Scheme+"://"+u.Host {
			return fmt.Errorf("--bridge-origin %q: must be https://SITE, without a path", o)
		}
	}
	l, err := api.ListenTCP(ctx, b.listen)
	if err != nil {
		return fmt.Errorf("--bridge-listen %w", err)
	}
	b.token = l.Token()
	b.ends, b.finish = context.WithCancel(context.WithoutCancel(ctx))
	b.server = &http.Server{
		Handler: b, ReadHeaderTimeout: 3 * time.Second, MaxHeaderBytes: 16 << 10,
	}
	b.busy.Go(func() { _ = b.server.Serve(l) }) // runs until Close
	for _, name := range b.names {
		node := nodeOf(name)
		tell("bridge: a page of the playground with #join=%s/%s/%s at the end of its address is %s",
			l.Addr(), node, b.token, node)
	}
	return nil
}

func (b *Bridge) add(name string) error {
	text, err := files.Text(name, files.MaxText)
	if err != nil {
		return err
	}
	c, err := lnx.Parse(name, text)
	if err != nil {
		return err
	}
	node := nodeOf(name)
	for i := range c.Interfaces {
		f := &c.Interfaces[i]
		if f.Tun != nil {
			return fmt.Errorf("%s: a page has no TUN devices: remove %s", name, f.Name)
		}
		if n := len(neighbors(c, f)); n != 1 {
			return fmt.Errorf("%s: %s has %d neighbors: a page's link must have 1", name, f.Name, n)
		}
	}
	if b.nodes[node] != nil {
		return fmt.Errorf("%s: another file describes node %s: rename one", name, node)
	}
	b.nodes[node] = &place{config: c, text: "-- " + node + ".lnx --\n" + string(text)}
	return nil
}

// check compares the files with the network, and reports nodes that are already running.
func (b *Bridge) check(members []*lnx.Config) error {
	all := slices.DeleteFunc(slices.Clone(members), func(c *lnx.Config) bool {
		// only a stopped node can be a page: otherwise its addresses are in use
		return c != nil && b.nodes[c.Name] != nil
	})
	for _, name := range b.names {
		links, err := b.nodes[nodeOf(name)].open()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		closeAll(links)
		all = append(all, b.nodes[nodeOf(name)].config)
	}
	errs := slices.DeleteFunc(lnx.CheckNetwork(all...), func(e *lnx.Error) bool { return e.Note })
	if err := errs.Err(); err != nil {
		return err
	}
	for _, name := range b.names {
		if !slices.Contains(all, nil) && !slices.ContainsFunc(all, b.nodes[nodeOf(name)].meets) {
			return fmt.Errorf("%s: none of its neighbors is a node of this network", name)
		}
	}
	return nil
}

// meets reports whether another node has the UDP address of a neighbor.
func (p *place) meets(other *lnx.Config) bool {
	return slices.ContainsFunc(p.config.Neighbors, func(n lnx.Neighbor) bool {
		return slices.ContainsFunc(other.Interfaces, func(f lnx.Interface) bool {
			return f.Tun == nil && f.UDP.Key() == n.UDP.Key()
		})
	})
}

func nodeOf(name string) string { return strings.TrimSuffix(filepath.Base(name), ".lnx") }

func neighbors(c *lnx.Config, f *lnx.Interface) (list []*lnx.Neighbor) {
	for i := range c.Neighbors {
		if c.Neighbors[i].Iface == f.Name {
			list = append(list, &c.Neighbors[i])
		}
	}
	return list
}

// Close ends the connections of the pages.
func (b *Bridge) Close() {
	if b.server == nil {
		return
	}
	b.finish()
	_ = b.server.Close()
	b.busy.Wait()
}

// errRefused marks requests from a host or site that is not allowed.
var errRefused = errors.New("refused")

// ServeHTTP implements http.Handler: it checks a request and turns the connection into a WebSocket.
func (b *Bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := b.admit(r); err != nil {
		b.tell("bridge: %v", err)
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	key, err := base64.StdEncoding.DecodeString(r.Header.Get("Sec-WebSocket-Key"))
	if r.Method != http.MethodGet || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") ||
		r.Header.Get("Sec-WebSocket-Version") != "13" || err != nil || len(key) != 16 {
		w.Header().Set("Sec-WebSocket-Version", "13")
		http.Error(w, "this address is for a page of the playground: it needs a WebSocket",
			http.StatusUpgradeRequired)
		return
	}
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + //nolint:gosec // see above
		"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	head := w.Header()
	head.Set("Connection", "Upgrade")
	head.Set("Upgrade", "websocket")
	head.Set("Sec-WebSocket-Accept", base64.StdEncoding.EncodeToString(sum[:]))
	head.Set("Sec-WebSocket-Protocol", protocol)
	w.WriteHeader(http.StatusSwitchingProtocols)
	stream, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the client is gone
	}
	b.busy.Go(func() {
		s := newSocket(stream, buffered.Reader)
		s.close(b.serve(s, strings.TrimPrefix(r.URL.Path, "/"), token(r)))
	})
}

// protocol is the subprotocol of the WebSocket. The client offers the token as another subprotocol,
// because a page cannot set other headers, and a token in the URL would be logged.
const protocol = "tidepool"

func token(r *http.Request) string {
	offered := strings.Split(strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ","), ",")
	if len(offered) == 2 && strings.TrimSpace(offered[0]) == protocol {
		return strings.TrimSpace(offered[1])
	}
	return ""
}

// admit checks where a request comes from. If another site has a DNS name for this address, the
// Host header reveals that.
func (b *Bridge) admit(r *http.Request) error {
	if !local(r.Host) {
		return fmt.Errorf("%w: Host %q is not this machine's loopback", errRefused, r.Host)
	}
	o := r.Header.Get("Origin")
	if o == "" || slices.Contains(b.origins, o) {
		return nil
	}
	if u, err := url.Parse(o); err == nil && local(u.Host) {
		return nil
	}
	return fmt.Errorf("%w a page of %q: `--bridge-origin %s` lets it join", errRefused, o, o)
}

func local(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// serve runs a page as a node until the page or the bridge ends. The page gets the error as the
// reason.
func (b *Bridge) serve(s *socket, node, token string) error {
	if subtle.ConstantTimeCompare([]byte(token), []byte(b.token)) != 1 {
		return errors.New("the token is wrong: use the address that `node net serve` printed")
	}
	p := b.nodes[node]
	if p == nil {
		return fmt.Errorf("no file of --bridge describes node %s", node)
	}
	if p.taken.Swap(true) {
		return fmt.Errorf("another page already runs node %s", node)
	}
	links, err := p.open()
	if err != nil {
		p.taken.Store(false)
		return err
	}
	began := time.Now()
	b.tell("bridge: a page has joined as %s", node)
	ctx, cancel := context.WithCancel(b.ends)
	var wg sync.WaitGroup
	for i, l := range links {
		wg.Go(func() { s.from(i, l) })
	}
	wg.Go(func() { s.keep(ctx) })
	ended := errors.New("`node net serve` has ended")
	stop := context.AfterFunc(b.ends, func() { s.close(ended) })
	defer stop()
	if err = s.hello(node, p.text); err == nil {
		err = s.to(links)
	}
	cancel()
	closeAll(links)
	wg.Wait()
	if b.ends.Err() != nil {
		err = ended
	}
	p.taken.Store(false)
	b.tell("bridge: %s has left after %v: %v", node, time.Since(began).Round(time.Second), err)
	return err
}

func closeAll(links []*net.UDPConn) {
	for _, l := range links {
		_ = l.Close()
	}
}

// holder returns the process that uses a UDP address; empty: unknown.
func holder(own *net.UDPAddr) string {
	at := own.AddrPort()
	return link.Holder("udp", netip.AddrPortFrom(at.Addr().Unmap(), at.Port()))
}

// open opens the UDP sockets of the interfaces, each connected to its neighbor: the kernel drops
// the packets of others.
func (p *place) open() (links []*net.UDPConn, err error) {
	defer func() {
		if err != nil {
			closeAll(links)
		}
	}()
	for i := range p.config.Interfaces {
		f := &p.config.Interfaces[i]
		own, err := net.ResolveUDPAddr("udp", f.UDP.String())
		if err != nil {
			return links, fmt.Errorf("%s: %w", f.Name, err)
		}
		to, err := net.ResolveUDPAddr("udp", neighbors(p.config, f)[0].UDP.String())
		if err != nil {
			return links, fmt.Errorf("%s: %w", f.Name, err)
		}
		l, err := net.DialUDP("udp", own, to)
		if err != nil {
			who := cmp.Or(holder(own), "the process that runs this node")
			return links, fmt.Errorf("%s: %w: stop %s", f.Name, err, who)
		}
		links = append(links, l)
	}
	return links, nil
}
