// SPDX-License-Identifier: PostgreSQL
//
// Jobs: filters of every kind, pages of fifty, links that keep them.

import assert from "node:assert/strict";
import { job_of, until, visit } from "./lib/visit.js";

await visit(async ({ page, go, press, row, see, shot }) => {
    const rows = () => page.locator("tbody tr").count();
    const search = async (fields) => {
        for (const [label, value] of Object.entries(fields)) {
            await page.getByLabel(label, { exact: true }).fill(value);
        }
        await press("Search");
    };

    await go("#/jobs?queue=pay");
    await until(async () => await rows() === 50, "the first page");
    const first = await page.locator("tbody tr").first().innerText();
    await press("Older");
    await see("Page 2");
    await until(async () => await rows() === 50 && await page.locator("tbody tr").first().innerText() !== first, "the second page");
    await press("Older");
    await until(async () => await rows() === 20, "the last page");
    assert.ok(await page.getByRole("button", { name: "Older" }).isDisabled());
    await press("Newer");
    await press("Newer");
    await see("Page 1");
    await until(async () => await rows() === 50, "the first page again");
    const order = await page.locator("main h1, main form, main table, main .pager").evaluateAll((all) => all.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
        .map((one) => one.localName));
    assert.deepEqual(order, ["h1", "form", "table", "nav"]);
    await shot("jobs");

    await page.getByLabel("Status").selectOption("dead");
    await until(async () => (await row("dead").count()) === 50 && page.url().includes("status=dead"), "the dead of pay");
    await search({ "Error contains": "no route to host 10.0.0.42" });
    await until(async () => await rows() === 1, "one by its error");
    await press("Clear");
    await search({ Id: job_of("scheduled") });
    await until(async () => await rows() === 1 && await row("scheduled").count() === 1, "one by its id");
    await press("Clear");
    await search({ Ref: "paused" });
    await until(async () => await rows() === 1 && await row("paused").count() === 1, "one by its ref");
    await press("Clear");
    await search({ Kind: "no such kind" });
    await see("No job is like that.");
    for (const status of ["available", "running", "scheduled", "paused", "waiting", "completed", "cancelled", "expired", "dead"]) {
        await go("#/jobs?status=" + status);
        await until(async () => await page.locator("tbody .badge").filter({ hasText: new RegExp(`^${status}$`) }).count() === await rows() && await rows() > 0, "jobs that are " + status);
    }
});

// A search that takes more than a request shows what it has, goes on by itself, and then asks.
await visit(async ({ page, go, row, see, press }) => {
    let calls = 0;
    await page.route("**/api/v1/jobs?*kind=rare*", async (route) => {
        const after = Number(new URL(route.request().url()).searchParams.get("after") || 0);
        calls++;
        if (after === 1) {
            await see("10,000 rows looked at …");
            await row("4711").waitFor();
        }
        const jobs = after === 0 ? [{ id: 4711, queue: "mail", kind: "rare", status: "available", attempt: 1, created_at: new Date().toISOString() }] : [];
        await route.fulfill({ json: { jobs, next: after === 9 ? null : String(after + 1), complete: after === 9, looked_at: 10000 } });
    });
    await go("#/jobs?kind=rare");
    await see("80,000 rows looked at, and there are older ones.");
    assert.equal(calls, 8);
    await press("Search further");
    await see("No job is like that.");
    assert.equal(calls, 10);
});

await visit(async ({ page, go }) => {
    await go("#/jobs?queue=nowhere");
    await page.getByRole("alert").getByText("nowhere").waitFor();
}, { allow: /404/ });

// An answer that nobody waits for any more is cut off, and what comes late changes nothing.
await visit(async ({ page, go, row }) => {
    const asked = page.waitForRequest("**/api/v1/jobs?*");
    const left = page.waitForEvent("requestfailed", (request) => request.url().includes("queue=mail"));
    await page.route("**/api/v1/jobs?*queue=mail*", async (route) => {
        await left;
        await route.continue().catch(() => {});
    });
    await go("#/jobs?queue=mail");
    await asked;
    await go("#/jobs?queue=pay");
    await left;
    await row("pay").first().waitFor();
    assert.equal(await row("mail").count(), 0);
});
