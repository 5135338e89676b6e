package report

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/tidepool-net/tidepool/bench/flame"
)

//go:embed page.md
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"figure":    Figure,
	"percent":   func(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) },
	"most":      Most,
	"got":       func(c Check) string { return c.got() },
	"demand":    func(c Check) string { return c.Demand() },
	"verdict":   func(c Check) string { return c.Verdict() },
	"rowgoal":   func(r Row) string { return r.Demand() },
	"rowtold":   func(r Row) string { return r.Verdict() },
	"aside":     func(r Row) string { return r.Aside() },
	"cell":      func(s string) string { return strings.ReplaceAll(s, "|", `\|`) },
	"ends":      func(r Row) string { return ends(r.SendNs, r.ReceiveNs) },
	"theirends": func(r Row) string { return ends(r.TheirSendNs, r.TheirReceiveNs) },
}).Parse(pageText))

// ends formats the CPU time of a sender and a receiver, if known.
func ends(send, receive float64) string {
	switch {
	case send == 0:
		return ""
	case receive == 0:
		return Figure(send)
	default:
		return Figure(send) + " / " + Figure(receive)
	}
}

// WritePage writes docs/performance.md.
func (r *Report) WritePage(w io.Writer) error { return page.Execute(w, r) }

// WriteProfiles prints the profiles for a terminal.
func WriteProfiles(w io.Writer, list []Profiled) error {
	for _, p := range list {
		rows := [][]string{{p.Name, ""}}
		for _, part := range [][]flame.Share{p.Packages, p.Functions} {
			for _, s := range part {
				rows = append(rows, []string{s.Name, fmt.Sprintf("%.1f %%", 100*s.Share)})
			}
			rows = append(rows, []string{"", ""})
		}
		if _, err := io.WriteString(w, columns(rows)); err != nil {
			return err
		}
	}
	return nil
}
