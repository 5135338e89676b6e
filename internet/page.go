package internet

import (
	"html/template"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/files"
)

// page describes a failed test in a single file without scripts.
var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Name}}</title>
<meta name="viewport" content="width=device-width">
<style>
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
svg { max-width: 100%; height: auto }
table { border-collapse: collapse }
th, td { padding: .2rem .8rem; border-bottom: 1px solid #8888; text-align: left }
.number { text-align: right; font-variant-numeric: tabular-nums }
pre { overflow-x: auto }
</style></head><body>
<h1>{{.Name}} failed</h1>
<p>Seed {{.Seed}}, after {{.Took}} of the network's time. To repeat it:</p>
<pre>{{.Repeat}}</pre>
{{.Picture}}
<h2>Packets</h2>
<table><tr><th>From<th>To<th class="number">Packets<th class="number">Bytes
{{range .Links}}<tr><td>{{.From}}<td>{{.To}}
<td class="number">{{.Packets}}<td class="number">{{.Bytes}}
{{end}}</table>
<p>SHA-256: <code>{{.Hash}}</code></p>
<h2>Faults</h2>
{{if .Faults}}<ul>{{range .Faults}}<li>{{.}}{{end}}</ul>{{else}}<p>None.</p>{{end}}
{{if .Open}}<h2>Calls that waited</h2><pre>{{.Open}}</pre>{{end}}
<h2>Connections</h2>
{{range .Ladders}}<details{{if .Last}} open{{end}}><summary>{{.Title}}</summary>
<pre>{{.Text}}</pre></details>
{{else}}<p>None.</p>{{end}}
<p>{{if .Omitted}}{{.Omitted}} more connections are in the capture. {{end}}
<code>network.pcapng</code> has the packets of all links,
<code>ladder.txt</code> these drawings.</p>
</body></html>
`))

type pageData struct {
	Name, Took, Repeat, Hash, Open string
	Seed                           uint64
	Picture                        template.HTML
	Links                          []pageRow
	Faults                         []string
	Ladders                        []ladder
	Omitted                        int
}

type pageRow struct {
	From, To       string
	Packets, Bytes int
}

// writeArtifacts writes the artifacts of a failed test to the test's folder: the capture of all
// links, the ladders of its connections, and the page.
func (w *World) writeArtifacts(waits string) {
	ladders, omitted, err := w.draw()
	if err == nil {
		err = w.writePage(waits, ladders, omitted)
	}
	if err != nil {
		w.t.Errorf("internet: the artifacts: %v", err)
		return
	}
	w.t.Logf("internet: what happened: %s", filepath.Join(w.captures, "network.html"))
}

func (w *World) writePage(waits string, ladders []ladder, omitted int) error {
	d := pageData{
		Name: w.t.Name(), Seed: w.seed, Took: w.clock.Now().Sub(w.began).String(),
		Repeat: repeat(w.t.Name(), w.seed, faultsFlag()...), Hash: w.Hash(), Open: waits,
		Picture: template.HTML(w.graph.SVG()), //nolint:gosec // SVG escapes names
		Ladders: ladders, Omitted: omitted,
	}
	w.mu.Lock()
	d.Faults = slices.Clone(w.events)
	w.mu.Unlock()
	for _, l := range w.links {
		for i, e := range l.ends {
			row := pageRow{From: e.host.name, To: l.ends[1-i].host.name}
			row.Packets, row.Bytes = e.packets.sum()
			d.Links = append(d.Links, row)
		}
	}
	var b strings.Builder
	if err := page.Execute(&b, &d); err != nil {
		return err
	}
	return files.Overwrite(filepath.Join(w.captures, "network.html"), []byte(b.String()), 0o644)
}
