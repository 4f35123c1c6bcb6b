// The first screen: is anything wrong, what, since when, who, what ends it.
import { home, homeError, loadHome, whyNot } from "./store";
import { duration, clock, now } from "./time";
import type { Card, Event, Home as Data, PauseEntry } from "./types";
import { plan } from "./plan";
import { Ago, Button, Mark, Name, ObjectLink, Who, objectName, type State } from "./ui";
import { appUrl, objectUrl, place } from "./url";

/** What the classes of troubles are called. */
export const words: Record<string, string> = {
  Degraded: "Not well", Crashing: "Crashing", ImagePull: "No image", Missing: "Missing", Stuck: "Stuck", SyncFailed: "Sync failed", SyncHangs: "Sync hangs", Terminating: "Terminating", Deleting: "Being deleted", Unconfirmed: "Deletion waits", ComparisonError: "Cannot compare", InvalidSpecError: "Invalid spec", DeletionError: "Cannot delete",
};
const stateOfCard = (card: Card): State => card.sort === "ill" ? "ill" : card.class === "SyncFailed" || card.sort === "condition" ? "ill" : card.sort === "operation" ? "busy" : "counts";
const pods = new Set(["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod", "Job"]);

export function Home() {
  const at = home.value;
  if (!at) {
    return homeError.value
      ? <div class="note bad" role="alert"><p>{homeError.value}</p><button onClick={() => void loadHome().catch(() => {})}>Try again</button></div>
      : <p class="note loading" role="status">Loading…</p>;
  }
  const wall = place.value.params.has("wall");
  const calm = at.things === 0 && at.apps > at.unknown && !at.trouble;
  return <div class={wall ? "wall" : ""}>
    {at.things > 0
      ? <div class="headline"><h1>{at.things === 1 ? "1 thing is wrong" : `${at.things} things are wrong`}</h1><p>{counts(at)}</p></div>
      : calm ? <div class="calm"><Mark state="well" /><h1>All is well</h1>{at.calm !== null && <p>since {clock(at.calm)} ({duration(now.value - at.calm)})</p>}<p>{counts(at)}</p></div>
      : at.apps === 0 ? <div class="calm"><Mark state="unknown" /><h1>No apps</h1><p>There are no apps, or none that you may see. Your permissions are in argocd-rbac-cm.</p></div>
      : <div class="calm"><Mark state="unknown" /><h1>Nothing wrong is known</h1><p>{counts(at)}</p></div>}
    <div class="cards">{at.cards.map((card) => <TroubleCard key={`${card.sort}${card.class}${card.app.join("/")}`} card={card} />)}</div>
    {at.things > at.cards.length && <p class="note">{at.things - at.cards.length} more are under <a href="applications?q=is:wrong">Apps</a>.</p>}
    {at.pauses.length > 0 && <section class="lines" aria-label="Paused">{at.pauses.map((pause) => <PauseLine key={pause.app.join("/") + (pause.object ? objectName(pause.object) : "")} pause={pause} />)}</section>}
    {at.explained > 0 && <p class="quietline"><Mark state="explained" /> {at.explained} {at.explained === 1 ? "difference is explained and counts" : "differences are explained and count"} for nothing. <a href="doctor?counts=no">Doctor</a></p>}
    {at.lately.length > 0 && <section class="lately"><h2>Lately</h2><ul>{at.lately.map((event, i) => <LateLine key={i} event={event} />)}</ul>
      <a href="activity">All activity</a></section>}
  </div>;
}

/** How many apps there are. Those that plumb does not know about are not among the fine ones. */
function counts(at: Data): string {
  const fine = at.apps - at.wrong - at.unknown - at.busy;
  const parts = [`${at.apps.toLocaleString("en")} ${at.apps === 1 ? "app" : "apps"}`, `${fine.toLocaleString("en")} fine`];
  if (at.busy) parts.push(`${at.busy} in progress`);
  if (at.unknown) parts.push(`${at.unknown} not compared`);
  return parts.join(", ") + ".";
}

function TroubleCard({ card }: { card: Card }) {
  const state = stateOfCard(card);
  const group = card.count !== undefined && card.apps !== undefined;
  const title = words[card.class] ?? card.class;
  const writes = whyNot();
  const isPod = card.object && pods.has(card.object.kind);
  return <article class={`card ${state}`}>
    <header><Mark state={state} /><span class="class">{title}</span>
      {group ? <span class="apps">{card.apps!.slice(0, 6).map((app, i) => <span key={app.join()}>{i > 0 && ", "}<Name app={app} /></span>)}{card.count! > Math.min(6, card.apps!.length) && ` and ${card.count! - Math.min(6, card.apps!.length)} more`}</span> : <Name app={card.app} />}
      {card.since !== null && <span class="since"><Ago at={card.since} /></span>}</header>
    {!group && card.object && <p class="what"><ObjectLink app={card.app} o={card.object} /> {card.fields.slice(0, 2).map((field) => <code key={field}>{field}</code>)} {card.more > 0 && <span class="tag">{card.more} more</span>}</p>}
    {card.text && <p class="text">{card.text}</p>}
    {card.sort === "ill" && card.fix && !card.text.includes(card.fix.slice(0, 40)) && <p class="cause">{card.fix}</p>}
    <footer>
      {card.sort === "drift" && <Who actor={card.actor} klass={card.class} />}
      <span class="actions">
        {!group && isPod && <a class="button" href={objectUrl(card.app, card.object!, card.class === "Crashing" ? "logs&previous=true" : "logs")}>Logs</a>}
        {!group && card.sort === "operation" && card.class !== "SyncFailed" && <Button off={writes} onClick={() => plan("terminate", [card.app])}>Terminate…</Button>}
        {!group && card.sort === "drift" && card.class === "LiveEdit" && <Button off={writes} onClick={() => plan("pause", [card.app])}>Pause…</Button>}
        {!group && card.class === "Unconfirmed" && <Button off={writes} onClick={() => plan("confirm-deletion", [card.app])}>Confirm…</Button>}
        {card.class === "Orphan" && <a class="button" href="orphans">Orphans</a>}
        {(card.sort === "drift" || card.class === "SyncFailed") && card.class !== "Orphan" && <Button off={writes} onClick={() => plan("sync", group ? card.apps! : [card.app])}>Sync: plan</Button>}
        {group ? <a class="button primary" href={`applications?q=${encodeURIComponent("class:" + card.class)}`}>Open all</a>
          : <a class="button primary" href={appUrl(card.app)}>Open</a>}
      </span>
    </footer>
  </article>;
}

function PauseLine({ pause }: { pause: PauseEntry }) {
  return <div class="line"><Mark state="paused" /><span><b>Paused</b> {pause.object ? <><ObjectLink app={pause.app} o={pause.object} /> of </> : null}<Name app={pause.app} /> {pause.by && `by ${pause.by}`} {pause.reason && <q>{pause.reason}</q>}
    {pause.until !== null && <> ends in {duration(pause.until - now.value)} <time>{clock(pause.until)}</time></>}</span>
    <Button off={whyNot()} onClick={() => plan("resume", [pause.app], pause.object ? { objects: [pause.object] } : {})}>Resume…</Button></div>;
}

export function LateLine({ event }: { event: Event }) {
  const failed = event.state === "Failed" || event.state === "Error" || event.state === "bad";
  const state: State = event.state === "ok" ? "well" : event.kind === "pause" ? "paused" : event.kind === "ill" || event.kind === "health" ? "ill"
    : event.kind !== "sync" ? "counts" : failed ? "ill" : event.state === "Running" || event.state === "Terminating" ? "busy" : "well";
  return <li><Mark state={state} />
    <span class="when">{event.at !== null && clock(event.at)}</span> <Name app={event.app} /> <span>{event.text}</span> {event.actor && <span class="by">{event.actor}</span>}</li>;
}
