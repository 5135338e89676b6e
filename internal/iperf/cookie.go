package iperf

import "math/rand/v2"

// CookieSize is the size of a cookie in bytes: 36 letters and a zero byte.
const CookieSize = 37

// cookieLetters is the alphabet of RFC 4648 §6's base 32, in lower case.
const cookieLetters = "abcdefghijklmnopqrstuvwxyz234567"

// Cookie identifies a test. Each connection of the test begins with it.
type Cookie [CookieSize]byte

// NewCookie returns a random cookie.
func NewCookie(r *rand.Rand) (c Cookie) {
	for i := range CookieSize - 1 {
		c[i] = cookieLetters[r.IntN(len(cookieLetters))]
	}
	return c
}

// Valid reports whether c is 36 printable characters and a zero byte.
func (c *Cookie) Valid() bool {
	for _, b := range c[:CookieSize-1] {
		if b <= ' ' || b >= 0x7f {
			return false
		}
	}
	return c[CookieSize-1] == 0
}

func (c *Cookie) String() string { return string(c[:CookieSize-1]) }
