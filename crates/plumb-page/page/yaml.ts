// Objects as lines: YAML for reading, and the difference of two objects. Everything stays text.
type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export interface DiffLine { indent: number; text: string; mark: " " | "-" | "+" | "~"; path: string; body?: boolean }

const plain = /^[A-Za-z_/][A-Za-z0-9_./:@-]*$/;
function scalar(value: Json): string {
  if (typeof value !== "string") return JSON.stringify(value);
  if (value === "" || /^(true|false|null|yes|no|on|off|~)$/i.test(value) || !plain.test(value) || value.endsWith(":")) return JSON.stringify(value);
  return value;
}
const isMap = (value: Json | undefined): value is { [name: string]: Json } => typeof value === "object" && value !== null && !Array.isArray(value);
const escape = (name: string) => name.replace(/~/g, "~0").replace(/\//g, "~1");

/** How YAML announces a text of several lines: what it does with the end of the last one. */
const blockSign = (text: string) => text.endsWith("\n\n") ? "|+" : text.endsWith("\n") ? "|" : "|-";
const linesOf = (text: string) => text.replace(/\n$/, "").split("\n");

/** The lines of a value below a name or a dash. */
function write(head: string, value: Json, indent: number, mark: DiffLine["mark"], path: string, out: DiffLine[]) {
  if (isMap(value) && Object.keys(value).length) {
    out.push({ indent, text: head, mark, path });
    for (const [name, inner] of Object.entries(value)) write(`${name}:`, inner, indent + 1, mark, `${path}/${escape(name)}`, out);
  } else if (Array.isArray(value) && value.length) {
    out.push({ indent, text: head, mark, path });
    value.forEach((inner, i) => write("-", inner, indent + 1, mark, `${path}/${i}`, out));
  } else if (typeof value === "string" && value.includes("\n")) {
    out.push({ indent, text: `${head} ${blockSign(value)}`, mark, path });
    for (const line of linesOf(value)) out.push({ indent: indent + 1, text: line, mark, path });
  } else out.push({ indent, text: `${head} ${Array.isArray(value) ? "[]" : isMap(value) ? "{}" : scalar(value)}`, mark, path });
}

export function lines(value: Json): DiffLine[] {
  const out: DiffLine[] = [];
  if (isMap(value)) for (const [name, inner] of Object.entries(value)) write(`${name}:`, inner, 0, " ", `/${escape(name)}`, out);
  return out;
}

const keyOf = (item: Json): string | null => {
  if (!isMap(item)) return null;
  for (const name of ["name", "containerPort", "port", "key", "mountPath", "ip", "type"]) if (name in item) return `${name}=${JSON.stringify(item[name])}`;
  return null;
};
const same = (a: Json | undefined, b: Json | undefined) => JSON.stringify(a) === JSON.stringify(b);

/** What differs: `-` only in Git, `+` only live where Git sets something, `~` only live. */
export function diff(git: Json, live: Json): DiffLine[] {
  const out: DiffLine[] = [];
  walk("", git, live, -1, "", out);
  return out;
}
function walk(head: string, git: Json | undefined, live: Json | undefined, indent: number, path: string, out: DiffLine[]) {
  if (isMap(git) && isMap(live)) {
    if (head) out.push({ indent, text: head, mark: " ", path });
    for (const name of new Set([...Object.keys(git), ...Object.keys(live)])) {
      const below = `${path}/${escape(name)}`;
      if (!(name in git)) write(`${name}:`, live[name]!, indent + 1, "~", below, out);
      else if (!(name in live)) write(`${name}:`, git[name]!, indent + 1, "-", below, out);
      else walk(`${name}:`, git[name], live[name], indent + 1, below, out);
    }
    return;
  }
  if (Array.isArray(git) && Array.isArray(live) && git.length && git.every((item) => keyOf(item) !== null)) {
    out.push({ indent, text: head, mark: " ", path });
    const rest = live.map((item, i) => ({ item, i, key: keyOf(item) }));
    git.forEach((item, i) => {
      const at = rest.findIndex((other) => other.key === keyOf(item));
      if (at < 0) write("-", item, indent + 1, "-", `${path}/${i}`, out);
      else { const [other] = rest.splice(at, 1); walk("-", item, other!.item, indent + 1, `${path}/${other!.i}`, out); }
    });
    for (const other of rest) write("-", other.item, indent + 1, "+", `${path}/${other.i}`, out);
    return;
  }
  if (typeof git === "string" && typeof live === "string" && git !== live && git.includes("\n") && live.includes("\n")) {
    const signs: [DiffLine["mark"], string][] = blockSign(git) === blockSign(live) ? [[" ", git]] : [["-", git], ["+", live]];
    for (const [mark, text] of signs) out.push({ indent, text: `${head} ${blockSign(text)}`, mark, path });
    for (const [mark, text] of lineDiff(linesOf(git), linesOf(live))) out.push({ indent: indent + 1, text, mark, path, body: mark === " " });
    return;
  }
  if (same(git, live)) { write(head, git as Json, indent, " ", path, out); return; }
  write(head, git as Json, indent, "-", path, out);
  write(head, live as Json, indent, "+", path, out);
}

/** The value at a JSON pointer. An item of a list is found by its name where Git and the cluster order it differently. */
export function at(value: Json, pointer: string, like?: Json): Json | undefined {
  let here: Json | undefined = value, other: Json | undefined = like;
  for (const raw of pointer.split("/").slice(1)) {
    const part = raw.replace(/~1/g, "/").replace(/~0/g, "~");
    const next: Json | undefined = isMap(other) ? other[part] : Array.isArray(other) ? other[Number(part)] : undefined;
    if (Array.isArray(here)) {
      const key: string | null = next === undefined ? null : keyOf(next);
      here = key !== null ? here.find((item) => keyOf(item) === key) : here[Number(part)];
    } else if (isMap(here)) here = here[part]; else return undefined;
    other = next;
  }
  return here;
}

/** Two texts that are longer than this (in lines, without what is equal at both ends) are shown as one block each. */
const MOST_COMPARED = 400;
/** The lines of two texts, in order: equal ones, those that only the first has, those that only the second has. */
function lineDiff(a: string[], b: string[]): [" " | "-" | "+", string][] {
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const x = a.slice(head, a.length - tail), y = b.slice(head, b.length - tail);
  const out: [" " | "-" | "+", string][] = a.slice(0, head).map((line) => [" ", line]);
  if (x.length > MOST_COMPARED || y.length > MOST_COMPARED) {
    out.push(...x.map((line): ["-", string] => ["-", line]), ...y.map((line): ["+", string] => ["+", line]));
  } else {
    // The length of the longest common part of what follows each pair of lines.
    const common = Array.from({ length: x.length + 1 }, () => new Uint16Array(y.length + 1));
    for (let i = x.length - 1; i >= 0; i--) for (let k = y.length - 1; k >= 0; k--) common[i]![k] = x[i] === y[k] ? common[i + 1]![k + 1]! + 1 : Math.max(common[i + 1]![k]!, common[i]![k + 1]!);
    let i = 0, k = 0;
    while (i < x.length || k < y.length) {
      if (i < x.length && k < y.length && x[i] === y[k]) { out.push([" ", x[i]!]); i++; k++; }
      else if (k >= y.length || (i < x.length && common[i + 1]![k]! >= common[i]![k + 1]!)) out.push(["-", x[i++]!]);
      else out.push(["+", y[k++]!]);
    }
  }
  return [...out, ...a.slice(a.length - tail).map((line): [" ", string] => [" ", line])];
}

/** Longest value of a card, and how much of it is before the first difference. */
const LONGEST = 160, BEFORE = 60;
/** Two values that differ, short, so that the short texts differ, too. `where` names the line of a long text. */
export function shortPair(git: Json | undefined, live: Json | undefined): { old: string; new: string; where: string } {
  const plainText = (value: Json | undefined) => value === undefined ? "(not set)" : typeof value === "string" ? value : JSON.stringify(value);
  let a = plainText(git), b = plainText(live), where = "";
  if (typeof git === "string" && typeof live === "string" && git.includes("\n") && live.includes("\n")) {
    const changes = lineDiff(linesOf(git), linesOf(live)), first = changes.findIndex(([mark]) => mark !== " ");
    if (first < 0) return { old: "ends another way", new: "ends another way", where: "the end of the last line" };
    const n = Math.max(changes.filter(([mark]) => mark === "-").length, changes.filter(([mark]) => mark === "+").length);
    where = `line ${first + 1}${n > 1 ? ` and ${n - 1} more` : ""}`;
    const rest = changes.slice(first), end = rest.findIndex(([mark]) => mark === " "), hunk = end < 0 ? rest : rest.slice(0, end);
    a = hunk.find(([mark]) => mark === "-")?.[1] ?? "(no such line)";
    b = hunk.find(([mark]) => mark === "+")?.[1] ?? "(no such line)";
  }
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  const cut = (text: string) => {
    const from = text.length > LONGEST ? Math.max(0, Math.min(at - BEFORE, text.length - LONGEST)) : 0;
    return (from ? "…" : "") + text.slice(from, from + LONGEST) + (from + LONGEST < text.length ? "…" : "");
  };
  return { old: cut(a), new: cut(b), where };
}

export interface Owner { manager: string; time: string }
/** Who owns the field at a pointer, by the managed fields of an object. */
export function owners(object: any): (pointer: string) => Owner | null {
  const entries: any[] = Array.isArray(object?.metadata?.managedFields) ? object.metadata.managedFields : [];
  return (pointer) => {
    let found: Owner | null = null;
    for (const entry of entries) {
      let fields = entry?.fieldsV1, value: any = object, holds = true;
      for (const raw of pointer.split("/").slice(1)) {
        const part = raw.replace(/~1/g, "/").replace(/~0/g, "~");
        let next = fields?.["f:" + part];
        if (next === undefined && Array.isArray(value)) {
          const item = value[Number(part)];
          const key = Object.keys(fields ?? {}).find((name) => {
            if (!name.startsWith("k:")) return false;
            try { return Object.entries(JSON.parse(name.slice(2))).every(([k, v]) => item?.[k] === v); } catch { return false; }
          });
          next = key === undefined ? undefined : fields[key];
        }
        if (next === undefined) { holds = Object.keys(fields ?? {}).length === 0 && fields !== undefined; break; }
        fields = next;
        value = value?.[part];
      }
      const name = entry?.subresource ? `${entry.manager} (${entry.subresource})` : String(entry?.manager ?? "");
      if (holds && (!found || String(entry.time) > found.time)) found = { manager: name, time: String(entry.time ?? "") };
    }
    return found;
  };
}
