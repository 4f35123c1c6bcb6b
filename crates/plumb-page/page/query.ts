// The language of the filter: `is:wrong class:LiveEdit project:shop cluster:prod-* label:team=a actor:alice since:<1h web`.
import type { Row } from "./types";

type Test = (row: Row, now: number) => boolean;
const units: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400 };

function like(pattern: string): (text: string) => boolean {
  const p = pattern.toLowerCase();
  if (!p.includes("*")) return (text) => text.toLowerCase() === p;
  const parts = p.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
  const expression = new RegExp("^" + parts.join(".*") + "$");
  return (text) => expression.test(text.toLowerCase());
}

const illClasses = new Set(["Stuck", "Crashing", "ImagePull", "Degraded", "Missing"]);
export const isIll = (row: Row) => row.health === "Degraded" || row.health === "Missing" || illClasses.has(row.class);
/** A sync that runs for longer (in seconds) hangs, as on Home. */
const HANGS_AFTER = 300;
export const hangs = (row: Row, now: number) => row.opSince !== null && now - row.opSince > HANGS_AFTER;
export const isWrong = (row: Row, now: number) => row.class !== "" || hangs(row, now);

function test(name: string, value: string): Test | null {
  const is = like(value);
  switch (name) {
    case "is":
      switch (value) {
        case "wrong": return isWrong;
        case "well": case "fine": return (row, now) => !isWrong(row, now);
        case "ill": return isIll;
        case "drifted": return (row) => row.sync === "OutOfSync";
        case "syncing": return (row) => row.op === "Running";
        case "paused": return (row, now) => (row.paused ?? 0) > now;
        case "auto": return (row) => row.auto === 1;
        case "manual": return (row) => row.auto === 0;
      }
      return null;
    case "class": return (row, now) => is(row.class) || row.others.some(is) || (hangs(row, now) && is("SyncHangs"));
    case "project": case "proj": return (row) => is(row.project);
    case "cluster": return (row) => is(row.cluster);
    case "namespace": case "ns": return (row) => is(row.dest) || is(row.ns);
    case "sync": return (row) => is(row.sync);
    case "health": return (row) => is(row.health);
    case "op": case "operation": return (row) => is(row.op);
    case "repo": return (row) => row.repo.toLowerCase().includes(value.toLowerCase());
    case "target": return (row) => is(row.target);
    case "actor": return (row) => row.actor.toLowerCase().includes(value.toLowerCase());
    case "label": return (row) => row.labels.some(value.includes("=") ? is : (label) => is(label.split("=")[0]!));
    case "since": {
      const match = /^([<>])(\d+)([smhd])$/.exec(value);
      if (!match) return null;
      const length = Number(match[2]) * units[match[3]!]!;
      return (row, now) => row.since !== null && (match[1] === "<" ? now - row.since < length : now - row.since > length);
    }
  }
  return null;
}

/** The test of a query, and the words that it does not understand. */
export function compile(q: string): { test: Test; unknown: string[] } {
  const tests: Test[] = [], unknown: string[] = [];
  for (const word of q.trim().split(/\s+/).filter(Boolean)) {
    const not = word.startsWith("-") && word.length > 1;
    const text = not ? word.slice(1) : word;
    const at = text.indexOf(":");
    let one: Test | null;
    if (at > 0) {
      // Several values of one name, separated by commas: any of them.
      const any = text.slice(at + 1).split(",").map((value) => test(text.slice(0, at), value));
      one = any.every(Boolean) ? (row, now) => any.some((each) => each!(row, now)) : null;
    } else {
      const lower = text.toLowerCase();
      one = (row) => row.name.toLowerCase().includes(lower) || row.dest.toLowerCase().includes(lower);
    }
    if (!one) { unknown.push(word); continue; }
    const found = one;
    tests.push(not ? (row, now) => !found(row, now) : found);
  }
  return { test: (row, now) => tests.every((each) => each(row, now)), unknown };
}

/** The names of Argo CD's parameters of the list. */
export const argoNames = ["proj", "sync", "health", "cluster", "namespace", "labels", "repo", "targetRevision", "operation", "autoSync", "search"];
/** Argo CD's parameters of the list, as a query. */
export function fromArgo(params: URLSearchParams): string {
  const words: string[] = [];
  const names: [string, string][] = [["proj", "project"], ["sync", "sync"], ["health", "health"], ["cluster", "cluster"],
    ["namespace", "namespace"], ["labels", "label"], ["repo", "repo"], ["targetRevision", "target"], ["operation", "op"]];
  for (const [theirs, ours] of names) {
    const values = params.getAll(theirs).flatMap((value) => value.split(",")).filter(Boolean);
    if (values.length) words.push(`${ours}:${values.join(",")}`);
  }
  if (params.get("autoSync")) words.push(params.get("autoSync") === "Enabled" ? "is:auto" : "is:manual");
  if (params.get("search")) words.push(params.get("search")!);
  return words.join(" ");
}
