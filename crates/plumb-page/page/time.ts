// Times: how long ago, and when, together. Durations tick without the network.
import { signal } from "@preact/signals";

let offset = 0;
/** Seconds since 1970 by the server's clock. */
export const now = signal(Math.floor(Date.now() / 1000));
export function noteServerTime(seconds: number) { offset = seconds - Date.now() / 1000; tick(); }
function tick() { now.value = Math.floor(Date.now() / 1000 + offset); }
setInterval(tick, 1000);

/** True: UTC. Else the zone of the browser. */
export const utc = signal(localStorage.getItem("plumb.zone") !== "local");
export function setUtc(on: boolean) { utc.value = on; localStorage.setItem("plumb.zone", on ? "utc" : "local"); }
/** The zone of the browser. */
export const zoneName = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

export function duration(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return s < 36000 && Math.floor(s / 60) % 60 ? `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min` : `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}
const two = (n: number) => String(n).padStart(2, "0");
/** 03:01:12Z, with the date if it is not today. */
export function clock(at: number): string {
  const d = new Date(at * 1000), t = new Date(now.value * 1000);
  const parts = (x: Date) => utc.value
    ? [x.getUTCFullYear(), x.getUTCMonth() + 1, x.getUTCDate(), x.getUTCHours(), x.getUTCMinutes(), x.getUTCSeconds()]
    : [x.getFullYear(), x.getMonth() + 1, x.getDate(), x.getHours(), x.getMinutes(), x.getSeconds()];
  const [y, m, day, h, min, s] = parts(d) as [number, number, number, number, number, number];
  const today = parts(t), end = utc.value ? "Z" : "";
  if (y === today[0] && m === today[1] && day === today[2]) return `${two(h)}:${two(min)}:${two(s)}${end}`;
  return `${y}-${two(m)}-${two(day)} ${two(h)}:${two(min)}${end}`;
}
