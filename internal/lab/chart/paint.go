package chart

import (
	"fmt"
	"image/color"
)

// Paint is a colour, or a role which has another colour on dark paper.
type Paint struct {
	rgb  uint32
	role string
}

// RGB is a colour that is the same on any paper: 0xRRGGBB.
func RGB(value uint32) Paint { return Paint{rgb: value & 0xffffff} }

// The roles.
var (
	Ink   = Paint{0x222222, "ink"}
	Soft  = Paint{0x6b6b6b, "soft"}
	Faint = Paint{0xe3e3e3, "faint"}
	Paper = Paint{0xffffff, "paper"}
)

// Okabe and Ito's colours, which stay apart for colour-blind readers.
var (
	Blue       = RGB(0x0072b2)
	Sky        = RGB(0x56b4e9)
	Green      = RGB(0x009e73)
	Orange     = RGB(0xe69f00)
	Vermillion = RGB(0xd55e00)
	Purple     = RGB(0xcc79a7)
	Yellow     = RGB(0xf0e442)
	Grey       = RGB(0x808080)
)

// Tint is p with so much of white in it, or of black if share is negative.
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

// String is the colour as CSS has it.
func (p Paint) String() string { return fmt.Sprintf("#%06x", p.rgb) }

func (p Paint) rgba(opacity float64) color.Color {
	return color.NRGBA{
		byte(p.rgb >> 16), byte(p.rgb >> 8), byte(p.rgb), byte(opacity*255 + 0.5),
	}
}
