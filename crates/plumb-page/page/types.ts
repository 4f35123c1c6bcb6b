// What the server says. The names are those of `crates/plumb-page/src`.

export interface ObjectRef { group: string; kind: string; namespace: string; name: string }
export type AppRef = [namespace: string, name: string];
export type Seconds = number | null;

/** One app of the list. */
export interface Row {
  key: string; ns: string; name: string; project: string; cluster: string; dest: string; sync: string; health: string;
  op: string; counted: number; explained: number; class: string; actor: string; since: Seconds; paused: Seconds;
  rev: string; labels: string[]; v: string; auto: number; repo: string; target: string;
  /** When the running sync began, and the classes of the troubles that are less grave than `class`. */
  opSince: Seconds; others: string[];
}

export interface Card {
  sort: string; class: string; object: ObjectRef | null; text: string; fields: string[]; actor: string; since: Seconds;
  fix: string; stuck: boolean; app: AppRef; cluster: string; project: string; revision: string; more: number;
  apps?: AppRef[]; count?: number;
}
export interface PauseEntry { app: AppRef; by: string; reason: string; until: Seconds; soon: boolean; object?: ObjectRef }
export interface Event { at: Seconds; app: AppRef; kind: string; state: string; text: string; actor: string; id?: number; revision?: string; object?: ObjectRef }
export interface Home {
  now: number; apps: number; wrong: number; things: number; explained: number; cards: Card[]; pauses: PauseEntry[];
  lately: Event[]; token: string; me?: Me;
  /** Apps that are not compared, and apps that are on their way, among those that are not wrong. */
  unknown: number; busy: number;
  /** Since when nothing is wrong, as far as the reports tell. */
  calm: Seconds;
  /** What the server cannot read now. */
  trouble?: { since: number; text: string } | null;
}
export interface Finding {
  object: ObjectRef; class: string; rule: string; counts: boolean; fields: string[]; actor: string; since: Seconds;
  evidence: string[]; fix: { kind: string; text: string; patch: string } | null;
}
export interface Ill { object: ObjectRef; class: string; status: string; since: Seconds; stuck: boolean; message: string; causes: string[] }
export interface AppObject extends ObjectRef {
  sync: string; health: string; message: string; wave: number; hook?: boolean; prune?: boolean; confirm?: boolean;
}
export interface OperationEntry extends ObjectRef {
  phase: string; wave: number | null; status: string; state: string; hook: string; message: string;
}
export interface Operation {
  phase: string; message: string; started: Seconds; finished: Seconds; by: string; dryRun: boolean; retries: number;
  revision: string | null; entries: OperationEntry[];
}
export interface Detail {
  app: AppRef; uid: string; project: string; cluster: string; dest: string; sync: string; health: string;
  healthMessage: string; v: string; labels: string[]; since: Seconds; sentences: string[]; findings: Finding[];
  ill: Ill[]; pauses: { object: ObjectRef; reason: string; by: string; until: Seconds }[]; pausedUntil: Seconds;
  conditions: { type: string; message: string; since: Seconds }[]; operation: Operation | null; objects: AppObject[];
  timeline: Event[]; sources: { repo: string; path: string; chart: string; target: string; revision: string }[];
  links: string[]; reconciled: Seconds; automated: boolean; deleting: boolean; waits: boolean; can: Record<string, string | null>;
  window: string | null;
}
export type User = ObjectRef & { app: AppRef | null };
/** What refers to an object by name: a few of them, and how many there are. Not there where it was not looked up. */
export interface Used { users?: User[]; used?: number }
export interface Step extends ObjectRef, Used { what: string; why: string; wave: number }
export interface Plan {
  verb: string; app: AppRef; steps: Step[]; notes: string[]; hurdle: string | null; button: string; undo: string;
  typed: string | null; commands: string[]; token: string;
}
export interface Me { user: string; readOnly: boolean; namespace: string; version: string; now: number; banner: string }
export interface Users { users: User[]; hidden: number }
export interface TreeNode extends ObjectRef {
  uid: string; version: string; parentRefs?: { uid: string }[]; health?: { status: string; message: string };
  images?: string[]; createdAt?: string;
}
