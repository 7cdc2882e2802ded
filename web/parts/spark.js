// SPDX-License-Identifier: PostgreSQL
//
// A line of the last minutes, as large as a word.

import { html } from "/core/html.js";

const WIDTH = 96;
const HEIGHT = 22;

export function Spark({ values, label })
{
    const most = Math.max(1, ...values);
    const step = values.length > 1 ? WIDTH / (values.length - 1) : WIDTH;
    const points = values.map((value, i) => `${(i * step).toFixed(1)},${(HEIGHT - 2 - (value / most) * (HEIGHT - 4)).toFixed(1)}`);

    return html`<svg class="spark" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} width=${WIDTH} height=${HEIGHT} role="img" aria-label=${label}>
        ${points.length > 1 && html`
            <polygon points=${`0,${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`} />
            <polyline points=${points.join(" ")} />`}
    </svg>`;
}
