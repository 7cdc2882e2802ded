// SPDX-License-Identifier: PostgreSQL
//
// Where the user is: the fragment of the address, #/jobs/42 or #/jobs?status=dead. A server never
// sees it, and neither does a log on the way.

import { useEffect, useState } from "/core/html.js";

export function parse(fragment)
{
    const [path, query] = fragment.replace(/^#?\/?/, "").split("?", 2);
    let parts = [];

    try {
        parts = path.split("/").filter((part) => part !== "").map(decodeURIComponent);
    } catch {
        parts = ["unknown"];
    }
    return { parts, query: Object.fromEntries(new URLSearchParams(query || "")), text: fragment };
}

// link("queues", "a/b") and, last, an object for the query.
export function link(...parts)
{
    const last = parts[parts.length - 1];
    const query = typeof last === "object" ? parts.pop() : {};
    const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);

    return "#/" + parts.map((part) => encodeURIComponent(part)).join("/") + (given.length ? "?" + new URLSearchParams(given) : "");
}

// Another query of the same page; the way back leads to the page before.
export function change_query(route, query)
{
    history.replaceState(null, "", link(...route.parts, query));
    window.dispatchEvent(new HashChangeEvent("hashchange"));
}

// A token that came in the fragment, which then forgets it.
export function take_token()
{
    const match = /^#token=([^&]+)/.exec(location.hash);

    if (!match) {
        return null;
    }
    history.replaceState(null, "", "#/");
    try {
        return decodeURIComponent(match[1]);
    } catch {
        return match[1];
    }
}

export function useRoute()
{
    const [route, set_route] = useState(() => parse(location.hash));

    useEffect(() => {
        const changed = () => set_route(parse(location.hash));
        window.addEventListener("hashchange", changed);
        return () => window.removeEventListener("hashchange", changed);
    }, []);
    return route;
}
