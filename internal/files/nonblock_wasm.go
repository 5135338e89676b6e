package files

// nonblock is zero: a browser's files are in memory and have no pipes.
const nonblock = 0
