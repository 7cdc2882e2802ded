// SPDX-License-Identifier: PostgreSQL
//
// The form for a token, when none came in the address or the daemon does not know it.

import { html, useState } from "/core/html.js";
import { set, useStore } from "/core/store.js";
import { start_events } from "/core/events.js";

export function sign_in(token)
{
    set({ token, reason: null, notices: [] });
    start_events();
}

export function SignIn()
{
    const reason = useStore((state) => state.reason);
    const [token, set_token] = useState("");
    const submit = (event) => {
        event.preventDefault();
        if (/^[!-~]+$/.test(token.trim())) {
            sign_in(token.trim());
        } else {
            set({ reason: "A token has visible characters only, and at least one." });
        }
    };

    return html`<main class="sign-in" id="main">
        <form class="panel" onSubmit=${submit}>
            <h1>Millrace</h1>
            ${reason && html`<p class="trouble" role="alert">${reason}</p>`}
            <label for="token">Token</label>
            <input id="token" type="password" autocomplete="off" value=${token} onInput=${(event) => set_token(event.target.value)} required autofocus />
            <button type="submit" class="primary">Sign in</button>
            <p class="muted">It is kept in the memory of this page alone. <code>millrace token</code> makes one; a link that ends in <code>#token=…</code> signs in by itself.</p>
        </form>
    </main>`;
}
