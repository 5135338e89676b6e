/* global version, files -- playground/build writes them before this text */
// The service worker: it keeps all files of one version, so that the page works without a network.
// The next version is used when all tabs with this one are closed.

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
  return await cache.match(request, { ignoreSearch: true }) ?? fetch(request);
}

addEventListener("install", (e) => e.waitUntil(keep()));
addEventListener("activate", (e) => e.waitUntil(drop()));
addEventListener("fetch", (e) => {
  if (e.request.method === "GET" && e.request.url.startsWith(registration.scope)) e.respondWith(answer(e.request));
});
