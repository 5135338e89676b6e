package repl

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// drawBars shows the progress of transfers: in the prompt while it is shown, so that typing is not
// disturbed, and otherwise in a line below the output, if the output is a terminal.
func (s *Shell) drawBars() {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := ""
	if width := s.env.width(); width > 0 {
		line = barLine(s.jobs, width)
	}
	if s.editor == nil || !s.asking {
		s.env.screen.setStatus(line)
		return
	}
	s.editor.SetPrompt(s.prompt())
}

// prompt contains the node's name and the running transfers. The caller holds the lock.
func (s *Shell) prompt() string {
	name := s.env.node.Name
	if s.env.cfg.Color {
		name = "\x1b[1m" + name + "\x1b[0m"
	}
	if width := s.env.width(); width > 0 {
		if short := shortBars(s.jobs, width); short != "" {
			name += " [" + short + "]"
		}
	}
	return name + "> "
}

// barLine formats all running transfers in one line. On a narrow terminal it omits the bars first,
// and then the names.
func barLine(jobs []*job, width int) string {
	line := ""
	for _, style := range []struct {
		cells int
		named bool
	}{{20, true}, {0, true}, {0, false}} {
		if style.cells > 0 && width < 80 {
			continue
		}
		var parts []string
		for _, j := range jobs {
			if !j.started || j.ended {
				continue
			}
			part := Bar(j.progress, style.cells, j.stalled())
			if verb, path := cut(j.name); style.named {
				part = verb + " " + filepath.Base(path) + " " + part
			}
			parts = append(parts, part)
		}
		if line = strings.Join(parts, " | "); columns(line) < width {
			break
		}
	}
	return clip(line, width-1)
}

// shortBars is like barLine, but leaves most of the line for typing.
func shortBars(jobs []*job, width int) string {
	var parts []string
	for _, j := range jobs {
		if !j.started || j.ended || j.progress.Bytes == 0 {
			continue
		}
		cells := 0
		if width >= 80 && len(jobs) == 1 {
			cells = 10
		}
		part := Bar(j.progress, cells, j.stalled())
		if width < 60 {
			part, _, _ = strings.Cut(strings.TrimLeft(part, " "), " ") // keeps only the percentage
			if j.progress.Total < 0 {
				part = strings.TrimLeft(size(float64(j.progress.Offset+j.progress.Bytes)), " ")
			}
		}
		parts = append(parts, part)
	}
	if len(parts) > 1 && width < 60 {
		return fmt.Sprintf("%s +%d", parts[0], len(parts)-1)
	}
	if len(parts) > 1 {
		return fmt.Sprintf("%s, %d more", parts[0], len(parts)-1)
	}
	return strings.Join(parts, "")
}

// Bar formats a transfer's progress: a bar of cells characters, the percentage, the rate and the
// remaining time. If the size is unknown, it formats only the bytes and the rate. It omits the rate
// and the remaining time of a stalled transfer.
func Bar(p control.Progress, cells int, stalled bool) string {
	rate := 0.0
	if p.Elapsed > 0 {
		rate = float64(p.Bytes) / p.Elapsed.Seconds()
	}
	speed := size(rate) + "/s"
	if stalled {
		speed = "stalled"
	}
	if p.Total < 0 {
		return fmt.Sprintf("%s, %s", size(float64(p.Offset+p.Bytes)), speed)
	}
	share := 1.0
	if whole := p.Offset + p.Total; whole > 0 {
		share = min(1, float64(p.Offset+p.Bytes)/float64(whole))
	}
	left := "--:--"
	if rate > 0 {
		left = clock(time.Duration(float64(p.Total-p.Bytes) / rate * float64(time.Second)))
	}
	text := fmt.Sprintf("%3.0f%% %s %s left", 100*share, speed, left)
	if stalled {
		text = fmt.Sprintf("%3.0f%% %s", 100*share, speed)
	}
	if cells > 0 {
		full := int(share * float64(cells))
		text = strings.Repeat("#", full) + strings.Repeat("-", cells-full) + " " + text
	}
	return text
}

// size formats a number of bytes in a fixed width, with three digits and a decimal unit.
func size(n float64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	i := 0
	for n >= 999.5 && i < len(units)-1 {
		n /= 1000
		i++
	}
	switch {
	case i == 0 || n >= 99.95:
		return fmt.Sprintf("%4.0f %s", n, units[i])
	default:
		return fmt.Sprintf("%4.1f %s", n, units[i])
	}
}

func clock(d time.Duration) string {
	seconds := int(d.Round(time.Second).Seconds())
	if seconds >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	}
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}
