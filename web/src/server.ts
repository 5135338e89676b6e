// Requests to the server: the token, the stream, and commands.

import { load, save } from "./storage";
import { plain, type Store } from "./store";

export class Problem extends Error {
  constructor(readonly status: number, detail: string, readonly type = "") { super(detail); }
}

async function refuse(r: Response): Promise<never> {
  let detail = `${r.status} ${r.statusText}`, type = "";
  try {
    ({ detail = detail, type = type } = await r.json());
  } catch { /* it is not one of ours */ }
  throw new Problem(r.status, plain(detail), type);
}

// Local storage belongs to one origin (scheme, host and port). Browsers send cookies to every port of
// a host, so the page uses no cookie.
const stored = "token";

/** ask sends a request with the token, by default the stored one. */
function ask(path: string, how: RequestInit = {}, token = load(stored) ?? ""): Promise<Response> {
  return fetch(path, { ...how, headers: { ...how.headers, Authorization: `Bearer ${token}` } });
}

/** begin takes the token out of the address bar and stores it if the server accepts it. */
export async function begin(): Promise<void> {
  const m = /^#token=([A-Za-z0-9]+)$/.exec(location.hash);
  if (!m) return;
  history.replaceState(null, "", location.pathname);
  const r = await ask("/v1", {}, m[1]);
  if (!r.ok) await refuse(r);
  save(stored, m[1]!);
}

const post = (path: string, body: object, how: RequestInit = {}): Promise<Response> => ask(path, {
  ...how, method: "POST", headers: { "Content-Type": "application/json", ...how.headers }, body: JSON.stringify(body),
});

export async function command<T>(node: string, name: string, body: object): Promise<T> {
  const r = await post(`/v1/nodes/${encodeURIComponent(node)}/commands/${name}`, body);
  if (!r.ok) await refuse(r);
  return r.status === 204 ? (undefined as T) : ((await r.json()) as T);
}

/** parts yields the parts of a response that end with a separator, as they arrive. */
async function* parts(r: Response, separator: string): AsyncGenerator<string> {
  if (!r.ok || !r.body) await refuse(r);
  const reader = r.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const all = (rest + value).split(separator);
    rest = all.pop()!;
    yield* all;
  }
}

/** lines runs a command whose response is a stream, and returns its result. */
export async function lines<T>(
  path: string, body: object, tell: (event: string, data: any) => void, signal: AbortSignal,
): Promise<T> {
  const r = await post(path, body, { signal, headers: { Accept: "application/x-ndjson" } });
  for await (const text of parts(r, "\n")) {
    if (!text) continue;
    const { event, data } = JSON.parse(text);
    if (event === "result") return data as T;
    if (event === "error") throw new Problem(data.status, plain(data.detail), data.type);
    tell(event, data);
  }
  throw new Problem(0, "the server closed the response early");
}

/** isStop reports whether an error means that a user stopped the command. */
export const isStop = (e: unknown): boolean =>
  e instanceof Problem ? e.type === "/v1/problems/stopped" : (e as Error).name === "AbortError";

export async function stop(node: string, id: number): Promise<void> {
  await ask(`/v1/nodes/${encodeURIComponent(node)}/running/${id}`, { method: "DELETE" });
}

const staleAfter = 4000; // milliseconds without a tick
const retryAfter = 2000;
const refusedAfter = 5000;
const pauseAfter = 60_000; // milliseconds for which the page is hidden

/** Stream passes the server's events to the store. It reconnects, pauses while the page is hidden, and detects a silent server. */
export class Stream {
  private source: AbortController | null = null;
  private query = "";
  private retry = 0;
  private hidden = 0;

  constructor(private readonly store: Store) {
    setInterval(() => this.watch(), 1000);
    document.addEventListener("visibilitychange", () => {
      clearTimeout(this.hidden);
      if (document.visibilityState === "hidden") {
        this.hidden = window.setTimeout(() => this.pause(), pauseAfter);
      } else if (!this.source) {
        this.open();
      }
    });
  }

  /** follow selects the connections whose samples and segments the server sends. */
  follow(ids: string[], segments: string): void {
    const query = [...ids.map((f) => `connection=${encodeURIComponent(f)}`),
      segments && `segments=${encodeURIComponent(segments)}`].filter(Boolean).join("&");
    if (query === this.query) return;
    this.query = query;
    for (const id of this.store.followed.keys()) {
      if (!ids.includes(id)) this.store.followed.delete(id);
    }
    if (this.source) this.open();
  }

  private pause(): void {
    this.close();
    this.become("paused");
  }

  private close(): void {
    clearTimeout(this.retry);
    this.source?.abort();
    this.source = null;
  }

  /** open requests the stream. EventSource cannot send the token, so fetch reads the server-sent events. */
  open(): void {
    this.close();
    const source = this.source = new AbortController();
    this.store.stale = true;
    this.read(source.signal).catch((e: Error) => e).then((e) => {
      if (source !== this.source) return;
      this.close();
      const refused = e instanceof Problem && (e.status === 401 || e.status === 403);
      // Another tab may store a new token.
      this.retry = window.setTimeout(() => this.open(), refused ? refusedAfter : retryAfter);
      if (refused) {
        this.become("refused");
      } else if (e instanceof TypeError) { // fetch could not connect
        this.become("away");
      } else {
        // the server may no longer know the followed connection; the next render follows it again
        this.query = "";
        this.become("connecting");
      }
    });
  }

  private async read(signal: AbortSignal): Promise<void> {
    const r = await ask("/v1/stream" + (this.query && `?${this.query}`), { signal });
    for await (const text of parts(r, "\n\n")) {
      if (signal.aborted) return;
      const [, name, data] = /^event: (.*)\ndata: (.*)$/m.exec(text) ?? [];
      if (!name) continue; // a comment, which keeps the connection open
      try {
        this.store.take(name, JSON.parse(data!));
      } catch (e) {
        reportError(e);
      }
      if (name === "tick") this.become("live");
    }
  }

  private become(now: Store["service"]): void {
    if (this.store.service === now) return;
    const was = this.store.service;
    this.store.service = now;
    if (now === "away") this.store.note("The server does not answer", "bad", { at: Date.now() });
    if (now === "live" && was === "away") this.store.note("The server is back", "good");
    this.store.onChange();
  }

  private watch(): void {
    if (this.store.service === "live" && performance.now() - this.store.ticked > staleAfter) {
      this.become("stale");
    }
  }
}
