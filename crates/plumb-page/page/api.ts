// Requests to the server. Every address is relative to the base of the document.
import { signal } from "@preact/signals";

/** An answer that is not what was asked for, in a sentence. */
export class Refused extends Error {
  constructor(readonly status: number, message: string, readonly body: unknown = null) { super(message); }
}

/** True after the server said that nobody is logged in. */
export const loggedOut = signal(false);

async function ask(path: string, options: RequestInit): Promise<unknown> {
  let answer: Response;
  try {
    answer = await fetch(new URL(path, document.baseURI), options);
  } catch (error) {
    throw new Refused(0, (error as Error).name === "TimeoutError" ? "The server does not answer." : "The server cannot be reached.");
  }
  let body: any = null;
  try { body = await answer.json(); } catch { /* An answer without JSON has only its status. */ }
  if (answer.ok) return body;
  if (answer.status === 401) loggedOut.value = true;
  throw new Refused(answer.status, body?.error || body?.message || `The server answered ${answer.status}.`, body);
}

/** How long an answer may take (in milliseconds). A connection that is dead says nothing, and never ends by itself. */
const PATIENCE = 30_000;
export const get = <T>(path: string) => ask(path, { headers: { accept: "application/json" }, signal: AbortSignal.timeout(PATIENCE) }) as Promise<T>;
export const own = <T>(path: string) => get<T>("api/plumb/v1/" + path);
export const argo = <T>(path: string) => get<T>("api/v1/" + path);
export const post = <T>(path: string, body: unknown) =>
  ask(path, {
    method: "POST", body: JSON.stringify(body),
    headers: { "content-type": "application/json", "x-plumb-page": "1", accept: "application/json" },
  }) as Promise<T>;

export function query(values: Record<string, string>): string {
  return new URLSearchParams(Object.entries(values).filter(([, value]) => value !== "")).toString();
}
