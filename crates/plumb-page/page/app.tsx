// One app: its state in sentences, what differs and why, the running sync, its objects, what happened.
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { argo, own, query } from "./api";
import { cliName, loadRows, news, rows, whyNot } from "./store";
import { clock, duration, now } from "./time";
import type { AppObject, AppRef, Detail, Event, Finding, ObjectRef, Operation, TreeNode } from "./types";
import { plan, planOn } from "./plan";
import { words } from "./home";
import { Ago, Button, Mark, Menu, ObjectLink, Panel, Tabs, Who, copy, objectName, stateOf, useLoaded, useTick, type State } from "./ui";
import { appUrl, go, objectUrl, param, place, placeUrl, settle, withParams } from "./url";
import { VList } from "./vlist";
import { at, shortPair } from "./yaml";
import { onKey } from "./keys";

const tabs = new Set(["findings", "sync", "objects", "timeline", "sources"]);
/** Argo CD's tabs of an object, as tabs of its screen here. */
const argoTabs: Record<string, string> = { desired: "git", manifest: "live", summary: "live", events: "events", logs: "logs" };

export function App({ app }: { app: AppRef }) {
  useEffect(() => { void loadRows(); }, []);
  void rows.version.value;
  const row = rows.all?.get(app.join("/"));
  const loaded = useLoaded<Detail>(app.join("/"), () => own<Detail>(`apps/${app.map(encodeURIComponent).join("/")}`), row?.v);
  // Argo CD's addresses name parts of this screen in other ways.
  useEffect(() => {
    const node = place.value.params.get("node");
    const parts = node?.split("/") ?? [];
    if (parts.length >= 4 && parts[1] === "Application") {
      // Its own node, or an app that it owns.
      const other: AppRef = [parts[2] || app[0], parts[3]!];
      go(other.join("/") === app.join("/") ? withParams({ node: null, tab: null }) : appUrl(other), true);
    } else if (parts.length >= 4) {
      const o = { group: parts[0]!, kind: parts[1]!, namespace: parts[2]!, name: parts[3]! };
      go(objectUrl(app, o, argoTabs[place.value.params.get("tab") ?? ""] ?? ""), true);
    }
    if (place.value.params.has("deploy")) { go(withParams({ deploy: null }), true); plan("sync", [app]); }
    if (place.value.params.has("rollback")) go(withParams({ rollback: null, tab: "timeline" }), true);
    if (place.value.params.get("operation") === "true") go(withParams({ operation: null, tab: "sync" }), true);
    if (place.value.params.get("conditions") === "true") go(withParams({ conditions: null, tab: "findings" }), true);
  }, []);
  return <Panel of={loaded}>{(detail) => <Shown app={app} d={detail} />}</Panel>;
}

function Shown({ app, d }: { app: AppRef; d: Detail }) {
  const counted = d.findings.filter((f) => f.counts), explained = d.findings.filter((f) => !f.counts);
  const running = d.operation?.phase === "Running" || d.operation?.phase === "Terminating";
  const tab = tabs.has(param("tab")) ? param("tab") : "findings";
  // An object that is stuck is ill although the app is still Progressing, and what plumb cannot compare is not well.
  const ill = d.conditions.some((c) => c.type.endsWith("Error")) || d.ill.some((o) => o.stuck || o.status === "Degraded" || o.status === "Missing");
  const state = d.pausedUntil !== null ? "paused" : ill ? "ill" : stateOf(d.sync, d.health, counted[0]?.class ?? "", d.operation?.phase);
  const off = (verb: string) => d.can[verb] ?? whyNot();
  useLayoutEffect(() => onKey({
    s: () => off("sync") || plan("sync", [app]), r: () => off("refresh") || plan("refresh", [app]), z: () => off("pause") || plan("pause", [app]),
    c: () => copy(`plumb app get ${cliName(app)}`, "Command copied."),
    n: () => focusFinding(1), p: () => focusFinding(-1),
  }));
  const choose = (next: string) => go(withParams({ tab: next === "findings" ? null : next, q: null }), true);
  return <div class="app">
    <header class="apphead">
      <p class="crumbs"><a href="applications">Apps</a> / {app[0]}</p>
      <h1><Mark state={state} /> {app[1]}</h1>
      <p class="sentences">{d.sentences.map((text, i) => <span key={i} class={i === 0 && d.sync === "OutOfSync" ? "counts" : i === 1 && (d.health === "Degraded" || d.health === "Missing") ? "ill" : ""}>{text} </span>)}
        {d.since !== null && <span class="muted">Began <Ago at={d.since} />. </span>}
        {d.pausedUntil !== null && <span>It ends in {duration(d.pausedUntil - now.value)} <time>{clock(d.pausedUntil)}</time>. </span>}
        {d.window && <span class="counts">{d.window} </span>}</p>
      <div class="actions bar">
        <Button kind="primary" off={off("sync")} onClick={() => plan("sync", [app])}>Sync: plan</Button>
        <Button off={off("refresh")} onClick={() => plan("refresh", [app])}>Refresh…</Button>
        {d.pausedUntil !== null ? <Button off={off("resume")} onClick={() => plan("resume", [app])}>Resume…</Button>
          : <Button off={off("pause")} onClick={() => plan("pause", [app])}>Pause…</Button>}
        {(d.deleting || d.waits || d.objects.some((o) => o.confirm && o.prune)) && <Button kind="danger" off={off("confirm-deletion")} onClick={() => plan("confirm-deletion", [app])}>Confirm deletions…</Button>}
        {running && <Button off={off("terminate")} onClick={() => plan("terminate", [app])}>Terminate…</Button>}
        {d.links.map(linkOf).filter((link) => link !== null).slice(0, 3).map((link) => <a class="button" key={link.url} href={link.url} target="_blank" rel="noreferrer noopener">{link.name}</a>)}
        <Menu name="More">
          <button onClick={() => copy(`plumb drift ${cliName(app)}`, "Command copied.")}>Copy: plumb drift {cliName(app)}</button>
          <button onClick={() => copy(`plumb app sync ${cliName(app)} --dry-run`, "Command copied.")}>Copy: plumb app sync --dry-run</button>
          <button onClick={() => copy(`kubectl -n ${app[0]} get driftreport ${app[1]} -o yaml`, "Command copied.")}>Copy: kubectl get driftreport</button>
          <button onClick={() => copy(`kubectl -n ${app[0]} get application ${app[1]} -o yaml`, "Command copied.")}>Copy: kubectl get application</button>
          <button onClick={() => copy(location.href, "Link copied.")}>Copy link</button>
          <hr /><Button kind="danger" off={off("delete")} onClick={() => plan("delete", [app])}>Delete…</Button></Menu>
      </div>
    </header>
    <Tabs current={tab} choose={choose} tabs={[["findings", `Findings ${counted.length || ""}`], ["sync", running ? "Sync: running" : "Sync"], ["objects", `Objects ${d.objects.length}`], ["timeline", "Timeline"], ["sources", `Sources ${d.sources.length}`]]} />
    {d.conditions.map((c) => <div class="note bad" key={c.type + c.message}><p><b>{c.type}</b> {c.message}</p><p class="small"><Ago at={c.since} /></p></div>)}
    {d.pauses.filter((p) => p.object.kind !== "Application").map((p) => <div class="line" key={objectName(p.object)}><Mark state="paused" /><span><b>Paused</b> <ObjectLink app={app} o={p.object} /> {p.by && `by ${p.by}`} {p.reason && <q>{p.reason}</q>}{p.until !== null && <> ends in {duration(p.until - now.value)} <time>{clock(p.until)}</time></>}</span>
      <Button off={off("resume")} onClick={() => planOn("resume", app, [p.object])}>Resume…</Button></div>)}
    {running && tab !== "sync" && <OperationView app={app} op={d.operation!} brief />}
    {tab === "findings" && <div class="columns"><section>
      {d.ill.map((ill) => <article class="card ill" key={objectName(ill.object)}>
        <header><Mark state="ill" /><span class="class">{words[ill.class] ?? (ill.class || ill.status || "Not well")}</span><ObjectLink app={app} o={ill.object} /><span class="since"><Ago at={ill.since} /></span></header>
        <p class="text">{ill.message}</p>{ill.causes.length > 1 && <ol class="causes">{ill.causes.map((cause, i) => <li key={i}>{cause}</li>)}</ol>}
        <footer><span class="actions"><a class="button" href={objectUrl(app, ill.object, "events")}>Events</a><a class="button primary" href={objectUrl(app, ill.object, "logs")}>Logs</a></span></footer></article>)}
      {counted.map((f, i) => <FindingCard key={f.class + f.object.group + objectName(f.object) + f.fields.join()} app={app} f={f} v={d.v} open={i < 5} off={off("sync")} />)}
      {!d.ill.length && !counted.length && !ill && (d.sync === "Unknown" ? <div class="note calmnote"><Mark state="unknown" /> It is not compared, so nothing is known about it.</div>
        : d.sync === "Synced" && <div class="note calmnote"><Mark state="well" /> Nothing is wrong with this app.</div>)}
      {explained.length > 0 && <Explained app={app} findings={explained} />}
    </section><aside><h2>Timeline</h2><Timeline app={app} events={d.timeline.slice(0, 15)} off={off("rollback")} /></aside></div>}
    {tab === "sync" && (d.operation ? <OperationView app={app} op={d.operation} /> : <p class="note">No sync has run yet.</p>)}
    {tab === "objects" && <Objects app={app} d={d} />}
    {tab === "timeline" && <Timeline app={app} events={d.timeline} off={off("rollback")} />}
    {tab === "sources" && <section class="sources">{d.sources.map((s, i) => <dl key={i} class="facts"><dt>Repository</dt><dd>{s.repo}</dd>{s.path && <><dt>Path</dt><dd>{s.path}</dd></>}{s.chart && <><dt>Chart</dt><dd>{s.chart}</dd></>}
      <dt>Follows</dt><dd>{s.target || "HEAD"}</dd><dt>Compared with</dt><dd><code>{s.revision}</code></dd></dl>)}
      <dl class="facts"><dt>Cluster</dt><dd>{d.cluster}</dd><dt>Namespace</dt><dd>{d.dest}</dd><dt>Project</dt><dd><a href={`settings/projects?name=${encodeURIComponent(d.project)}`}>{d.project}</a></dd><dt>Compared</dt><dd><Ago at={d.reconciled} /></dd></dl></section>}
  </div>;
}

/** An address that an annotation or an Ingress names, perhaps with a title before it as in Argo CD. What is no address is left out. */
function linkOf(text: string): { url: string; name: string } | null {
  const at = text.indexOf("|");
  try {
    const url = new URL(text.slice(at + 1).trim());
    return /^https?:$/.test(url.protocol) ? { url: url.href, name: text.slice(0, Math.max(0, at)).trim() || url.host } : null;
  } catch { return null; }
}

function focusFinding(step: number) {
  const all = [...document.querySelectorAll<HTMLElement>("article.card")];
  const here = all.indexOf(document.activeElement?.closest("article.card") as HTMLElement);
  const next = all[here < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, here + step))];
  next?.querySelector<HTMLElement>("a,button")?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function FindingCard({ app, f, v, open, off }: { app: AppRef; f: Finding; v: string; open: boolean; off: string | null }) {
  const [more, setMore] = useState(false);
  return <article class="card counts"><header><Mark state="counts" /><span class="class">{f.class}</span><ObjectLink app={app} o={f.object} /><span class="since"><Ago at={f.since} /></span></header>
    {f.fields.length > 0 && open && <FieldDiff app={app} f={f} v={v} />}
    {f.evidence.slice(0, more ? undefined : 2).map((text, i) => <p class="text" key={i}>{text}</p>)}
    {f.fix?.text && <p class="fix"><b>Ends it:</b> {f.fix.text}</p>}
    {more && <p class="small">Rule: {f.rule}</p>}
    {more && f.fix?.patch && <pre class="patch" tabIndex={0}>{f.fix.patch}</pre>}
    <footer><Who actor={f.actor} klass={f.class} /><span class="actions">
      {(f.evidence.length > 2 || f.fix?.patch || f.rule) && <button class="quiet" onClick={() => setMore(!more)}>{more ? "Less" : "Why"}</button>}
      {f.fix?.patch && <Button onClick={() => copy(f.fix!.patch, "Patch copied.")}>Copy patch</Button>}
      <a class="button" href={objectUrl(app, f.object)}>Difference</a>
      <button class="quiet" onClick={() => copy(`plumb app diff ${cliName(app)}`, "Command copied.")}>Copy command</button>
      {f.class === "Orphan" ? <a class="button" href={objectUrl(app, f.object, "users")}>Used by</a> : <Button off={off} onClick={() => planOn("sync", app, [f.object])}>{f.class === "Unadopted" ? "Adopt: plan" : "Sync this: plan"}</Button>}</span></footer>
  </article>;
}

export function managed(app: AppRef, o: ObjectRef) {
  return argo<{ items?: { liveState: string; targetState: string }[] }>(`applications/${encodeURIComponent(app[1])}/managed-resources?${query({ appNamespace: app[0], name: o.name, namespace: o.namespace, kind: o.kind, group: o.group })}`)
    .then((answer) => { const item = answer.items?.[0]; return { git: item ? JSON.parse(item.targetState) : null, live: item ? JSON.parse(item.liveState) : null }; });
}

function FieldDiff({ app, f, v }: { app: AppRef; f: Finding; v: string }) {
  const pair = useLoaded(f.object.group + objectName(f.object), () => managed(app, f.object), v);
  if (!pair.value) return <div class="fielddiff"><code>{f.fields[0]}</code></div>;
  const { git, live } = pair.value;
  return <div class="fielddiff">{f.fields.slice(0, 6).map((field) => {
    const short = shortPair(at(git, field, live) ?? at(git, field), at(live, field));
    return <div key={field}><code class="path">{field}</code>{short.where && <span class="where">{short.where}</span>}
      <div class="old"><span>Git</span><code>{short.old}</code></div><div class="new"><span>Live</span><code>{short.new}</code></div></div>;
  })}
    {f.fields.length > 6 && <p class="small">{f.fields.length - 6} more fields</p>}</div>;
}

function Explained({ app, findings }: { app: AppRef; findings: Finding[] }) {
  const counts = new Map<string, number>();
  for (const f of findings) counts.set(f.class, (counts.get(f.class) ?? 0) + 1);
  return <details class="explained"><summary><Mark state="explained" /> {findings.length} explained: {[...counts].map(([name, n]) => `${name} ${n}`).join(", ")}</summary>
    <ul>{findings.slice(0, 200).map((f, i) => <li key={i}><b>{f.class}</b> <ObjectLink app={app} o={f.object} /> <code>{f.fields.slice(0, 3).join(" ")}</code><p class="small">{f.evidence[0]}</p></li>)}</ul></details>;
}

export function Timeline({ app, events, off }: { app: AppRef; events: Event[]; off?: string | null }) {
  if (!events.length) return <p class="note">Nothing is known yet.</p>;
  const mark = (e: Event): State => e.state === "bad" ? "ill" : e.state === "counts" ? "counts" : e.state === "explained" ? "explained" : e.state === "paused" ? "paused" : e.state === "busy" ? "busy" : "well";
  // What is deployed now is no place to go back to.
  const newest = Math.max(...events.map((e) => e.id ?? -1));
  return <ol class="timeline">{events.map((e, i) => <li key={i}><Mark state={mark(e)} /><div><span class="when">{e.at !== null && clock(e.at)}</span> {e.object ? <a class="object" href={objectUrl(app, e.object)}>{e.text}</a> : e.text} {e.state === "explained" && <span class="tag">explained</span>} {e.actor && <span class="by">{e.actor}</span>}
    {e.id !== undefined && off !== undefined && e.id !== newest && <Button kind="quiet" off={off} label={`Roll back to ${e.revision}`} onClick={() => plan("rollback", [app], { id: e.id })}>Roll back…</Button>}</div></li>)}</ol>;
}

/** How many entries of a wave are in each state, in words. */
function counted(states: State[]): string {
  const words: [State, string][] = [["ill", "failed"], ["busy", "running"], ["well", "done"], ["explained", "to come"]];
  const n = (state: State) => states.filter((one) => one === state).length;
  return words.filter(([state]) => n(state)).map(([state, word]) => `${n(state)} ${word}`).join(", ");
}
const phases = ["PreSync", "Sync", "PostSync", "SyncFail"];
function OperationView({ app, op, brief }: { app: AppRef; op: Operation; brief?: boolean }) {
  const groups = useMemo(() => {
    // The status has no waves of hooks: those of one phase are together.
    const by = new Map<string, { phase: string; wave: number | null; entries: Operation["entries"] }>();
    for (const entry of op.entries) {
      const key = `${entry.phase} ${entry.wave}`;
      const group = by.get(key) ?? { phase: entry.phase || "Sync", wave: entry.wave, entries: [] };
      group.entries.push(entry);
      by.set(key, group);
    }
    return [...by.values()].sort((a, b) => phases.indexOf(a.phase) - phases.indexOf(b.phase) || (a.wave ?? -Infinity) - (b.wave ?? -Infinity));
  }, [op.entries]);
  const running = op.phase === "Running" || op.phase === "Terminating";
  const state: State = running ? "busy" : op.phase === "Succeeded" ? "well" : "ill";
  const ofEntry = (e: Operation["entries"][number]): State => e.state === "Waiting" ? "explained" : e.status === "SyncFailed" || e.state === "Failed" || e.state === "Error" ? "ill" : e.state === "Running" || (!e.status && running) ? "busy" : e.status === "PruneSkipped" ? "explained" : "well";
  return <section class="operation"><h2><Mark state={state} /> {op.dryRun ? "Dry run" : "Sync"} {op.phase.toLowerCase()}{op.revision && <> to <code>{op.revision.slice(0, 7)}</code></>}</h2>
    <p>{op.message}</p><p class="small">Started <Ago at={op.started} />{op.finished !== null && op.started !== null && <>, took {duration(op.finished - op.started)}</>}{op.by && <>, by {op.by}</>}{op.retries > 0 && <>, attempt {op.retries + 1}</>}</p>
    <ol class="waves">{groups.map((g) => {
      const worst = g.entries.some((e) => ofEntry(e) === "ill") ? "ill" : g.entries.some((e) => ofEntry(e) === "busy") ? "busy" : g.entries.every((e) => e.state === "Waiting") ? "explained" : "well";
      const shown = brief ? g.entries.filter((e) => ofEntry(e) !== "well") : g.entries.slice(0, 500);
      return <li key={g.phase + g.wave} class={worst}><h3><Mark state={worst} /> {g.phase}{g.phase === "Sync" && (g.wave === null ? " hooks" : ` wave ${g.wave}`)} <span class="count">{counted(g.entries.map(ofEntry))}</span></h3>
        <ul>{shown.map((e) => <li key={e.phase + e.group + objectName(e)}><Mark state={ofEntry(e)} /> <ObjectLink app={app} o={e} /> {e.hook && <span class="tag">{e.hook}</span>} <span class="small">{e.state === "Waiting" ? "to come" : e.status || e.state || (running ? "Running" : "")}{e.message && `: ${e.message}`}</span></li>)}</ul></li>;
    })}</ol></section>;
}

interface Node extends ObjectRef { id: string; state: State; sync: string; health: string; message: string; kids: Node[]; wave: number; created: number | null; prune: boolean }
const worse: State[] = ["ill", "counts", "busy", "unknown", "paused", "well", "explained"];
function build(objects: AppObject[], nodes: TreeNode[], findings: Finding[]): Node[] {
  const key = (o: ObjectRef) => `${o.group}/${o.kind}/${o.namespace}/${o.name}`;
  const drift = new Map(findings.filter((f) => f.counts).map((f) => [key(f.object), f.class]));
  const all = new Map<string, Node>(), byUid = new Map<string, Node>();
  const add = (o: ObjectRef, sync: string, health: string, message: string, wave: number, prune: boolean): Node => {
    const id = key(o);
    let node = all.get(id);
    if (!node) { node = { group: o.group ?? "", kind: o.kind, namespace: o.namespace ?? "", name: o.name, id, sync, health, message, kids: [], wave, created: null, prune, state: "well" }; all.set(id, node); }
    const klass = drift.get(id) ?? "";
    node.state = health || sync || klass ? stateOf(sync || "Synced", health || "Healthy", klass) : "well";
    return node;
  };
  const roots = new Set<Node>();
  for (const o of objects) roots.add(add(o, o.sync, o.health, o.message, o.wave, !!o.prune));
  for (const n of nodes) {
    const known = all.get(key({ ...n, group: n.group ?? "", namespace: n.namespace ?? "" }));
    const node = known ?? add({ ...n, group: n.group ?? "", namespace: n.namespace ?? "" }, "", n.health?.status ?? "", n.health?.message ?? "", 0, false);
    if (n.createdAt) node.created = Date.parse(n.createdAt) / 1000;
    byUid.set(n.uid, node);
  }
  for (const n of nodes) {
    const node = byUid.get(n.uid)!;
    const parent = n.parentRefs?.map((p) => byUid.get(p.uid)).find((p) => p && p !== node);
    if (parent && !roots.has(node)) parent.kids.push(node); else roots.add(node);
  }
  const rank = (n: Node): number => Math.min(worse.indexOf(n.state), ...n.kids.map(rank));
  const sort = (list: Node[]) => { list.sort((a, b) => rank(a) - rank(b) || a.kind.localeCompare(b.kind) || a.name.localeCompare(b.name)); list.forEach((n) => sort(n.kids)); };
  const top = [...roots];
  sort(top);
  return top;
}

type TreeLine = { node: Node; depth: number; open: boolean } | { fold: string; nodes: Node[]; depth: number };
function Objects({ app, d }: { app: AppRef; d: Detail }) {
  // Pods come and go without a word of their app.
  const isMoving = d.operation?.phase === "Running" || d.health !== "Healthy" || d.ill.length > 0;
  const tick = useTick(isMoving || d.objects.length < 500 ? 10 : 60);
  const tree = useLoaded<{ nodes?: TreeNode[] }>(app.join("/"), () => argo(`applications/${encodeURIComponent(app[1])}/resource-tree?${query({ appNamespace: app[0] })}`), `${d.v} ${tick}`);
  const [open, setOpen] = useState<Set<string>>(new Set());
  const [chosen, setChosen] = useState<Map<string, ObjectRef>>(new Map());
  const [text, setText] = useState(param("q"));
  const refusal = d.can.sync ?? whyNot();
  const own = useMemo(() => new Set(d.objects.map((o) => `${o.group}/${o.kind}/${o.namespace}/${o.name}`)), [d]);
  const pick = (n: Node) => setChosen((old) => { const next = new Map(old); if (!next.delete(n.id)) next.set(n.id, { group: n.group, kind: n.kind, namespace: n.namespace, name: n.name }); return next; });
  void news.value;
  const top = useMemo(() => build(d.objects, tree.value?.nodes ?? [], d.findings), [d, tree.value]);
  const lines = useMemo(() => {
    const out: TreeLine[] = [];
    const trouble = (n: Node): boolean => (n.state !== "well" && n.state !== "explained") || (n.created !== null && now.peek() - n.created < 600) || n.kids.some(trouble);
    const matches = (n: Node): boolean => `${n.kind} ${n.namespace}/${n.name} ${n.sync} ${n.health}`.toLowerCase().includes(text.toLowerCase()) || n.kids.some(matches);
    const put = (list: Node[], depth: number, parent: string) => {
      const shown = text ? list.filter(matches) : list;
      const loud = text ? shown : shown.filter(trouble), calm = text ? [] : shown.filter((n) => !trouble(n));
      for (const node of loud) { const isOpen = !!text || trouble(node) !== open.has(node.id); out.push({ node, depth, open: isOpen }); if (node.kids.length && isOpen) put(node.kids, depth + 1, node.id); }
      if (!calm.length) return;
      const fold = parent + "*";
      if (calm.length > 1 || loud.length) out.push({ fold, nodes: calm, depth });
      if (calm.length === 1 && !loud.length || open.has(fold)) for (const node of calm) { const isOpen = open.has(node.id); out.push({ node, depth: depth + (calm.length > 1 || loud.length ? 1 : 0), open: isOpen }); if (isOpen) put(node.kids, depth + 2, node.id); }
    };
    put(top, 0, "");
    return out;
  }, [top, open, text]);
  const flip = (id: string) => setOpen((old) => { const next = new Set(old); if (!next.delete(id)) next.add(id); return next; });
  const kinds = (nodes: Node[]) => { const n = new Map<string, number>(); for (const x of nodes) n.set(x.kind, (n.get(x.kind) ?? 0) + 1); return [...n].sort((a, b) => b[1] - a[1]).slice(0, 6).map(([k, c]) => `${k} ${c}`).join(", "); };
  return <section><div class="toolbar"><input type="search" class="find" placeholder="Kind, name, state" aria-label="Filter objects" value={text} onInput={(e) => { setText(e.currentTarget.value); settle({ q: e.currentTarget.value }); }} spellcheck={false} /></div>
    {tree.error && <p class="note bad" role="alert">What its objects own cannot be shown: {tree.error}</p>}
    <VList count={lines.length} height={34} label="Objects" row={(i) => {
      const line = lines[i]!;
      if ("fold" in line) {
        return <div class="trow fold" role="listitem" key={line.fold} style={{ paddingLeft: `${line.depth * 22 + 8}px` }}><button class="twist" aria-expanded={open.has(line.fold)} onClick={() => flip(line.fold)}>{open.has(line.fold) ? "▾" : "▸"} <Mark state="well" /> {line.nodes.length} in sync and well <span class="muted">({kinds(line.nodes)})</span></button></div>;
      }
      const n = line.node;
      return <div class="trow" role="listitem" key={n.id} style={{ paddingLeft: `${line.depth * 22 + 8}px` }}>
        {n.kids.length ? <button class="twist" aria-label={`What ${n.name} owns`} aria-expanded={line.open} onClick={() => flip(n.id)}>{line.open ? "▾" : "▸"}</button> : <span class="twist" />}
        {own.has(n.id) && <input type="checkbox" checked={chosen.has(n.id)} onChange={() => pick(n)} aria-label={`Select ${n.kind} ${n.name}`} />}<Mark state={n.state} /><a class="object" href={placeUrl(app, n)}><span class="kind">{n.kind}</span> {n.namespace && n.namespace !== d.dest ? n.namespace + "/" : ""}{n.name}</a>
        <span class="tstate">{n.prune ? "left Git" : n.sync === "OutOfSync" ? "OutOfSync" : ""} {n.health && n.health !== "Healthy" ? n.health : ""} <span class="muted">{n.state === "well" ? (n.health || (n.sync ? "in sync" : "exists")) + " " : ""}{n.state === "ill" ? n.message : n.kids.length ? `${n.kids.length} below` : ""}</span></span></div>;
    }} />
    {chosen.size > 0 && <div class="selection" role="region" aria-label="Selection"><b>{chosen.size} selected</b><Button off={refusal} onClick={() => planOn("sync", app, [...chosen.values()])}>Sync these: plan</Button><button class="quiet" onClick={() => setChosen(new Map())}>Clear</button></div>}
    {!lines.length && <p class="note">{text ? "No object matches." : "It has no objects yet."}</p>}</section>;
}
