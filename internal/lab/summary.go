package lab

import (
	"math"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// summaryHeader names the columns of summary.csv. n is how many runs the cell had, finished how
// many of them came to their end, measured how many have the number. A mean is there if all of
// those are whole, ci_lo and ci_hi bound its 95 % interval, iqr is what the middle half spans. A
// median without a number is that of runs of which half did not come to one.
const summaryHeader = "cell,settings,flow,label,metric,unit,n,finished,measured," +
	"mean,sd,ci_lo,ci_hi,median,iqr,min,max\n"

// summaryFile is the text of summary.csv.
func (r *Results) summaryFile() []byte {
	text := []byte(summaryHeader)
	for _, g := range r.Groups() {
		settings := r.settingsOf(g.Cell)
		for _, d := range result.Catalog() {
			n, ok := g.Numbers[d.Name]
			if !ok {
				continue
			}
			text = append(strconv.AppendInt(text, int64(g.Cell), 10), ',')
			for _, field := range []string{settings, g.Flow, g.Label, string(d.Name), d.Unit} {
				text = append(result.AppendField(text, field), ',')
			}
			for i, count := range []int{g.N, g.Finished, len(n.Values)} {
				if i > 0 {
					text = append(text, ',')
				}
				text = strconv.AppendInt(text, int64(count), 10)
			}
			for _, v := range []float64{
				n.Mean, n.SD, n.Low, n.High, n.Median, n.IQR(), n.Minimum, n.Maximum,
			} {
				text = append(text, ',')
				if !math.IsNaN(v) && !math.IsInf(v, 0) {
					text = strconv.AppendFloat(text, v, 'g', -1, 64)
				}
			}
			text = append(text, '\n')
		}
	}
	return text
}
