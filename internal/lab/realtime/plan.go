package realtime

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
)

// cell reads the cell that a process has a part in.
func (p *Plan) cell() (*plan.Cell, error) {
	f, err := plan.Parse("the experiment", []byte(p.Document))
	if err != nil {
		return nil, err
	}
	f.Load = func(name string) ([]byte, error) {
		if text, ok := p.Files[name]; ok {
			return text, nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	cells, err := f.Cells()
	if err != nil {
		return nil, err
	}
	if p.Cell < 0 || p.Cell >= len(cells) {
		return nil, errors.New("the experiment has no cell " + fmt.Sprint(p.Cell))
	}
	return &cells[p.Cell], nil
}
