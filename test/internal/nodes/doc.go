// Package nodes runs real node processes for the end-to-end tests: it builds the program once,
// copies a folder of .lnx files to UDP ports that are free, starts nodes with their shells on
// pipes, types commands and waits for the lines that answer them. It never sleeps: whoever waits
// names the line or the condition, and how long it may take.
package nodes
