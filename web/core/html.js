// SPDX-License-Identifier: PostgreSQL
//
// The one door to the library that draws. Everything a template shows is text: nothing in web/
// writes HTML from a string.

export {
    html, render, useState, useEffect, useLayoutEffect, useMemo, useRef, useReducer, useErrorBoundary,
} from "/vendor/preact.js";
