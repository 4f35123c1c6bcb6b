// The login screen keeps the address that was asked for.
import { useState } from "preact/hooks";
import { post } from "./api";
import { start } from "./store";
import { go, place } from "./url";

export function Login() {
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setError("");
    try {
      await post("api/v1/session", { username: form.get("username"), password: form.get("password") });
      await start();
      const back = place.value.params.get("return_url");
      if (place.value.parts[0] === "login") go(safe(back), true);
    } catch (problem) { setError((problem as Error).message); } finally { setBusy(false); }
  };
  return <main class="login"><form onSubmit={submit}><h1>plumb</h1><p>Log in to see what is wrong.</p>
    {error && <p class="note bad" role="alert">{error}</p>}
    <label class="field"><span>Name</span><input name="username" autocomplete="username" required autofocus autocapitalize="none" spellcheck={false} /></label>
    <label class="field"><span>Password</span><input name="password" type="password" autocomplete="current-password" required /></label>
    <button class="primary" disabled={busy}>{busy ? "Logging in…" : "Log in"}</button>
    <p class="small">The first password of admin: <code>kubectl -n argocd get secret argocd-initial-admin-secret -o jsonpath={"{.data.password}"} | base64 -d</code></p></form></main>;
}
/** Only an address of this page: a link must not lead elsewhere after a login. */
function safe(back: string | null): string {
  if (!back) return "";
  try {
    const url = new URL(back, document.baseURI), base = new URL(document.baseURI);
    return url.origin === base.origin && url.pathname.startsWith(base.pathname) ? url.pathname.slice(base.pathname.length) + url.search : "";
  } catch { return ""; }
}
