// All apps: one language to filter, rows that exist only while they are seen.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { argoNames, compile, fromArgo, hangs, isIll, isWrong } from "./query";
import { loadRows, reloadRows, rows, whyNot } from "./store";
import { now } from "./time";
import type { AppRef, Row } from "./types";
import { plan } from "./plan";
import { Button, For, Mark, copy, isNarrow, stateOf } from "./ui";
import { appUrl, go, param, place, settle, withParams } from "./url";
import { VList } from "./vlist";
import { onKey } from "./keys";

const sorts: Record<string, (a: Row, b: Row) => number> = {
  gravest: (a, b) => rank(a) - rank(b) || (sinceOf(a) ?? Infinity) - (sinceOf(b) ?? Infinity) || byName(a, b),
  name: (a, b) => byName(a, b),
  latest: (a, b) => (sinceOf(b) ?? 0) - (sinceOf(a) ?? 0) || byName(a, b),
};
const byName = (a: Row, b: Row) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.ns < b.ns ? -1 : 1);
/** Since when it is wrong, or since when its sync runs. */
const sinceOf = (row: Row) => row.since ?? row.opSince;
const rank = (row: Row) => (isIll(row) ? 0 : row.class && row.sync === "OutOfSync" ? 2 : row.class ? 1 : hangs(row, now.peek()) ? 1 : row.op === "Running" ? 3 : 4);
const groups: Record<string, (row: Row) => string> = {
  class: (row) => row.class || (isWrong(row, now.peek()) ? "SyncHangs" : "Fine"), project: (row) => row.project, cluster: (row) => row.cluster, namespace: (row) => row.dest,
};
type Line = { head: string; count: number } | { row: Row };
/** Argo CD's parameters become words of the filter as soon as somebody changes it. */
const noArgo = Object.fromEntries(argoNames.map((name) => [name, null]));
const chips: [string, string][] = [["is:wrong", "Wrong"], ["is:ill", "Not well"], ["is:drifted", "Drifted"], ["is:syncing", "Syncing"], ["is:paused", "Paused"], ["is:manual", "By hand"]];

export function Apps() {
  const given = param("q") || fromArgo(place.value.params);
  const [q, setQ] = useState(given);
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const [cursor, setCursor] = useState(-1);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => { void loadRows(); }, []);
  // The address is the state: a link or the way back changes the filter, too.
  useEffect(() => { if (given !== q) setQ(given); }, [place.value]);
  const sort = param("sort") || "gravest", group = param("group");
  const compiled = useMemo(() => compile(q), [q]);
  void rows.version.value;
  const order = rows.order.value;
  const found = useMemo(() => {
    const list: Row[] = [];
    if (rows.all) for (const row of rows.all.values()) if (compiled.test(row, now.peek())) list.push(row);
    return list.sort(sorts[sort] ?? sorts.gravest);
  }, [compiled, sort, order]);
  const lines = useMemo(() => {
    const by = groups[group];
    if (!by) return found.map((row): Line => ({ row }));
    const parts = new Map<string, Row[]>();
    for (const row of found) { const key = by(row); const part = parts.get(key); if (part) part.push(row); else parts.set(key, [row]); }
    return [...parts].flatMap(([head, list]): Line[] => [{ head, count: list.length }, ...list.map((row) => ({ row }))]);
  }, [found, group]);
  const search = (text: string) => { setQ(text); setCursor(-1); settle({ ...noArgo, q: text }); };
  const toggle = (key: string) => setChosen((old) => { const next = new Set(old); if (!next.delete(key)) next.add(key); return next; });
  const move = (step: number) => {
    let at = cursor + step;
    while (lines[at] && "head" in lines[at]!) at += step;
    if (lines[at]) setCursor(at);
  };
  const current = () => { const line = lines[cursor]; return line && "row" in line ? line.row : null; };
  useLayoutEffect(() => onKey({
    "/": () => field.current?.focus(), j: () => move(1), k: () => move(-1),
    x: () => { const row = current(); if (row) toggle(row.key); },
    Enter: () => { const row = current(); if (row) go(appUrl([row.ns, row.name])); },
    s: () => act("sync"), r: () => act("refresh"), z: () => act("pause"),
    Escape: () => { if (chosen.size) setChosen(new Set()); else if (q) search(""); },
  }));
  const targets = (): AppRef[] => {
    const keys = chosen.size ? [...chosen] : current() ? [current()!.key] : [];
    return keys.map((key) => rows.all?.get(key)).filter((row): row is Row => !!row).map((row) => [row.ns, row.name]);
  };
  const act = (verb: string) => { const apps = targets(); if (apps.length && apps.length <= 50) plan(verb, apps); };
  const many = chosen.size > 50 ? "At most 50 apps at a time." : whyNot();
  const narrow = isNarrow();
  return <div class="apps">
    <div class="toolbar">
      <h1>Apps <span class="count">{rows.all ? (found.length === rows.all.size ? rows.all.size : `${found.length} of ${rows.all.size}`) : ""}</span></h1>
      <input ref={field} type="search" class="find" value={q} placeholder="Filter: is:wrong project:shop cluster:prod-* name" aria-label="Filter" spellcheck={false}
        onInput={(e) => search(e.currentTarget.value)} onKeyDown={(e) => { if (e.key === "ArrowDown" || e.key === "Enter") { e.currentTarget.blur(); move(1); e.preventDefault(); } }} />
      <label class="inline">Group <select value={group} onChange={(e) => go(withParams({ group: e.currentTarget.value }), true)}>
        <option value="">none</option><option value="class">class</option><option value="project">project</option><option value="cluster">cluster</option><option value="namespace">namespace</option></select></label>
      <label class="inline">Sort <select value={sort} onChange={(e) => go(withParams({ sort: e.currentTarget.value }), true)}>
        <option value="gravest">gravest</option><option value="name">name</option><option value="latest">latest</option></select></label>
    </div>
    <div class="chips">{chips.map(([word, name]) => {
      const on = q.split(/\s+/).includes(word);
      return <button key={word} class="chip" aria-pressed={on} onClick={() => search(on ? q.split(/\s+/).filter((w) => w !== word).join(" ") : `${q} ${word}`.trim())}>{name}</button>;
    })}<button class="quiet" onClick={() => copy(location.href, "Link copied.")}>Copy link</button></div>
    {compiled.unknown.length > 0 && <p class="note bad">Not understood: {compiled.unknown.join(" ")}</p>}
    {rows.error.value && <div class="note bad" role="alert"><p>{rows.error.value}{rows.all && " What you see is older."}</p><button onClick={() => void reloadRows()}>Try again</button></div>}
    {!rows.all && !rows.error.value && <p class="note loading" role="status">Loading…</p>}
    {rows.all && !found.length && <p class="note">{rows.all.size ? "No app matches." : "There are no apps that you may see."}</p>}
    {found.length > 0 && <div class="rowhead" aria-hidden="true"><span /><span /><span>App</span><span>What is wrong</span><span>Health</span><span class="actor">Who</span><span>Since</span><span class="project">Project</span><span>Cluster/namespace</span><span class="rev">Commit</span></div>}
    <VList count={lines.length} height={narrow ? 60 : 38} show={cursor} label="Apps" row={(i) => {
      const line = lines[i]!;
      return "head" in line ? <div key={"#" + line.head} class="grouphead" role="listitem"><b>{line.head || "none"}</b> {line.count}</div>
        : <AppRow key={line.row.key} row={rows.all?.get(line.row.key) ?? line.row} on={chosen.has(line.row.key)} here={i === cursor} narrow={narrow} toggle={toggle} />;
    }} />
    {chosen.size > 0 && <div class="selection" role="region" aria-label="Selection"><b>{chosen.size} selected</b>
      <Button off={many} onClick={() => act("sync")}>Sync: plans</Button><Button off={many} onClick={() => act("refresh")}>Refresh…</Button>
      {[...chosen].some((key) => (rows.all?.get(key)?.paused ?? 0) > now.peek()) ? <Button off={many} onClick={() => act("resume")}>Resume…</Button> : <Button off={many} onClick={() => act("pause")}>Pause…</Button>}<button class="quiet" onClick={() => setChosen(new Set())}>Clear</button></div>}
  </div>;
}

function AppRow({ row, on, here, narrow, toggle }: { row: Row; on: boolean; here: boolean; narrow: boolean; toggle: (key: string) => void }) {
  const paused = (row.paused ?? 0) > now.peek();
  const state = paused ? "paused" : stateOf(row.sync, row.health, row.class, row.op);
  const health = hangs(row, now.peek()) ? "Sync hangs" : row.op === "Running" ? "Syncing" : row.health;
  // What the shape says is said in words, too. A phone has no column for the health.
  const words = [paused ? "Paused" : "", row.counted > 0 ? `${row.counted} ${row.class}` : row.class || (row.explained > 0 ? `${row.explained} explained` : ""),
    narrow && (health !== "Healthy" || !row.class && !row.explained && !paused) && health !== row.class ? health : "", row.sync === "Unknown" && !row.class ? "not compared" : ""];
  const drift = words.filter(Boolean).join(", ");
  return <div class={`row${here ? " here" : ""}${on ? " on" : ""}`} role="listitem">
    <input type="checkbox" checked={on} onChange={() => toggle(row.key)} aria-label={`Select ${row.name}`} />
    <Mark state={state} />
    <a class="name" href={appUrl([row.ns, row.name])}>{row.name}</a>
    <span class={`drift ${row.class ? state : "muted"}`}>{drift}</span>
    <span class={`health ${row.health}`}>{health}</span>
    <span class="actor">{row.actor}</span>
    <span class="since"><For at={sinceOf(row)} /></span>
    <span class="project">{row.project}</span>
    <span class="dest">{row.cluster}/{row.dest}</span>
    <span class="rev">{row.rev.slice(0, 7)}</span>
  </div>;
}
