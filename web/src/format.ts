// Numbers with units for display.

function scaled(value: number, units: string[], step = 1000): string {
  let i = 0;
  while (Math.abs(value) >= step * 0.9995 && i < units.length - 1) {
    value /= step;
    i++;
  }
  const digits = i === 0 || Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[i]}`;
}

export const bitRate = (perSecond: number): string =>
  scaled(perSecond, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);

export const bytes = (n: number): string => scaled(n, ["B", "kB", "MB", "GB", "TB"]);

export const count = (n: number): string => n.toLocaleString("en");

export function duration(ns: number): string {
  if (ns < 0) return "–";
  if (ns < 1e3) return `${ns} ns`;
  if (ns < 1e6) return `${(ns / 1e3).toFixed(ns < 1e5 ? 1 : 0)} µs`;
  if (ns < 1e9) return `${(ns / 1e6).toFixed(ns < 1e7 ? 2 : ns < 1e8 ? 1 : 0)} ms`;
  const seconds = ns / 1e9;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

export function percent(share: number): string {
  const p = share * 100;
  if (p === 0) return "0 %";
  return `${p < 1 ? p.toFixed(2) : p < 10 ? p.toFixed(1) : p.toFixed(0)} %`;
}

export const clockTime = (at: number): string =>
  new Date(at).toLocaleTimeString("en-GB", { hour12: false });

export const plural = (n: number, one: string, many = one + "s"): string =>
  `${count(n)} ${n === 1 ? one : many}`;
