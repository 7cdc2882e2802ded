// SPDX-License-Identifier: PostgreSQL
//
// Texts that would be HTML stay texts, wherever they stand.

import assert from "node:assert/strict";
import { sql, visit } from "./lib/visit.js";

const script = "<script>window.hacked=1</script>";

await visit(async ({ page, go, see, shot }) => {
    const id = sql("select id from millrace.dead_letters where queue = '<b>hostile</b>'");
    const pages = {
        "#/": "<b>hostile</b>",
        "#/queues": "<b>hostile</b>",
        ["#/queues/" + encodeURIComponent("<b>hostile</b>")]: "<i onclick=alert(1)>worker</i>",
        "#/jobs?status=dead": script,
        ["#/jobs/" + id]: '"</pre>' + script + '"',
        "#/dead": script,
        "#/schedules": script,
        "#/batches": script,
        "#/workers": "<i onclick=alert(1)>worker</i>",
    };

    for (const [fragment, text] of Object.entries(pages)) {
        await go(fragment);
        await see(text);
        assert.equal(await page.locator("main script, main iframe, main img, main [onclick], main [onerror]").count(), 0, fragment);
    }
    await go("#/jobs/" + id);
    await see("\\u202etxt.exe"); // shown, so that it turns nothing around
    await see("javascript:window.hacked=1");
    assert.equal(await page.locator("a[href^='javascript']").count(), 0);
    await shot("hostile");
});
