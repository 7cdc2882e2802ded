// SPDX-License-Identifier: PostgreSQL
//
// The overview as a picture, after a while of looking: picture.js FILE SECONDS, for tools/dashboard-picture.

import { visit } from "./lib/visit.js";

const [, , file, seconds] = process.argv;

await visit(async ({ page }) => {
    await page.waitForTimeout(Number(seconds) * 1000);
    await page.screenshot({ path: file, fullPage: true });
});
