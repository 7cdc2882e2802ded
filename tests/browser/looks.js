// SPDX-License-Identifier: PostgreSQL
//
// Every page on a phone, in the dark, by the keyboard, and as axe sees it.

import assert from "node:assert/strict";
import { axe_source, job_of, sql, until, visit } from "./lib/visit.js";

const fragments = () => ({
    overview: "#/", queues: "#/queues", queue: "#/queues/mail", jobs: "#/jobs", job: "#/jobs/" + job_of("running"),
    dead: "#/dead", schedules: "#/schedules", batches: "#/batches", batch: "#/batches/" + sql("select max(id) from millrace.batches"),
    workers: "#/workers", system: "#/system",
});

async function settle({ page, go }, fragment)
{
    await go(fragment);
    await page.locator("main h1").waitFor();
    await until(async () => await page.getByText(/^(Loading|Waiting for)/).count() === 0, "the page " + fragment);
    if (fragment === "#/schedules") { // with its form
        await page.getByRole("button", { name: "New schedule" }).click();
        await until(async () => await page.getByLabel("Next times").locator("li").count() === 5, "the form");
    }
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(drawn)))));
    // the heading is first, whatever page was there before
    const top = await page.locator("main h1").first().boundingBox();
    const pager = page.locator("main .pager");
    assert.ok(await pager.count() === 0 || (await pager.boundingBox()).y > top.y, "pages of " + fragment);
}

// Nothing is wider than a phone.
await visit(async (browser) => {
    for (const [name, fragment] of Object.entries(fragments())) {
        await settle(browser, fragment);
        const wide = await browser.page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= 360, `${name} is ${wide} wide`);
        // nor is a table whose rows are lists there: what it says is read without scrolling
        const cut = await browser.page.evaluate(() => [...document.querySelectorAll(".scroll:has(.stack)")].filter((s) => s.scrollWidth > s.clientWidth).map((s) => s.ariaLabel));
        assert.deepEqual(cut, [], name);
        await browser.shot("phone-" + name);
    }
}, { width: 360 });

// What axe finds wrong, in both colours; the toggle changes them.
for (const scheme of ["light", "dark"]) {
    await visit(async (browser) => {
        const { page, press, shot } = browser;
        const wrong = [];
        await page.evaluate(axe_source());
        for (const [name, fragment] of Object.entries(fragments())) {
            await settle(browser, fragment);
            const found = await page.evaluate(() => window.axe.run());
            wrong.push(...found.violations.map((v) => `${name}: ${v.id}: ${v.nodes.map((n) => n.html + " " + n.failureSummary).join("\n")}`));
            await shot(scheme + "-" + name);
        }
        assert.deepEqual(wrong, []);
        const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        const before = await colour();
        await press(scheme === "dark" ? "Light colours" : "Dark colours");
        assert.notEqual(await colour(), before);
    }, { scheme });
}

// From the top of the page by Tab alone: past the navigation, each with an outline, and into a queue.
await visit(async (browser) => {
    const { page } = browser;
    const seen = [];
    await settle(browser, "#/");
    await page.evaluate(() => document.activeElement.blur());
    for (let i = 0; i < 60 && seen[seen.length - 1] !== "mail"; i++) {
        await page.keyboard.press("Tab");
        const [text, outline] = await page.evaluate(() => {
            const at = document.activeElement;
            return [at.innerText || at.getAttribute("aria-label") || "", getComputedStyle(at).outlineStyle];
        });
        assert.equal(outline, "solid", "focus cannot be seen on " + text);
        seen.push(text.trim());
    }
    for (const name of ["Skip to content", "Overview", "Queues", "Jobs", "Schedules", "System", "Sign out", "Live", "6 h", "mail"]) {
        assert.ok(seen.includes(name), `${name} is not reached: ${seen.join(" | ")}`);
    }
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Queues / mail" }).waitFor();
    await page.getByRole("button", { name: "Purge" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.innerText), "Cancel");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor({ state: "detached" });
}, {});
