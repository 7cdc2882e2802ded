// SPDX-License-Identifier: PostgreSQL
//
// The dashboard: which page, and who is signed in.

import { html, render, useEffect, useErrorBoundary } from "/core/html.js";
import { state, useStore } from "/core/store.js";
import { take_token, useRoute } from "/core/route.js";
import { follow_shard } from "/core/shards.js";
import { Shell } from "/parts/shell.js";
import { SignIn, sign_in } from "/parts/sign_in.js";
import { Overview } from "/pages/overview.js";
import { Queues } from "/pages/queues.js";
import { Queue } from "/pages/queue.js";
import { Jobs } from "/pages/jobs.js";
import { Job } from "/pages/job.js";
import { Dead } from "/pages/dead.js";
import { Schedules } from "/pages/schedules.js";
import { Batches } from "/pages/batches.js";
import { Batch } from "/pages/batch.js";
import { Workers } from "/pages/workers.js";
import { System } from "/pages/system.js";

// The first part of the address: the page, and the page of one thing in it.
const pages = {
    "": { title: "Overview", all: Overview },
    queues: { title: "Queues", all: Queues, one: Queue },
    jobs: { title: "Jobs", all: Jobs, one: Job },
    dead: { title: "Dead letters", all: Dead },
    schedules: { title: "Schedules", all: Schedules },
    batches: { title: "Batches", all: Batches, one: Batch },
    workers: { title: "Workers", all: Workers },
    system: { title: "System", all: System },
};

function NotFound()
{
    return html`<h1>No such page</h1><p><a href="#/">To the overview</a></p>`;
}

function page_of(route)
{
    const [name = "", id, more] = route.parts;
    const page = Object.hasOwn(pages, name) ? pages[name] : null;

    return more !== undefined || !page ? NotFound : id === undefined ? page.all : page.one || NotFound;
}

// A fault of one page leaves the way to the others.
function Guarded({ route })
{
    const [error, reset] = useErrorBoundary((fault) => console.error(fault));

    useEffect(reset, [route.text]);
    return error ? html`<h1>This page has a fault</h1><p class="trouble" role="alert">${String(error.message || error)}</p>`
        : html`<div class="page" key=${state.shard + "/" + route.parts.join("/")}><${page_of(route)} route=${route} id=${route.parts[1]} /></div>`;
}

function App()
{
    const token = useStore((all) => all.token);
    const route = useRoute();
    useStore((all) => all.shard);

    useEffect(() => {
        const name = pages[route.parts[0] || ""]?.title || "Not found";
        document.title = [route.parts[1], name, "Millrace"].filter(Boolean).join(" · ");
    }, [route.text]);
    return token ? html`<${Shell} route=${route}><${Guarded} route=${route} /></${Shell}>` : html`<${SignIn} />`;
}

function take()
{
    const token = take_token();

    if (token) {
        sign_in(token);
    }
}

// A link with another token, opened in this page.
window.addEventListener("hashchange", () => {
    if (location.hash.startsWith("#token=")) {
        take();
        window.dispatchEvent(new HashChangeEvent("hashchange"));
    }
});

take();
follow_shard();
window.addEventListener("hashchange", follow_shard);
render(html`<${App} />`, document.getElementById("app"));
