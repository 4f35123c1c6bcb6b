// Lists over all apps, and what is set.
import type { ComponentChildren } from "preact";
import { argo, own } from "./api";
import { changes, cliName, whyNot } from "./store";
import type { AppRef, Event, ObjectRef, Used } from "./types";
import { plan } from "./plan";
import { Ago, Button, Command, Mark, Name, ObjectLink, Panel, UsedLine, copy, useLoaded } from "./ui";
import { go, param, withParams } from "./url";
import { LateLine } from "./home";
import { setUtc, utc, zoneName } from "./time";
import { keysOn, setKeys } from "./keys";

interface Place { app: AppRef; object: ObjectRef; fields: string[]; actor: string; since: number | null; text: string | null; patch: string }
interface Group { class: string; kind: string; counts: boolean; findings: number; apps: number; fix: string; patches: number; places: Place[] }

export function Doctor() {
  const loaded = useLoaded<{ groups: Group[] }>("doctor", () => own("doctor"), changes.value);
  const counts = param("counts"), klass = param("class");
  return <Panel of={loaded}>{({ groups }) => {
    const shown = groups.filter((g) => (!counts || (counts === "yes") === g.counts) && (!klass || g.class === klass));
    const total = groups.reduce((n, g) => n + g.findings, 0), bad = groups.filter((g) => g.counts).reduce((n, g) => n + g.findings, 0);
    return <div><div class="toolbar"><h1>Doctor <span class="count">{total} findings, {bad} count</span></h1>
      <label class="inline">Show <select value={counts} onChange={(e) => go(withParams({ counts: e.currentTarget.value }), true)}><option value="">all</option><option value="yes">what counts</option><option value="no">what does not</option></select></label></div>
      {!shown.length && <p class="note calmnote"><Mark state="well" /> No findings.</p>}
      <div class="cards">{shown.map((g) => <DoctorGroup key={g.class + g.kind + g.counts} g={g} />)}</div></div>;
  }}</Panel>;
}
const plural = (n: number, what: string) => `${n} ${what}${n === 1 ? "" : "s"}`;
function DoctorGroup({ g }: { g: Group }) {
  // The open groups are in the address: a link shows what its sender saw.
  const id = `${g.class}.${g.kind}${g.counts ? "" : ".explained"}`, open = param("open").split(",").filter(Boolean), isOpen = open.includes(id);
  const toggled = (now: boolean) => { if (now !== isOpen) go(withParams({ open: (now ? [...open, id] : open.filter((one) => one !== id)).join(",") }), true); };
  const state = g.counts ? "counts" : "explained";
  const patches = g.places.map((p) => p.patch).filter(Boolean);
  const apps = [...new Map(g.places.filter((p) => p.patch).map((p) => [p.app.join("/"), p.app])).values()];
  return <details class={`card ${state}`} open={isOpen} onToggle={(e) => toggled(e.currentTarget.open)}><summary><Mark state={state} /><span class="class">{g.class}</span> <span class="kind">{g.kind}</span>{!g.counts && <span class="tag">explained</span>}
    <span class="since">{g.findings} in {g.apps} {g.apps === 1 ? "app" : "apps"}</span></summary>
    <p class="fix"><b>Ends it:</b> {g.fix || "nothing to do"}</p>
    {g.patches > 0 && <><div class="actions"><Button onClick={() => copy(patches.join("\n"), `${plural(patches.length, "change")} copied.`)}>Copy {patches.length < g.patches ? `the first ${patches.length} of ${plural(g.patches, "change")}` : plural(g.patches, "change")}</Button></div>
      <p class="small">Each change is a list of operations (JSON patch) on one document. In a clone of the repository, {apps.length > 1 ? "these commands find" : "this command finds"} the lines and {apps.length > 1 ? "print" : "prints"} a diff for <code>git apply</code>:</p>
      {apps.length > 3 ? <Command text={`plumb fix --class ${g.class} --patch`} /> : apps.map((app) => <Command key={app.join()} text={`plumb fix --app ${cliName(app)} --class ${g.class} --patch`} />)}</>}
    <ul class="places">{g.places.map((p, i) => <li key={i}><Name app={p.app} /> <ObjectLink app={p.app} o={p.object} /> <code>{p.fields.slice(0, 3).join(" ")}</code> {p.actor && <span class="by">{p.actor}</span>}<p class="small">{p.text}</p></li>)}</ul></details>;
}

interface Orphan extends Used { app: AppRef; object: ObjectRef; since: number | null; counts: boolean; evidence: string[]; fix: string | null }
export function Orphans() {
  const loaded = useLoaded<{ orphans: Orphan[] }>("orphans", () => own("orphans"), changes.value);
  return <Panel of={loaded}>{({ orphans }) => {
    const apps = [...new Set(orphans.map((o) => o.app.join("/")))].map((key) => key.split("/") as unknown as AppRef);
    return <div><div class="toolbar"><h1>Orphans <span class="count">{orphans.length}</span></h1></div>
      <p class="small intro">Objects that left Git and still exist, in the order in which they can go: what nothing uses comes first.</p>
      {!orphans.length && <p class="note calmnote"><Mark state="well" /> No orphans.</p>}
      {apps.map((app) => <section class="card counts" key={app.join()}><header><Mark state="counts" /><Name app={app} /><span class="class">{plural(orphans.filter((o) => o.app.join() === app.join()).length, "orphan")}</span><span class="actions"><Button off={whyNot()} onClick={() => plan("sync", [app], { prune: true })}>Prune: plan</Button></span></header>
        <ul class="places">{orphans.filter((o) => o.app.join() === app.join()).map((o, i) => <li key={i}><ObjectLink app={app} o={o.object} /> <Ago at={o.since} /><p class="small">{o.evidence[0]}</p><UsedLine app={app} of={o} /></li>)}</ul>
        <p class="small">This deletes those that nothing uses, one at a time, and keeps a file of each:</p><Command text={`plumb orphans ${cliName(app)} --delete --dump ./orphans`} /></section>)}</div>;
  }}</Panel>;
}

interface Deleted { id: string; app: AppRef; object: ObjectRef; at: number; why: string; revision: string | null; lost: string | null; refusal: string | null; exists: boolean }
export function Undo() {
  const loaded = useLoaded<{ deleted: Deleted[] }>("undo", () => own("undo"), changes.value);
  return <div><div class="toolbar"><h1>Undo</h1></div><p class="small intro">plumb keeps a copy of each object before it deletes it.</p>
    <Panel of={loaded} empty={loaded.value?.deleted.length === 0 && "No deleted objects are kept."}>{({ deleted }) => <ul class="list">{deleted.map((d) => <li key={d.id}><div><b>{d.object.kind}</b> {d.object.namespace && d.object.namespace + "/"}{d.object.name} of <Name app={d.app} /> <Ago at={d.at} />
      <p class="small">{d.why}{d.revision && ` at ${d.revision.slice(0, 7)}`}.{d.lost && ` Lost: ${d.lost}.`}{d.why === "removed from Git" && " A later prune deletes it again unless Git has it."}</p><Command text={`plumb undo restore ${d.id.slice(0, 8)}`} /></div>
      {d.exists ? <span><Mark state="well" /> It exists</span> : <Button off={d.refusal ?? whyNot()} onClick={() => plan("restore", [d.app], { id: d.id })}>Restore…</Button>}</li>)}</ul>}</Panel></div>;
}

export function Activity() {
  const loaded = useLoaded<{ entries: Event[] }>("activity", () => own("activity"), changes.value);
  const text = param("find");
  return <div><div class="toolbar"><h1>Activity</h1><input type="search" class="find" placeholder="App, person, what" aria-label="Filter" value={text} onInput={(e) => go(withParams({ find: e.currentTarget.value }), true)} spellcheck={false} /></div>
    <Panel of={loaded} empty={loaded.value?.entries.length === 0 && "Nothing happened yet."}>{({ entries }) => {
      const shown = entries.filter((e) => `${e.app[1]} ${e.actor} ${e.text}`.toLowerCase().includes(text.toLowerCase())).slice(0, 300);
      return <ul class="lately long">{shown.map((e, i) => <LateLine key={i} event={e} />)}</ul>;
    }}</Panel></div>;
}

const settings: [string, string][] = [["clusters", "Clusters"], ["repositories", "Repositories"], ["projects", "Projects"], ["applicationsets", "ApplicationSets"]];
export function Settings({ part, name }: { part: string; name: string }) {
  if (!part) {
    return <div><div class="toolbar"><h1>Settings</h1></div><ul class="list">{settings.map(([path, name]) => <li key={path}><a href={`settings/${path}`}>{name}</a></li>)}
      <li><a href="undo">Undo: deleted objects</a></li></ul>
      <fieldset class="prefs"><legend>This browser</legend><label class="check"><input type="checkbox" checked={utc.value} onChange={(e) => setUtc(e.currentTarget.checked)} /> Times in UTC (else {zoneName()})</label>
        <label class="check"><input type="checkbox" checked={keysOn.value} onChange={(e) => setKeys(e.currentTarget.checked)} /> Keys without a modifier (? lists them)</label></fieldset>
      <IsSet /></div>;
  }
  const title = settings.find(([path]) => path === part)?.[1] ?? part;
  return <div><p class="crumbs"><a href="settings">Settings</a></p><div class="toolbar"><h1>{title}</h1></div><Things key={part} part={part} name={name} /></div>;
}
interface Setting { object: string; key: string; unused: string | null }
/** What is set. Values are not shown: some hold secrets. */
function IsSet() {
  const loaded = useLoaded<{ settings?: Setting[]; refusal?: string }>("settings", () => own("settings"));
  return <section class="isset"><h2>What is set</h2><p class="small">plumb reads its settings from argocd-cm, argocd-cmd-params-cm and argocd-rbac-cm. They are changed there; values are not shown.</p>
    <Panel of={loaded} empty={loaded.value?.refusal ?? (loaded.value?.settings?.length === 0 && "Nothing is set: every setting has its default.")}>{({ settings: all }) => <ul class="places">{(all ?? []).map((s) => <li key={s.object + s.key}><code>{s.key}</code> <span class="small">{s.object}</span>{s.unused && <p class="small"><Mark state="explained" /> Nothing follows from it: {s.unused}.</p>}</li>)}</ul>}</Panel></section>;
}
interface Usage { apps: number; compared: number; failing: number; since: number | null; text: string }
interface Failures { clusters: Record<string, Usage>; repositories: Record<string, Usage>; projects: Record<string, Usage> }
/** A cluster or a repository: what its connection and the apps that use it say. What nobody tried is not shown as well. */
function Connection({ used, status, message, children }: { used: Usage | undefined; status: string; message: string; children: ComponentChildren }) {
  const all = used !== undefined && used.failing > 0 && used.compared === 0;
  const state = status === "Failed" || all ? "ill" : used?.failing ? "counts" : status === "Successful" || used?.compared ? "well" : "unknown";
  const word = state === "ill" ? "Failed" : state === "counts" ? `${used!.failing} of ${plural(used!.apps, "app")} fail` : state === "well" ? (status === "Successful" ? "Connected" : "Works") : "Not known";
  const why = state === "unknown" ? (used?.apps ? "None of its apps has been compared yet." : "plumb connects when an app needs it; no app that you may see does.") : message || used?.text || "";
  return <div><Mark state={state} /> {children} <span class="small">{plural(used?.apps ?? 0, "app")}. <b>{word}</b>{used?.failing ? <> <Ago at={used.since} /></> : null}</span>{why && <p class="small">{why}</p>}</div>;
}
function Things({ part, name: named }: { part: string; name: string }) {
  const path: Record<string, string> = { repositories: "repositories", clusters: "clusters", projects: "projects", applicationsets: "applicationsets" };
  const loaded = useLoaded<{ items?: any[] }>(part, () => path[part] ? argo(path[part]!) : Promise.reject(new Error("There is no such list.")), changes.value);
  // What the apps that use them say: plumb connects when an app needs it, and the app tells what failed.
  const known = useLoaded<Failures>("failures", () => own("failures"), changes.value);
  const only = named || param("name");
  return <Panel of={loaded} empty={!loaded.value?.items?.length && "There are none that you may see."}>{({ items }) => <ul class="list">{(items ?? []).filter((item) => !only || item?.metadata?.name === only).map((item, i) => {
    if (part === "clusters") {
      const name = String(item.name || item.server), used = known.value?.clusters[name] ?? known.value?.clusters[item.server];
      return <li key={i}><Connection used={used} status={String(item.connectionState?.status ?? "")} message={String(item.connectionState?.message ?? "")}>
        <a href={`applications?q=${encodeURIComponent("cluster:" + name)}`}>{name}</a> <span class="small">{String(item.server ?? "")}{item.serverVersion && `, Kubernetes ${item.serverVersion}`}.</span></Connection></li>;
    }
    if (part === "repositories") {
      const url = String(item.repo ?? ""), message = String(item.connectionState?.message ?? "");
      return <li key={i}><Connection used={known.value?.repositories[url.replace(/(\.git)?\/?$/, "")]} status={String(item.connectionState?.status ?? "")} message={message === "not tested" ? "" : message}>
        <a href={`applications?q=${encodeURIComponent("repo:" + url)}`}>{url}</a> <span class="small">{String(item.type ?? "git")}{item.project && `, project ${item.project}`}.</span></Connection></li>;
    }
    if (part === "projects") {
      const name = String(item.metadata?.name), spec = item.spec ?? {};
      return <li key={i}><div><a href={`applications?q=${encodeURIComponent("project:" + name)}`}>{name}</a> <span class="small">{plural(known.value?.projects[name]?.apps ?? 0, "app")}. {String(spec.description ?? "")}</span>
        <p class="small">Sources: {(spec.sourceRepos ?? []).map(String).join(", ") || "none"}. Destinations: {(spec.destinations ?? []).map((d: any) => `${d.name ?? d.server ?? "*"}/${d.namespace ?? "*"}`).join(", ") || "none"}.{spec.syncWindows?.length ? ` Sync windows: ${spec.syncWindows.map((w: any) => `${w.kind ?? "allow"} at ${w.schedule} for ${w.duration}`).join(", ")}.` : ""}</p></div></li>;
    }
    return <li key={i}><div>{String(item.metadata?.namespace ?? "")}/{String(item.metadata?.name ?? "")} <span class="small">{(item.status?.resources ?? []).length} Applications</span></div></li>;
  })}</ul>}</Panel>;
}
