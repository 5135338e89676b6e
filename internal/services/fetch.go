package services

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// fetch gets a page over the virtual network.
func (h *Host) fetch(ctx context.Context, r control.Fetch) (control.Page, error) {
	u, err := pageURL(r.URL)
	if err != nil {
		return control.Page{}, fmt.Errorf("fetch %s: %w", r.URL, err)
	}
	if r.Resume && (r.Path == "" || r.Range != "") {
		return control.Page{}, control.Misuse("fetch: only a whole file goes on where it was")
	}
	page := control.Page{URL: u.String(), Path: r.Path}
	start := time.Now()
	if err := h.fetchPage(ctx, &r, &page); err != nil {
		return page, fmt.Errorf("fetch %s: %w", r.URL, err)
	}
	page.Seconds = time.Since(start).Seconds()
	return page, nil
}

// pageURL reads what an operator types.
func pageURL(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: want http://ADDR:PORT/PATH", control.ErrUsage)
	}
	if _, err := hostPort(u); err != nil {
		return nil, err
	}
	return u, nil
}

// hostPort is where a URL leads. There are no names on the virtual network.
func hostPort(u *url.URL) (to netip.AddrPort, err error) {
	port := u.Port()
	if port == "" {
		port = "80"
	}
	to, err = netip.ParseAddrPort(u.Hostname() + ":" + port)
	if u.Scheme != "http" || err != nil || !control.IsHost(to.Addr()) || to.Port() == 0 {
		return to, fmt.Errorf("%w: want http://ADDR:PORT/PATH, the address of a host",
			control.ErrUsage)
	}
	return to, nil
}

// client speaks HTTP over the virtual network.
func (h *Host) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeaderBytes,
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			to, err := hostPort(&url.URL{Scheme: "http", Host: addr}) // or where it redirects to
			if err != nil {
				return nil, err
			}
			c, err := h.node.TCP.Dial(ctx, to)
			if err != nil {
				return nil, control.Reason(err)
			}
			c.Guard()
			return c, nil
		},
	}}
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
		defer s.close()
		req, ctx = req.WithContext(own), own
	}
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
		return s.store(ctx, answer)
	}
	page.Body, err = io.ReadAll(io.LimitReader(answer.Body, control.MaxPage))
	page.Bytes = int64(len(page.Body))
	if err == nil {
		var rest int64
		rest, err = io.Copy(io.Discard, answer.Body)
		page.Bytes += rest
	}
	if err != nil {
		return fmt.Errorf("%w (%s)", pageError(ctx, err), came(page.Bytes, answer.ContentLength))
	}
	return nil
}

// storing stores a page as recvfile stores a file.
type storing struct {
	fetch *control.Fetch
	page  *control.Page
	file  *target // nil: the page is in the answer
	t     *transfer
}

// open makes sure that the page can be stored before anybody sends it.
func (s *storing) open(ctx context.Context) (err error) {
	s.file, err = s.t.createTarget(s.fetch.Resume, s.fetch.Overwrite)
	if err != nil {
		return err
	}
	if s.fetch.Resume {
		if err = s.t.resume(ctx, s.file.File, 0); err != nil {
			s.close()
		}
	}
	return err
}

// close gives the file back.
func (s *storing) close() { s.file.close() }

func (s *storing) part() string { return s.t.part() }

// offset is how much there was before.
func (s *storing) offset() int64 {
	if s.t == nil {
		return 0
	}
	return s.t.result.Offset
}

// store stores what a server answers. What it says instead of the file is no part of it.
func (s *storing) store(ctx context.Context, answer *http.Response) error {
	t, offset := s.t, s.offset()
	switch {
	case offset > 0 && answer.StatusCode == http.StatusRequestedRangeNotSatisfiable &&
		answer.Header.Get("Content-Range") == fmt.Sprintf("bytes */%d", offset):
		s.page.Code, s.page.Status = http.StatusOK, "200 OK" // it is whole already
		return s.done()
	case offset > 0 && answer.StatusCode == http.StatusPartialContent:
		got := answer.Header.Get("Content-Range")
		if !strings.HasPrefix(got, fmt.Sprintf("bytes %d-", offset)) {
			return fmt.Errorf("the server sends %q, not what is behind byte %d", got, offset)
		}
	case answer.StatusCode >= http.StatusBadRequest:
		s.page.Path = "" // nothing is there
		return nil
	case offset > 0: // the server knows no ranges: from the beginning
		if err := s.again(); err != nil {
			return err
		}
	}
	t.total, t.began = answer.ContentLength, time.Now()
	t.tell()
	err := receiveAll(answer.Body, s.file, t)
	s.page.Bytes = t.result.Bytes
	if err == nil {
		err = s.done()
	}
	t.tell()
	if err != nil {
		return fmt.Errorf("%w (%s; %d bytes are kept in %s: `http get -C -o` goes on)",
			pageError(ctx, err), came(t.result.Bytes, t.total), t.result.Offset+t.result.Bytes,
			s.part())
	}
	return nil
}

// came says how much of a page has come; a length of -1 is not known.
func came(bytes, length int64) string {
	if length < 0 {
		return fmt.Sprintf("%d bytes had come", bytes)
	}
	return fmt.Sprintf("%d of %d bytes had come", bytes, length)
}

// again forgets what there was.
func (s *storing) again() error {
	s.t.result.Offset = 0
	s.t.hash.Reset()
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return s.file.Truncate(0)
}

// done gives the file its name, if all of it is written.
func (s *storing) done() error {
	s.page.Offset, s.page.SHA256 = s.t.result.Offset, s.t.digest()
	return s.file.publish()
}

// pageError strips what net/http repeats of the request.
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
