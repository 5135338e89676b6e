// Before the network's page runs: its requests go to the playground's worker instead of a server.
window.fetch = (path, how) => parent.playground.fetch(String(path), how);
