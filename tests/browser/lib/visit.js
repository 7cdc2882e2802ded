// SPDX-License-Identifier: PostgreSQL
//
// A browser on the dashboard, for one test:
//
//   await visit(async ({ page, go, see }) => { ... }, { role: "reader", width: 360, scheme: "dark", allow: /403/ });
//
// Each visit has a profile of its own, in the browser of lib/browser.js or, without one, in its own.
// The test fails on anything the console calls an error, on an exception of the page, on a request to
// anywhere but the daemon, and when a hostile text has run. allow: what the console may say.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const require = createRequire(process.env.MR_BROWSER_PACKAGES + "/package.json");
export const { chromium } = require("playwright-core");

export const api = process.env.MR_API;
export const shots = process.env.MR_SHOTS;
export const axe_source = () => readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const chromium_options = {
    executablePath: process.env.MR_CHROMIUM,
    args: ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", "--disable-gpu"],
};

const TIMEOUT_MS = 20000;

// Chrome says this itself for every answer that is no success.
const RESOURCE = "Failed to load resource";

export function sql(text)
{
    return execFileSync("psql", ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text], { encoding: "utf8" }).trim();
}

export const job_of = (ref) => sql(`select id from millrace.jobs where ref = '${ref}'`);

// Waits until `check` is true: figures of the page come when they come.
export async function until(check, what)
{
    const end = Date.now() + TIMEOUT_MS;

    while (!await check()) {
        assert.ok(Date.now() < end, "waited in vain for: " + what);
        await new Promise((resolve) => setTimeout(resolve, 100));
    }
}

function watch(page, faults, allow)
{
    page.on("console", (message) => {
        const text = message.text() + " " + message.location().url;
        if (message.type() === "error" && !(allow && allow.test(text))) {
            faults.push("console: " + text);
        }
    });
    page.on("pageerror", (error) => faults.push("exception: " + (error.stack || error)));
    page.on("dialog", (dialog) => {
        faults.push("a dialog of the browser: " + dialog.message());
        dialog.dismiss();
    });
    page.on("request", (request) => {
        if (!request.url().startsWith(api + "/") && !request.url().startsWith("data:")) {
            faults.push("a request elsewhere: " + request.url());
        }
    });
}

// The words of one page, for tests to speak.
function words(page)
{
    return {
        page,
        go: (fragment) => page.evaluate((hash) => { location.hash = hash; }, fragment),
        see: (text) => page.getByText(text).filter({ visible: true }).first().waitFor(),
        press: (name) => page.getByRole("button", { name, exact: true }).click(),
        row: (text) => page.getByRole("row").filter({ hasText: text }),
        tile: (name) => page.locator(".tile").filter({ hasText: name }).locator("dd").innerText(),
        shot: (name) => page.screenshot({ path: `${shots}/${name}.png`, fullPage: true }),
    };
}

export async function visit(test, { role = "admin", width = 1280, scheme = "light", allow, fragment } = {})
{
    const faults = [];
    const browser = process.env.MR_BROWSER ? await chromium.connect(process.env.MR_BROWSER) : await chromium.launch(chromium_options);

    try {
        const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme });
        page.setDefaultTimeout(TIMEOUT_MS);
        watch(page, faults, allow && new RegExp(`${RESOURCE}.*(${allow.source})`));
        await page.goto(api + "/" + (fragment ?? `#token=${role}-token`));
        await test(words(page));
        assert.equal(await page.evaluate(() => window.hacked), undefined, "a hostile text has run");
    } finally {
        await browser.close();
    }
    assert.deepEqual(faults, []);
}
