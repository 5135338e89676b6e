package services

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// fetch requests a page over the virtual network.
func (h *Host) fetch(ctx context.Context, r control.Fetch) (control.Page, error) {
	u, err := pageURL(r.URL)
	if err != nil {
		return control.Page{}, fmt.Errorf("fetch %s: %w", r.URL, err)
	}
	if r.Resume && (r.Path == "" || r.Range != "") {
		return control.Page{}, control.Misuse("fetch: resume needs a file and cannot be used " +
			"with a range")
	}
	page := control.Page{URL: u.String(), Path: r.Path}
	start := time.Now()
	if err := h.fetchPage(ctx, &r, &page); err != nil {
		return page, fmt.Errorf("fetch %s: %w", r.URL, err)
	}
	page.Seconds = time.Since(start).Seconds()
	return page, nil
}

// pageURL parses the URL that the operator types.
func pageURL(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	if host, rest, ok := strings.Cut(text, "]"); ok && !strings.Contains(host, "%25") {
		text = strings.Replace(host, "%", "%25", 1) + "]" + rest // address with a zone
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errURL
	}
	if _, _, err := hostPort(u); err != nil {
		return nil, err
	}
	return u, nil
}

var errURL = fmt.Errorf("%w: must be [http://]HOST[:PORT][/PATH], where HOST is an address or a "+
	"name, and an IPv6 address is in brackets", control.ErrUsage)

// hostPort returns the host of a URL, which is an address or a name, and its port.
func hostPort(u *url.URL) (host string, port uint16, err error) {
	n, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16)
	host = u.Hostname()
	a, bad := netip.ParseAddr(host)
	named := bad != nil && isHostName(host) && strings.ContainsFunc(host, unicode.IsLetter)
	if u.Scheme != "http" || err != nil || n == 0 || !named && !control.IsHost(a) {
		return host, 0, errURL
	}
	return host, uint16(n), nil
}

// client returns an HTTP client for the virtual network.
func (h *Host) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression: true, // the digest covers the bytes as sent
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			host, port, err := hostPort(&url.URL{Scheme: "http", Host: addr}) // also for redirects
			if err != nil {
				return nil, err
			}
			c, err := h.dialHost(ctx, host, port)
			if err != nil {
				return nil, err
			}
			c.Guard()
			return c, nil
		},
	}}
}

// dialHost connects to an address, or to the first address of a name that accepts.
func (h *Host) dialHost(ctx context.Context, host string, port uint16) (*node.Conn, error) {
	list := make([]netip.Addr, 1)
	var err error
	if list[0], err = netip.ParseAddr(host); err != nil {
		found, err := h.DNS.resolve(ctx, control.Resolve{Name: host})
		if err != nil {
			return nil, err
		}
		list = found.Addrs
	}
	var first error
	for _, a := range list {
		c, err := h.node.TCP.Dial(ctx, netip.AddrPortFrom(a, port))
		if err == nil {
			return c, nil
		}
		first = cmp.Or(first, control.Reason(err))
	}
	return nil, first
}

func (h *Host) fetchPage(ctx context.Context, r *control.Fetch, page *control.Page) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page.URL, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", control.ErrUsage, err)
	}
	s := &storing{fetch: r, page: page}
	if r.Path != "" {
		s.t = h.newTransfer(ctx, r.Path, false, r.Progress)
		own, leave := h.enter(ctx, s.t, "fetch", 0)
		defer leave()
		if err := s.open(own); err != nil {
			return err
		}
		defer s.file.close()
		req, ctx = req.WithContext(own), own
	}
	req.Header.Set(wantReprDigest, digestKey+"=10")
	switch {
	case r.Range != "":
		req.Header.Set("Range", "bytes="+r.Range)
	case s.offset() > 0:
		req.Header.Set("Range", "bytes="+strconv.FormatInt(s.offset(), 10)+"-")
	}
	client := h.client()
	defer client.CloseIdleConnections()
	answer, err := client.Do(req)
	if err != nil {
		return pageError(ctx, err)
	}
	defer answer.Body.Close()
	page.URL, page.Code, page.Status = answer.Request.URL.String(), answer.StatusCode, answer.Status
	page.Type = answer.Header.Get("Content-Type")
	if page.Path != "" {
		return s.store(ctx, client, answer)
	}
	hash := sha256.New()
	body := io.TeeReader(answer.Body, hash)
	page.Body, err = io.ReadAll(io.LimitReader(body, control.MaxPage))
	page.Bytes = int64(len(page.Body))
	if err == nil {
		var rest int64
		rest, err = io.Copy(io.Discard, body)
		page.Bytes += rest
	}
	if err == nil && answer.StatusCode == http.StatusOK {
		page.Verified, err = compare(answer.Header, hash.Sum(nil))
	}
	if err != nil {
		return fmt.Errorf("%w (%s)", pageError(ctx, err), arrived(page.Bytes, answer.ContentLength))
	}
	return nil
}

// storing stores a page in a file, as recvfile does.
type storing struct {
	fetch *control.Fetch
	page  *control.Page
	file  *target // file for the page; nil: the answer contains the page
	t     *transfer
}

// open opens the file before the request, so that a server sends no data that cannot be stored.
func (s *storing) open(ctx context.Context) (err error) {
	s.file, err = s.t.createTarget(s.fetch.Resume, s.fetch.Overwrite)
	if err != nil {
		return err
	}
	if s.fetch.Resume {
		if err = s.t.resume(ctx, s.file.File, 0); err != nil {
			s.file.close()
		}
	}
	return err
}

// offset returns the number of bytes that an earlier request stored.
func (s *storing) offset() int64 {
	if s.t == nil {
		return 0
	}
	return s.t.result.Offset
}

// store stores the body of a successful answer. The body of an error is discarded.
func (s *storing) store(ctx context.Context, client *http.Client, answer *http.Response) error {
	t, offset, header := s.t, s.offset(), answer.Header
	switch {
	case offset > 0 && answer.StatusCode == http.StatusRequestedRangeNotSatisfiable &&
		answer.Header.Get("Content-Range") == fmt.Sprintf("bytes */%d", offset):
		// The file is already complete. This answer has no digest of it.
		req := answer.Request.Clone(ctx)
		req.Method = http.MethodHead
		req.Header.Del("Range")
		head, err := client.Do(req)
		if err != nil {
			return pageError(ctx, err)
		}
		defer head.Body.Close()
		s.page.Code, s.page.Status = http.StatusOK, "200 OK"
		header, answer.Body, answer.ContentLength = head.Header, http.NoBody, 0
	case offset > 0 && answer.StatusCode == http.StatusPartialContent:
		got := answer.Header.Get("Content-Range")
		if !strings.HasPrefix(got, fmt.Sprintf("bytes %d-", offset)) {
			return fmt.Errorf("the server sends %q, not the bytes from %d", got, offset)
		}
	case answer.StatusCode >= http.StatusBadRequest:
		s.page.Path = "" // nothing was stored
		return nil
	case answer.StatusCode == http.StatusPartialContent:
		header = nil // the digest covers the whole file
	case offset > 0: // the server ignored the range, so start again
		if err := s.again(); err != nil {
			return err
		}
	}
	t.total, t.began = answer.ContentLength, time.Now()
	t.tell()
	err := receiveAll(answer.Body, s.file, t)
	s.page.Bytes = t.result.Bytes
	if err == nil {
		err = s.done(header)
	}
	t.tell()
	if err != nil {
		advice := "`http get -C -o` continues"
		if errors.Is(err, control.ErrMismatch) {
			advice = "get it again with --force"
		}
		return fmt.Errorf("%w (%s; %d bytes are kept in %s: %s)", pageError(ctx, err),
			arrived(t.result.Bytes, t.total), t.result.Offset+t.result.Bytes, s.t.part(), advice)
	}
	return nil
}

// arrived describes how much of a page has arrived. A length of -1 means unknown.
func arrived(bytes, length int64) string {
	if length < 0 {
		return fmt.Sprintf("%d bytes arrived", bytes)
	}
	return fmt.Sprintf("%d of %d bytes arrived", bytes, length)
}

// again discards the stored bytes.
func (s *storing) again() error {
	s.t.result.Offset = 0
	s.t.hash.Reset()
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return s.file.Truncate(0)
}

// done compares the digest of the complete file with the server's, and renames the file.
func (s *storing) done(h http.Header) (err error) {
	s.page.Offset, s.page.SHA256 = s.t.result.Offset, s.t.digest()
	if s.page.Verified, err = compare(h, s.t.hash.Sum(nil)); err != nil {
		return err
	}
	return s.file.publish()
}

// pageError removes the method and URL that net/http adds to an error.
func pageError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return stopError(ctx, err)
	}
	if u, ok := err.(*url.Error); ok { //nolint:errorlint // the outermost alone
		err = u.Err
	}
	return control.ReasonOf(ctx, err)
}
