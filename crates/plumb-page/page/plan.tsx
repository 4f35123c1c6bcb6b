// Every write: first what it would do, then the button that does it.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { Refused, post } from "./api";
import { isStale, me, say } from "./store";
import type { AppRef, ObjectRef, Plan, Step } from "./types";
import { Command, Mark, Sheet, objectName } from "./ui";

export interface Wish { verb: string; apps: AppRef[]; options: Record<string, unknown> }
/** What the user wants to do; the sheet is open while it is set. */
export const wish = signal<Wish | null>(null);
export function plan(verb: string, apps: AppRef[], options: Record<string, unknown> = {}) { wish.value = { verb, apps, options }; }
export const planOn = (verb: string, app: AppRef, objects: ObjectRef[]) => plan(verb, [app], { objects });

const titles: Record<string, string> = {
  sync: "Sync", refresh: "Refresh", pause: "Pause", resume: "Resume", terminate: "Terminate the sync", rollback: "Roll back",
  delete: "Delete the app", restart: "Restart", "delete-object": "Delete the object",
};
const done: Record<string, string> = {
  sync: "Sync of", refresh: "Refreshed", pause: "Paused", resume: "Resumed", terminate: "Terminated the sync of", rollback: "Rolling back",
  delete: "Deleting", restart: "Restarting in", "delete-object": "Deleted an object of",
};
/** What undoes a verb at once. */
const opposite: Record<string, string> = { pause: "resume" };

export function PlanSheet() {
  const asked = wish.value;
  if (!asked) return null;
  return <Open key={asked.verb + asked.apps.join()} asked={asked} />;
}

function Open({ asked }: { asked: Wish }) {
  const first: Record<string, unknown> = { ...asked.options };
  if (asked.verb === "pause") { first.minutes ??= 30; first.reason ??= ""; }
  if (asked.verb === "delete") first.cascade ??= true;
  const [options, setOptions] = useState(first);
  const [plans, setPlans] = useState<(Plan | { error: string; app: AppRef })[] | null>(null);
  const [moved, setMoved] = useState(false);
  const [busy, setBusy] = useState(false);
  const [typed, setTyped] = useState("");
  const ask = async () => {
    const answers = await Promise.all(asked.apps.map((app) =>
      post<Plan>("api/plumb/v1/plans", { verb: asked.verb, app, options }).catch((error: Error) => ({ error: error.message, app }))));
    setPlans(answers);
  };
  useEffect(() => { const t = setTimeout(ask, plans ? 250 : 0); return () => clearTimeout(t); }, [JSON.stringify(options)]);
  const close = () => { wish.value = null; };
  const good = (plans ?? []).filter((p): p is Plan => !("error" in p) && !p.hurdle);
  const needs = good.map((p) => p.typed).filter(Boolean)[0] ?? null;
  const stale = isStale();
  const off = !good.length || busy || stale || me.value?.readOnly || (needs !== null && typed !== needs);
  const act = async () => {
    if (off) return;
    setBusy(true);
    const failed: string[] = [];
    for (const p of good) {
      try {
        await post("api/plumb/v1/acts", { verb: p.verb, app: p.app, options, token: p.token });
      } catch (error) {
        const body = error instanceof Refused && error.status === 409 ? (error.body as { plan?: Plan } | null) : null;
        if (body?.plan) { setPlans([body.plan]); setMoved(true); setBusy(false); return; }
        failed.push(`${p.app[1]}: ${(error as Error).message}`);
      }
    }
    setBusy(false);
    if (failed.length) { say(failed.join("  ")); return; }
    const names = good.length === 1 ? good[0]!.app[1] : `${good.length} apps`;
    const back = opposite[asked.verb];
    const end = asked.verb === "sync" ? (options.dryRun ? " is tried: the result is under Sync." : " started.") : ".";
    say(`${done[asked.verb]} ${names}${end}`, back ? { name: "Undo", run: () => plan(back, asked.apps) } : undefined);
    close();
  };
  const one = good.length === 1 ? good[0]! : null;
  const title = `${titles[asked.verb]} ${asked.apps.length === 1 ? asked.apps[0]![1] : `${asked.apps.length} apps`}`;
  return <Sheet title={title} close={close} wide>
    <form class="plan" onSubmit={(event) => { event.preventDefault(); void act(); }}>
      {moved && <p class="note bad" role="alert">Something changed since the plan was made. This is the plan now.</p>}
      <Options verb={asked.verb} options={options} set={(change) => { setMoved(false); setOptions({ ...options, ...change }); }} />
      {plans === null && <p class="note loading" role="status">Making the plan…</p>}
      {(plans ?? []).map((p) => "error" in p
        ? <p class="note bad" role="alert" key={p.app.join()}>{p.app[1]}: {p.error}</p>
        : <OnePlan key={p.app.join()} p={p} many={asked.apps.length > 1} />)}
      {needs && <label class="field"><span>This cannot be undone completely. Type <b>{needs}</b> to go on.</span>
        <input value={typed} onInput={(e) => setTyped(e.currentTarget.value)} autocomplete="off" spellcheck={false} /></label>}
      <footer>
        {one?.undo && <p class="undo">{one.undo}</p>}
        <button type="button" class="quiet" onClick={close}>Cancel</button>
        {!me.value?.readOnly && <button type="submit" class={asked.verb.startsWith("delete") || needs ? "danger" : "primary"} aria-disabled={off ? "true" : undefined}>
          {busy ? "Working…" : one ? one.button : `${titles[asked.verb]} ${good.length} apps`}</button>}
      </footer>
      {stale && <p class="note bad">There is no news from the server, so nothing can be done now.</p>}
    </form>
  </Sheet>;
}

function Options({ verb, options, set }: { verb: string; options: Record<string, unknown>; set: (change: Record<string, unknown>) => void }) {
  const box = (name: string, label: string) => <label class="check"><input type="checkbox" checked={options[name] === true}
    onChange={(e) => set({ [name]: e.currentTarget.checked })} /> {label}</label>;
  if (verb === "sync") {
    return <div class="options">{box("prune", "Prune: delete what left Git")}{box("dryRun", "Dry run: change nothing")}
      <label class="inline">Revision <input placeholder="as the app follows" value={String(options.revision ?? "")} onInput={(e) => set({ revision: e.currentTarget.value.trim() })} spellcheck={false} /></label></div>;
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

const marks: Record<string, "counts" | "ill" | "explained" | "busy"> = { apply: "busy", delete: "ill", keep: "explained", restart: "busy" };

function OnePlan({ p, many }: { p: Plan; many: boolean }) {
  const [all, setAll] = useState(false);
  const shown = all ? p.steps : p.steps.slice(0, many ? 4 : 12);
  const waves = new Set(p.steps.map((step) => step.wave)).size > 1;
  return <section>
    {many && <h3>{p.app[1]}</h3>}
    {p.hurdle && <p class="note bad" role="alert">{p.hurdle}</p>}
    {shown.length > 0 && <ol class="steps">{shown.map((step: Step) => <li key={objectName(step)}>
      <Mark state={marks[step.what] ?? "busy"} /><b class={`what ${step.what}`}>{step.what}</b> <span>{objectName(step)}</span>
      {waves && <span class="tag">wave {step.wave}</span>}{step.why && <p>{step.why}</p>}</li>)}</ol>}
    {p.steps.length > shown.length && <button type="button" class="quiet" onClick={() => setAll(true)}>{p.steps.length - shown.length} more</button>}
    {p.notes.map((note) => <p class="small" key={note}>{note}</p>)}
    {p.commands.map((command) => <Command key={command} text={command} />)}
  </section>;
}
