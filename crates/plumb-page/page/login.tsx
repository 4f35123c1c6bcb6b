// The login screen keeps the address that was asked for.
import { useEffect, useState } from "preact/hooks";
import { argo, post } from "./api";
import { start } from "./store";
import { go, place } from "./url";

/** What `/api/v1/settings` tells everybody. */
interface Ways { userLoginsDisabled?: boolean; oidcConfig?: { name?: string } }

export function Login() {
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const [ways, setWays] = useState<Ways>({});
  // These settings are open to everybody. Without them the form is there, and the server says what it does not permit.
  useEffect(() => { argo<Ways>("settings").then(setWays, () => {}); }, []);
  const target = safe(place.value.parts[0] === "login" ? place.value.params.get("return_url") : location.href);
  const submit = async (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setError("");
    try {
      await post("api/v1/session", { username: form.get("username"), password: form.get("password") });
      await start();
      if (place.value.parts[0] === "login") go(target, true);
    } catch (problem) { setError((problem as Error).message); } finally { setBusy(false); }
  };
  return <main class="login"><form onSubmit={submit}><h1>plumb</h1><p>Log in to see what is wrong.</p>
    {error && <p class="note bad" role="alert">{error}</p>}
    {ways.oidcConfig && <a class={`button${ways.userLoginsDisabled ? " primary" : ""}`} data-leave href={`auth/login?return_url=${encodeURIComponent(new URL(target || ".", document.baseURI).href)}`}>Log in with {String(ways.oidcConfig.name || "your identity provider")}</a>}
    {ways.userLoginsDisabled ? !ways.oidcConfig && <p class="note bad">No account may log in with a password, and no identity provider is set up in argocd-cm.</p> : <>
    <label class="field"><span>Name</span><input name="username" autocomplete="username" required autofocus autocapitalize="none" spellcheck={false} /></label>
    <label class="field"><span>Password</span><input name="password" type="password" autocomplete="current-password" required /></label>
    <button class="primary" disabled={busy}>{busy ? "Logging in…" : "Log in"}</button>
    <p class="small">The first password of admin: <code>kubectl get secret -A --field-selector metadata.name=argocd-initial-admin-secret -o jsonpath={"'{.items[*].data.password}'"} | base64 -d</code></p></>}</form></main>;
}
/** Only an address of this page: a link must not lead elsewhere after a login. */
function safe(back: string | null): string {
  if (!back) return "";
  try {
    const url = new URL(back, document.baseURI), base = new URL(document.baseURI);
    return url.origin === base.origin && url.pathname.startsWith(base.pathname) ? url.pathname.slice(base.pathname.length) + url.search : "";
  } catch { return ""; }
}
