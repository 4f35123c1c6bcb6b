// The address is the state: the path names the screen, the parameters everything else.
import { signal } from "@preact/signals";

const base = new URL(document.baseURI).pathname;

function read() {
  const path = location.pathname.startsWith(base) ? location.pathname.slice(base.length) : location.pathname.slice(1);
  return { parts: path.split("/").filter(Boolean).map(decode), params: new URLSearchParams(location.search) };
}
function decode(part: string): string {
  try { return decodeURIComponent(part); } catch { return part; }
}

/** Where the page is. */
export const place = signal(read());

/** Goes to an address relative to the base. */
export function go(to: string, replace = false) {
  settled();
  const url = new URL(to || ".", document.baseURI);
  if (url.href === location.href) return;
  if (replace) history.replaceState(null, "", url); else history.pushState(null, "", url);
  place.value = read();
  if (!replace) scrollTo(0, 0);
}

/** The address of the same screen with other parameters. */
export function withParams(changes: Record<string, string | null>): string {
  const params = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries({ ...unsettled, ...changes })) {
    if (value === null || value === "") params.delete(name); else params.set(name, value);
  }
  const text = params.toString();
  return place.value.parts.map(encodeURIComponent).join("/") + (text ? "?" + text : "");
}

let waiting: ReturnType<typeof setTimeout> | undefined;
let unsettled: Record<string, string | null> = {};
function settled() { clearTimeout(waiting); unsettled = {}; }
/** Writes parameters once they have settled: browsers limit how often an address may change. */
export function settle(changes: Record<string, string | null>) {
  clearTimeout(waiting);
  unsettled = { ...unsettled, ...changes };
  waiting = setTimeout(() => go(withParams({}), true), 150);
}

export const param = (name: string) => place.value.params.get(name) ?? "";

export function appUrl(app: readonly [string, string], rest = ""): string {
  return `applications/${encodeURIComponent(app[0])}/${encodeURIComponent(app[1])}${rest}`;
}
export function objectUrl(app: readonly [string, string], o: { group: string; kind: string; namespace: string; name: string }, tab = ""): string {
  const part = (text: string) => encodeURIComponent(text || "-");
  return appUrl(app, `/o/${part(o.group)}/${part(o.kind)}/${part(o.namespace)}/${part(o.name)}${tab ? "?tab=" + tab : ""}`);
}

/** Where an object is shown: an Application has a screen of its own. */
export function placeUrl(app: readonly [string, string], o: { group: string; kind: string; namespace: string; name: string }): string {
  return o.group === "argoproj.io" && o.kind === "Application" ? appUrl([o.namespace || app[0], o.name]) : objectUrl(app, o);
}

addEventListener("popstate", () => { settled(); place.value = read(); });
document.addEventListener("click", (event) => {
  const link = (event.target as Element | null)?.closest?.("a[href]") as HTMLAnchorElement | null;
  if (!link || link.target || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const url = new URL(link.href);
  if (url.origin !== location.origin || !url.pathname.startsWith(base) || link.hasAttribute("data-leave")) return;
  event.preventDefault();
  go(url.pathname.slice(base.length) + url.search);
});
