// SPDX-License-Identifier: PostgreSQL
//
// The question before something that cannot be taken back. Escape and Cancel are the same.

import { html, useEffect, useRef, useState } from "/core/html.js";
import { useStore } from "/core/store.js";

function Question({ question })
{
    const dialog = useRef(null);
    const cancel = useRef(null);
    const [choice, set_choice] = useState(question.options ? question.options[0][0] : true);
    const text = typeof question.text === "function" ? question.text(choice) : question.text;

    useEffect(() => {
        dialog.current.showModal();
        cancel.current.focus();
    }, []);
    return html`<dialog ref=${dialog} aria-labelledby="question-title" aria-describedby="question-text" onCancel=${() => question.answer(false)}>
        <form method="dialog" onSubmit=${(event) => { event.preventDefault(); question.answer(choice); }}>
            <h2 id="question-title">${question.title}</h2>
            <p id="question-text">${text}</p>
            ${question.options && html`<fieldset><legend>${question.legend}</legend>
                ${question.options.map(([value, label]) => html`<label key=${value}>
                    <input type="radio" name="choice" checked=${choice === value} onChange=${() => set_choice(value)} /> ${label}</label>`)}
            </fieldset>`}
            <div class="actions">
                <button type="button" ref=${cancel} onClick=${() => question.answer(false)}>Cancel</button>
                <button type="submit" class=${question.danger ? "danger" : "primary"}>${question.action}</button>
            </div>
        </form>
    </dialog>`;
}

export function Dialog()
{
    const question = useStore((state) => state.question);

    return question && html`<${Question} key=${question.title} question=${question} />`;
}
