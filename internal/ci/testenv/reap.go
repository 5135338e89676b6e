package testenv

// RunMark is the environment variable that marks a process as the descendant of one run of a test.
// A test that gives its processes an environment of their own has to pass it on.
const RunMark = "TIDEPOOL_TEST_RUN"
