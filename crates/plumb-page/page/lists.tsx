// Lists over all apps, and what is set.
import { useEffect, useMemo, useState } from "preact/hooks";
import { argo, own, post } from "./api";
import { loadRows, mayWrite, rows, say } from "./store";
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
  const loaded = useLoaded<{ groups: Group[] }>("doctor", () => own("doctor"));
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
function DoctorGroup({ g }: { g: Group }) {
  const state = g.counts ? "counts" : "explained";
  const patches = g.places.map((p) => p.patch).filter(Boolean).join("\n");
  return <details class={`card ${state}`}><summary><Mark state={state} /><span class="class">{g.class}</span> <span class="kind">{g.kind}</span>
    <span class="since">{g.findings} in {g.apps} {g.apps === 1 ? "app" : "apps"}</span></summary>
    <p class="fix"><b>Ends it:</b> {g.fix || "nothing to do"}</p>
    <div class="actions">{g.patches > 0 && <><Button onClick={() => copy(patches, `${g.patches} patches copied.`)}>Copy {g.patches} patches</Button>
      <Button onClick={() => download(`${g.class}.patch`, patches)}>Download .patch</Button></>}</div>
    {g.patches > 0 && <Command text={`plumb fix --class ${g.class} --patch`} />}
    <ul class="places">{g.places.map((p, i) => <li key={i}><Name app={p.app} /> <ObjectLink app={p.app} o={p.object} /> <code>{p.fields.slice(0, 3).join(" ")}</code> {p.actor && <span class="by">{p.actor}</span>}<p class="small">{p.text}</p></li>)}</ul></details>;
}
function download(name: string, text: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.setAttribute("data-leave", "");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

interface Orphan { app: AppRef; object: ObjectRef; since: number | null; counts: boolean; evidence: string[]; fix: string | null }
export function Orphans() {
  const loaded = useLoaded<{ orphans: Orphan[] }>("orphans", () => own("orphans"));
  return <Panel of={loaded}>{({ orphans }) => {
    const apps = [...new Set(orphans.map((o) => o.app.join("/")))].map((key) => key.split("/") as unknown as AppRef);
    return <div><div class="toolbar"><h1>Orphans <span class="count">{orphans.length}</span></h1></div>
      <p class="small">Objects that left Git and still exist. The command also reads who uses each of them.</p><Command text="plumb orphans" />
      {!orphans.length && <p class="note calmnote"><Mark state="well" /> No orphans.</p>}
      {apps.map((app) => <section class="card counts" key={app.join()}><header><Mark state="counts" /><Name app={app} /><span class="actions"><Button off={mayWrite() ? null : "There is no fresh news, or this page is read-only."} onClick={() => plan("sync", [app], { prune: true })}>Prune: plan</Button></span></header>
        <ul class="places">{orphans.filter((o) => o.app.join() === app.join()).map((o, i) => <li key={i}><ObjectLink app={app} o={o.object} /> <Ago at={o.since} /><p class="small">{o.evidence[0]}</p></li>)}</ul></section>)}</div>;
  }}</Panel>;
}

interface Deleted { id: string; app: AppRef; object: ObjectRef; at: number; why: string; revision: string | null; lost: string | null; refusal: string | null }
export function Undo() {
  const loaded = useLoaded<{ deleted: Deleted[] }>("undo", () => own("undo"));
  const restore = async (d: Deleted) => {
    try { await post("api/plumb/v1/acts", { verb: "restore", id: d.id }); say(`Restored ${d.object.kind} ${d.object.name}.`); } catch (error) { say((error as Error).message); }
  };
  return <div><div class="toolbar"><h1>Undo</h1></div><p class="small intro">plumb keeps a copy of each object before it deletes it.</p>
    <Panel of={loaded} empty={loaded.value?.deleted.length === 0 && "No deleted objects are kept."}>{({ deleted }) => <ul class="list">{deleted.map((d) => <li key={d.id}><div><b>{d.object.kind}</b> {d.object.namespace && d.object.namespace + "/"}{d.object.name} of <Name app={d.app} /> <Ago at={d.at} />
      <p class="small">{d.why}{d.revision && ` at ${d.revision.slice(0, 7)}`}.{d.lost && ` Lost: ${d.lost}.`}{d.why === "removed from Git" && " A later prune deletes it again unless Git has it."}</p><Command text={`plumb undo restore ${d.id.slice(0, 8)}`} /></div>
      <Button off={d.refusal ?? (mayWrite() ? null : "There is no fresh news.")} onClick={() => restore(d)}>Restore</Button></li>)}</ul>}</Panel></div>;
}

export function Activity() {
  const loaded = useLoaded<{ entries: Event[] }>("activity", () => own("activity"));
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
        <label class="check"><input type="checkbox" checked={keysOn.value} onChange={(e) => setKeys(e.currentTarget.checked)} /> Keys without a modifier (`?` lists them)</label></fieldset>
      <p class="small">plumb reads its settings from argocd-cm, argocd-cmd-params-cm and argocd-rbac-cm. They are changed there.</p></div>;
  }
  const title = settings.find(([path]) => path === part)?.[1] ?? part;
  return <div><p class="crumbs"><a href="settings">Settings</a></p><div class="toolbar"><h1>{title}</h1></div><Things key={part} part={part} /></div>;
}
function Things({ part }: { part: string }) {
  const path: Record<string, string> = { repositories: "repositories", clusters: "clusters", projects: "projects", applicationsets: "applicationsets" };
  const loaded = useLoaded<{ items?: any[] }>(part, () => path[part] ? argo(path[part]!) : Promise.reject(new Error("There is no such list.")));
  useEffect(() => { void loadRows(); }, []);
  const version = rows.version.value;
  const count = useMemo(() => (test: (row: any) => boolean) => [...(rows.all?.values() ?? [])].filter(test).length, [version]);
  const [only] = useState(param("name"));
  return <Panel of={loaded} empty={!loaded.value?.items?.length && "There are none that you may see."}>{({ items }) => <ul class="list">{(items ?? []).filter((item) => !only || item?.metadata?.name === only).map((item, i) => {
    if (part === "clusters") {
      const state = item.connectionState ?? {}, name = String(item.name || item.server);
      return <li key={i}><div><Mark state={state.status === "Successful" ? "well" : state.status === "Failed" ? "ill" : "unknown"} /> <a href={`applications?q=${encodeURIComponent("cluster:" + name)}`}>{name}</a> <span class="small">{String(item.server ?? "")} {item.serverVersion && `Kubernetes ${item.serverVersion}`} {count((row) => row.cluster === name || row.cluster === item.server)} apps</span>{state.message && <p class="small">{String(state.message)}</p>}</div></li>;
    }
    if (part === "repositories") return <li key={i}><div><Mark state={item.connectionState?.status === "Failed" ? "ill" : "well"} /> {String(item.repo ?? "")} <span class="small">{String(item.type ?? "git")} {item.project && `project ${item.project}`}</span>{item.connectionState?.message && <p class="small">{String(item.connectionState.message)}</p>}</div></li>;
    if (part === "projects") {
      const name = String(item.metadata?.name), spec = item.spec ?? {};
      return <li key={i}><div><a href={`applications?q=${encodeURIComponent("project:" + name)}`}>{name}</a> <span class="small">{count((row) => row.project === name)} apps. {String(spec.description ?? "")}</span>
        <p class="small">Sources: {(spec.sourceRepos ?? []).map(String).join(", ") || "none"}. Destinations: {(spec.destinations ?? []).map((d: any) => `${d.name ?? d.server ?? "*"}/${d.namespace ?? "*"}`).join(", ") || "none"}.{spec.syncWindows?.length ? ` ${spec.syncWindows.length} sync windows.` : ""}</p></div></li>;
    }
    return <li key={i}><div>{String(item.metadata?.namespace ?? "")}/{String(item.metadata?.name ?? "")} <span class="small">{(item.status?.resources ?? []).length} Applications</span></div></li>;
  })}</ul>}</Panel>;
}
