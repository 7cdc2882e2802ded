// SPDX-License-Identifier: PostgreSQL
//
// Dead letters: by error, selected, replayed, purged.

import assert from "node:assert/strict";
import { sql, until, visit } from "./lib/visit.js";

const dead = () => Number(sql("select count(*) from millrace.dead_letters where queue = 'pay'"));

await visit(async ({ page, go, see, press, row, shot }) => {
    await go("#/dead");
    const groups = page.getByRole("table", { name: "Dead letters by error" });
    const letters = page.getByRole("table", { name: "Dead letters", exact: true });
    await groups.getByText("card declined: invoice # of #").waitFor();
    await shot("dead");
    const declined = groups.getByRole("row").filter({ hasText: "card declined" });
    await declined.getByRole("button", { name: "Show" }).click();
    await until(async () => page.url().includes("error=") && await letters.locator("tbody tr").count() === 40, "the letters of the group");

    const before = dead();
    await letters.getByRole("checkbox").nth(1).check();
    await letters.getByRole("checkbox").nth(2).check();
    await press("Replay selected (2)");
    await see("2 dead letters put back.");
    assert.equal(dead(), before - 2);

    await declined.getByRole("button", { name: "Replay" }).click();
    await page.getByRole("dialog").getByText("This puts 38 dead letters of pay back").waitFor();
    await press("Replay them");
    await see("38 dead letters put back into pay.");
    assert.equal(dead(), 13);
    assert.equal(sql("select count(*) from millrace.dead_letters where queue = 'pay' and error like 'no route%'"), "13");

    await go("#/dead");
    await press("Purge");
    await see("Choose a queue first.");
    await go("#/dead?queue=pay");
    await until(async () => await letters.locator("tbody tr").count() === 13, "what is left");
    const question = page.getByRole("dialog");
    await until(async () => { // the number comes with the overview, once a second
        await press("Purge pay");
        if ((await question.innerText()).includes("This removes 13 dead letters of pay for good.")) {
            return true;
        }
        await press("Cancel");
        return false;
    }, "the question with the number");
    await question.getByLabel("those older than a week").check();
    await press("Remove them");
    await see("0 dead letters of pay removed.");
    assert.equal(dead(), 13);
    await press("Purge pay");
    await press("Cancel");
    assert.equal(dead(), 13);
    await press("Purge pay");
    await press("Remove them");
    await see("13 dead letters of pay removed.");
    assert.equal(dead(), 0);
});
