package repl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/control"
)

func printRDT(list []control.RDTFlow) string {
	columns := []column{
		{"Local", 15, leftmost},
		{"Remote", 15, 2},
		{"State", 9, 2},
		{"Objects", 7, 2},
		{"Bytes", 10, 2},
		{"Sent", 6, 2},
		{"Again", 6, 2},
		{"Received", 8, 2},
		{"In flight", 9, 2},
	}
	var rows [][]string
	for i := range list {
		f := &list[i]
		row := []string{
			f.Local.String(), f.Remote.String(), f.State, strconv.Itoa(f.Objects),
			strconv.FormatInt(f.Bytes, 10), number(f.Sent), number(f.Again), number(f.Received),
			strconv.Itoa(f.InFlight),
		}
		if f.State == "serving" {
			row = append([]string{row[0], "-"}, append(row[2:5:5], "-", "-", "-", "-")...)
		}
		rows = append(rows, row)
	}
	return table(columns, rows)
}

func printEntries(list []control.RDTEntry) string {
	rows := make([][]string, 0, len(list))
	for i := range list {
		e := &list[i]
		rows = append(rows, []string{strconv.FormatInt(e.Bytes, 10), e.SHA256, printable(e.Name)})
	}
	return table([]column{{"Bytes", 10, 0}, {"SHA-256", 64, 2}, {"Name", 0, 2}}, rows)
}

// printFetched is a line an object, and what it took.
func printFetched(r *control.RDTFetched) string {
	rows := make([][]string, 0, len(r.Objects))
	for i := range r.Objects {
		o := &r.Objects[i]
		verdict := o.SHA256
		if o.Problem != "" {
			verdict = printable(o.Problem)
		}
		rows = append(rows, []string{
			strconv.FormatInt(o.Bytes, 10), seconds(o.Began), seconds(o.Done), printable(o.Name),
			verdict,
		})
	}
	var b strings.Builder
	b.WriteString(table([]column{
		{"Bytes", 10, 0}, {"From", 9, 2}, {"To", 9, 2}, {"Name", 4, 2}, {"SHA-256", 7, 2},
	}, rows))
	rate := 0.0
	if r.Seconds > 0 {
		rate = float64(r.Bytes) / 1e6 / r.Seconds
	}
	fmt.Fprintf(&b, "Received %d total bytes (%d objects) in %s, %.2f MB/s\n",
		r.Bytes, len(r.Objects), took(r.Seconds), rate)
	fmt.Fprintf(&b, "  %d packets, %d that were there already, %d damaged; "+
		"%d acknowledgments, %d requests\n", r.Received, r.Twice, r.Damaged, r.Acks, r.Requests)
	if r.Made != "" {
		fmt.Fprintf(&b, "  made the folder %s\n", printable(r.Made))
	}
	return b.String()
}

// seconds is an instant since a beginning; 0: there was none.
func seconds(s float64) string {
	if s == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f s", s)
}
