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
/**
 * Counts changes of any app, at most one every two seconds. What is made from all apps is loaded again when it grows.
 */
export const changes = signal(0);
/** Why the server does not know everything, and since when. */
export const trouble = signal<Home["trouble"]>(null);
/** A sentence for a moment, perhaps with something to do. */
export const toast = signal<{ text: string; action?: { name: string; run: () => void } } | null>(null);

const build = document.querySelector<HTMLMetaElement>("meta[name=plumb-build]")?.content ?? "";
let columns: string[] = [];
let stream: EventSource | null = null;
let token = "";
let failures = 0;
/** When the stream was opened. */
let opened = 0;
/** True while nobody sees the page and its stream is closed. */
let rests = false;
/** True once a screen needed all apps. */
let wanted = false;
let waiting: ReturnType<typeof setTimeout> | undefined;
let pending: { rows: unknown[][]; gone: [string, string][] }[] | null = null;

/** What is older than this (in milliseconds) is not shown as if it were so now. */
const OLD = 12_000;
export const isStale = () => loggedOut.value || broken.value !== null || (news.value > 0 && Date.now() - news.value > OLD && now.value > 0);
/** Why nothing can be done now. A read-only page still shows plans, for their commands. */
export const whyNot = () => isStale() ? "There is no fresh news from the server, so nothing can be done now." : null;
/** What users of a command write for an app. */
export const cliName = (app: readonly [string, string]) => app[0] === "argocd" ? app[1] : `${app[0]}/${app[1]}`;

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

let changeTimer: ReturnType<typeof setTimeout> | undefined;
/** Something changed: what depends on all apps is loaded again, soon. */
export function changed(after = 2000) {
  if (after === 0) { clearTimeout(changeTimer); changeTimer = undefined; changes.value++; return; }
  changeTimer ??= setTimeout(() => { changeTimer = undefined; changes.value++; }, after);
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
  wanted = true;
  if (rows.all || pending) return;
  await reloadRows();
}
let round = 0;
export async function reloadRows() {
  // Changes that arrive while the snapshot is on its way are newer than it. Of two snapshots the later one counts.
  const mine = ++round;
  pending = [];
  try {
    const snapshot = await own<{ columns: string[]; rows: unknown[][]; token: string }>("apps");
    if (mine !== round) return;
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
    if (mine === round) rows.error.value = (error as Error).message;
  } finally { if (mine === round) pending = null; }
}

/** Home has times and lengths that no event announces, such as a sync that hangs. It is asked for again after this. */
const HOME_OLD = 30_000;
let homeAsked = 0, homeTimer: ReturnType<typeof setTimeout> | undefined;
export async function loadHome() {
  clearTimeout(homeTimer);
  homeTimer = undefined;
  homeAsked = Date.now();
  try {
    const answer = await own<Home>("home");
    batch(() => {
      home.value = answer;
      homeError.value = "";
      news.value = Date.now();
      trouble.value = answer.trouble ?? null;
      if (answer.me) { me.value = answer.me; noteServerTime(answer.me.now); }
    });
    if (!token) token = answer.token;
    showState();
  } catch (error) { homeError.value = (error as Error).message; throw error; }
}
/** Home again, soon: many changes are one request. */
function homeSoon() {
  if (homeTimer) return;
  homeTimer = setTimeout(() => void loadHome().catch(() => {}), Math.max(60, 700 - (Date.now() - homeAsked)));
}

/** The title and the icon of the tab say how it is. Without fresh news they say that. */
export function showState() {
  const at = home.peek(), stale = isStale();
  if (!at) return;
  const knows = !stale && at.apps > at.unknown && !at.trouble;
  document.title = stale ? "No news · plumb" : at.things ? `${at.things} wrong · plumb` : knows ? "All is well · plumb" : "plumb";
  const shape = at.things && !stale ? "<path d='M8 1 15 14H1z' fill='%23c2410c'/>"
    : knows ? "<circle cx='8' cy='8' r='6' fill='%23047857'/>" : "<circle cx='8' cy='8' r='5' fill='none' stroke='%237d8590' stroke-width='2'/>";
  document.querySelector<HTMLLinkElement>("link[rel=icon]")!.href =
    `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>${shape}</svg>`;
}

/** Follows changes. A tab that nobody sees closes its stream after a while: browsers allow six connections. */
export function follow() {
  stop();
  rests = false;
  const source = new EventSource(new URL(`api/plumb/v1/stream?from=${encodeURIComponent(token)}`, document.baseURI));
  stream = source;
  opened = Date.now();
  const heard = (event: MessageEvent) => {
    if (event.lastEventId) token = event.lastEventId;
    failures = 0;
    batch(() => { news.value = Date.now(); broken.value = null; });
    if (wanted && !rows.all && !pending) void reloadRows();
  };
  source.addEventListener("beat", (event) => {
    heard(event);
    const beat = JSON.parse(event.data);
    noteServerTime(beat.now);
    trouble.value = beat.trouble ?? null;
    if (Date.now() - homeAsked > HOME_OLD) homeSoon();
  });
  source.addEventListener("rows", (event) => {
    heard(event);
    const change = JSON.parse(event.data);
    if (pending) pending.push(change); else apply(change);
    homeSoon();
    changed();
  });
  source.addEventListener("reset", (event) => {
    heard(event);
    if (wanted) void reloadRows();
    homeSoon();
    changed();
  });
  // The stream goes by the token that it was opened with. The browser may have a newer one.
  source.addEventListener("logout", () => { stop(); void why(); });
  source.addEventListener("away", () => again("This replica does not lead."));
  source.onerror = () => { if (stream !== source) return; stop(); void why(); };
}
function stop() {
  stream?.close();
  stream = null;
  clearTimeout(waiting);
}
/** A connection can be dead without an error: after sleep, in another network, behind a NAT that forgot it. */
setInterval(() => {
  if (!stream || loggedOut.value || Date.now() - Math.max(news.value, opened) <= OLD) return;
  again("The server sends nothing.");
}, 1000);

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
  stop();
  if (rests) return;
  const wait = Math.min(60, 2 ** failures++) * (0.75 + Math.random() / 2);
  broken.value = { why: reason, again: Date.now() + wait * 1000 };
  waiting = setTimeout(() => { follow(); void checkBuild(); }, wait * 1000);
}
/** Somebody looks at the page again, or the network is back: old news is not waited for. */
function wake() {
  if (!me.value || loggedOut.value) return;
  if (stream && Date.now() - news.value <= OLD) return;
  failures = 0;
  follow();
  void loadHome().catch(() => {});
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
  if (document.hidden) hidden = setTimeout(() => { rests = true; stop(); }, 30_000);
  else wake();
});
addEventListener("online", wake);

// A page that was left may live on in the browser's memory, and its stream would hold one of six connections.
addEventListener("pagehide", stop);
addEventListener("pageshow", (event) => { if (event.persisted) wake(); });

/** Starts, or starts again after a login. */
export async function start() {
  loggedOut.value = false;
  try { await loadHome(); } catch (error) { if (error instanceof Refused && error.status === 401) throw error; }
  // A server that cannot tell what is wrong can still say who asks.
  if (!me.value) { me.value = await own<Me>("me"); noteServerTime(me.value.now); }
  follow();
}
