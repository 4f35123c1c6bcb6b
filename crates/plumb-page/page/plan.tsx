// Every write: first what it would do, then the button that does it.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { Refused, post } from "./api";
import { changed, isStale, me, say } from "./store";
import type { AppRef, ObjectRef, Plan, Step } from "./types";
import { Command, Mark, Sheet, UsedLine, objectName } from "./ui";

export interface Wish { verb: string; apps: AppRef[]; options: Record<string, unknown> }
/** What the user wants to do; the sheet is open while it is set. */
export const wish = signal<Wish | null>(null);
export function plan(verb: string, apps: AppRef[], options: Record<string, unknown> = {}) { wish.value = { verb, apps, options }; }
export const planOn = (verb: string, app: AppRef, objects: ObjectRef[]) => plan(verb, [app], { objects });

const titles: Record<string, string> = {
  sync: "Sync", refresh: "Refresh", pause: "Pause", resume: "Resume", terminate: "Terminate the sync", rollback: "Roll back",
  delete: "Delete the app", restart: "Restart", "delete-object": "Delete the object", "confirm-deletion": "Confirm deletions", restore: "Restore an object of",
};
const past: Record<string, string> = {
  sync: "Sync of", refresh: "Refreshed", pause: "Paused", resume: "Resumed", terminate: "Terminated the sync of", rollback: "Rolling back",
  delete: "Deleting", restart: "Restarting in", "delete-object": "Deleted an object of", "confirm-deletion": "Confirmed the deletions of", restore: "Restored an object of",
};
/** What undoes a verb at once. */
const opposite: Record<string, string> = { pause: "resume", resume: "pause" };

export function PlanSheet() {
  const asked = wish.value;
  if (!asked) return null;
  return <Open key={asked.verb + asked.apps.join() + JSON.stringify(asked.options)} asked={asked} />;
}

type Failed = { error: string; app: AppRef };
const keyOf = (p: { app: AppRef }) => p.app.join("/");

function Open({ asked }: { asked: Wish }) {
  const first: Record<string, unknown> = { ...asked.options };
  if (asked.verb === "pause") { first.minutes ??= 30; first.reason ??= ""; }
  if (asked.verb === "delete") first.cascade ??= true;
  const [options, setOptions] = useState(first);
  const [plans, setPlans] = useState<(Plan | Failed)[] | null>(null);
  // What became of the plans that were tried: why it failed, or that it moved. What was done is no longer there.
  const [moved, setMoved] = useState<Set<string>>(new Set());
  const [failed, setFailed] = useState<Map<string, string>>(new Map());
  const [left, setLeft] = useState(asked.apps);
  const [busy, setBusy] = useState(false);
  const [typed, setTyped] = useState<Record<string, string>>({});
  const latest = useRef(0);
  const ask = async () => {
    const mine = ++latest.current;
    const answers = await Promise.all(left.map((app) =>
      post<Plan>("api/plumb/v1/plans", { verb: asked.verb, app, options }).catch((error: Error) => ({ error: error.message, app }))));
    // The plan of options that were changed since is not shown.
    if (mine === latest.current) setPlans(answers);
  };
  useEffect(() => { const t = setTimeout(ask, plans ? 250 : 0); return () => clearTimeout(t); }, [JSON.stringify(options)]);
  const close = () => { wish.value = null; };
  const many = asked.apps.length > 1;
  const good = (plans ?? []).filter((p): p is Plan => !("error" in p) && !p.hurdle);
  // Each app whose data would go is confirmed by its own name. The others of a selection do not wait for it.
  const ready = good.filter((p) => p.typed === null || typed[keyOf(p)] === p.typed);
  const held = good.length - ready.length;
  const stale = isStale();
  const readOnly = me.value?.readOnly === true;
  const off = !ready.length || busy || stale || readOnly;
  const act = async () => {
    if (off) return;
    setBusy(true);
    latest.current++;
    const next = new Map((plans ?? []).map((p) => [keyOf(p), p] as const)), nowMoved = new Set<string>(), nowFailed = new Map<string, string>(), done: AppRef[] = [];
    for (const p of ready) {
      try {
        await post("api/plumb/v1/acts", { verb: p.verb, app: p.app, options, token: p.token });
        next.delete(keyOf(p));
        done.push(p.app);
      } catch (error) {
        const body = error instanceof Refused && error.status === 409 ? (error.body as { plan?: Plan } | null) : null;
        if (body?.plan) { next.set(keyOf(p), body.plan); nowMoved.add(keyOf(p)); } else nowFailed.set(keyOf(p), (error as Error).message);
      }
    }
    setBusy(false);
    if (done.length) {
      changed(0);
      const names = done.length === 1 ? done[0]![1] : `${done.length} apps`;
      const back = opposite[asked.verb];
      const end = asked.verb === "sync" ? (options.dryRun ? " is tried: the result is under Sync." : " started.") : ".";
      say(`${past[asked.verb]} ${names}${end}`, back ? { name: "Undo", run: () => plan(back, done, asked.options.objects ? { objects: asked.options.objects } : {}) } : undefined);
    }
    if (done.length && !nowMoved.size && !nowFailed.size && !held) { close(); return; }
    const rest = [...next.values()];
    setPlans(rest);
    setLeft(rest.map((p) => p.app));
    setMoved(nowMoved);
    setFailed(nowFailed);
  };
  const one = good.length === 1 ? good[0]! : null;
  const title = `${titles[asked.verb]} ${left.length === 1 ? left[0]![1] : `${left.length} apps`}`;
  const danger = asked.verb.startsWith("delete") || asked.verb === "confirm-deletion" || ready.some((p) => p.typed);
  return <Sheet title={title} close={close} wide>
    <form class="plan" onSubmit={(event) => { event.preventDefault(); void act(); }}>
      <Options verb={asked.verb} options={options} set={(change) => { setMoved(new Set()); setFailed(new Map()); setTyped({}); setOptions({ ...options, ...change }); }} />
      {plans === null && <p class="note loading" role="status">Making the plan…</p>}
      {(plans ?? []).map((p) => "error" in p
        ? <p class="note bad" role="alert" key={keyOf(p)}>{p.app[1]}: {p.error}</p>
        : <OnePlan key={keyOf(p)} p={p} many={many} moved={moved.has(keyOf(p))} failed={failed.get(keyOf(p)) ?? ""} typed={typed[keyOf(p)] ?? ""} type={(text) => setTyped({ ...typed, [keyOf(p)]: text })} />)}
      {many && held > 0 && <p class="note">{held === 1 ? "1 app is" : `${held} apps are`} left out until {held === 1 ? "its name is" : "their names are"} typed.</p>}
      {readOnly && <p class="note">This page is read-only. Copy a command and run it.</p>}
      <footer>
        {one?.undo && <p class="undo">{one.undo}</p>}
        <button type="button" class="quiet" onClick={close}>{readOnly ? "Close" : "Cancel"}</button>
        {!readOnly && <button type="submit" class={danger ? "danger" : "primary"} aria-disabled={off ? "true" : undefined}>
          {busy ? "Working…" : !good.length ? titles[asked.verb] : one && !many ? one.button : one && ready.length === 1 ? `${one.app[1]}: ${one.button}` : `${titles[asked.verb]} ${ready.length} apps`}</button>}
      </footer>
      {stale && <p class="note bad">There is no news from the server, so nothing can be done now.</p>}
    </form>
  </Sheet>;
}

function Options({ verb, options, set }: { verb: string; options: Record<string, unknown>; set: (change: Record<string, unknown>) => void }) {
  const box = (name: string, label: string) => <label class="check"><input type="checkbox" checked={options[name] === true}
    onChange={(e) => set({ [name]: e.currentTarget.checked })} /> {label}</label>;
  const objects = (options.objects as ObjectRef[] | undefined) ?? [];
  if (verb === "sync") {
    return <div class="options">{box("prune", "Prune: delete what left Git")}{box("dryRun", "Dry run: change nothing")}
      <label class="inline">Revision <input placeholder="as the app follows" value={String(options.revision ?? "")} onInput={(e) => set({ revision: e.currentTarget.value.trim() })} spellcheck={false} /></label>
      {objects.length > 0 && <span class="small">Only {objects.length === 1 ? objectName(objects[0]!) : `${objects.length} objects`}. <button type="button" class="quiet" onClick={() => set({ objects: [] })}>All objects</button></span>}</div>;
  }
  if (verb === "refresh") return <div class="options">{box("hard", "Hard: read Git without caches")}</div>;
  if (verb === "delete") return <div class="options">{box("cascade", "Delete its objects, too")}</div>;
  if (verb === "rollback") return <div class="options">{box("prune", "Prune: delete what that revision does not have")}</div>;
  if (verb === "pause") {
    return <div class="options">
      <fieldset class="choice"><legend>For</legend>{[[30, "30 min"], [120, "2 h"], [480, "8 h"], [1440, "1 d"]].map(([minutes, name]) =>
        <label key={minutes}><input type="radio" name="minutes" checked={options.minutes === minutes} onChange={() => set({ minutes })} /> {name}</label>)}</fieldset>
      <label class="field"><span>Why? Others will see it.</span><input value={String(options.reason ?? "")} maxLength={300} autofocus onInput={(e) => set({ reason: e.currentTarget.value })} /></label></div>;
  }
  return null;
}

const marks: Record<string, "counts" | "ill" | "explained" | "busy"> = { apply: "busy", create: "busy", hook: "busy", delete: "ill", keep: "explained", restart: "busy", pause: "explained", resume: "busy" };

function OnePlan({ p, many, moved, failed, typed, type }: { p: Plan; many: boolean; moved: boolean; failed: string; typed: string; type: (text: string) => void }) {
  const [all, setAll] = useState(false);
  const shown = all ? p.steps : p.steps.slice(0, many ? 4 : 14);
  const waves = new Set(p.steps.map((step) => step.wave)).size > 1;
  return <section>
    {many && <h3>{p.app[1]}</h3>}
    {moved && <p class="note bad" role="alert">Something changed since the plan was made. Nothing was done. This is the plan now.</p>}
    {failed && <p class="note bad" role="alert">{failed}</p>}
    {p.hurdle && (p.hurdle.startsWith("give ") ? <p class="small">{p.hurdle[0]!.toUpperCase() + p.hurdle.slice(1)}.</p> : <p class="note bad" role="alert">{p.hurdle}</p>)}
    {shown.length > 0 && <ol class="steps">{shown.map((step: Step) => <li key={step.what + step.group + objectName(step) + step.why}>
      <Mark state={marks[step.what] ?? "busy"} /><b class={`what ${step.what}`}>{step.what}</b> <span>{objectName(step)}</span>
      {waves && <span class="tag">wave {step.wave}</span>}{step.why && <p>{step.why}</p>}<UsedLine app={p.app} of={step} /></li>)}</ol>}
    {p.steps.length > shown.length && <button type="button" class="quiet" onClick={() => setAll(true)}>{p.steps.length - shown.length} more</button>}
    {p.notes.map((note) => <p class="small" key={note}>{note}</p>)}
    {p.typed !== null && !p.hurdle && !me.value?.readOnly && <label class="field"><span>This cannot be undone completely. Type <b>{p.typed}</b> to go on.</span>
      <input value={typed} onInput={(e) => type(e.currentTarget.value)} autocomplete="off" spellcheck={false} /></label>}
    {p.commands.map((command) => <Command key={command} text={command} />)}
  </section>;
}
