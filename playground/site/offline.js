// Offline use: the service worker keeps the page's files.

/** keep saves the page, and calls say when it works offline, or with why it does not. */
export async function keep(say) {
  if (!navigator.serviceWorker) return say("Works only online: browsers store only https pages for offline use.");
  try {
    await navigator.serviceWorker.register(new URL("sw.js", import.meta.url));
    await navigator.serviceWorker.ready;
    document.body.dataset.offline = "yes";
    say("Works offline.");
  } catch (e) {
    say(`Works only online: ${e.message}`);
  }
}
