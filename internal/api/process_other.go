//go:build !linux

package api

func usage() systemUse { return systemUse{} }
