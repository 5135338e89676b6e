package services

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
)

// These are header names and the key of a file's digest. The digest covers the whole file, even in
// answers to a range (RFC 9530 §3). Clients must ask for it (RFC 9530 §4), because the server reads
// the whole file to compute it.
const (
	reprDigest     = "Repr-Digest"
	wantReprDigest = "Want-Repr-Digest"
	digestKey      = "sha-256"
)

// withDigests adds digests to the answers of a file server.
func withDigests(root *files.Folder, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if want := member(r.Header, wantReprDigest); want != "" && want != "0" {
			if sum := fileDigest(r.Context(), root, r.URL.Path); sum != nil {
				w.Header().Set(reprDigest,
					digestKey+"=:"+base64.StdEncoding.EncodeToString(sum)+":")
			}
		}
		next.ServeHTTP(w, r)
	})
}

// fileDigest returns the SHA-256 of the file that http.FileServerFS serves for a path. It is nil
// for a listing, and if the file cannot be read.
func fileDigest(ctx context.Context, root *files.Folder, at string) []byte {
	name := strings.TrimPrefix(path.Clean("/"+at), "/")
	if strings.HasSuffix(at, "/") {
		name = path.Join(name, "index.html")
	}
	f, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	hash := sha256.New()
	for err == nil && ctx.Err() == nil {
		_, err = io.CopyN(hash, f, transferChunk)
	}
	if err != io.EOF { //nolint:errorlint // CopyN's own
		return nil
	}
	return hash.Sum(nil)
}

// member returns the value of digestKey in a dictionary (RFC 9651 §3.2), without parameters.
func member(h http.Header, field string) (value string) {
	for part := range strings.SplitSeq(strings.Join(h.Values(field), ","), ",") {
		if k, v, _ := strings.Cut(strings.TrimSpace(part), "="); k == digestKey {
			value, _, _ = strings.Cut(v, ";")
		}
	}
	return value
}

// compare reports whether an answer has the digest of its file. It returns an ErrMismatch if that
// digest differs from the computed one.
func compare(h http.Header, ours []byte) (bool, error) {
	theirs, err := base64.StdEncoding.DecodeString(strings.Trim(member(h, reprDigest), ":"))
	has := err == nil && len(theirs) == sha256.Size
	if has && !bytes.Equal(ours, theirs) {
		return true, fmt.Errorf("%w: the digests differ: SHA-256 %x here, %x at the server",
			control.ErrMismatch, ours, theirs)
	}
	return has, nil
}
