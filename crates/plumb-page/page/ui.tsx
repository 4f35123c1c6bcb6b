// Small parts that all screens share.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Refused } from "./api";
import { isStale, say } from "./store";
import { clock, duration, now } from "./time";
import type { AppRef, ObjectRef, Used } from "./types";
import { appUrl, objectUrl, placeUrl } from "./url";

const shapes: Record<string, string> = {
  ill: "M3.2 3.2 12.8 12.8M12.8 3.2 3.2 12.8", counts: "M8 2.5 14 13H2z", busy: "M2.5 8a5.5 5.5 0 0 1 10-3.2M13.5 8a5.5 5.5 0 0 1-10 3.2M12.8 2v3h-3M3.2 14v-3h3",
  well: "M8 2.5a5.5 5.5 0 1 0 .01 0z", paused: "M5 3v10M11 3v10", unknown: "M5.5 6a2.5 2.5 0 1 1 3.4 2.3c-.6.3-.9.6-.9 1.5M8 12.6v.4", explained: "M8 6.5a1.5 1.5 0 1 0 .01 0z",
};
export type State = "ill" | "counts" | "busy" | "well" | "paused" | "unknown" | "explained";

/** True where the screen is drawn for a phone, also because the text is large. The style has the same width. */
export const isNarrow = () => matchMedia("(max-width: 43.75em)").matches;

/** A state as a shape. The word beside it says the same, so the shape itself is hidden from readers of the screen. */
export function Mark({ state }: { state: State }) {
  return <svg class={`mark ${state}`} viewBox="0 0 16 16" aria-hidden="true"><path d={shapes[state]} /></svg>;
}

export function stateOf(sync: string, health: string, klass: string, op = ""): State {
  if (klass === "Stuck" || klass === "Crashing" || klass === "ImagePull" || klass === "SyncFailed" || klass.endsWith("Error") || health === "Degraded" || health === "Missing") return "ill";
  if (klass || sync === "OutOfSync") return "counts";
  if (op === "Running" || health === "Progressing") return "busy";
  if (health === "Suspended") return "paused";
  if (sync === "Unknown" || health === "Unknown") return sync === "Synced" ? "well" : "unknown";
  return "well";
}

/** How long ago, and when. */
export function Ago({ at, word = "" }: { at: number | null; word?: string }) {
  if (at === null) return null;
  return <span class="ago">{word}{duration(now.value - at)} ago <time dateTime={new Date(at * 1000).toISOString()}>{clock(at)}</time></span>;
}
/** How long, without the clock; for dense lists, where the detail has the time. */
export function For({ at }: { at: number | null }) {
  return at === null ? null : <span title={clock(at)}>{duration(now.value - at)}</span>;
}

export function Name({ app }: { app: AppRef }) {
  return <a class="name" href={appUrl(app)}>{app[1]}</a>;
}
/** Who made a difference. Where somebody must have made it and is not known, that is said. */
export function Who({ actor, klass }: { actor: string; klass: string }) {
  if (actor) return <span class="who">by <b>{actor}</b></span>;
  return klass === "LiveEdit" || klass === "TugOfWar" ? <span class="who">by somebody; who is not known</span> : null;
}
export const objectName = (o: ObjectRef) => `${o.kind} ${o.namespace ? o.namespace + "/" : ""}${o.name}`;
export function ObjectLink({ app, o, tab }: { app: AppRef; o: ObjectRef; tab?: string }) {
  return <a class="object" href={tab ? objectUrl(app, o, tab) : placeUrl(app, o)}><span class="kind">{o.kind}</span> {o.namespace ? o.namespace + "/" : ""}{o.name}</a>;
}

/** Who refers to an object by name, where that was looked up. */
export function UsedLine({ app, of }: { app: AppRef; of: Used }) {
  if (of.used === undefined) return null;
  if (of.used === 0) return <p class="small">Nothing that plumb can see uses it.</p>;
  const named = of.users ?? [], more = of.used - named.length;
  return <p class="small counts">Used by {named.map((user, i) => <span key={objectName(user)}>{i > 0 && ", "}<ObjectLink app={user.app ?? app} o={user} /></span>)}{more > 0 && (named.length ? ` and ${more} more` : `${more} ${more === 1 ? "object" : "objects"} that you may not see`)}</p>;
}

export async function copy(text: string, what = "Copied.") {
  try { await navigator.clipboard.writeText(text); say(what); } catch { say("The browser does not permit copying here."); }
}
export function Command({ text }: { text: string }) {
  return <div class="command"><code>{text}</code><button class="quiet" onClick={() => copy(text, "Command copied.")} aria-label={`Copy ${text}`}>Copy</button></div>;
}

export function Button(props: { onClick: () => void; children: ComponentChildren; off?: string | null | false; kind?: string; label?: string }) {
  const { off } = props;
  return <button class={props.kind ?? ""} aria-disabled={off ? "true" : undefined} title={off || undefined} aria-label={props.label}
    onClick={() => (off ? say(off) : props.onClick())}>{props.children}</button>;
}

export interface Loaded<T> { value: T | null; error: string; again: () => void }
/**
 * Loads something, again when `version` changes; another `key` is another thing. The old value stays until the new one is
 * there. One request runs at a time: what changes meanwhile is asked for after it.
 */
export function useLoaded<T>(key: string | null, load: () => Promise<T>, version: string | number = ""): Loaded<T> {
  const [state, set] = useState<{ key: string | null; value: T | null; error: string }>({ key: null, value: null, error: "" });
  const [round, again] = useState(0);
  const latest = useRef({ key, load, runs: null as string | null, behind: false, gone: false });
  latest.current.key = key;
  latest.current.load = load;
  useEffect(() => {
    const l = latest.current;
    const run = () => {
      const mine = l.key;
      if (mine === null || l.gone) return;
      if (l.runs === mine) { l.behind = true; return; }
      l.runs = mine;
      l.behind = false;
      const end = (next: (old: { key: string | null; value: T | null; error: string }) => { key: string | null; value: T | null; error: string }) => {
        // The answer of a place that was left is not wanted any more.
        if (l.gone || l.key !== mine || l.runs !== mine) return;
        l.runs = null;
        set(next);
        if (l.behind) run();
      };
      l.load().then(
        (value) => end(() => ({ key: mine, value, error: "" })),
        (error: Error) => end((old) => ({ key: mine, value: old.key === mine ? old.value : null, error: error instanceof Refused ? error.message : String(error) })),
      );
    };
    run();
  }, [key, version, round]);
  useEffect(() => { latest.current.gone = false; return () => { latest.current.gone = true; }; }, []);
  return { value: state.key === key ? state.value : null, error: state.key === key ? state.error : "", again: () => again((n) => n + 1) };
}

/** Grows every so many seconds while somebody looks and news is fresh: the version of what no event announces. */
export function useTick(seconds: number): number {
  const [tick, set] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden && !isStale()) set((n) => n + 1); }, seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds]);
  return tick;
}

/** One of the four states of a panel: loading, error, empty, content. */
export function Panel<T>({ of, empty, children }: { of: Loaded<T>; empty?: string | false; children: (value: T) => ComponentChildren }) {
  const [late, setLate] = useState(false);
  useEffect(() => { const t = setTimeout(() => setLate(true), 300); return () => clearTimeout(t); }, []);
  if (of.error && of.value === null) return <div class="note bad" role="alert"><p>{of.error}</p><button onClick={of.again}>Try again</button></div>;
  if (of.value === null) return late ? <p class="note loading" role="status">Loading…</p> : <p class="note" />;
  if (empty) return <p class="note">{empty}</p>;
  return <>{of.error && <p class="note bad" role="alert">{of.error} What you see is older.</p>}{children(of.value)}</>;
}

/** A menu. It closes after a choice, on a click elsewhere, and with Escape, which then does nothing else. */
export function Menu({ name, children }: { name: string; children: ComponentChildren }) {
  const ref = useRef<HTMLDetailsElement>(null);
  useLayoutEffect(() => {
    const menu = ref.current!;
    const outside = (event: Event) => { if (menu.open && !menu.contains(event.target as Node)) menu.open = false; };
    const escape = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || !menu.open) return;
      event.stopPropagation();
      menu.open = false;
      menu.querySelector("summary")?.focus();
    };
    document.addEventListener("pointerdown", outside);
    document.addEventListener("keydown", escape, true);
    return () => { document.removeEventListener("pointerdown", outside); document.removeEventListener("keydown", escape, true); };
  }, []);
  return <details class="menu" ref={ref}><summary>{name}</summary><div onClick={() => { ref.current!.open = false; }}>{children}</div></details>;
}

/** A dialog over the screen: a sheet from below on a phone. */
export function Sheet({ title, close, children, wide }: { title: string; close: () => void; children: ComponentChildren; wide?: boolean }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current!;
    dialog.showModal();
    // Nothing asked for the focus, so the browser put it on the button that closes: the text is read first instead.
    if (document.activeElement?.ariaLabel === "Close") dialog.querySelector<HTMLElement>(".sheet")!.focus();
  }, []);
  return <dialog ref={ref} class={wide ? "wide" : ""} aria-label={title} onClose={close}
    onClick={(event) => { if (event.target === ref.current) ref.current?.close(); }}>
    <div class="sheet" tabIndex={-1}><header><h2>{title}</h2><button class="quiet" onClick={() => ref.current?.close()} aria-label="Close">✕</button></header>{children}</div>
  </dialog>;
}

export function Tabs({ tabs, current, choose }: { tabs: [string, string][]; current: string; choose: (tab: string) => void }) {
  return <nav class="tabs" aria-label="Parts of this screen">{tabs.map(([id, name]) =>
    <button key={id} aria-current={id === current ? "page" : undefined} onClick={() => choose(id)}>{name}</button>)}</nav>;
}
