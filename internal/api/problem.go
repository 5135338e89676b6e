package api

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"syscall"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
)

// Problem is a problem document (RFC 9457). With errors.Is it equals its sentinel in package
// control.
//
//nolint:errname // the RFC's noun
type Problem struct {
	Type   string `json:"type"` // "/v1/problems/NAME", the path of a page that describes the type
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"` // one line for the client
}

// Error returns Detail.
func (p *Problem) Error() string { return p.Detail }

// Is reports whether the problem stands for a sentinel.
func (p *Problem) Is(target error) bool {
	for _, s := range sorts {
		if s.is != nil && problemPath+s.name == p.Type {
			return s.is == target
		}
	}
	return false
}

// problemPath is the path of the pages that describe problem types.
const problemPath = "/v1/problems/"

// These are the API's own problems.
var (
	errNoSuchNode = errors.New("no such node")
	errNoSuchPath = errors.New("no such path")
	errMethod     = errors.New("method not allowed")
	errToken      = errors.New("token required")
	errOrigin     = errors.New("origin or host not allowed")
	errTooLarge   = errors.New("request too large")
	errTooMany    = errors.New("too many concurrent requests")
	errNotRunning = errors.New("no such running command")
	errInside     = errors.New("internal error")
)

// sort is a problem type.
type sort struct {
	name   string
	status int
	is     error
}

// failed is the problem type of all other errors, mostly from the operating system.
const failed = "failed"

// sorts are tried in order; the last matches everything.
var sorts = []sort{
	{"no-such-node", http.StatusNotFound, errNoSuchNode},
	{"no-such-path", http.StatusNotFound, errNoSuchPath},
	{"method-not-allowed", http.StatusMethodNotAllowed, errMethod},
	{"token-needed", http.StatusUnauthorized, errToken},
	{"origin-not-allowed", http.StatusForbidden, errOrigin},
	{"too-large", http.StatusRequestEntityTooLarge, errTooLarge},
	{"too-many", http.StatusServiceUnavailable, errTooMany},
	{"not-running", http.StatusNotFound, errNotRunning},
	{"node-gone", http.StatusBadGateway, ErrGone},
	{"internal-error", http.StatusInternalServerError, errInside},
	{"invalid-request", http.StatusBadRequest, control.ErrUsage},
	{"not-supported", http.StatusNotImplemented, control.ErrUnsupported},
	{"no-such-socket", http.StatusNotFound, control.ErrNoSuchSocket},
	{"no-such-object", http.StatusNotFound, control.ErrNoSuchObject},
	{"no-such-interface", http.StatusNotFound, control.ErrNoSuchInterface},
	{"no-route", http.StatusUnprocessableEntity, control.ErrNoRoute},
	{"no-such-door", http.StatusNotFound, control.ErrNoSuchDoor},
	{"route-exists", http.StatusConflict, control.ErrRouteExists},
	{"no-such-route", http.StatusNotFound, control.ErrNoSuchRoute},
	{"interface-down", http.StatusConflict, control.ErrInterfaceDown},
	{"port-in-use", http.StatusConflict, control.ErrPortInUse},
	{"no-free-port", http.StatusServiceUnavailable, control.ErrNoPorts},
	{"refused", http.StatusBadGateway, control.ErrRefused},
	{"reset", http.StatusBadGateway, control.ErrReset},
	{"timed-out", http.StatusGatewayTimeout, control.ErrTimeout},
	{"unreachable", http.StatusBadGateway, control.ErrUnreachable},
	{"not-connected", http.StatusConflict, control.ErrNotConnected},
	{"closed", http.StatusConflict, control.ErrClosed},
	{"too-big", http.StatusRequestEntityTooLarge, control.ErrTooBig},
	{"capturing", http.StatusConflict, control.ErrCapturing},
	{"not-capturing", http.StatusConflict, control.ErrNotCapturing},
	{"busy", http.StatusConflict, control.ErrBusy},
	{"file-changed", http.StatusConflict, control.ErrChanged},
	{"file-mismatch", http.StatusConflict, control.ErrMismatch},
	{"no-such-transfer", http.StatusNotFound, control.ErrNoSuchTransfer},
	{"no-such-name", http.StatusNotFound, control.ErrNoSuchName},
	{"stopped", http.StatusConflict, control.ErrStopped},
	{"canceled", http.StatusConflict, context.Canceled},
	{"name-too-long", http.StatusBadRequest, syscall.ENAMETOOLONG},
	{"outside-folder", http.StatusForbidden, files.ErrOutside},
	{"not-regular-file", http.StatusBadRequest, files.ErrNotRegular},
	{"not-a-folder", http.StatusBadRequest, syscall.ENOTDIR},
	{"link-loop", http.StatusBadRequest, syscall.ELOOP},
	{"no-such-file", http.StatusNotFound, fs.ErrNotExist},
	{"file-exists", http.StatusConflict, fs.ErrExist},
	{"not-permitted", http.StatusForbidden, fs.ErrPermission},
	{failed, http.StatusInternalServerError, nil},
}

func problemOf(err error) *Problem {
	for _, s := range sorts {
		if s.is == nil || errors.Is(err, s.is) {
			return &Problem{
				Type: problemPath + s.name, Title: s.title(), Status: s.status,
				Detail: truncate(err.Error()),
			}
		}
	}
	panic("BUG: api: no problem type matches")
}

// These limits apply to a problem's detail, which may quote a request, and to the document.
const (
	maxDetail  = 2 << 10
	maxProblem = 64 << 10
)

// truncate shortens a long text.
func truncate(text string) string {
	if len(text) <= maxDetail {
		return text
	}
	return strings.ToValidUTF8(text[:maxDetail], "") + "..."
}

func (s *sort) title() string {
	if s.is == nil {
		return "failed"
	}
	return s.is.Error()
}
