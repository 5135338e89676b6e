// Runs before the network's page. It sends the page's requests to the playground's worker instead
// of a server.
window.fetch = (path, how) => parent.playground.fetch(String(path), how);
