package control

// Serve answers HTTP requests on a port until that socket is closed; answer Socket, which listens.
type Serve struct {
	Port uint16 `json:"port"`
	// Dir is the folder whose files are served; empty: one page, about the node.
	Dir string `json:"dir,omitempty"`
}

func (Serve) answers(Socket) {}

// Fetch gets a page over the virtual network; answer Page.
type Fetch struct {
	// URL is http://ADDR:PORT/PATH; http://, the port and the path may be left out.
	URL string `json:"url"`
	// Path is the file to store the page in, under Path with ".part" behind it until it is
	// whole; empty: it is in the answer.
	Path string `json:"path,omitempty"`
	// Resume asks only for what is behind what Path with ".part" has; a server that knows no
	// ranges sends everything, and what was there is gone then.
	Resume bool `json:"resume,omitempty"`
	// Overwrite is as in RecvFile.
	Overwrite bool `json:"overwrite,omitempty"`
	// Range asks for some bytes: "0-99", "100-", or "-100" for the last (RFC 9110 §14.1.2).
	Range string `json:"range,omitempty"`
	// Progress, if set, is called a few times a second while it is stored, and at its end.
	Progress func(Progress) `json:"-"`
}

func (Fetch) answers(Page) {}

// MaxPage bounds the page in an answer. Of a longer one the answer has the beginning.
const MaxPage = 1 << 20

// Page is what came of a Fetch. A server that says no is no error: see Code.
type Page struct {
	URL     string  `json:"url"` // after redirections
	Code    int     `json:"code"`
	Status  string  `json:"status"` // "200 OK"
	Type    string  `json:"type"`   // of the content, as the server says
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"` // with the connection's opening
	Body    []byte  `json:"body,omitempty"`
	Path    string  `json:"path,omitempty"`
	Offset  int64   `json:"offset,omitempty"` // bytes that were there before
	SHA256  string  `json:"sha256,omitempty"` // of the file, in hex, if it was stored
}
