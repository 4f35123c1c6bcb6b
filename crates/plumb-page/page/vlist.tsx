// A list of any length: only the rows that can be seen exist. It scrolls with the page.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const BEYOND = 8;

export function VList(props: { count: number; height: number; row: (index: number) => ComponentChildren; label: string; show?: number; }) {
  const ref = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<[number, number]>([0, 40]);
  const look = () => {
    const box = ref.current?.getBoundingClientRect();
    if (!box) return;
    const first = Math.max(0, Math.floor(-box.top / props.height) - BEYOND);
    const last = Math.min(props.count, Math.ceil((innerHeight - box.top) / props.height) + BEYOND);
    setRange((old) => (old[0] === first && old[1] === last ? old : [first, Math.max(first, last)]));
  };
  useLayoutEffect(look, [props.count, props.height]);
  useEffect(() => {
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => { removeEventListener("scroll", look); removeEventListener("resize", look); };
  });
  useEffect(() => {
    if (props.show === undefined || props.show < 0 || !ref.current) return;
    const top = ref.current.getBoundingClientRect().top + props.show * props.height;
    if (top < 110) scrollBy(0, top - 110);
    else if (top + props.height > innerHeight - 70) scrollBy(0, top + props.height - innerHeight + 70);
  }, [props.show]);
  const shown = [];
  for (let i = range[0]; i < Math.min(range[1], props.count); i++) shown.push(props.row(i));
  return <div ref={ref} class="vlist" role="list" aria-label={props.label} style={{ height: `${props.count * props.height}px` }}>
    <div style={{ transform: `translateY(${range[0] * props.height}px)` }}>{shown}</div>
  </div>;
}
