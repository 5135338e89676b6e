// Talking to the server: the session, the stream, and commands.

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

/** begin changes the token of the address bar for a cookie, and takes it out of there. */
export async function begin(): Promise<void> {
  const m = /^#token=([A-Za-z0-9]+)$/.exec(location.hash);
  if (!m) return;
  history.replaceState(null, "", location.pathname);
  const r = await fetch("/v1/session", {
    method: "POST", headers: { Authorization: `Bearer ${m[1]}` },
  });
  if (!r.ok) await refuse(r);
}

export async function command<T>(node: string, name: string, body: object): Promise<T> {
  const r = await fetch(`/v1/nodes/${encodeURIComponent(node)}/commands/${name}`, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  if (!r.ok) await refuse(r);
  return r.status === 204 ? (undefined as T) : ((await r.json()) as T);
}

/** lines carries a command out whose answer is a stream, and returns its result. */
export async function lines<T>(
  path: string, body: object, tell: (event: string, data: any) => void, signal: AbortSignal,
): Promise<T> {
  const r = await fetch(path, {
    method: "POST", signal, body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", Accept: "application/x-ndjson" },
  });
  if (!r.ok || !r.body) return refuse(r);
  const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Problem(0, "the server ended the answer early");
    rest += value;
    for (let i = rest.indexOf("\n"); i >= 0; i = rest.indexOf("\n")) {
      const text = rest.slice(0, i);
      rest = rest.slice(i + 1);
      if (!text) continue;
      const { event, data } = JSON.parse(text);
      if (event === "result") return data as T;
      if (event === "error") throw new Problem(data.status, plain(data.detail), data.type);
      tell(event, data);
    }
  }
}

/** isStop reports whether an error is that somebody had a command end. */
export const isStop = (e: unknown): boolean =>
  e instanceof Problem ? e.type === "/v1/problems/stopped" : (e as Error).name === "AbortError";

export async function stop(node: string, id: number): Promise<void> {
  await fetch(`/v1/nodes/${encodeURIComponent(node)}/running/${id}`, { method: "DELETE" });
}

const events = ["network", "life", "interfaces", "sockets", "routes", "neighbors", "rip", "told",
  "sample", "segments", "tick"];
const staleAfter = 4000; // milliseconds without a tick
const retryAfter = 2000;
const refusedAfter = 5000;
const pauseAfter = 60_000; // hidden

/** Stream keeps the store fed: it reconnects, pauses while nobody looks, and notices silence. */
export class Stream {
  private source: EventSource | null = null;
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

  /** follow says which connections are looked at closely. */
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
    this.source?.close();
    this.source = null;
  }

  open(): void {
    this.close();
    const source = new EventSource("/v1/stream" + (this.query && `?${this.query}`));
    this.source = source;
    this.store.stale = true;
    for (const name of events) {
      source.addEventListener(name, (e) => {
        this.store.take(name, JSON.parse((e as MessageEvent).data));
        if (name === "tick") this.become("live");
      });
    }
    source.onerror = () => {
      if (source !== this.source) return;
      this.close();
      void this.why();
      this.retry = window.setTimeout(() => this.open(), retryAfter);
    };
  }

  /** why finds out what an error of the stream, which says nothing, is about. */
  private async why(): Promise<void> {
    try {
      const r = await fetch("/v1/process");
      if (this.source) return; // it has been opened meanwhile
      if (r.status === 401 || r.status === 403) {
        // Another tab may show the new token, and the cookie is for both.
        clearTimeout(this.retry);
        this.retry = window.setTimeout(() => this.open(), refusedAfter);
        this.become("refused");
      } else {
        // The server is there. It may know nothing of what is followed any more: if it does, that
        // is asked for again with the next picture.
        this.query = "";
        this.become("connecting");
      }
    } catch {
      this.become("away");
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
