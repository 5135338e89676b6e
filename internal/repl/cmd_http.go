package repl

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

func serveCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:   "serve PORT [DIR]",
		Short: "run an HTTP server: a page, or files",
		Long: "Run an HTTP server on PORT. It serves the files of DIR or, without DIR, a page\n" +
			"about the node. The shell prints each request. `close SID` stops the server.\n" +
			"Other nodes load pages with `fetch`. curl and browsers on this machine reach the\n" +
			"server through a TUN device or `publish`.",
		ValidArgsFunction: at(nil, fileNames),
		RunE: func(c *cobra.Command, args []string) error {
			req := control.Serve{Port: portOf(args[0])}
			what := "a page about this node"
			if len(args) > 1 {
				req.Dir, what = args[1], "the files of "+printable(args[1])
			}
			return show(e, c, req, func(sock control.Socket) string {
				return fmt.Sprintf("Serving %s on port %d, socket %d",
					what, req.Port, sock.SID)
			})
		},
	})
}

func httpCommand(e *env) *cobra.Command {
	serve := serveCommand(e)
	serve.Args = positional
	get := fetchCommand(e)
	get.Use, get.Short, get.Long = "get URL", "print a page, or store it in a file", ""
	get.Args, get.ValidArgsFunction = positional, nil
	get.Annotations = map[string]string{nodesVerb: "fetch"}
	return verbsOf(&cobra.Command{
		Use:   "http",
		Short: "run a server, or get a page or file",
		Long: "`http serve PORT [DIR]` is the same as `serve`: it serves only files of DIR,\n" +
			"ranges of their bytes, and listings. `http get URL` prints a page. With -o it\n" +
			"stores the page and prints the rate and the SHA-256; with -C it continues an\n" +
			"interrupted download. If the server sends an SHA-256 (RFC 9530) and the file's\n" +
			"differs, the command fails.",
	}, serve, get)
}

func fetchCommand(e *env) *cobra.Command {
	var req control.Fetch
	c := &cobra.Command{
		Use:   "fetch URL [PATH]",
		Short: "print a page, or store it in the file PATH",
		Long: "Get the page at URL over the virtual network and print it, or store it in the\n" +
			"file PATH. In the URL, http://, the port 80 and the path may be omitted. If the\n" +
			"HTTP status is 400 or more, the command fails.",
		ValidArgsFunction: at(nil, fileNames),
		RunE: func(c *cobra.Command, args []string) error {
			req.URL = args[0]
			if len(args) > 1 {
				req.Path = args[1]
			}
			if req.Resume && (req.Path == "" || req.Range != "") {
				return wrong(c, "-C continues a whole file: use it with -o FILE and without -r")
			}
			draw := func(p control.Progress, stalled bool) {
				if width := e.width(); width > 0 && !e.json(c) {
					e.screen.setStatus(clip(args[0]+" "+Bar(p, 20, stalled), width-1))
				}
			}
			var last atomic.Pointer[control.Progress]
			idle := time.AfterFunc(stallTime, func() {
				if p := last.Load(); p != nil {
					draw(*p, true)
				}
			})
			req.Progress = streamed(e, c, func(p control.Progress) {
				last.Store(&p)
				idle.Reset(stallTime)
				draw(p, false)
			})
			page, err := control.Ask(c.Context(), e.op, req)
			idle.Stop()
			e.screen.setStatus("")
			if err != nil {
				return failed(c, err)
			}
			return showPage(e, c, args[0], &page)
		},
	}
	f := c.Flags()
	f.StringVarP(&req.Path, "output", "o", "", "store the page in `FILE`")
	f.BoolVarP(&req.Resume, "continue", "C", false, "continue after the bytes in FILE.part")
	f.BoolVar(&req.Overwrite, "force", false, "replace FILE and FILE.part")
	f.StringVarP(&req.Range, "range", "r", "", "request only the bytes `RANGE`: 0-99, 100- or -100")
	flagWords(c, "output", fileNames)
	return e.streamFlag(e.jsonFlag(c))
}

var errRefused = errors.New("HTTP error")

func showPage(e *env, c *cobra.Command, url string, page *control.Page) error {
	if err := e.answer(c, *page, printPage(e, *page)); err != nil {
		return err
	}
	if page.Code >= 400 {
		return &jsonError{failed(c, fmt.Errorf("%s: %w: %s", printable(url), errRefused,
			printable(page.Status)))}
	}
	return nil
}

func printPage(e *env, p control.Page) string {
	var b strings.Builder
	body := string(p.Body)
	if e.interactive() { // a page must not control the terminal
		lines := strings.SplitAfter(body, "\n")
		body = ""
		for _, line := range lines {
			text, end := strings.CutSuffix(line, "\n")
			b.WriteString(printable(strings.TrimSuffix(text, "\r")))
			if end {
				b.WriteString("\n")
			}
		}
	}
	b.WriteString(body)
	if len(p.Body) > 0 && p.Body[len(p.Body)-1] != '\n' {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s, %d bytes", printable(p.Status), p.Bytes)
	if p.Type != "" {
		b.WriteString(" of " + printable(p.Type))
	}
	if p.Path != "" {
		b.WriteString(" into " + printable(p.Path))
	}
	b.WriteString(" in " + took(p.Seconds) + "\n")
	if p.Offset > 0 {
		fmt.Fprintf(&b, "  after %d existing bytes: %d in all\n", p.Offset, p.Offset+p.Bytes)
	}
	if p.SHA256 != "" {
		b.WriteString("  SHA-256 " + p.SHA256)
		if p.Verified {
			b.WriteString(", equal at both ends")
		}
		b.WriteString("\n")
	}
	if p.Path == "" && p.Bytes > int64(len(p.Body)) {
		fmt.Fprintf(&b, "(only the first %d bytes are shown)\n", len(p.Body))
	}
	return b.String()
}
