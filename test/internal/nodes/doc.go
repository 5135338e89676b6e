// Package nodes runs real node processes for the end-to-end tests. It builds the program once,
// copies a folder of .lnx files to free UDP ports, starts nodes with their shells on pipes, types
// commands and waits for the answers. It never sleeps: every wait names a line or a condition, and
// a time limit.
package nodes
