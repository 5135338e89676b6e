package lab

import (
	"fmt"
	"os"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// recordName names the files of a cell's record.
func recordName(cells, cell int) string {
	return fmt.Sprintf("%0*d", len(fmt.Sprint(cells-1)), cell)
}

// hasRecord reports whether a directory has that record, whole.
func hasRecord(dir, name string) bool {
	_, err := os.Stat(result.RecordPath(dir, name))
	return err == nil
}

// Record reads the record of a cell's first trial. The error is os.ErrNotExist if there is none.
func (r *Results) Record(cell int) (*result.Record, error) {
	return result.ReadRecord(r.Dir, recordName(len(r.Cells), cell))
}
