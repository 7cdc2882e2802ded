// SPDX-License-Identifier: PostgreSQL
//
// The token: from the address, from the form, refused, and gone.

import assert from "node:assert/strict";
import { api, visit } from "./lib/visit.js";

// From the fragment, which forgets it; a reload has none.
await visit(async ({ page, see }) => {
    await see("Live");
    assert.equal(page.url(), api + "/#/");
    assert.equal(await page.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie])), '[{},{},""]');
    await page.reload();
    await page.getByLabel("Token").waitFor();
});

// By the form, after a wrong one, to the page that was asked for.
await visit(async ({ page, see, press }) => {
    await page.getByLabel("Token").fill("wrong");
    await press("Sign in");
    await page.getByRole("alert").waitFor();
    assert.match(await page.getByRole("alert").innerText(), /token/i);
    await page.getByLabel("Token").fill("reader-token");
    await press("Sign in");
    await page.getByRole("heading", { name: "Workers" }).waitFor();
    await see("Live");
    await press("Sign out");
    await page.getByLabel("Token").waitFor();
}, { fragment: "#/workers", allow: /401/ });

// What is no token at all is said before it is sent.
await visit(async ({ page, press }) => {
    await page.getByLabel("Token").fill("two words");
    await press("Sign in");
    await page.getByRole("alert").waitFor();
}, { fragment: "" });
