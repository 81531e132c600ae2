// Numbers and times as people read them.

export function number(n: number | null | undefined): string {
  return n === null || n === undefined ? '–' : n.toLocaleString('en');
}

export function decimal(n: number | null | undefined, places = 1): string {
  return n === null || n === undefined ? '–' : n.toFixed(places);
}

export function percent(n: number | null | undefined): string {
  return n === null || n === undefined ? '–' : `${Math.round(n)} %`;
}

export function bytes(n: number | null | undefined): string {
  if (n === null || n === undefined) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024;
    i++;
  }
  return `${n < 10 && i > 0 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

/** 3 → "3 rooms", 1 → "1 room". */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${number(n)} ${n === 1 ? one : many}`;
}

/** 1 "lobbies" → "1 lobby": of lists, which are named in the plural. */
export function countOf(n: number, many: string): string {
  return count(n, many.replace(/ies$/, 'y').replace(/(ch|sh|x)es$/, '$1').replace(/s$/, ''), many);
}

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} d`;
}

/** A difference of two times of the API, which are whole milliseconds. */
export function wholeMs(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  return ms < 1 ? '< 1 ms' : ms < 10 ? `${Math.round(ms)} ms` : duration(ms);
}

export function ago(at: string | null | undefined, now = Date.now()): string {
  if (!at) return '–';
  const ms = now - Date.parse(at);
  return ms < 1500 ? 'now' : `${duration(ms)} ago`;
}

export function until(at: string | null | undefined, now = Date.now()): string {
  if (!at) return '–';
  const ms = Date.parse(at) - now;
  return ms < 0 ? 'over' : `in ${duration(ms)}`;
}

export function clock(at: string | null | undefined): string {
  if (!at) return '–';
  const d = new Date(at);
  const two = (n: number) => String(n).padStart(2, '0');
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

export function dateTime(at: string | null | undefined): string {
  if (!at) return '–';
  const d = new Date(at);
  const two = (n: number) => String(n).padStart(2, '0');
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(at)}`;
}

/** "not_ready" → "not ready". */
export const words = (code: string): string => code.replace(/_/g, ' ');
