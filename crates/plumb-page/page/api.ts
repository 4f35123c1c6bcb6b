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
  } catch {
    throw new Refused(0, "The server cannot be reached.");
  }
  let body: any = null;
  try { body = await answer.json(); } catch { /* An answer without JSON has only its status. */ }
  if (answer.ok) return body;
  if (answer.status === 401) loggedOut.value = true;
  throw new Refused(answer.status, body?.error || body?.message || `The server answered ${answer.status}.`, body);
}

export const get = <T>(path: string) => ask(path, { headers: { accept: "application/json" } }) as Promise<T>;
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
