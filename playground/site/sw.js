/* global version, files -- playground/build writes them before this text */
// The service worker. It keeps all files of one version, so that the page works without a network.
// It also keeps the laboratory after that was loaded once. The next version is used when all tabs
// with this one are closed.

const prefix = `tidepool ${registration.scope} `, name = prefix + version;

async function keep() {
  const cache = await caches.open(name);
  await cache.addAll(files.map((f) => new Request(f, { cache: "no-cache" })));
}

async function drop() {
  const old = (await caches.keys()).filter((n) => n.startsWith(prefix) && n !== name);
  await Promise.all(old.map((n) => caches.delete(n)));
  await clients.claim();
}

async function answer(request) {
  const cache = await caches.open(name);
  const kept = await cache.match(request, { ignoreSearch: true });
  if (kept) return kept;
  const answer = await fetch(request); // only the laboratory gets here
  if (answer.ok) await cache.put(request, answer.clone());
  return answer;
}

addEventListener("install", (e) => e.waitUntil(keep()));
addEventListener("activate", (e) => e.waitUntil(drop()));
addEventListener("fetch", (e) => {
  if (e.request.method === "GET" && e.request.url.startsWith(registration.scope)) e.respondWith(answer(e.request));
});
