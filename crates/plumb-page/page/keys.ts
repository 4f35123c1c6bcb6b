// Keys without a modifier. They do nothing while somebody types, and can be switched off.
import { signal } from "@preact/signals";

export const keysOn = signal(localStorage.getItem("plumb.keys") !== "off");
export function setKeys(on: boolean) { keysOn.value = on; localStorage.setItem("plumb.keys", on ? "on" : "off"); }

type Keys = Record<string, () => void>;
const layers: Keys[] = [];
let first = "";

/**
 * Listens to keys until the returned function is called. The latest listener is asked first. A screen listens in a layout
 * effect: what is drawn and what a key does are of the same moment.
 */
export function onKey(keys: Keys): () => void {
  layers.unshift(keys);
  return () => { const at = layers.indexOf(keys); if (at >= 0) layers.splice(at, 1); };
}

addEventListener("keydown", (event) => {
  const target = event.target as HTMLElement;
  const types = target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && (target as HTMLInputElement).type !== "checkbox";
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); layers.find((keys) => keys["Ctrl-K"])?.["Ctrl-K"]?.(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (types) { if (event.key === "Escape") target.blur(); return; }
  if (!keysOn.value || document.querySelector("dialog[open]")) return;
  if (event.key === "Enter" && /^(A|BUTTON)$/.test(target.tagName)) return;
  const name = first ? `${first} ${event.key}` : event.key;
  first = "";
  const keys = layers.find((each) => each[name]);
  if (keys) { event.preventDefault(); keys[name]!(); return; }
  if (event.key === "g") first = "g";
});
