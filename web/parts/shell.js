// SPDX-License-Identifier: PostgreSQL
//
// What is around every page: where one can go, and whether the figures are live.

import { html } from "/core/html.js";
import { set, state, useStore } from "/core/store.js";
import { sign_out } from "/core/api.js";
import { stop_events } from "/core/events.js";
import { compact } from "/core/format.js";
import { Dialog } from "/parts/dialog.js";
import { Notices } from "/parts/notices.js";
import { ShardAlert, ShardSwitch } from "/parts/shard_switch.js";

const entries = [
    ["", "Overview"], ["queues", "Queues"], ["jobs", "Jobs"], ["dead", "Dead letters"], ["schedules", "Schedules"],
    ["batches", "Batches"], ["workers", "Workers"], ["system", "System"],
];

const links = { off: ["Off", "calm"], connecting: ["Connecting", "calm"], live: ["Live", "good"], reconnecting: ["Reconnecting", "warn"] };

function Navigation({ here })
{
    const dead = useStore((all) => all.overview?.totals?.dead || 0);

    return html`<nav aria-label="Pages of the dashboard"><ul>
        ${entries.map(([name, label]) => html`<li key=${name}><a href=${"#/" + name} aria-current=${here === name ? "page" : undefined}>
            ${label}${name === "dead" && dead > 0 && html`<span class="pill" title=${dead + " dead letters"}>${compact(dead)}</span>`}</a></li>`)}
    </ul></nav>`;
}

function is_dark()
{
    return state.theme ? state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function change_theme()
{
    const theme = is_dark() ? "light" : "dark";

    document.documentElement.dataset.theme = theme;
    set({ theme });
}

function Tools()
{
    const link = useStore((all) => all.link);
    const trouble = useStore((all) => all.trouble);
    useStore((all) => all.theme);
    const [word, tone] = trouble ? ["No database", "bad"] : links[link];
    const leave = () => {
        stop_events();
        sign_out();
    };

    return html`<div class="tools">
        <${ShardSwitch} />
        <span class=${"link " + tone} role="status"><i class="dot"></i>${word}</span>
        <button type="button" class="plain" onClick=${change_theme} aria-label=${is_dark() ? "Light colours" : "Dark colours"} title=${is_dark() ? "Light colours" : "Dark colours"}>${is_dark() ? "☀" : "☾"}</button>
        <button type="button" class="plain" onClick=${leave}>Sign out</button>
    </div>`;
}

function Alerts()
{
    const link = useStore((all) => all.link);
    const trouble = useStore((all) => all.trouble);

    if (link === "reconnecting") {
        return html`<div class="alert warn" role="alert">The daemon does not answer: reconnecting. Figures are those of before.</div>`;
    }
    const what = !trouble || state.shards ? trouble : "The database cannot be reached" + (/cannot be reached/.test(trouble) ? "" : ": " + trouble);
    return trouble && html`<div class="alert bad" role="alert">${what}. The page goes on by itself when it is back.</div>`;
}

const to_main = (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
};

export function Shell({ route, children })
{
    return html`
        <a class="skip" href="#main" onClick=${to_main}>Skip to content</a>
        <header class="top"><div class="inside">
            <a class="brand" href="#/" aria-label="Millrace, overview"><svg viewBox="0 0 16 16" width="20" height="20" aria-hidden="true"><path d="M1 5.5q2.3-2.5 4.7 0t4.7 0 4.7 0M1 10.5q2.3-2.5 4.7 0t4.7 0 4.7 0" /></svg>Millrace</a>
            <${Navigation} here=${route.parts[0] || ""} />
            <${Tools} />
        </div></header>
        <${Alerts} />
        <${ShardAlert} />
        <main id="main" tabindex="-1" class="inside">${children}</main>
        <${Notices} />
        <${Dialog} />`;
}
