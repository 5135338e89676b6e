// Package reap kills the processes that tests leave behind when they are killed: nodes that run in
// the background, and what these have started. Only Linux can find them.
package reap

// Mark is the environment variable that marks a process as the descendant of one run of a test. A
// test that gives its processes an environment of their own has to pass it on.
const Mark = "TIDEPOOL_TEST_RUN"
