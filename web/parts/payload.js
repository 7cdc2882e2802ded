// SPDX-License-Identifier: PostgreSQL
//
// A payload as text: JSON with its structure, cut where it is long, never read as HTML. Characters
// that cannot be seen, or that turn text around, are shown as their codes.

import { html, useMemo, useState } from "/core/html.js";
import { ExactNumber } from "/core/api.js";
import { bytes } from "/core/format.js";

const SHOWN = 20000;
const HEX_SHOWN = 1024;
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

export function visible(text)
{
    return String(text).replace(UNSEEN, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

// As JSON.stringify with an indent of two, but for numbers that it would round.
export function pretty(value, indent = "")
{
    if (value instanceof ExactNumber) {
        return value.text;
    }
    if (value === null || typeof value !== "object") {
        return JSON.stringify(value) ?? "null";
    }
    const inner = indent + "  ";
    const list = Array.isArray(value);
    const items = list ? value.map((item) => pretty(item, inner))
        : Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${pretty(item, inner)}`);
    const [open, close] = list ? "[]" : "{}";
    const flat = open + items.join(", ") + close;

    return items.length === 0 || (list && flat.length < 60 && !flat.includes("\n")) ? flat
        : `${open}\n${items.map((item) => inner + item).join(",\n")}\n${indent}${close}`;
}

// Bytes, as a debugger shows them.
export function hex(data)
{
    const lines = [];

    for (let at = 0; at < data.length; at += 16) {
        const part = [...data.slice(at, at + 16)];
        lines.push(at.toString(16).padStart(6, "0") + "  " +
            part.map((b) => b.toString(16).padStart(2, "0")).join(" ").padEnd(48) +
            part.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : ".")).join(""));
    }
    return lines.join("\n");
}

const is_binary = (value) => typeof value === "string" && (value.match(/[\u0000-\u0008\u000e-\u001f\u007f-\u009f]/g) || []).length * 10 > value.length;

function Text({ title, size, text, note })
{
    const [whole, set_whole] = useState(false);
    const long = text.length > SHOWN && !whole;

    return html`<section class="panel">
        <h2>${title} <small class="muted">${size}</small></h2>
        <pre tabindex="0" aria-label=${title}>${long ? text.slice(0, SHOWN) : text}</pre>
        ${note && html`<p class="muted">${note}</p>`}
        ${long && html`<p class="muted">The first ${bytes(SHOWN)} are shown. <button type="button" onClick=${() => set_whole(true)}>Show all</button></p>`}
    </section>`;
}

const bytes_of = (text) => Uint8Array.from(text.match(/../g) || [], (pair) => parseInt(pair, 16));

const forms = {
    json: (value) => visible(pretty(value)),
    text: (value) => visible(value),
    hex: (value) => hex(bytes_of(value)),
};

// state or blob: {bytes, format, value, cut}, of which the server shows the beginning. One that is coded, and large, is only described.
export function Part({ title, part })
{
    const text = useMemo(() => (part.damaged || !forms[part.format] ? "" : forms[part.format](part.value)), [part]);

    if (part.damaged) {
        return html`<section class="panel"><h2>${title} <small class="muted">${bytes(part.bytes)}</small></h2><p class="bad-text">It is damaged and cannot be read.</p></section>`;
    }
    if (!forms[part.format]) {
        return html`<section class="panel"><h2>${title} <small class="muted">${bytes(part.bytes)}</small></h2><p class="muted">It is stored as ${part.coding}, ${bytes(part.stored)}, and not shown here.</p></section>`;
    }
    const shown = !part.cut ? 0 : part.format === "hex" ? part.value.length / 2 : new TextEncoder().encode(part.value).length;
    return html`<${Text} title=${title} size=${`${bytes(part.bytes)}, ${part.format}`} text=${text}
        note=${part.cut && `The first ${bytes(shown)} of ${bytes(part.bytes)} are shown.`} />`;
}

export function Payload({ title, value })
{
    const text = useMemo(() => (is_binary(value) ? hex(new TextEncoder().encode(value).slice(0, HEX_SHOWN)) : visible(pretty(value))), [value]);

    return html`<${Text} title=${title} size=${bytes(new TextEncoder().encode(text).length)} text=${text} />`;
}
