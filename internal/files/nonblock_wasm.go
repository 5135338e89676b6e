package files

// nonblock is nothing here: a browser's files are in memory and have no pipes.
const nonblock = 0
