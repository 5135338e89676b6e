package testenv

// RunMark is the environment variable that marks the descendants of one run of a test. A test that
// gives its processes another environment must include RunMark.
const RunMark = "TIDEPOOL_TEST_RUN"
