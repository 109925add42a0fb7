// SPDX-License-Identifier: MIT

import FoundationEssentials

extension HAR {
    /// Returns the archive as one HTML page: a waterfall, in which a bar for each request shows its phases.
    ///
    /// The page needs no network and no other file. Requests can be filtered by host, status and text; a row shows the
    /// details of its request. It has a light and a dark form, and can be printed. Everything in the archive is in the
    /// page, also the bodies.
    ///
    /// - Parameter title: The title of the page; `Requests` by default.
    /// - Throws: `EncodingError` for a duration that is not finite.
    public func html(title: String = "Requests") throws -> String {
        // Of JSON, only a string may contain the character, by which a script could end.
        let json = String(decoding: try data(), as: UTF8.self).replacing(each: "<", with: "\\u003c")
        let title = title.replacing(each: "&", with: "&amp;").replacing(each: "<", with: "&lt;")
        return Self.head.replacing(each: "@TITLE@", with: title) + json + Self.script
    }

    /// The page up to the data.
    private static let head = #"""
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta http-equiv="Content-Security-Policy"
            content="default-src 'none'; style-src 'unsafe-inline';
            script-src 'sha256-7VyaPi2q/xgJmoh+XHgmrR1tLMrS+efxk1+c4T1nlHw='">
        <title>@TITLE@</title>
        <style>
        :root {
            color-scheme: light dark;
            --back: light-dark(#fff, #16181d); --text: light-dark(#1c1e21, #e4e6ea); --quiet: light-dark(#5c6370, #9aa3b2);
            --line: light-dark(#e1e4e8, #2c3039); --over: light-dark(#f1f5fb, #20242c); --bad: light-dark(#b3261e, #ff8a80);
            --blocked: light-dark(#a9b0bb, #6b7383); --dns: #2a9d8f; --connect: #e08a1e; --ssl: #b15fc4;
            --send: #5b8def; --wait: light-dark(#7cb342, #8bc34a); --receive: light-dark(#1f6feb, #58a6ff);
        }
        * { box-sizing: border-box; }
        body { margin: 0; font: 14px/1.4 system-ui, sans-serif; background: var(--back); color: var(--text); }
        header { position: sticky; top: 0; z-index: 1; background: var(--back); border-bottom: 1px solid var(--line);
            padding: 10px 14px 0; }
        h1 { font-size: 17px; margin: 0; }
        #summary { margin: 0 0 6px; color: var(--quiet); }
        form { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; }
        select, input { font: inherit; padding: 3px 6px; max-width: 100%; color: inherit; background: var(--back);
            border: 1px solid var(--quiet); border-radius: 4px; }
        #text { flex: 1 1 140px; min-width: 0; }
        label { color: var(--quiet); }
        #legend { display: flex; flex-wrap: wrap; gap: 2px 12px; list-style: none; margin: 6px 0; padding: 0;
            font-size: 12px; color: var(--quiet); }
        #legend i { display: inline-block; width: 10px; height: 10px; margin-right: 4px; border-radius: 2px; }
        .row, #ruler { display: grid; column-gap: 10px; align-items: center;
            grid-template-columns: 62px minmax(112px, 2fr) 42px 76px 76px minmax(112px, 3fr); }
        #ruler { font-size: 11px; color: var(--quiet); }
        #ticks { grid-column: 6; position: relative; height: 1.5em; }
        #ticks span { position: absolute; border-left: 1px solid var(--line); padding-left: 3px; white-space: nowrap; }
        ol { list-style: none; margin: 0; padding: 0 14px 40px; }
        #rows > li { border-bottom: 1px solid var(--line); content-visibility: auto; contain-intrinsic-size: auto 27px; }
        li[hidden] { display: none; }
        .row { cursor: pointer; padding: 3px 0; }
        .row:hover { background: var(--over); }
        .row:focus-visible { outline: 2px solid var(--receive); outline-offset: -2px; }
        .name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
        .name small { color: var(--quiet); }
        .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
        .bad .status, .bad .name { color: var(--bad); }
        .bar { position: relative; height: 12px; }
        .bar i { position: absolute; top: 0; height: 100%; min-width: 1px; }
        .detail { padding: 6px 0 14px; display: grid; gap: 10px 24px; align-items: start;
            grid-template-columns: repeat(auto-fit, minmax(min(100%, 360px), 1fr)); }
        .detail .wide { grid-column: 1 / -1; }
        .detail h2 { font-size: 13px; margin: 0 0 2px; }
        .detail dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 1px 12px; margin: 0; }
        .detail dt { color: var(--quiet); }
        .detail dd { margin: 0; overflow-wrap: anywhere; }
        .detail pre { margin: 0; max-height: 22em; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere;
            background: var(--over); padding: 6px; font-size: 12px; }
        kbd { border: 1px solid var(--line); border-radius: 3px; padding: 0 3px; font-size: 11px; }
        @media (max-width: 640px) {
            header, ol { padding-left: 8px; padding-right: 8px; }
            .row { grid-template-columns: 50px minmax(0, 1fr) 35px 70px; row-gap: 2px; }
            .size { display: none; }
            .bar { grid-column: 1 / -1; }
            #ruler { display: block; }
            #keys { display: none; }
            .detail dl { grid-template-columns: minmax(0, 1fr); }
        }
        @media print {
            header { position: static; }
            form, #keys { display: none; }
            li { break-inside: avoid; content-visibility: visible; }
            .bar i { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
            .detail pre { max-height: none; }
        }
        </style>
        </head>
        <body>
        <header>
        <h1>@TITLE@</h1>
        <p id="summary" role="status"></p>
        <form>
        <select id="host" aria-label="Host"><option value="">All hosts</option></select>
        <select id="status" aria-label="Status"><option value="">All statuses</option></select>
        <input id="text" type="search" placeholder="Text in URLs, fields and bodies" aria-label="Text">
        <label><input id="aligned" type="checkbox"> Align starts</label>
        </form>
        <ul id="legend"></ul>
        <div id="ruler"><span id="keys" style="grid-column: 1 / 6"><kbd>↑</kbd> <kbd>↓</kbd> move, <kbd>Enter</kbd> details,
        <kbd>Esc</kbd> close, <kbd>/</kbd> search</span><div id="ticks"></div></div>
        </header>
        <ol id="rows"></ol>
        <script type="application/json" id="data">
        """#

    /// The page after the data. No other script runs in it: the policy in its head contains the hash of this one.
    private static let script = #"""
        </script>
        <script>
        "use strict";
        const started = entry => Date.parse(entry.startedDateTime) || 0;
        const entries = JSON.parse(document.getElementById("data").textContent).log.entries
            .sort((one, other) => started(one) - started(other));
        const phases = [["blocked", "Waiting"], ["dns", "Name lookup"], ["connect", "TCP"], ["ssl", "TLS"],
            ["send", "Sending"], ["wait", "Server"], ["receive", "Receiving"]];
        const byId = id => document.getElementById(id);
        const make = (name, text, kind) => {
            const node = document.createElement(name);
            if (text !== undefined) node.textContent = text;
            if (kind) node.className = kind;
            return node;
        };
        const duration = ms => ms === 0 ? "0" : ms < 1 ? Math.round(ms * 1000) + " µs" : ms < 1000 ? +ms.toPrecision(3) + " ms"
            : ms < 60000 ? +(ms / 1000).toPrecision(3) + " s" : +(ms / 60000).toPrecision(3) + " min";
        const size = bytes => bytes < 0 ? "" : bytes < 1000 ? bytes + " B"
            : bytes < 1e6 ? +(bytes / 1e3).toPrecision(3) + " kB" : +(bytes / 1e6).toPrecision(3) + " MB";
        const parts = text => { try { return new URL(text); } catch { return null; } };
        const readable = text => text.replaceAll("%E2%80%A6", "…");
        const kind = entry => entry.response.status ? Math.floor(entry.response.status / 100) + "xx" : "failed";
        // TLS is a part of the connection in the archive, and a phase of its own in the page.
        const lengths = timings => phases.map(([name]) => {
            const value = Math.max(0, timings[name] || 0);
            return name === "connect" ? Math.max(0, value - Math.max(0, timings.ssl || 0)) : value;
        });

        const list = byId("rows");
        const items = entries.map((entry, index) => {
            const url = parts(entry.request.url);
            const item = {
                entry, host: url ? url.host : "", start: started(entry), kind: kind(entry),
                words: JSON.stringify([entry.request, entry.response, entry._error]).toLowerCase(),
                node: make("li"), bar: make("div", undefined, "bar"),
            };
            const row = make("div", undefined, "row");
            const failed = entry.response.status === 0 || entry.response.status >= 400;
            if (failed) item.node.className = "bad";
            row.tabIndex = index === 0 ? 0 : -1;
            row.setAttribute("role", "button");
            row.setAttribute("aria-expanded", "false");
            const name = make("span", url ? readable(url.pathname + url.search) + " " : entry.request.url, "name");
            name.append(make("small", item.host));
            name.title = entry.request.url;
            const source = entry._source ? " (" + entry._source + ")" : "";
            const status = make("span", entry.response.status || "–", "status");
            status.title = (entry._error || entry.response.statusText || "") + source;
            row.append(make("span", entry.request.method), name, status,
                make("span", size(entry.response.content.size), "number size"),
                make("span", entry._source || duration(entry.time), "number"), item.bar);
            row.addEventListener("click", () => toggle(item));
            row.addEventListener("focus", () => select(item));
            item.row = row;
            item.node.append(row);
            list.append(item.node);
            return item;
        });

        function table(title, pairs) {
            const part = make("section");
            part.append(make("h2", title));
            const body = make("dl");
            for (const [name, value] of pairs) body.append(make("dt", name), make("dd", value));
            part.append(body);
            return part;
        }

        function text(title, content, comment) {
            const part = make("section", undefined, "wide");
            part.append(make("h2", title + (comment ? ": " + comment : "")));
            if (content) part.append(make("pre", content));
            return part;
        }

        function detail(entry) {
            const node = make("div", undefined, "detail");
            const known = [["URL", entry.request.url], ["Started", entry.startedDateTime],
                ["Version", entry.response.httpVersion], ["Status", (entry.response.status || "none") + " " + entry.response.statusText],
                ["Error", entry._error], ["Source", entry._source], ["Redirect", entry.response.redirectURL],
                ["Server", entry.serverIPAddress], ["Connection", entry.connection], ["Call", entry._call],
                ["Sent", size(entry.request.headersSize) + " head, " + size(entry.request.bodySize) + " body"],
                ["Received", size(entry.response.headersSize) + " head, " + size(entry.response.bodySize) + " body"]];
            node.append(table("Request", known.filter(pair => pair[1] !== undefined && pair[1] !== "")));
            const times = lengths(entry.timings);
            node.append(table("Phases", phases.map(([, name], index) => [name, duration(times[index])])
                .filter((pair, index) => times[index] > 0).concat([["Total", duration(entry.time)]])));
            const fields = list => list.map(field => [field.name, field.value]);
            if (entry.request.headers.length) node.append(table("Request fields", fields(entry.request.headers)));
            const post = entry.request.postData;
            if (post) node.append(text("Request body", post.text, post.comment));
            if (entry.response.headers.length) node.append(table("Response fields", fields(entry.response.headers)));
            const content = entry.response.content;
            if (content.text) {
                const encoding = content.encoding ? "in " + content.encoding : "";
                node.append(text("Response body", content.text, [content.comment, encoding].filter(Boolean).join(", ")));
            }
            if (entry._webSocketMessages) {
                const lines = entry._webSocketMessages.map(message => (message.type === "send" ? "→ " : "← ")
                    + new Date(message.time * 1000).toISOString().slice(11, 23) + "  " + message.data);
                node.append(text("Messages", lines.join("\n"), entry.comment));
            }
            return node;
        }

        function toggle(item, open = !item.detail) {
            if (open && !item.detail) {
                item.detail = detail(item.entry);
                item.node.append(item.detail);
            } else if (!open && item.detail) {
                item.detail.remove();
                item.detail = null;
            }
            item.row.setAttribute("aria-expanded", String(open));
        }

        // One row can be reached by Tab, the others from there by the arrow keys.
        let selected = items[0];
        function select(item) {
            selected.row.tabIndex = -1;
            item.row.tabIndex = 0;
            selected = item;
        }

        let shown = items;
        function show() {
            const host = byId("host").value, status = byId("status").value, words = byId("text").value.toLowerCase();
            shown = items.filter(item => {
                const fits = (!host || item.host === host) && (!status || item.kind === status)
                    && (!words || item.words.includes(words));
                item.node.hidden = !fits;
                return fits;
            });
            let first = Infinity, last = -Infinity, bytes = 0;
            for (const item of shown) {
                first = Math.min(first, item.start);
                last = Math.max(last, item.start + item.entry.time);
                bytes += Math.max(0, item.entry.response.bodySize);
            }
            const isAligned = byId("aligned").checked;
            const longest = shown.reduce((most, item) => Math.max(most, item.entry.time), 0);
            const span = Math.max(isAligned ? longest : last - first, 0.001);
            for (const item of shown) draw(item, isAligned ? item.start : first, span);
            ticks(shown.length ? span : 0);
            byId("summary").textContent = shown.length + (shown.length < items.length ? " of " + items.length : "")
                + (items.length === 1 ? " request" : " requests")
                + (shown.length ? ", " + size(bytes) + " received, " + duration(last - first) : "");
        }

        function draw(item, first, span) {
            let position = item.start - first;
            item.bar.replaceChildren();
            lengths(item.entry.timings).forEach((length, index) => {
                if (!length) return;
                const part = make("i");
                part.style.left = position / span * 100 + "%";
                part.style.width = length / span * 100 + "%";
                part.style.background = "var(--" + phases[index][0] + ")";
                part.title = phases[index][1] + " " + duration(length);
                item.bar.append(part);
                position += length;
            });
        }

        function ticks(span) {
            const node = byId("ticks");
            node.replaceChildren();
            for (let index = 0; span && index < 4; index++) {
                const tick = make("span", duration(span * index / 4));
                tick.style.left = index * 25 + "%";
                node.append(tick);
            }
        }

        for (const [name, words] of phases) {
            const item = make("li");
            const colour = make("i");
            colour.style.background = "var(--" + name + ")";
            item.append(colour, words);
            byId("legend").append(item);
        }
        for (const [id, values] of [["host", items.map(item => item.host)], ["status", items.map(item => item.kind)]]) {
            for (const value of [...new Set(values)].sort()) byId(id).append(new Option(value, value));
            byId(id).addEventListener("input", show);
        }
        for (const id of ["text", "aligned"]) byId(id).addEventListener("input", show);
        document.querySelector("form").addEventListener("submit", event => event.preventDefault());
        document.addEventListener("keydown", event => {
            if (event.ctrlKey || event.metaKey || event.altKey) return;
            const isTyping = event.target.closest("input, select");
            if (event.key === "/" && !isTyping) {
                byId("text").focus();
                return event.preventDefault();
            }
            if (isTyping) {
                if (event.key === "Escape") event.target.blur();
                return;
            }
            const place = shown.indexOf(selected);
            const target = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: shown.length - 1 }[event.key];
            if (target !== undefined && shown[target]) {
                shown[target].row.focus();
                event.preventDefault();
            } else if (selected && (event.key === "Enter" || event.key === " ") && event.target === selected.row) {
                toggle(selected);
                event.preventDefault();
            } else if (selected && event.key === "Escape") {
                toggle(selected, false);
            }
        });
        show();
        </script>
        </body>
        </html>
        """#
}
