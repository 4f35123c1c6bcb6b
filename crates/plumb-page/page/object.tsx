// One object: how it differs and who owns each field, live, Git, events, who uses it.
import { useEffect, useLayoutEffect, useMemo } from "preact/hooks";
import { Refused, argo, own, query } from "./api";
import { cliName, loadRows, rows, whyNot } from "./store";
import { clock } from "./time";
import type { AppRef, Detail, ObjectRef, TreeNode, Users } from "./types";
import { managed } from "./app";
import { Logs } from "./logs";
import { planOn } from "./plan";
import { Ago, Button, Command, Mark, Menu, Name, ObjectLink, Panel, Tabs, copy, objectName, useLoaded, useTick } from "./ui";
import { appUrl, go, objectUrl, param, withParams } from "./url";
import { VList, widthOf } from "./vlist";
import { diff, lines, owners, type DiffLine } from "./yaml";
import { onKey } from "./keys";

const restarts = new Set(["Deployment", "StatefulSet", "DaemonSet"]);
const withPods = new Set([...restarts, "ReplicaSet", "Pod", "Job", "Rollout"]);
const parts = new Set(["diff", "live", "git", "events", "logs", "users"]);

export function ObjectScreen({ app, o }: { app: AppRef; o: ObjectRef }) {
  const named = param("tab"), tab = parts.has(named) ? named : named === "desired" ? "git" : named === "manifest" ? "live" : "diff";
  // What only the cluster changes announces itself by no event of the app.
  const tick = useTick(tab === "live" ? 10 : 60);
  useEffect(() => { void loadRows(); }, []);
  void rows.version.value;
  const v = rows.all?.get(app.join("/"))?.v ?? "";
  const detail = useLoaded<Detail>(app.join("/"), () => own<Detail>(`apps/${app.map(encodeURIComponent).join("/")}`), v);
  const pair = useLoaded(objectName(o), () => managed(app, o), v);
  const whole = useLoaded(objectName(o), () => argo<{ manifest: string }>(`applications/${encodeURIComponent(app[1])}/resource?${query({ appNamespace: app[0], namespace: o.namespace, resourceName: o.name, kind: o.kind, group: o.group, version: "v1" })}`).then((a) => JSON.parse(a.manifest)), `${v} ${tick}`);
  const findings = (detail.value?.findings ?? []).filter((f) => objectName(f.object) === objectName(o) && f.object.group === o.group);
  const off = (verb: string) => detail.value?.can[verb] ?? whyNot();
  const known = detail.value?.objects.find((x) => objectName(x) === objectName(o) && x.group === o.group);
  const choose = (next: string) => go(withParams({ tab: next === "diff" ? null : next, container: null, previous: null, find: null, all: null }), true);
  useLayoutEffect(() => onKey({ d: () => choose("diff"), l: () => choose("logs"), Escape: () => go(appUrl(app)), c: () => copy(kubectl(o, "get", "-o yaml"), "Command copied.") }));
  const counted = findings.filter((f) => f.counts);
  const tabs: [string, string][] = [["diff", "Difference"], ["live", "Live"], ["git", "Git"], ["events", "Events"]];
  if (withPods.has(o.kind)) tabs.push(["logs", "Logs"]);
  tabs.push(["users", "Used by"]);
  const paused = detail.value?.pauses.find((p) => objectName(p.object) === objectName(o) && p.object.group === o.group);
  return <div class="app">
    <header class="apphead"><p class="crumbs"><a href="applications">Apps</a> / <a href={appUrl(app)}>{app[1]}</a></p>
      <h1><span class="kind">{o.kind}</span> {o.namespace ? o.namespace + "/" : ""}{o.name}</h1>
      <p class="sentences">{known?.health && <><Mark state={known.health === "Healthy" ? "well" : known.health === "Progressing" ? "busy" : "ill"} /> {known.health}{known.message && `: ${known.message}`}. </>}
        {counted.length > 0 && <span class="counts">{counted.map((f) => f.class).join(", ")}: {counted[0]!.evidence[0]} </span>}{!counted.length && known?.sync === "Synced" && "It is as Git says. "}</p>
      <div class="actions bar">
        {known && <Button off={off("sync")} onClick={() => planOn("sync", app, [o])}>Sync this: plan</Button>}
        {known && (paused ? <Button off={off("resume")} onClick={() => planOn("resume", app, [o])}>Resume…</Button> : <Button off={off("pause")} onClick={() => planOn("pause", app, [o])}>Pause…</Button>)}
        {restarts.has(o.kind) && <Button off={off("restart")} onClick={() => planOn("restart", app, [o])}>Restart…</Button>}
        <Menu name="Copy as command"><button onClick={() => copy(diffCommand(app), "Command copied.")}>{diffCommand(app)}</button>{[["get", "-o yaml"], ["describe", ""], ...(withPods.has(o.kind) ? [["logs", ""]] : []), ["edit", ""]].map(([verb, rest]) =>
          <button key={verb} onClick={() => copy(kubectl(o, verb!, rest!), "Command copied.")}>{kubectl(o, verb!, rest!)}</button>)}
          <hr /><Button kind="danger" off={off("delete-object")} onClick={() => planOn("delete-object", app, [o])}>Delete…</Button></Menu>
      </div></header>
    <Tabs tabs={tabs} current={tab} choose={choose} />
    {tab === "diff" && <Panel of={pair}>{({ git, live }) => git === null ? <p class="note">Git does not have this object{live ? "; it exists in the cluster" : ""}.</p> : live === null ? <p class="note">The cluster does not have this object.</p>
      : <Difference git={git} live={live} whole={whole.value ?? live} fields={new Map(findings.flatMap((f) => f.fields.map((field) => [field, f.class] as const)))} />}</Panel>}
    {tab === "live" && <Panel of={whole}>{(object) => <Yaml value={withoutManaged(object)} />}</Panel>}
    {tab === "git" && <Panel of={pair} empty={pair.value?.git === null && "Git does not have this object."}>{({ git }) => <Yaml value={git} />}</Panel>}
    {tab === "events" && <Events app={app} o={o} />}
    {tab === "users" && <UsedBy app={app} o={o} />}
    {tab === "logs" && <Logs app={app} o={o} refusal={detail.value?.can.logs ?? null} containers={containersOf(whole.value)} />}
  </div>;
}

/** The names of the containers of a pod, or of the pods that an object makes. */
function containersOf(object: any): string[] {
  const spec = object?.spec?.template?.spec ?? object?.spec ?? {};
  return [...(spec.containers ?? []), ...(spec.initContainers ?? [])].map((container: any) => String(container?.name ?? "")).filter(Boolean);
}
const diffCommand = (app: AppRef) => `plumb app diff ${cliName(app)}`;
const kubectl = (o: ObjectRef, verb: string, rest: string) => `kubectl ${o.namespace ? `-n ${o.namespace} ` : ""}${verb} ${verb === "logs" && o.kind === "Pod" ? "" : o.kind.toLowerCase() + (o.group ? "." + o.group : "") + "/"}${o.name}${rest ? " " + rest : ""}`;
function withoutManaged(object: any) { const copied = structuredClone(object); delete copied?.metadata?.managedFields; return copied; }

function Yaml({ value }: { value: any }) {
  const all = useMemo(() => lines(value), [value]);
  return <section><div class="toolbar"><span class="small">Values of Secrets are never shown.</span><button class="quiet" onClick={() => copy(all.map((l) => "  ".repeat(l.indent) + l.text).join("\n"))}>Copy</button></div>
    <div class="code" tabIndex={0}><VList count={all.length} height={20} width={widthOf(all, (l) => "  ".repeat(l.indent) + l.text) + 8} label="YAML" row={(i) => <div class="cl" role="listitem" key={i}><span class="no">{i + 1}</span><span>{"  ".repeat(all[i]!.indent)}{all[i]!.text}</span></div>} /></div></section>;
}

/** Most lines of a difference that are drawn. */
const MOST_LINES = 3000;
function Difference({ git, live, whole, fields }: { git: any; live: any; whole: any; fields: Map<string, string> }) {
  const all = param("all") === "true";
  const setAll = (on: boolean) => go(withParams({ all: on ? "true" : null }), true);
  const owner = useMemo(() => owners(whole), [whole]);
  const shown = useMemo(() => {
    const found = diff(git, live).filter((line) => !/^\/(status|metadata\/(uid|resourceVersion|generation|creationTimestamp|managedFields|selfLink))(\/|$)/.test(line.path));
    if (all) return found as (DiffLine & { gap?: number })[];
    const isNear = (line: DiffLine) => line.mark === "-" || line.mark === "+" || (!line.body && [...fields.keys()].some((field) => line.path === field || line.path.startsWith(field + "/")));
    const keep = new Set<number>();
    found.forEach((line, i) => {
      if (!isNear(line)) return;
      keep.add(i);
      // A little of a long text around what changed in it.
      if (line.mark !== " ") for (let k = i - 2; k <= i + 2; k++) if (found[k]?.body && found[k]!.path === line.path) keep.add(k);
      // The way from the root to the line, so that its place is clear.
      let depth = line.indent;
      for (let k = i - 1; k >= 0 && depth > 0; k--) if (found[k]!.indent < depth) { keep.add(k); depth = found[k]!.indent; }
    });
    const out: (DiffLine & { gap?: number })[] = [];
    let gap = 0;
    found.forEach((line, i) => { if (keep.has(i)) { if (gap) out.push({ ...line, gap }); gap = 0; out.push(line); } else gap++; });
    if (gap && out.length) out.push({ indent: 0, text: "", mark: " ", path: "", gap });
    return out;
  }, [git, live, all, fields]);
  const has = shown.some((line) => line.mark === "-" || line.mark === "+" || fields.size);
  return <section><div class="toolbar"><label class="check"><input type="checkbox" checked={all} onChange={(e) => setAll(e.currentTarget.checked)} /> Show equal lines and what only the cluster has</label></div>
    {!has && !all && <p class="note calmnote"><Mark state="well" /> Every field that Git sets is equal in the cluster.</p>}
    <div class="code diff" tabIndex={0}>{shown.slice(0, MOST_LINES).map((line, i) => {
      if (line.gap !== undefined) return <button class="cl gap" key={i} onClick={() => setAll(true)}>{line.gap} lines</button>;
      // The lines of one text have one class and one owner.
      const before = shown[i - 1], isFirst = before?.path !== line.path || before.mark !== line.mark;
      const klass = isFirst ? fields.get(line.path) : undefined, who = isFirst && (line.mark === "+" || line.mark === "~") ? owner(line.path) : null;
      return <div key={i} class={`cl m${line.mark === "-" ? "old" : line.mark === "+" ? "new" : line.mark === "~" ? "only" : ""}`}><span class="sign">{line.mark === "~" ? " " : line.mark}</span><span class="txt">{"  ".repeat(line.indent)}{line.text}</span>
        {klass && <span class="tag">{klass}</span>}{line.mark === "-" && isFirst && <span class="owner">Git</span>}{who && <span class="owner">{who.manager}{who.time && ` ${clock(Date.parse(who.time) / 1000)}`}</span>}</div>;
    })}</div>{shown.length > MOST_LINES && <p class="note">{shown.length - MOST_LINES} more lines are not shown here. The command has all of them.</p>}</section>;
}

function Events({ app, o }: { app: AppRef; o: ObjectRef }) {
  const events = useLoaded(objectName(o), async () => {
    const tree = await argo<{ nodes?: TreeNode[] }>(`applications/${encodeURIComponent(app[1])}/resource-tree?${query({ appNamespace: app[0] })}`);
    const node = tree.nodes?.find((n) => n.kind === o.kind && n.name === o.name && (n.namespace ?? "") === o.namespace && (n.group ?? "") === o.group);
    if (!node) throw new Refused(404, "The cluster does not have this object, so there are no events.");
    const answer = await argo<{ items?: any[] }>(`applications/${encodeURIComponent(app[1])}/events?${query({ appNamespace: app[0], resourceUID: node.uid, resourceName: o.name, resourceNamespace: o.namespace })}`);
    return (answer.items ?? []).sort((a, b) => String(b.lastTimestamp ?? b.eventTime).localeCompare(String(a.lastTimestamp ?? a.eventTime)));
  }, useTick(10));
  return <Panel of={events} empty={events.value?.length === 0 && "There are no events. Kubernetes keeps them for an hour."}>{(list) => <ol class="timeline">{list.map((e, i) => <li key={i}><Mark state={e.type === "Warning" ? "counts" : "well"} />
    <div><span class="when">{(e.lastTimestamp ?? e.eventTime) && <Ago at={Date.parse(e.lastTimestamp ?? e.eventTime) / 1000} />}</span> <b>{String(e.reason ?? "")}</b> {String(e.message ?? "")} {e.count > 1 && <span class="tag">{e.count} times</span>}</div></li>)}</ol>}</Panel>;
}

function UsedBy({ app, o }: { app: AppRef; o: ObjectRef }) {
  const part = (text: string) => encodeURIComponent(text || "-");
  const users = useLoaded<Users>(objectName(o), () => own<Users>(`apps/${app.map(encodeURIComponent).join("/")}/o/${part(o.group)}/${part(o.kind)}/${part(o.namespace)}/${part(o.name)}/users`), useTick(30));
  return <Panel of={users}>{({ users: list, hidden }) => <section class="users">
    {!list.length && <p class="note calmnote"><Mark state="explained" /> Nothing that plumb can see refers to it by name.</p>}
    {list.length > 0 && <ul class="list">{list.map((u) => <li key={objectName(u)}><div><ObjectLink app={u.app ?? app} o={u} />{u.app && <> of <Name app={u.app} /></>}</div></li>)}</ul>}
    {hidden > 0 && <p class="note">{hidden === 1 ? "1 object" : `${hidden} objects`} of apps that you may not see use it, too.</p>}
    <p class="small">References by name in other objects of the cluster. A program may use it without such a reference. For what left Git, this command reads all objects:</p><Command text="plumb orphans" /></section>}</Panel>;
}
