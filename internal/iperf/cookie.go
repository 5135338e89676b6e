package iperf

import "math/rand/v2"

// CookieSize is how many bytes a cookie has: 36 letters and a zero.
const CookieSize = 37

// cookieLetters are those of RFC 4648 §6's base 32, small.
const cookieLetters = "abcdefghijklmnopqrstuvwxyz234567"

// Cookie is the name of a test: each of its connections begins with it.
type Cookie [CookieSize]byte

// NewCookie draws a cookie.
func NewCookie(r *rand.Rand) (c Cookie) {
	for i := range CookieSize - 1 {
		c[i] = cookieLetters[r.IntN(len(cookieLetters))]
	}
	return c
}

// Valid reports whether it could be one: 36 printable characters and a zero.
func (c *Cookie) Valid() bool {
	for _, b := range c[:CookieSize-1] {
		if b <= ' ' || b >= 0x7f {
			return false
		}
	}
	return c[CookieSize-1] == 0
}

// String is the cookie without its zero.
func (c *Cookie) String() string { return string(c[:CookieSize-1]) }
