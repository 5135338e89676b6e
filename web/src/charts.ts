// Charts of values over time.

import uPlot from "uplot";

export interface Curve {
  name: string;
  color: string; // a custom property of the style sheet
  dash?: number[];
  drawn?: boolean; // drawn as bars, not as a line
  step?: boolean;
  fill?: boolean;
}

export interface ChartOptions {
  label: string; // for screen readers
  curves: Curve[];
  format: (v: number) => string;
  height: number;
  span: number; // in seconds; the axis is shorter until that many have passed
  least?: number; // minimum of the axis's upper end
  last?: string; // label at the right end of the time axis; default "now"
}

const css = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Bar is a vertical bar between two values, with a diamond if marked and a cross if lost. */
export interface Bar { at: number; low: number; high: number; lost: boolean; color: string; marked: boolean }

const shortest = 1; // in seconds; the length of the shortest time axis

/** Chart is a plot with a moving time axis. */
export class Chart {
  private plot: uPlot | null = null;
  private width = 0;
  private theme = "";
  private data: uPlot.AlignedData;
  private end = 0;
  private span: number;
  private names: string[] = [];
  bars: Bar[] = [];

  constructor(private readonly into: HTMLElement, private readonly options: ChartOptions) {
    this.span = options.span;
    this.data = [[], ...options.curves.map(() => [])];
    into.setAttribute("role", "img");
  }

  /** set shows columns: the times in seconds, then one column for each curve. */
  set(data: (number | null)[][], end: number, theme: string, names: string[] = [],
    span = this.options.span): void {
    const first = data[0]?.[0];
    this.span = first == null ? span : Math.min(span, Math.max(shortest, end - first));
    this.names = names;
    this.data = data as uPlot.AlignedData;
    this.end = end;
    const width = Math.floor(this.into.clientWidth);
    if (width < 40) return;
    const last = this.options.curves.map((c, i) => {
      const column = data[i + 1]!;
      const v = column[column.length - 1];
      return v == null ? "" : `${this.names[i] ?? c.name} ${this.options.format(v)}`;
    }).filter(Boolean).join(", ");
    this.into.setAttribute("aria-label", `${this.options.label}: ${last || "no data yet"}`);
    if (!this.plot || width !== this.width || theme !== this.theme) {
      this.width = width;
      this.theme = theme;
      this.make();
      return;
    }
    this.plot.setData(this.data);
    this.legend();
  }

  /** legend shows the newest values, unless the pointer is on the chart, and hides empty curves. */
  private legend(): void {
    const p = this.plot!;
    const newest = this.data.map((column) => {
      let i = column.length - 1;
      while (i >= 0 && column[i] == null) i--;
      return i;
    });
    if (p.cursor.idx == null) p.setLegend({ idxs: newest }, false);
    p.root.querySelectorAll<HTMLElement>(".u-series").forEach((row, i) => {
      if (i > 0) row.style.display = newest[i]! < 0 ? "none" : "";
    });
  }

  private make(): void {
    this.plot?.destroy();
    const o = this.options;
    const muted = css("--muted"), grid = css("--grid");
    const font = "11px system-ui, sans-serif";
    const axis = {
      stroke: muted, font, grid: { stroke: grid, width: 1 }, ticks: { show: false },
    };
    this.plot = new uPlot({
      width: this.width, height: o.height, padding: [8, 22, 0, 0], // half of "now" is right of the plot
      cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
      legend: { live: true, markers: { width: 0 } },
      scales: {
        x: { time: false, range: () => [this.end - this.span, this.end] },
        y: {
          range: (_u, _low, high) => [0, Math.max((high || 0) * 1.1, o.least ?? 0.01)],
        },
      },
      axes: [
        {
          ...axis, size: 22, space: 60,
          values: (_u, splits) => splits.map((v) => {
            const ago = this.end - v;
            if (ago < this.span / 100) return o.last ?? "now";
            return this.span < 0.9 ? `−${Math.round(ago * 1000)} ms` : `−${+ago.toFixed(this.span < 20 ? 1 : 0)} s`;
          }),
          splits: () => {
            const parts = this.span % 4 ? 3 : 4;
            return Array.from({ length: parts + 1 }, (_, i) => this.end - this.span * (1 - i / parts));
          },
        },
        { ...axis, size: 74, space: 34, values: (_u, splits) => splits.map((v) => (v === 0 ? "0" : o.format(v))) },
      ],
      hooks: { draw: [(u) => this.drawBars(u)] },
      series: [
        { label: "", value: (_u, v) => (v == null ? "" : `${(v - this.end).toFixed(1)} s`) },
        ...o.curves.map((c, i): uPlot.Series => ({
          label: this.names[i] ?? c.name, stroke: css(c.color), width: c.drawn ? 0 : c.fill ? 1 : 2,
          ...(c.step ? { paths: uPlot.paths.stepped!({ align: 1 }), spanGaps: true } : {}),
          ...(c.dash ? { dash: c.dash } : {}),
          ...(c.fill ? { fill: css(c.color) + "22" } : {}),
          points: { show: false },
          value: (_u, v) => (v != null ? o.format(v) : "–"),
        })),
      ],
    }, this.data, this.into);
    this.plot.root.setAttribute("aria-hidden", "true"); // aria-label replaces it
    const names = this.plot.root.querySelectorAll<HTMLElement>(".u-series th");
    o.curves.forEach((c, i) => names[i + 1]?.style.setProperty("--curve", css(c.color)));
    this.legend();
  }

  private drawBars(u: uPlot): void {
    const pen = u.ctx, unit = devicePixelRatio;
    pen.save();
    pen.beginPath();
    pen.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    pen.clip();
    const bad = css("--bad"), colors = new Map(this.options.curves.map((c) => [c.color, css(c.color)]));
    const r = 4 * unit;
    const place = (b: Bar): [x: number, low: number, high: number] => {
      const low = u.valToPos(b.low, "y", true);
      return [u.valToPos(b.at, "x", true), low, Math.min(u.valToPos(b.high, "y", true), low - 2 * unit)];
    };
    for (const b of this.bars) {
      const [x, low, high] = place(b);
      pen.strokeStyle = colors.get(b.color)!;
      pen.lineWidth = 2 * unit;
      pen.beginPath();
      pen.moveTo(x, low);
      pen.lineTo(x, high);
      pen.stroke();
    }
    for (const b of this.bars) { // marks are drawn above all bars
      const [x, low, high] = place(b), y = (low + high) / 2;
      if (b.marked) {
        pen.fillStyle = colors.get(b.color)!;
        pen.strokeStyle = css("--surface");
        pen.lineWidth = unit;
        pen.beginPath();
        for (const [dx, dy] of [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]] as const) pen.lineTo(x + dx * r, y + dy * r);
        pen.closePath();
        pen.fill();
        pen.stroke();
      }
      if (b.lost) {
        pen.beginPath();
        pen.lineWidth = 1.5 * unit;
        pen.strokeStyle = bad;
        pen.moveTo(x - r, y - r);
        pen.lineTo(x + r, y + r);
        pen.moveTo(x + r, y - r);
        pen.lineTo(x - r, y + r);
        pen.stroke();
      }
    }
    pen.restore();
  }

  destroy(): void {
    this.plot?.destroy();
    this.plot = null;
  }
}
