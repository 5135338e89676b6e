//go:build race

package long

const race = true
