// A list of any length: only the rows that can be seen exist. It scrolls with the page.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const BEYOND = 8;
/** Widest list of lines, in characters. */
const WIDEST = 2000;

/** How many characters wide the longest text is. Letters beyond Latin, Greek and Cyrillic count twice. */
export function widthOf<T>(list: readonly T[], text: (item: T) => string): number {
  let widest = 0;
  for (const item of list) {
    const one = text(item);
    const width = /[\u1100-\uffff]/.test(one) ? one.length * 2 : one.length;
    if (width > widest) widest = width;
  }
  return Math.min(WIDEST, widest);
}

/** `height` is that of a row, in pixels at the usual size of text; `width` is in characters, for rows that do not wrap. */
export function VList(props: { count: number; height: number; width?: number; row: (index: number) => ComponentChildren; label: string; show?: number; }) {
  const ref = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<[number, number]>([0, 40]);
  const scale = useScale();
  const height = props.height * scale;
  const look = () => {
    const box = ref.current?.getBoundingClientRect();
    if (!box) return;
    const first = Math.max(0, Math.floor(-box.top / height) - BEYOND);
    const last = Math.min(props.count, Math.ceil((innerHeight - box.top) / height) + BEYOND);
    setRange((old) => (old[0] === first && old[1] === last ? old : [first, Math.max(first, last)]));
  };
  useLayoutEffect(look, [props.count, height]);
  useEffect(() => {
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => { removeEventListener("scroll", look); removeEventListener("resize", look); };
  });
  useEffect(() => {
    if (props.show === undefined || props.show < 0 || !ref.current) return;
    const top = ref.current.getBoundingClientRect().top + props.show * height;
    if (top < 110) scrollBy(0, top - 110);
    else if (top + height > innerHeight - 70) scrollBy(0, top + height - innerHeight + 70);
  }, [props.show]);
  const shown = [];
  for (let i = range[0]; i < Math.min(range[1], props.count); i++) shown.push(props.row(i));
  return <div ref={ref} class="vlist" role="list" aria-label={props.label} style={{ height: `${props.count * height}px`, minWidth: props.width ? `${props.width}ch` : undefined }}>
    <div style={{ transform: `translateY(${range[0] * height}px)` }}>{shown}</div>
  </div>;
}

/** How large the user's text is, compared with the 15 pixels that the page is drawn for. Rows grow with it. */
function useScale(): number {
  const read = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 15 || 1;
  const [scale, set] = useState(read);
  useEffect(() => {
    // The height of a box in rem changes with the size of text, which announces itself in no other way.
    const probe = document.createElement("div");
    probe.className = "probe";
    document.body.append(probe);
    const watch = new ResizeObserver(() => set(read()));
    watch.observe(probe);
    return () => { watch.disconnect(); probe.remove(); };
  }, []);
  return scale;
}
