// The frame: navigation, freshness, the screen that the address names, and what lies over it.
import { render, Component, type ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { Refused, loggedOut, own } from "./api";
import { Activity, Doctor, Orphans, Settings, Undo } from "./lists";
import { App } from "./app";
import { Apps } from "./apps";
import { Home } from "./home";
import { Login } from "./login";
import { ObjectScreen } from "./object";
import { PlanSheet, plan } from "./plan";
import { broken, home, isStale, loadRows, me, news, rows, showState, start, toast, trouble } from "./store";
import { clock, duration, now } from "./time";
import type { AppRef } from "./types";
import { Sheet, copy, useLoaded } from "./ui";
import { appUrl, go, place } from "./url";
import { onKey } from "./keys";

const over = signal<"" | "palette" | "keys" | "menu">("");
const startError = signal("");
const screens: [string, string, string][] = [["Home", "", "h"], ["Apps", "applications", "a"], ["Doctor", "doctor", "d"], ["Orphans", "orphans", "o"], ["Activity", "activity", "t"], ["Undo", "undo", "u"], ["Settings", "settings", "s"]];

/** After this time (in milliseconds) a part that failed is tried again: a wall has no one who presses a button. */
const RETRY = 30_000;
/** A fault in one part of the page leaves the others alone. */
class Boundary extends Component<{ children: ComponentChildren }, { error: string }> {
  state = { error: "" };
  static getDerivedStateFromError(error: unknown) { return { error: String(error) }; }
  componentDidUpdate(_: unknown, before: { error: string }) { if (this.state.error && !before.error) setTimeout(() => this.setState({ error: "" }), RETRY); }
  render() {
    if (!this.state.error) return this.props.children;
    return <div class="note bad" role="alert"><p>This part of the page failed: {this.state.error}</p><button onClick={() => this.setState({ error: "" })}>Try again</button></div>;
  }
}

/** Argo CD's names of parts of the settings. */
const argoParts: Record<string, string> = { repos: "repositories" };
function Screen() {
  const [first = "", second, third, fourth, ...rest] = place.value.parts;
  if (first === "" || first === "login") return <Home />;
  if (first === "applications") {
    if (second === undefined) return <Apps />;
    if (third === undefined) return <Find name={second} />;
    const app: AppRef = [second, third];
    if (fourth === "o" && rest.length >= 4) {
      const part = (text: string | undefined) => (text === undefined || text === "-" ? "" : text);
      const o = { group: part(rest[0]), kind: part(rest[1]), namespace: part(rest[2]), name: part(rest[3]) };
      return <ObjectScreen key={place.value.parts.join("/")} app={app} o={o} />;
    }
    return <App key={app.join("/")} app={app} />;
  }
  if (first === "doctor") return <Doctor />;
  if (first === "orphans") return <Orphans />;
  if (first === "undo") return <Undo />;
  if (first === "activity") return <Activity />;
  if (first === "settings") return <Settings part={argoParts[second ?? ""] ?? second ?? ""} name={third ?? ""} />;
  return <p class="note">There is no such screen. <a href="">Home</a></p>;
}

/** Argo CD's addresses without a namespace. */
function Find({ name }: { name: string }) {
  const found = useLoaded<{ app: AppRef }>(name, () => own(`find/${encodeURIComponent(name)}`));
  useEffect(() => { if (found.value) go(appUrl(found.value.app) + location.search, true); }, [found.value]);
  return found.error ? <p class="note bad" role="alert">{found.error}</p> : <p class="note loading">Loading…</p>;
}

function Fresh() {
  void now.value;
  const stale = isStale();
  const ago = news.value ? Math.max(0, Math.floor((Date.now() - news.value) / 1000)) : 0;
  return <span class={`fresh${stale ? " bad" : ""}`} role="status" aria-live="off">{stale ? `No news for ${duration(ago)}` : `news ${ago} s ago`} <time>{clock(now.value)}</time></span>;
}

const loginUrl = () => `login?return_url=${encodeURIComponent(location.href)}`;

function Banner() {
  void now.value;
  if (loggedOut.value) return <div class="banner" role="alert">You are logged out. What you see is old. <a href={loginUrl()}>Log in again</a></div>;
  const b = broken.value;
  if (b && Date.now() - news.value > 3000) return <div class="banner" role="alert">{b.why} Trying again in {Math.max(0, Math.ceil((b.again - Date.now()) / 1000))} s. No news since {clock(now.value - Math.floor((Date.now() - news.value) / 1000))}.</div>;
  const t = trouble.value;
  if (t) return <div class="banner" role="alert">{t.text} Since {clock(t.since)}: what is wrong may be old, or missing.</div>;
  if (me.value?.banner) return <div class="banner info">{me.value.banner}</div>;
  return null;
}

// The types want a datalist beside this role; the list here is our own.
const COMBO = { role: "combobox", "aria-expanded": true, "aria-controls": "found" } as object;

function Palette() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  useEffect(() => { void loadRows(); }, []);
  const version = rows.version.value;
  const found = useMemo(() => {
    const out: { name: string; hint: string; run: () => void }[] = [];
    const lower = text.trim().toLowerCase();
    const verb = /^(sync|refresh|pause|resume|terminate|delete)\s+(\S*)(?:\s+(\d+)(m|h))?$/.exec(lower);
    for (const [name, path] of screens) if (!verb && name.toLowerCase().includes(lower)) out.push({ name, hint: "screen", run: () => go(path) });
    for (const row of rows.all?.values() ?? []) {
      if (out.length >= 14) break;
      const name = verb ? verb[2]! : lower;
      if (!row.name.toLowerCase().includes(name)) continue;
      const app: AppRef = [row.ns, row.name];
      if (verb) {
        const minutes = verb[3] ? Number(verb[3]) * (verb[4] === "h" ? 60 : 1) : undefined;
        out.push({ name: `${verb[1]} ${row.name}`, hint: "plan", run: () => plan(verb[1]!, [app], minutes ? { minutes } : {}) });
      } else out.push({ name: row.name, hint: `${row.project} ${row.cluster}/${row.dest}`, run: () => go(appUrl(app)) });
    }
    return out;
  }, [text, version]);
  const close = () => { over.value = ""; };
  const run = (i: number) => { const one = found[i]; if (one) { close(); one.run(); } };
  return <Sheet title="Find or do" close={close}><div class="palette">
    <input autofocus type="search" {...COMBO} aria-activedescendant={`found${at}`} aria-label="App, screen, or verb and app" placeholder="App, screen, or: pause payments 30m" value={text} spellcheck={false}
      onInput={(e) => { setText(e.currentTarget.value); setAt(0); }}
      onKeyDown={(e) => { if (e.key === "ArrowDown") { setAt(Math.min(found.length - 1, at + 1)); e.preventDefault(); } else if (e.key === "ArrowUp") { setAt(Math.max(0, at - 1)); e.preventDefault(); } else if (e.key === "Enter") { run(at); e.preventDefault(); } }} />
    <ul id="found" role="listbox" aria-label="Found">{found.map((one, i) => <li key={one.name + one.hint} id={`found${i}`} role="option" aria-selected={i === at} onClick={() => run(i)}><b>{one.name}</b> <span>{one.hint}</span></li>)}</ul>
    {!found.length && <p class="note">Nothing found.</p>}</div></Sheet>;
}

const help: [string, string][] = [["/", "find"], ["Ctrl-K", "palette: apps, screens, verbs"], ["g h, g a, g d, g o, g t, g u, g s", "go to Home, Apps, Doctor, Orphans, Activity, Undo, Settings"], ["j k Enter", "next, previous, open"], ["x", "select"], ["n p", "next, previous finding"], ["s r z", "plan a sync, a refresh, a pause"], ["d l", "difference, logs"], ["c y", "copy as command, copy the link"], ["Esc", "back, clear"]];
function Help() {
  return <Sheet title="Keys" close={() => { over.value = ""; }}><dl class="keys">{help.map(([keys, what]) => <><dt><kbd>{keys}</kbd></dt><dd>{what}</dd></>)}</dl><p class="small">They can be switched off under <a href="settings">Settings</a>.</p></Sheet>;
}

/** Marks everything that is shown as old, on all screens. It is no part of the frame, which need not be drawn every second. */
function Staleness() {
  void now.value;
  const stale = isStale();
  useEffect(() => { document.documentElement.classList.toggle("stale", stale); showState(); }, [stale]);
  return null;
}

function Frame() {
  useLayoutEffect(() => onKey({
    "Ctrl-K": () => { over.value = "palette"; }, "?": () => { over.value = "keys"; }, "/": () => { over.value = "palette"; },
    y: () => copy(location.href, "Link copied."),
    ...Object.fromEntries(screens.map(([, path, key]) => [`g ${key}`, () => go(path)])),
  }), []);
  const [first = ""] = place.value.parts;
  const wall = first === "" && place.value.params.has("wall");
  const things = home.value?.things ?? 0;
  if (startError.value) return <main class="login"><div class="note bad" role="alert"><h1>plumb</h1><p>{startError.value} It is tried again every 5 seconds.</p></div></main>;
  // Whoever is not logged in may see something, and may still log in.
  if (first === "login" && (loggedOut.value || !me.value?.user)) return <Login />;
  if (!me.value) return loggedOut.value ? <Login /> : <p class="note loading" role="status">Loading…</p>;
  if (wall) return <><Staleness /><p class="wallclock"><Fresh /></p><Banner /><main id="main"><Boundary><Home /></Boundary></main></>;
  const link = ([name, path]: [string, string, string]) => <a key={path} href={path || "."} aria-current={first === path ? "page" : undefined}>{name}{name === "Home" && things > 0 && <span class="badge">{things}</span>}</a>;
  return <>
    <Staleness />
    <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>To the content</a>
    <header class="top"><a class="brand" href=".">plumb</a><nav aria-label="Screens" class="wide">{screens.slice(0, 5).map(link)}<a href="settings" aria-current={first === "settings" ? "page" : undefined}>Settings</a></nav>
      <button class="finder" onClick={() => { over.value = "palette"; }}>Find or do <kbd>Ctrl-K</kbd></button><Fresh />
      <span class="me"><span class="who">{me.value.user || "anonymous"}</span>{me.value.readOnly && <span class="tag">read-only</span>} {me.value.user ? <a href="auth/logout" data-leave>Log out</a> : <a href={loginUrl()}>Log in</a>}</span></header>
    <Banner />
    <main id="main" tabIndex={-1}><Boundary key={place.value.parts.join("/")}><Screen /></Boundary></main>
    <nav class="bottom" aria-label="Screens on a phone">{screens.slice(0, 2).map(link)}<button onClick={() => { over.value = "palette"; }}>Find</button><a href="activity" aria-current={first === "activity" ? "page" : undefined}>Lately</a><button aria-expanded={over.value === "menu"} onClick={() => { over.value = "menu"; }}>More</button></nav>
    {over.value === "palette" && <Palette />}{over.value === "keys" && <Help />}
    {over.value === "menu" && <Sheet title="More" close={() => { over.value = ""; }}><div class="menulist" onClick={() => { over.value = ""; }}>{screens.slice(2).map(link)}{me.value.user ? <a href="auth/logout" data-leave>Log out {me.value.user}</a> : <a href={loginUrl()}>Log in</a>}</div></Sheet>}
    <PlanSheet />
    <div class="toasts" role="status">{toast.value && <div class="toast">{toast.value.text}{toast.value.action && <button onClick={() => { const action = toast.value!.action!; toast.value = null; action.run(); }}>{toast.value.action.name}</button>}</div>}</div>
  </>;
}

async function boot() {
  try { await start(); startError.value = ""; } catch (error) {
    if (error instanceof Refused && error.status === 401) { startError.value = ""; return; }
    startError.value = (error as Error).message;
    setTimeout(() => { if (startError.value) void boot(); }, 5000);
  }
}
void boot();
render(<Frame />, document.getElementById("page")!);
