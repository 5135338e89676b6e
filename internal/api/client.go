package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"reflect"
	"syscall"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
)

// These are timeouts of a client.
const (
	dialTime = 5 * time.Second
	// stopTime is how long a stopped command may take to return its result so far.
	stopTime = 5 * time.Second
)

// ErrGone is wrapped by errors about a node that does not answer.
var ErrGone = errors.New("the node does not answer")

// Client is a control.Operator for a node behind a Server. It is safe for concurrent use.
type Client struct {
	base  string // base URL: http://HOST/v1
	at    string // the socket or URL, as errors name it
	node  string
	token string
	here  bool // the node runs on this machine and has the same files
	http  *http.Client
	lost  chan struct{}
}

// Endpoint is the address of a Server: a Socket, or a URL and a Token.
type Endpoint struct {
	Socket string // path of a Unix socket
	Away   bool   // the Socket's node runs on another machine, and opens files there
	URL    string // address of the server: http://HOST:PORT
	Token  string
}

// NewClient returns a client for a node of a server. It does not connect yet.
func NewClient(e Endpoint, node string) *Client {
	c := &Client{
		at: cmp.Or(e.Socket, e.URL), node: node, token: e.Token, lost: make(chan struct{}, 1),
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: idleTime / 2}
	dialer := net.Dialer{Timeout: dialTime}
	if e.Socket != "" {
		c.base, c.here = "http://localhost/v1", !e.Away
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", e.Socket)
		}
	} else {
		c.base = e.URL + "/v1"
		transport.DialContext = dialer.DialContext
	}
	c.http = &http.Client{Transport: transport}
	return c
}

// fresh returns a copy of the client with a Lost channel of its own.
func (c *Client) fresh() *Client {
	other := *c
	other.lost = make(chan struct{}, 1)
	return &other
}

// Close closes the client's idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Lost receives a value when the connection of Watch breaks, usually because the node has stopped.
func (c *Client) Lost() <-chan struct{} { return c.lost }

// Process returns information on the server's process.
func (c *Client) Process(ctx context.Context) (p Process, err error) {
	err = c.get(ctx, "/process", &p)
	return p, err
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	resp, err := c.send(ctx, http.MethodGet, path, typeJSON, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return c.gone(ctx, err)
	}
	return nil
}

// Do implements control.Operator.
func (c *Client) Do(ctx context.Context, req any) (any, error) {
	k, ok := kindsOf[reflect.TypeOf(req)]
	if !ok {
		return nil, fmt.Errorf("request %T: %w", req, control.ErrUnsupported)
	}
	request := reflect.New(k.Request).Elem()
	request.Set(reflect.ValueOf(req))
	if err := c.settle(ctx, k, request); err != nil {
		return nil, err
	}
	text, err := json.Marshal(request.Interface())
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", k.Name, control.ErrUsage, err)
	}
	answer := reflect.New(k.Answer)
	record, _ := req.(control.Record)
	switch {
	case record.Piece != nil && record.File == "" && !record.Lines:
		err = c.record(ctx, request, record.Begun, record.Piece, answer)
	case streams(k):
		err = c.follow(ctx, k, request, text, answer)
	default:
		err = c.ask(ctx, k, text, answer)
	}
	if err != nil {
		return nil, err
	}
	return answer.Elem().Interface(), nil
}

// settle makes the file names of a request relative to the directory in which the node opens files.
// Before, they are relative to the client's directory. settle does not change names that came
// through another server.
func (c *Client) settle(ctx context.Context, k *control.Kind, request reflect.Value) error {
	if !c.here || files.Of(ctx).Confined() {
		return nil
	}
	folder, asked := "", false
	for _, name := range fileNames(k, request) {
		if *name == "" {
			continue
		}
		if !asked {
			p, err := c.Process(ctx)
			if err != nil {
				return err
			}
			folder, asked = p.Files, true
		}
		if folder == "" {
			return nil
		}
		below, err := relativePath(folder, *name)
		if err != nil {
			return err
		}
		if !filepath.IsLocal(below) {
			return fmt.Errorf("%s: %w: node %s opens only files below %s; start it with "+
				"--files DIR to choose another folder", *name, control.ErrUsage, c.node, folder)
		}
		*name = below
	}
	return nil
}

// relativePath returns a path relative to a directory.
func relativePath(folder, path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	return filepath.Rel(folder, path)
}

// command returns the URL path of a request.
func (c *Client) command(k *control.Kind) string {
	return "/nodes/" + url.PathEscape(c.node) + "/commands/" + k.Name
}

// ask sends a request and waits for its answer.
func (c *Client) ask(ctx context.Context, k *control.Kind, text []byte, into reflect.Value) error {
	resp, err := c.send(ctx, http.MethodPost, c.command(k), typeJSON, text)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(into.Interface()); err != nil {
		return c.gone(ctx, err)
	}
	return nil
}

// send sends a request and returns the response with its header. A problem document becomes an
// error.
func (c *Client) send(
	ctx context.Context, method, path, accept string, text []byte,
) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accept)
	if len(text) > 0 {
		r.Header.Set("Content-Type", typeJSON)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, c.gone(ctx, err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	var p Problem
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if err != nil {
		return nil, c.gone(ctx, err)
	}
	if json.Unmarshal(body, &p) != nil || p.Type == "" {
		return nil, fmt.Errorf("%s: unexpected HTTP answer %q: is it a tidepool node?", c.at,
			resp.Status)
	}
	return nil, &p
}

// gone converts the error of a failed request.
func (c *Client) gone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if cause, ok := errors.AsType[*url.Error](err); ok {
		err = cause.Err // a caller of an operator does not need the method and URL
	}
	if cause, ok := errors.AsType[*net.OpError](err); ok && cause.Op == "dial" {
		if system, ok := errors.AsType[syscall.Errno](err); ok {
			err = fmt.Errorf("%w at %s", system, c.at)
		}
		if !c.here && filepath.IsAbs(c.at) { // ssh forwards this socket to another machine
			err = fmt.Errorf("its host is unreachable: %w", err)
		}
	}
	return fmt.Errorf("%s: %w: %w", cmp.Or(c.node, c.at), ErrGone, err)
}
