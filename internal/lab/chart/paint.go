package chart

import (
	"fmt"
	"image/color"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Paint is a color, or a role whose color differs on a dark background.
type Paint struct {
	rgb  uint32
	role string
}

// RGB returns a color that is the same on any background: 0xRRGGBB.
func RGB(value uint32) Paint { return Paint{rgb: value & 0xffffff} }

// These are the roles.
var (
	Ink   = Paint{0x222222, "ink"}
	Soft  = Paint{0x6b6b6b, "soft"}
	Faint = Paint{0xe3e3e3, "faint"}
	Paper = Paint{0xffffff, "paper"}
)

// Okabe and Ito's colors, which color-blind readers can tell apart, and a gray.
var (
	Blue       = RGB(0x0072b2)
	Sky        = RGB(0x56b4e9)
	Green      = RGB(0x009e73)
	Orange     = RGB(0xe69f00)
	Vermillion = RGB(0xd55e00)
	Purple     = RGB(0xcc79a7)
	Gray       = RGB(0x808080)
)

// Tint mixes p with a share of white, or of black if the share is negative.
func (p Paint) Tint(share float64) Paint {
	toward := uint32(255)
	if share < 0 {
		share, toward = -share, 0
	}
	share = min(share, 1)
	mix := func(shift uint) uint32 {
		part := float64(p.rgb >> shift & 0xff)
		return uint32(part+(float64(toward)-part)*share+0.5) << shift
	}
	return RGB(mix(16) | mix(8) | mix(0))
}

// darkPaper is the background of pages with the dark theme. minContrast is the contrast that a line
// needs on it: WCAG 2.2 §1.4.11 requires 3 to 1 for graphics.
const (
	darkPaper   = 0x161618
	minContrast = 3.6
)

func luminance(rgb uint32) float64 {
	part := func(shift uint) float64 {
		v := float64(rgb>>shift&0xff) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*part(16) + 0.7152*part(8) + 0.0722*part(0)
}

// OnDark returns the color for a dark background. If the contrast is too low, OnDark lightens the
// color, first within its hue and then by mixing in white.
func (p Paint) OnDark() Paint {
	const step = 1.08
	for range 80 {
		if (luminance(p.rgb)+0.05)/(luminance(darkPaper)+0.05) >= minContrast {
			return p
		}
		r, g, b := p.rgb>>16, p.rgb>>8&0xff, p.rgb&0xff
		if most := max(r, g, b); most == 0 || float64(most)*step > 255 {
			p = p.Tint(0.05)
			continue
		}
		louder := func(part uint32) uint32 { return uint32(float64(part)*step + 0.5) }
		p = RGB(louder(r)<<16 | louder(g)<<8 | louder(b))
	}
	return RGB(0xffffff)
}

// CSS returns the color for a page with a dark theme. If the color differs there, CSS returns a
// variable that Themes defines.
func (p Paint) CSS() string {
	if p.role != "" {
		return "var(--" + p.role + ")"
	}
	if p.OnDark() == p {
		return p.String()
	}
	return fmt.Sprintf("var(--p%06x,#%06x)", p.rgb, p.rgb)
}

var themed = regexp.MustCompile(`var\(--p([0-9a-f]{6}),`)

// Themes returns the dark theme's definitions of the CSS variables that texts use.
func Themes(texts ...string) string {
	var list []string
	for _, text := range texts {
		for _, m := range themed.FindAllStringSubmatch(text, -1) {
			rgb, _ := strconv.ParseUint(m[1], 16, 32) // six hexadecimal digits always parse
			list = append(list, fmt.Sprintf("--p%s: %v;", m[1], RGB(uint32(rgb)).OnDark()))
		}
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " ")
}

func (p Paint) String() string { return fmt.Sprintf("#%06x", p.rgb) }

func (p Paint) rgba(opacity float64) color.Color {
	return color.NRGBA{
		byte(p.rgb >> 16), byte(p.rgb >> 8), byte(p.rgb), byte(opacity*255 + 0.5),
	}
}
