// Lists over all apps, and what is set.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { argo, own, post } from "./api";
import { changed, changes, me, say, whyNot } from "./store";
import type { AppRef, Event, ObjectRef } from "./types";
import { plan } from "./plan";
import { Ago, Button, Command, Mark, Name, ObjectLink, Panel, copy, useLoaded } from "./ui";
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
  const state = g.counts ? "counts" : "explained";
  const patches = g.places.map((p) => p.patch).filter(Boolean).join("\n");
  return <details class={`card ${state}`}><summary><Mark state={state} /><span class="class">{g.class}</span> <span class="kind">{g.kind}</span>{!g.counts && <span class="tag">explained</span>}
    <span class="since">{g.findings} in {g.apps} {g.apps === 1 ? "app" : "apps"}</span></summary>
    <p class="fix"><b>Ends it:</b> {g.fix || "nothing to do"}</p>
    {g.patches > 0 && <><div class="actions"><Button onClick={() => copy(patches, `${plural(g.patches, "change")} copied.`)}>Copy {plural(g.patches, "change")}</Button></div>
      <p class="small">Each change is a list of operations (JSON patch) on one document. This command finds the lines in Git and prints a diff:</p><Command text={`plumb fix --class ${g.class} --patch`} /></>}
    <ul class="places">{g.places.map((p, i) => <li key={i}><Name app={p.app} /> <ObjectLink app={p.app} o={p.object} /> <code>{p.fields.slice(0, 3).join(" ")}</code> {p.actor && <span class="by">{p.actor}</span>}<p class="small">{p.text}</p></li>)}</ul></details>;
}

interface Orphan { app: AppRef; object: ObjectRef; since: number | null; counts: boolean; evidence: string[]; fix: string | null }
export function Orphans() {
  const loaded = useLoaded<{ orphans: Orphan[] }>("orphans", () => own("orphans"), changes.value);
  return <Panel of={loaded}>{({ orphans }) => {
    const apps = [...new Set(orphans.map((o) => o.app.join("/")))].map((key) => key.split("/") as unknown as AppRef);
    return <div><div class="toolbar"><h1>Orphans <span class="count">{orphans.length}</span></h1></div>
      <p class="small">Objects that left Git and still exist. The command also reads who uses each of them.</p><Command text="plumb orphans" />
      {!orphans.length && <p class="note calmnote"><Mark state="well" /> No orphans.</p>}
      {apps.map((app) => <section class="card counts" key={app.join()}><header><Mark state="counts" /><Name app={app} /><span class="class">{plural(orphans.filter((o) => o.app.join() === app.join()).length, "orphan")}</span><span class="actions"><Button off={whyNot()} onClick={() => plan("sync", [app], { prune: true })}>Prune: plan</Button></span></header>
        <ul class="places">{orphans.filter((o) => o.app.join() === app.join()).map((o, i) => <li key={i}><ObjectLink app={app} o={o.object} /> <Ago at={o.since} /><p class="small">{o.evidence[0]}</p></li>)}</ul></section>)}</div>;
  }}</Panel>;
}

interface Deleted { id: string; app: AppRef; object: ObjectRef; at: number; why: string; revision: string | null; lost: string | null; refusal: string | null }
export function Undo() {
  const loaded = useLoaded<{ deleted: Deleted[] }>("undo", () => own("undo"), changes.value);
  const [back, setBack] = useState<Set<string>>(new Set());
  const restore = async (d: Deleted) => {
    try { await post("api/plumb/v1/acts", { verb: "restore", id: d.id }); setBack((old) => new Set(old).add(d.id)); say(`Restored ${d.object.kind} ${d.object.name}.`); changed(0); } catch (error) { say((error as Error).message); }
  };
  return <div><div class="toolbar"><h1>Undo</h1></div><p class="small intro">plumb keeps a copy of each object before it deletes it.</p>
    <Panel of={loaded} empty={loaded.value?.deleted.length === 0 && "No deleted objects are kept."}>{({ deleted }) => <ul class="list">{deleted.map((d) => <li key={d.id}><div><b>{d.object.kind}</b> {d.object.namespace && d.object.namespace + "/"}{d.object.name} of <Name app={d.app} /> <Ago at={d.at} />
      <p class="small">{d.why}{d.revision && ` at ${d.revision.slice(0, 7)}`}.{d.lost && ` Lost: ${d.lost}.`}{d.why === "removed from Git" && " A later prune deletes it again unless Git has it."}</p><Command text={`plumb undo restore ${d.id.slice(0, 8)}`} /></div>
      {back.has(d.id) ? <span><Mark state="well" /> Restored</span> : !me.value?.readOnly && <Button off={d.refusal ?? whyNot()} onClick={() => restore(d)}>Restore</Button>}</li>)}</ul>}</Panel></div>;
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
export function Settings({ part }: { part: string }) {
  if (!part) {
    return <div><div class="toolbar"><h1>Settings</h1></div><ul class="list">{settings.map(([path, name]) => <li key={path}><a href={`settings/${path}`}>{name}</a></li>)}
      <li><a href="undo">Undo: deleted objects</a></li></ul>
      <fieldset class="prefs"><legend>This browser</legend><label class="check"><input type="checkbox" checked={utc.value} onChange={(e) => setUtc(e.currentTarget.checked)} /> Times in UTC (else {zoneName()})</label>
        <label class="check"><input type="checkbox" checked={keysOn.value} onChange={(e) => setKeys(e.currentTarget.checked)} /> Keys without a modifier (? lists them)</label></fieldset>
      <p class="small">plumb reads its settings from argocd-cm, argocd-cmd-params-cm and argocd-rbac-cm. They are changed there.</p></div>;
  }
  const title = settings.find(([path]) => path === part)?.[1] ?? part;
  return <div><p class="crumbs"><a href="settings">Settings</a></p><div class="toolbar"><h1>{title}</h1></div><Things key={part} part={part} /></div>;
}
interface Used { apps: number; compared: number; failing: number; since: number | null; text: string }
interface Failures { clusters: Record<string, Used>; repositories: Record<string, Used>; projects: Record<string, Used> }
/** A cluster or a repository: what its connection and the apps that use it say. What nobody tried is not shown as well. */
function Connection({ used, status, message, children }: { used: Used | undefined; status: string; message: string; children: ComponentChildren }) {
  const all = used !== undefined && used.failing > 0 && used.compared === 0;
  const state = status === "Failed" || all ? "ill" : used?.failing ? "counts" : status === "Successful" || used?.compared ? "well" : "unknown";
  const word = state === "ill" ? "Failed" : state === "counts" ? `${used!.failing} of ${plural(used!.apps, "app")} fail` : state === "well" ? (status === "Successful" ? "Connected" : "Works") : "Not known";
  const why = state === "unknown" ? (used?.apps ? "None of its apps has been compared yet." : "plumb connects when an app needs it; no app that you may see does.") : message || used?.text || "";
  return <div><Mark state={state} /> {children} <span class="small">{plural(used?.apps ?? 0, "app")}. <b>{word}</b>{used?.failing ? <> <Ago at={used.since} /></> : null}</span>{why && <p class="small">{why}</p>}</div>;
}
function Things({ part }: { part: string }) {
  const path: Record<string, string> = { repositories: "repositories", clusters: "clusters", projects: "projects", applicationsets: "applicationsets" };
  const loaded = useLoaded<{ items?: any[] }>(part, () => path[part] ? argo(path[part]!) : Promise.reject(new Error("There is no such list.")), changes.value);
  // What the apps that use them say: plumb connects when an app needs it, and the app tells what failed.
  const known = useLoaded<Failures>("failures", () => own("failures"), changes.value);
  const [only] = useState(param("name"));
  return <Panel of={loaded} empty={!loaded.value?.items?.length && "There are none that you may see."}>{({ items }) => <ul class="list">{(items ?? []).filter((item) => !only || item?.metadata?.name === only).map((item, i) => {
    if (part === "clusters") {
      const name = String(item.name || item.server), used = known.value?.clusters[name] ?? known.value?.clusters[item.server];
      return <li key={i}><Connection used={used} status={String(item.connectionState?.status ?? "")} message={String(item.connectionState?.message ?? "")}>
        <a href={`applications?q=${encodeURIComponent("cluster:" + name)}`}>{name}</a> <span class="small">{String(item.server ?? "")} {item.serverVersion && `Kubernetes ${item.serverVersion}`}</span></Connection></li>;
    }
    if (part === "repositories") {
      const url = String(item.repo ?? ""), message = String(item.connectionState?.message ?? "");
      return <li key={i}><Connection used={known.value?.repositories[url.replace(/(\.git)?\/?$/, "")]} status={String(item.connectionState?.status ?? "")} message={message === "not tested" ? "" : message}>
        <a href={`applications?q=${encodeURIComponent("repo:" + url)}`}>{url}</a> <span class="small">{String(item.type ?? "git")} {item.project && `project ${item.project}`}</span></Connection></li>;
    }
    if (part === "projects") {
      const name = String(item.metadata?.name), spec = item.spec ?? {};
      return <li key={i}><div><a href={`applications?q=${encodeURIComponent("project:" + name)}`}>{name}</a> <span class="small">{plural(known.value?.projects[name]?.apps ?? 0, "app")}. {String(spec.description ?? "")}</span>
        <p class="small">Sources: {(spec.sourceRepos ?? []).map(String).join(", ") || "none"}. Destinations: {(spec.destinations ?? []).map((d: any) => `${d.name ?? d.server ?? "*"}/${d.namespace ?? "*"}`).join(", ") || "none"}.{spec.syncWindows?.length ? ` ${spec.syncWindows.length} sync windows.` : ""}</p></div></li>;
    }
    return <li key={i}><div>{String(item.metadata?.namespace ?? "")}/{String(item.metadata?.name ?? "")} <span class="small">{(item.status?.resources ?? []).length} Applications</span></div></li>;
  })}</ul>}</Panel>;
}
