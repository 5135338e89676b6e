package control

// Serve runs an HTTP server on a port until its listening socket is closed.
type Serve struct {
	Answer[Socket]
	Port uint16 `json:"port"`
	// Dir is the folder with the files; empty: one page about the node.
	Dir string `json:"dir,omitempty"`
}

// Fetch gets a page over the virtual network.
type Fetch struct {
	Answer[Page]
	// URL is http://HOST:PORT/PATH, with an address or a name; http://, the port and the path may
	// be omitted.
	URL string `json:"url"`
	// Path is the file to store the page in, with ".part" appended until it is complete; empty: the
	// answer contains the page.
	Path string `json:"path,omitempty"`
	// Resume requests the bytes after those in the .part file. A server without ranges sends
	// everything, which replaces that file.
	Resume bool `json:"resume,omitempty"`
	// Overwrite is as in RecvFile.
	Overwrite bool `json:"overwrite,omitempty"`
	// Range requests some bytes: "0-99", "100-", or "-100" for the last (RFC 9110 §14.1.2).
	Range string `json:"range,omitempty"`
	// Progress, if set, is called a few times a second while the page is stored, and at its end.
	Progress func(Progress) `json:"-"`
}

// MaxPage limits the page in an answer; a longer page is truncated.
const MaxPage = 1 << 20

// Page is the result of a Fetch. A status such as 404 is not an error: see Code.
type Page struct {
	URL     string  `json:"url"` // URL after redirections
	Code    int     `json:"code"`
	Status  string  `json:"status"` // HTTP status, such as "200 OK"
	Type    string  `json:"type"`   // Content-Type that the server sent
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"` // duration in seconds, including the handshake
	Body    []byte  `json:"body,omitempty"`
	Path    string  `json:"path,omitempty"`
	Offset  int64   `json:"offset,omitempty"` // bytes of the .part file that Resume kept
	SHA256  string  `json:"sha256,omitempty"` // SHA-256 of the stored file, in hex
	// Verified is set if the server sent the file's SHA-256 (RFC 9530) and it is equal. A request
	// for a range is not verified.
	Verified bool `json:"verified,omitempty"`
}
