// SPDX-License-Identifier: PostgreSQL
//
// A chart over time. lines: [{label, colour (the name of a custom property), values, fill}]. is_time:
// the values are seconds.

import { html, useEffect, useRef, useState } from "/core/html.js";
import { useStore } from "/core/store.js";
import { clock, NONE } from "/core/format.js";

const HEIGHT = 150;
const BRIDGED_S = 40;

// A custom property as a colour that a canvas takes.
function resolved(property)
{
    const probe = document.createElement("span");

    probe.style.color = `var(${property})`;
    document.body.append(probe);
    const colour = getComputedStyle(probe).color;
    probe.remove();
    return colour;
}

function faint(colour)
{
    return colour.replace(/^rgb\((.*)\)$/, "rgba($1, 0.14)");
}

// Steps that make sense for seconds.
const TIME_STEPS = [1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60,
    120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000, 864000, 2592000];

// A few seconds without a figure are bridged: so much passes between history and what is live.
function long_gaps(u, series, from, to, gaps)
{
    return gaps.filter(([left, right]) => u.posToVal(right, "x", true) - u.posToVal(left, "x", true) > BRIDGED_S);
}

function options(lines, width, format, is_time, on_hover)
{
    const axis = { stroke: resolved("--muted"), grid: { stroke: resolved("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };

    return {
        width, height: HEIGHT, legend: { show: false }, padding: [8, 24, 0, 0],
        cursor: { y: false, points: { size: 6 }, drag: { setScale: false, x: false, y: false } },
        scales: { y: { range: (u, low, high) => [0, Math.max(high || 0, is_time ? 0.001 : 1) * 1.1] } },
        axes: [
            { ...axis, size: 26, space: 70, values: (u, ticks) => ticks.map((tick) => clock(tick * 1000).slice(0, u.scales.x.max - u.scales.x.min > 900 ? 5 : 8)) },
            { ...axis, size: is_time ? 80 : 58, space: 34, incrs: is_time ? TIME_STEPS : undefined, values: (u, ticks) => ticks.map(format) },
        ],
        series: [{}, ...lines.map((line) => {
            const colour = resolved(line.colour);
            return { label: line.label, stroke: colour, width: 1.6, fill: line.fill ? faint(colour) : undefined, points: { show: false }, gaps: long_gaps };
        })],
        hooks: { setCursor: [(u) => on_hover(u.cursor.idx ?? null)] },
    };
}

const last = (values) => {
    for (let i = values.length - 1; i >= 0; i--) {
        if (values[i] !== null) {
            return values[i];
        }
    }
    return null;
};

function Legend({ x, lines, format, at })
{
    return html`<ul class="legend">
        ${lines.map((line) => {
            const value = at === null ? last(line.values) : line.values[at];
            return html`<li key=${line.label}><i class=${"dot " + line.colour.slice(2)}></i>${line.label} <b>${value === null || value === undefined ? NONE : format(value)}</b></li>`;
        })}
        ${at !== null && x[at] && html`<li class="muted">${clock(x[at] * 1000)}</li>`}
    </ul>`;
}

export function Chart({ title, x, lines, format, is_time })
{
    const place = useRef(null);
    const plot = useRef(null);
    const [at, set_at] = useState(null);
    const theme = useStore((state) => state.theme);
    const names = lines.map((line) => line.label).join();
    const data = [x, ...lines.map((line) => line.values)];

    useEffect(() => {
        const dark = matchMedia("(prefers-color-scheme: dark)");
        const draw = () => {
            plot.current?.destroy();
            plot.current = new uPlot(options(lines, place.current.clientWidth, format, is_time, set_at), plot.current?.data || data, place.current);
        };
        const size = new ResizeObserver(() => {
            const width = place.current?.clientWidth;
            if (width && plot.current && width !== plot.current.width) {
                plot.current.setSize({ width, height: HEIGHT });
            }
        });
        draw();
        size.observe(place.current);
        dark.addEventListener("change", draw);
        return () => {
            size.disconnect();
            dark.removeEventListener("change", draw);
            plot.current.destroy();
            plot.current = null;
        };
    }, [theme, names]);
    useEffect(() => {
        plot.current?.setData(data);
    }, [x, lines]);

    const summary = lines.map((line) => `${line.label} ${last(line.values) === null ? "unknown" : format(last(line.values))}`).join(", ");
    return html`<figure class="chart panel">
        <figcaption><h2>${title}</h2><${Legend} x=${x} lines=${lines} format=${format} at=${at} /></figcaption>
        <div ref=${place} role="img" aria-label=${`${title}: now ${summary}`}></div>
    </figure>`;
}
