// One object: how it differs and who owns each field, live, Git, events, logs.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Refused, argo, own, query } from "./api";
import { cliName, loadRows, rows, whyNot } from "./store";
import { clock } from "./time";
import type { AppRef, Detail, ObjectRef, TreeNode, Users } from "./types";
import { managed } from "./app";
import { planOn } from "./plan";
import { Ago, Button, Command, Mark, Name, ObjectLink, Panel, Tabs, copy, objectName, useLoaded } from "./ui";
import { appUrl, go, objectUrl, param, withParams } from "./url";
import { VList } from "./vlist";
import { diff, lines, owners, type DiffLine } from "./yaml";
import { onKey } from "./keys";

const restarts = new Set(["Deployment", "StatefulSet", "DaemonSet"]);
const withPods = new Set([...restarts, "ReplicaSet", "Pod", "Job", "Rollout"]);

export function ObjectScreen({ app, o }: { app: AppRef; o: ObjectRef }) {
  const tab = param("tab") || "diff";
  useEffect(() => { void loadRows(); }, []);
  void rows.version.value;
  const v = rows.all?.get(app.join("/"))?.v ?? "";
  const detail = useLoaded<Detail>(app.join("/"), () => own<Detail>(`apps/${app.map(encodeURIComponent).join("/")}`), v);
  const pair = useLoaded(objectName(o), () => managed(app, o), v);
  const whole = useLoaded(objectName(o), () => argo<{ manifest: string }>(`applications/${encodeURIComponent(app[1])}/resource?${query({ appNamespace: app[0], namespace: o.namespace, resourceName: o.name, kind: o.kind, group: o.group, version: "v1" })}`).then((a) => JSON.parse(a.manifest)), v);
  const findings = (detail.value?.findings ?? []).filter((f) => objectName(f.object) === objectName(o) && f.object.group === o.group);
  const off = (verb: string) => detail.value?.can[verb] ?? whyNot();
  const known = detail.value?.objects.find((x) => objectName(x) === objectName(o) && x.group === o.group);
  const choose = (next: string) => go(withParams({ tab: next === "diff" ? null : next, container: null }), true);
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
        <details class="menu"><summary>Copy as command</summary><div><button onClick={() => copy(diffCommand(app), "Command copied.")}>{diffCommand(app)}</button>{[["get", "-o yaml"], ["describe", ""], ...(withPods.has(o.kind) ? [["logs", ""]] : []), ["edit", ""]].map(([verb, rest]) =>
          <button key={verb} onClick={() => copy(kubectl(o, verb!, rest!), "Command copied.")}>{kubectl(o, verb!, rest!)}</button>)}
          <hr /><Button kind="danger" off={off("delete-object")} onClick={() => planOn("delete-object", app, [o])}>Delete…</Button></div></details>
      </div></header>
    <Tabs tabs={tabs} current={tab} choose={choose} />
    {tab === "diff" && <Panel of={pair}>{({ git, live }) => git === null ? <p class="note">Git does not have this object{live ? "; it exists in the cluster" : ""}.</p> : live === null ? <p class="note">The cluster does not have this object.</p>
      : <Difference git={git} live={live} whole={whole.value ?? live} fields={new Map(findings.flatMap((f) => f.fields.map((field) => [field, f.class] as const)))} />}</Panel>}
    {tab === "live" && <Panel of={whole}>{(object) => <Yaml value={withoutManaged(object)} />}</Panel>}
    {tab === "git" && <Panel of={pair} empty={pair.value?.git === null && "Git does not have this object."}>{({ git }) => <Yaml value={git} />}</Panel>}
    {tab === "events" && <Events app={app} o={o} />}
    {tab === "users" && <UsedBy app={app} o={o} />}
    {tab === "logs" && <Logs app={app} o={o} refusal={detail.value?.can.logs ?? null} />}
  </div>;
}

const diffCommand = (app: AppRef) => `plumb app diff ${cliName(app)}`;
const kubectl = (o: ObjectRef, verb: string, rest: string) => `kubectl ${o.namespace ? `-n ${o.namespace} ` : ""}${verb} ${verb === "logs" && o.kind === "Pod" ? "" : o.kind.toLowerCase() + (o.group ? "." + o.group : "") + "/"}${o.name}${rest ? " " + rest : ""}`;
function withoutManaged(object: any) { const copied = structuredClone(object); delete copied?.metadata?.managedFields; return copied; }

function Yaml({ value }: { value: any }) {
  const all = useMemo(() => lines(value), [value]);
  return <section><div class="toolbar"><span class="small">Values of Secrets are never shown.</span><button class="quiet" onClick={() => copy(all.map((l) => "  ".repeat(l.indent) + l.text).join("\n"))}>Copy</button></div>
    <div class="code" tabIndex={0}><VList count={all.length} height={20} label="YAML" row={(i) => <div class="cl" role="listitem" key={i}><span class="no">{i + 1}</span><span>{"  ".repeat(all[i]!.indent)}{all[i]!.text}</span></div>} /></div></section>;
}

function Difference({ git, live, whole, fields }: { git: any; live: any; whole: any; fields: Map<string, string> }) {
  const [all, setAll] = useState(false);
  const owner = useMemo(() => owners(whole), [whole]);
  const shown = useMemo(() => {
    const found = diff(git, live).filter((line) => !/^\/(status|metadata\/(uid|resourceVersion|generation|creationTimestamp|managedFields|selfLink))(\/|$)/.test(line.path));
    if (all) return found as (DiffLine & { gap?: number })[];
    const isNear = (line: DiffLine) => line.mark === "-" || line.mark === "+" || [...fields.keys()].some((field) => line.path === field || line.path.startsWith(field + "/"));
    const keep = new Set<number>();
    found.forEach((line, i) => {
      if (!isNear(line)) return;
      keep.add(i);
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
    <div class="code diff" tabIndex={0}>{shown.slice(0, 3000).map((line, i) => {
      if (line.gap !== undefined) return <button class="cl gap" key={i} onClick={() => setAll(true)}>{line.gap} lines</button>;
      const klass = fields.get(line.path), who = line.mark === "+" || line.mark === "~" ? owner(line.path) : null;
      return <div key={i} class={`cl m${line.mark === "-" ? "old" : line.mark === "+" ? "new" : line.mark === "~" ? "only" : ""}`}><span class="sign">{line.mark === "~" ? " " : line.mark}</span><span class="txt">{"  ".repeat(line.indent)}{line.text}</span>
        {klass && <span class="tag">{klass}</span>}{line.mark === "-" && <span class="owner">Git</span>}{who && <span class="owner">{who.manager}{who.time && ` ${clock(Date.parse(who.time) / 1000)}`}</span>}</div>;
    })}</div></section>;
}

function Events({ app, o }: { app: AppRef; o: ObjectRef }) {
  const events = useLoaded(objectName(o), async () => {
    const tree = await argo<{ nodes?: TreeNode[] }>(`applications/${encodeURIComponent(app[1])}/resource-tree?${query({ appNamespace: app[0] })}`);
    const node = tree.nodes?.find((n) => n.kind === o.kind && n.name === o.name && (n.namespace ?? "") === o.namespace && (n.group ?? "") === o.group);
    if (!node) throw new Refused(404, "The cluster does not have this object, so there are no events.");
    const answer = await argo<{ items?: any[] }>(`applications/${encodeURIComponent(app[1])}/events?${query({ appNamespace: app[0], resourceUID: node.uid, resourceName: o.name, resourceNamespace: o.namespace })}`);
    return (answer.items ?? []).sort((a, b) => String(b.lastTimestamp ?? b.eventTime).localeCompare(String(a.lastTimestamp ?? a.eventTime)));
  });
  return <Panel of={events} empty={events.value?.length === 0 && "There are no events. Kubernetes keeps them for an hour."}>{(list) => <ol class="timeline">{list.map((e, i) => <li key={i}><Mark state={e.type === "Warning" ? "counts" : "well"} />
    <div><span class="when">{(e.lastTimestamp ?? e.eventTime) && <Ago at={Date.parse(e.lastTimestamp ?? e.eventTime) / 1000} />}</span> <b>{String(e.reason ?? "")}</b> {String(e.message ?? "")} {e.count > 1 && <span class="tag">{e.count} times</span>}</div></li>)}</ol>}</Panel>;
}

function UsedBy({ app, o }: { app: AppRef; o: ObjectRef }) {
  const part = (text: string) => encodeURIComponent(text || "-");
  const users = useLoaded<Users>(objectName(o), () => own<Users>(`apps/${app.map(encodeURIComponent).join("/")}/o/${part(o.group)}/${part(o.kind)}/${part(o.namespace)}/${part(o.name)}/users`));
  return <Panel of={users}>{({ users: list, hidden }) => <section class="users">
    {!list.length && <p class="note calmnote"><Mark state="explained" /> Nothing that plumb can see refers to it by name.</p>}
    {list.length > 0 && <ul class="list">{list.map((u) => <li key={objectName(u)}><div><ObjectLink app={u.app ?? app} o={u} />{u.app && <> of <Name app={u.app} /></>}</div></li>)}</ul>}
    {hidden > 0 && <p class="note">{hidden === 1 ? "1 object" : `${hidden} objects`} of apps that you may not see use it, too.</p>}
    <p class="small">References by name in other objects of the cluster. A program may use it without such a reference. For what left Git, this command reads all objects:</p><Command text="plumb orphans" /></section>}</Panel>;
}

interface LogLine { at: string; pod: string; text: string }
const KEPT = 50_000;

function Logs({ app, o, refusal }: { app: AppRef; o: ObjectRef; refusal: string | null }) {
  const [all, setAll] = useState<LogLine[]>([]);
  const [state, setState] = useState("Connecting…");
  const [text, setText] = useState("");
  const [previous, setPrevious] = useState(false);
  const [following, setFollowing] = useState(true);
  const container = param("container");
  const buffer = useRef<LogLine[]>([]);
  useEffect(() => {
    if (refusal) return;
    const stop = new AbortController();
    setAll([]);
    buffer.current = [];
    const flush = setInterval(() => { if (buffer.current.length) { const fresh = buffer.current; buffer.current = []; setAll((old) => [...old, ...fresh].slice(-KEPT)); } }, 150);
    (async () => {
      const where: Record<string, string> = o.kind === "Pod" ? { podName: o.name } : { kind: o.kind, group: o.group, resourceName: o.name };
      const url = `api/v1/applications/${encodeURIComponent(app[1])}/logs?${query({ appNamespace: app[0], namespace: o.namespace, ...where, container, tailLines: "1000", follow: previous ? "false" : "true", previous: previous ? "true" : "false" })}`;
      try {
        const answer = await fetch(new URL(url, document.baseURI), { signal: stop.signal });
        if (!answer.ok || !answer.body) { const body = await answer.json().catch(() => null); throw new Error(body?.error?.message ?? body?.message ?? `The server answered ${answer.status}.`); }
        setState(previous ? "" : "Following");
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        let rest = "";
        for (;;) {
          const { done, value } = await reader.read();
          if (done) break;
          rest += value;
          const parts = rest.split("\n");
          rest = parts.pop()!;
          for (const part of parts) {
            const line = part.trim() ? JSON.parse(part) : null;
            if (line?.error) throw new Error(line.error.message);
            const r = line?.result;
            if (r && !r.last && typeof r.content === "string") buffer.current.push({ at: String(r.timeStampStr ?? ""), pod: String(r.podName ?? ""), text: r.content });
          }
        }
        setState("The log has ended.");
      } catch (error) { if (!stop.signal.aborted) setState((error as Error).message); }
    })();
    return () => { stop.abort(); clearInterval(flush); };
  }, [objectName(o), container, previous, refusal]);
  const found = useMemo(() => text ? all.filter((line) => line.text.toLowerCase().includes(text.toLowerCase())) : all, [all, text]);
  useEffect(() => { if (following) scrollTo({ top: document.documentElement.scrollHeight }); }, [found.length, following]);
  useEffect(() => {
    const look = () => setFollowing(innerHeight + scrollY > document.documentElement.scrollHeight - 60);
    addEventListener("scroll", look, { passive: true });
    return () => removeEventListener("scroll", look);
  }, []);
  if (refusal) return <p class="note bad">{refusal}</p>;
  const pods = new Set(all.map((line) => line.pod)).size;
  return <section class="logs"><div class="toolbar"><input type="search" class="find" placeholder="Find in the log" aria-label="Find in the log" value={text} onInput={(e) => setText(e.currentTarget.value)} spellcheck={false} />
    <span class="small" role="status">{state.replace(/[.…]?$/, ".")} {text ? `${found.length} of ${all.length} lines` : `${all.length} lines`}{pods > 1 && ` of ${pods} pods`}</span>
    <label class="inline">Container <input value={container} placeholder="the first" onChange={(e) => go(withParams({ container: e.currentTarget.value }), true)} spellcheck={false} /></label>
    <label class="check"><input type="checkbox" checked={previous} onChange={(e) => setPrevious(e.currentTarget.checked)} /> Previous container</label>
    <button class="quiet" onClick={() => copy(found.map((l) => `${l.at} ${l.pod} ${l.text}`).join("\n"), "Log copied.")}>Copy</button></div>
    {!all.length && state === "Following" && <p class="note">The log is empty so far.</p>}
    <div class="code" tabIndex={0}><VList count={found.length} height={20} label="Log" row={(i) => { const line = found[i]!; return <div class="cl" role="listitem" key={i}><span class="when">{line.at.slice(11, 19)}</span>{pods > 1 && <span class="pod">{line.pod.slice(-8)}</span>}<span class={/error|fatal|panic/i.test(line.text) ? "ill" : ""}>{line.text}</span></div>; }} /></div>
    {!following && all.length > 0 && <button class="jump" onClick={() => { setFollowing(true); }}>Follow the end</button>}</section>;
}
export { objectUrl };
