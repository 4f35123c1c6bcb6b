// What the page knows: who uses it, the apps, what is wrong, and how fresh that is.
import { batch, signal } from "@preact/signals";
import { Refused, loggedOut, own } from "./api";
import { noteServerTime, now } from "./time";
import type { Home, Me, Row } from "./types";

export const me = signal<Me | null>(null);
export const home = signal<Home | null>(null);
export const homeError = signal("");
/**
 * All apps, or null until a screen needed them. `version` changes with every change. `order` changes when a list may be
 * sorted again: not while somebody scrolls, and not more often than every two seconds, so that nothing jumps away.
 */
export const rows = { all: null as Map<string, Row> | null, version: signal(0), order: signal(0), error: signal("") };
/** When the last news arrived, by the clock of this browser. */
export const news = signal(0);
/** Why there is no stream, and when the next attempt is. */
export const broken = signal<{ why: string; again: number } | null>(null);
/** A sentence for a moment, perhaps with something to do. */
export const toast = signal<{ text: string; action?: { name: string; run: () => void } } | null>(null);

const build = document.querySelector<HTMLMetaElement>("meta[name=plumb-build]")?.content ?? "";
let columns: string[] = [];
let stream: EventSource | null = null;
let token = "";
let failures = 0;
let waiting: ReturnType<typeof setTimeout> | undefined;
let pending: { rows: unknown[][]; gone: [string, string][] }[] | null = null;

export const isStale = () => broken.value !== null || (news.value > 0 && Date.now() - news.value > 12_000 && now.value > 0);
export const mayWrite = () => !isStale() && !loggedOut.value && me.value?.readOnly === false;

export function say(text: string, action?: { name: string; run: () => void }) {
  const shown = { text, action };
  toast.value = shown;
  setTimeout(() => { if (toast.value === shown) toast.value = null; }, action ? 15_000 : 6_000);
}

function toRow(cells: unknown[]): Row {
  const row: Record<string, unknown> = {};
  for (let i = 0; i < columns.length; i++) row[columns[i]!] = cells[i];
  row.key = `${row.ns}/${row.name}`;
  return row as unknown as Row;
}

function apply(change: { rows: unknown[][]; gone: [string, string][] }) {
  const all = rows.all;
  if (!all) return;
  for (const cells of change.rows) { const row = toRow(cells); all.set(row.key, row); }
  for (const [ns, name] of change.gone) all.delete(`${ns}/${name}`);
  rows.version.value++;
  orderSoon();
}

let orderTimer: ReturnType<typeof setTimeout> | undefined, scrolled = 0;
addEventListener("scroll", () => { scrolled = Date.now(); }, { passive: true });
function orderSoon() {
  orderTimer ??= setTimeout(() => {
    orderTimer = undefined;
    if (Date.now() - scrolled < 1000) orderSoon(); else rows.order.value++;
  }, 2000);
}

/** Loads all apps, once. */
export async function loadRows() {
  if (rows.all || pending) return;
  await reloadRows();
}
async function reloadRows() {
  // Changes that arrive while the snapshot is on its way are newer than it.
  pending = [];
  try {
    const snapshot = await own<{ columns: string[]; rows: unknown[][]; token: string }>("apps");
    columns = snapshot.columns;
    const all = new Map<string, Row>();
    for (const cells of snapshot.rows) { const row = toRow(cells); all.set(row.key, row); }
    batch(() => {
      rows.all = all;
      rows.error.value = "";
      for (const change of pending ?? []) apply(change);
      rows.version.value++;
      rows.order.value++;
    });
  } catch (error) {
    rows.error.value = (error as Error).message;
  } finally { pending = null; }
}

let homeAsked = 0, homeTimer: ReturnType<typeof setTimeout> | undefined;
export async function loadHome() {
  clearTimeout(homeTimer);
  homeTimer = undefined;
  homeAsked = Date.now();
  try {
    const answer = await own<Home>("home");
    batch(() => { home.value = answer; homeError.value = ""; news.value = Date.now(); });
    if (!token) token = answer.token;
    document.title = answer.things ? `${answer.things} wrong · plumb` : "All is well · plumb";
    icon(answer.things > 0);
  } catch (error) { homeError.value = (error as Error).message; }
}
/** Home again, soon: many changes are one request. */
function homeSoon() {
  if (homeTimer) return;
  homeTimer = setTimeout(loadHome, Math.max(60, 700 - (Date.now() - homeAsked)));
}

function icon(wrong: boolean) {
  const shape = wrong
    ? "<path d='M8 1 15 14H1z' fill='%23c2410c'/>" : "<circle cx='8' cy='8' r='6' fill='%23047857'/>";
  document.querySelector<HTMLLinkElement>("link[rel=icon]")!.href =
    `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>${shape}</svg>`;
}

/** Follows changes. A tab that nobody sees closes its stream after a while: browsers allow six connections. */
export function follow() {
  stream?.close();
  clearTimeout(waiting);
  const source = new EventSource(new URL(`api/plumb/v1/stream?from=${encodeURIComponent(token)}`, document.baseURI));
  stream = source;
  const heard = (event: MessageEvent) => {
    if (event.lastEventId) token = event.lastEventId;
    failures = 0;
    batch(() => { news.value = Date.now(); broken.value = null; });
  };
  source.addEventListener("beat", (event) => { heard(event); noteServerTime(JSON.parse(event.data).now); });
  source.addEventListener("rows", (event) => {
    heard(event);
    const change = JSON.parse(event.data);
    if (pending) pending.push(change); else apply(change);
    homeSoon();
  });
  source.addEventListener("reset", (event) => {
    heard(event);
    if (rows.all) void reloadRows();
    homeSoon();
  });
  source.addEventListener("logout", () => { source.close(); loggedOut.value = true; });
  source.addEventListener("away", () => { source.close(); again("This replica does not lead."); });
  source.onerror = () => { source.close(); if (stream === source) void why(); };
}

async function why() {
  try {
    me.value = await own<Me>("me");
    again("The stream broke off.");
  } catch (error) {
    if (error instanceof Refused && error.status === 401) return;
    again((error as Error).message);
  }
}
function again(reason: string) {
  const wait = Math.min(60, 2 ** failures++) * (0.75 + Math.random() / 2);
  broken.value = { why: reason, again: Date.now() + wait * 1000 };
  waiting = setTimeout(() => { follow(); checkBuild(); }, wait * 1000);
}
/** After an upgrade the server has another page. It is taken when nobody is in the middle of something. */
async function checkBuild() {
  try {
    const text = await (await fetch(document.baseURI, { cache: "no-cache" })).text();
    if (build && text.includes("plumb-build") && !text.includes(build) && !document.querySelector("dialog[open]")) location.reload();
  } catch { /* The next attempt asks again. */ }
}

let hidden: ReturnType<typeof setTimeout> | undefined;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hidden);
  if (document.hidden) hidden = setTimeout(() => { stream?.close(); stream = null; }, 30_000);
  else if (!stream && me.value && !loggedOut.value) { follow(); void loadHome(); }
});

// A page that was left may live on in the browser's memory, and its stream would hold one of six connections.
addEventListener("pagehide", () => { stream?.close(); stream = null; clearTimeout(waiting); });
addEventListener("pageshow", (event) => { if (event.persisted && me.value && !loggedOut.value) { follow(); void loadHome(); } });

/** Starts, or starts again after a login. */
export async function start() {
  loggedOut.value = false;
  me.value = await own<Me>("me");
  noteServerTime(me.value.now);
  await loadHome();
  follow();
}
