// The logs of the pods of an object: search, follow, and going on where a stream broke off.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Refused, query } from "./api";
import { clock, duration, now } from "./time";
import type { AppRef, ObjectRef } from "./types";
import { Sheet, copy, objectName } from "./ui";
import { go, param, settle, withParams } from "./url";
import { VList, widthOf } from "./vlist";

interface LogLine { at: string; pod: string; text: string; gap?: boolean }
/** Most lines that are kept: the newest ones. */
const KEPT = 50_000;
/** Longest wait (in seconds) before the log is asked for again. */
const LONGEST = 30;

/** Reads a log to its end. True if the server said that this is the end; a stream that broke off ends without a word. */
async function read(url: string, signal: AbortSignal, begun: () => void, take: (line: LogLine) => void): Promise<boolean> {
  const answer = await fetch(new URL(url, document.baseURI), { signal }).catch(() => { throw new Error("The server cannot be reached."); });
  if (!answer.ok || !answer.body) {
    const body = await answer.json().catch(() => null);
    throw new Refused(answer.status, body?.error?.message ?? body?.message ?? `The server answered ${answer.status}.`);
  }
  begun();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", isOver = false;
  for (;;) {
    const { done, value } = await reader.read().catch(() => { throw new Error("The stream broke off."); });
    if (done) return isOver;
    rest += value;
    const parts = rest.split("\n");
    rest = parts.pop()!;
    for (const part of parts) {
      const line = part.trim() ? JSON.parse(part) : null;
      if (line?.error) throw new Error(String(line.error.message));
      const r = line?.result;
      if (r?.last) isOver = true;
      else if (typeof r?.content === "string") take({ at: String(r.timeStampStr ?? ""), pod: String(r.podName ?? ""), text: r.content });
    }
  }
}

/** A time as it can be compared: the server leaves out zeros at its end. */
const moment = (at: string) => at.replace(/(\.\d+)?Z$/, (_, part = ".") => part.padEnd(10, "0"));

/** Finds the lines that come twice, because a log is asked for again from a little before its end. */
class Seen {
  private last = new Map<string, { at: string; texts: Set<string> }>();
  private behind = new Set<string>();
  newest = "";
  /** What comes now may have come before. */
  again() { this.behind = new Set(this.last.keys()); }
  has(line: LogLine): boolean {
    const at = moment(line.at), known = this.last.get(line.pod);
    if (known && this.behind.has(line.pod)) {
      // What the API server says instead of a log has no time.
      if (known.texts.has(line.text) && (!at || at === known.at) || at && at < known.at) return true;
      this.behind.delete(line.pod);
    }
    if (known && known.at === at) known.texts.add(line.text); else this.last.set(line.pod, { at, texts: new Set([line.text]) });
    if (at > moment(this.newest)) this.newest = line.at;
    return false;
  }
}

const pause = (seconds: number, signal: AbortSignal) => new Promise<void>((done) => {
  const end = Date.now() + seconds * 1000;
  // A tab that nobody sees asks for nothing.
  const timer = setInterval(() => { if (signal.aborted || (Date.now() >= end && !document.hidden)) { clearInterval(timer); done(); } }, 200);
});

/** The log of an object as it grows, and a sentence on how that goes. */
function useLog(app: AppRef, o: ObjectRef, container: string, previous: boolean, refusal: string | null) {
  const [all, setAll] = useState<LogLine[]>([]);
  const [state, setState] = useState("Connecting");
  const count = useRef(0);
  useEffect(() => {
    if (refusal) return;
    const stop = new AbortController(), { signal } = stop, seen = new Seen();
    let buffer: LogLine[] = [];
    setAll([]);
    setState("Connecting");
    count.current = 0;
    const flush = setInterval(() => { if (buffer.length) { const fresh = buffer; buffer = []; count.current += fresh.length; setAll((old) => [...old, ...fresh].slice(-KEPT)); } }, 150);
    void (async () => {
      const where: Record<string, string> = o.kind === "Pod" ? { podName: o.name } : { kind: o.kind, group: o.group, resourceName: o.name };
      let lost: number | null = null, failures = 0;
      while (!signal.aborted) {
        const from: Record<string, string> = seen.newest ? { sinceSeconds: String(Math.max(1, Math.ceil(now.peek() - Date.parse(seen.newest) / 1000) + 2)) } : { tailLines: "1000" };
        const url = `api/v1/applications/${encodeURIComponent(app[1])}/logs?${query({ appNamespace: app[0], namespace: o.namespace, ...where, ...from, container, follow: String(!previous), previous: String(previous) })}`;
        let why = "", isOver = false, isEmpty = true;
        seen.again();
        const began = () => {
          if (lost !== null) buffer.push({ at: "", pod: "", text: `— interrupted for ${duration(now.peek() - lost)} —`, gap: true });
          if (lost !== null || !failures) setState(previous ? "" : "Following");
          lost = null;
        };
        const take = (line: LogLine) => {
          isEmpty = false;
          if (seen.has(line)) return;
          if (failures) setState("Following");
          failures = 0;
          buffer.push(line);
        };
        try { isOver = await read(url, signal, began, take); } catch (error) {
          why = (error as Error).message;
          if (error instanceof Refused && (error.status === 401 || error.status === 403)) { if (!signal.aborted) setState(why); return; }
        }
        if (signal.aborted) return;
        if (previous) { setState(why || "The log has ended"); return; }
        if (isOver) setState("The log has ended; new lines are looked for");
        else if (!why && isEmpty) setState("There is no pod; it is looked for again");
        else { lost ??= now.peek(); setState(`${why} Interrupted since ${clock(lost)}, trying again`.trim()); }
        await pause(Math.min(LONGEST, 2 ** failures++), signal);
      }
    })();
    return () => { stop.abort(); clearInterval(flush); };
  }, [objectName(o), container, previous, refusal]);
  return { all, state, count: count.current };
}

function download(name: string, text: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.dataset.leave = "";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function Logs({ app, o, refusal, containers }: { app: AppRef; o: ObjectRef; refusal: string | null; containers: string[] }) {
  const [text, setText] = useState(param("find"));
  const [following, setFollowing] = useState(true);
  const [open, setOpen] = useState<LogLine | null>(null);
  const container = param("container"), previous = param("previous") === "true";
  const { all, state, count } = useLog(app, o, container, previous, refusal);
  const left = useRef(0);
  if (following) left.current = count;
  const found = useMemo(() => text ? all.filter((line) => line.gap || line.text.toLowerCase().includes(text.toLowerCase())) : all, [all, text]);
  const width = useMemo(() => widthOf(found, (line) => line.text) + 26, [found]);
  useEffect(() => { if (following) scrollTo({ top: document.documentElement.scrollHeight }); }, [found.length, following]);
  useEffect(() => {
    const look = () => setFollowing(innerHeight + scrollY > document.documentElement.scrollHeight - 60);
    addEventListener("scroll", look, { passive: true });
    return () => removeEventListener("scroll", look);
  }, []);
  if (refusal) return <p class="note bad">{refusal}</p>;
  const lines = all.filter((line) => !line.gap), pods = new Set(lines.map((line) => line.pod)).size;
  const whole = () => found.map((l) => `${l.at} ${l.pod} ${l.text}`.trim()).join("\n") + "\n";
  const missed = count - left.current;
  return <section class="logs"><div class="toolbar"><input type="search" class="find" placeholder="Find in the log" aria-label="Find in the log" value={text} onInput={(e) => { setText(e.currentTarget.value); settle({ find: e.currentTarget.value }); }} spellcheck={false} />
    <span class="small" role="status">{state.replace(/[.…]?$/, ".")} {text ? `${found.filter((l) => !l.gap).length} of ${lines.length} lines` : `${lines.length} lines`}{pods > 1 && ` of ${pods} pods`}</span>
    <label class="inline">Container <input value={container} list="containers" placeholder="the first" onChange={(e) => go(withParams({ container: e.currentTarget.value }), true)} spellcheck={false} /></label>
    <datalist id="containers">{containers.map((name) => <option key={name} value={name} />)}</datalist>
    <label class="check"><input type="checkbox" checked={previous} onChange={(e) => go(withParams({ previous: e.currentTarget.checked ? "true" : null }), true)} /> Previous container</label>
    <span class="actions"><button class="quiet" onClick={() => copy(whole(), "Log copied.")}>Copy</button><button class="quiet" onClick={() => download(`${o.name}.log`, whole())}>Download</button></span></div>
    {!all.length && state === "Following" && <p class="note">The log is empty so far.</p>}
    <div class="code" tabIndex={0}><VList count={found.length} height={20} width={width} label="Log" row={(i) => {
      const line = found[i]!;
      return <div class={`cl${line.gap ? " break" : ""}`} role="listitem" key={i} onClick={() => { if (!line.gap && !getSelection()?.toString()) setOpen(line); }}><span class="when">{line.at.slice(11, 19)}</span>{pods > 1 && <span class="pod">{line.pod.slice(-8)}</span>}<span class={/error|fatal|panic/i.test(line.text) ? "ill" : ""}>{line.text}</span></div>;
    }} /></div>
    {open && <Sheet title={open.pod || "Line"} close={() => setOpen(null)} wide><p class="small">{open.at}</p><pre class="whole" tabIndex={0}>{open.text}</pre><div class="actions"><button onClick={() => copy(open.text, "Line copied.")}>Copy</button></div></Sheet>}
    {!following && all.length > 0 && <button class="jump" onClick={() => setFollowing(true)}>Follow the end{missed > 0 && ` (${missed} new)`}</button>}</section>;
}
