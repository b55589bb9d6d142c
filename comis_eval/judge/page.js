// The labelling page. Everything shown goes through textContent: nothing is parsed as markup.
// The token comes in the fragment, which no server and no Referer ever sees; it is kept for this
// tab alone and sent as a header, which no other site can do.
"use strict";
(() => {
  const KEY = "comis-eval judge";
  const of = (id) => document.getElementById(id);
  const arrived = /^#token=([A-Za-z0-9_-]+)$/.exec(location.hash);
  if (arrived !== null) {
    sessionStorage.setItem(KEY, arrived[1]);
    history.replaceState(null, "", location.pathname);
  }
  const token = sessionStorage.getItem(KEY);
  let state = null;
  let waiting = false;

  function make(name, classes, text) {
    const made = document.createElement(name);
    if (classes) made.className = classes;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function say(text, wrong) {
    of("said").textContent = text;
    of("said").className = wrong ? "wrong" : "";
  }

  async function call(path, body) {
    const asked = { headers: { "X-Comis-Token": token ?? "" }, cache: "no-store", redirect: "error" };
    if (body !== undefined) {
      asked.method = "POST";
      asked.headers["Content-Type"] = "application/json";
      asked.body = JSON.stringify(body);
    }
    const answer = await fetch(path, asked);
    return [answer.status, await answer.json()];
  }

  function facts(rows) {
    const list = make("dl");
    for (const [term, what] of rows) {
      list.append(make("dt", "", term));
      list.append(make("dd", what.includes("not allowed as an answer") ? "refused" : "", what));
    }
    return list;
  }

  function scrolling(classes, text) {
    const made = make("p", classes, text);
    made.tabIndex = 0;
    return made;
  }

  function show() {
    const done = state.query === null;
    of("count").textContent = `${state.graded} of ${state.total} judged`
      + (state.skipped ? `, ${state.skipped} put off` : "");
    of("where").textContent = done ? ""
      : ` · question ${state.number} of ${state.queries}, memory ${state.place} of ${state.of}`;
    of("bar").max = Math.max(state.total, 1);
    of("bar").value = state.graded;
    of("work").hidden = done;
    of("done").hidden = !done;
    if (!done) {
      const turns = state.query.turns.map(([role, text]) => make("p", "turn", `${role}: ${text}`));
      of("query").replaceChildren(...turns, scrolling("text asked", state.query.text), facts(state.query.facts));
      of("memory").replaceChildren(scrolling("text", state.memory.content), facts(state.memory.facts));
    }
    buttons();
  }

  function buttons() {
    const done = state === null || state.query === null;
    for (const button of document.querySelectorAll("#acts button")) {
      const undo = button.dataset.act === "undo";
      button.disabled = waiting || (undo ? state === null || !state.can_undo : done);
    }
  }

  // One act at a time, and the next only once this one is on disk.
  async function act(name, grade) {
    if (waiting || state === null) return;
    if (name === "undo" ? !state.can_undo : state.query === null) return;
    waiting = true;
    buttons();
    try {
      const body = { act: name, turn: state.turn };
      if (grade !== undefined) body.grade = grade;
      const [status, told] = await call("/api/act", body);
      if (status === 200) {
        state = told;
        say({ grade: `graded ${grade}`, skip: "put off: it comes back at the end", undo: "taken back" }[name]);
      } else if (status === 409) {
        say("This was judged in another tab; here is what comes next.", true);
        await load();
      } else {
        say(`NOT saved: ${told.error}`, true);
      }
    } catch {
      say("NOT saved: comis-eval judge does not answer. Start it again and open its new address; what was saved is there.", true);
    } finally {
      waiting = false;
      if (state !== null) show();
    }
  }

  async function load() {
    const [status, told] = await call("/api/state");
    if (status !== 200) {
      say(told.error, true);
      return;
    }
    state = told;
    show();
  }

  async function agree() {
    if (!of("agreement").open) return;
    const room = of("agreed");
    room.replaceChildren(make("p", "", "..."));
    try {
      const [status, told] = await call("/api/agreement");
      if (status !== 200) {
        room.replaceChildren(make("p", "", told.error));
        return;
      }
      if (told.rows.length === 0) {
        room.replaceChildren(make("p", "", "No pair was judged twice yet."));
        return;
      }
      const table = make("table");
      for (const [row, cell] of [[told.head, "th"], ...told.rows.map((one) => [one, "td"])]) {
        const line = make("tr");
        line.append(...row.map((text) => make(cell, "", text)));
        table.append(line);
      }
      room.replaceChildren(table);
    } catch {
      room.replaceChildren(make("p", "", "comis-eval judge does not answer."));
    }
  }

  const KEYS = { u: ["undo"], s: ["skip"], 0: ["grade", 0], 1: ["grade", 1], 2: ["grade", 2], 3: ["grade", 3] };
  addEventListener("keydown", (event) => {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (!Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    act(...KEYS[event.key]);
  });
  for (const button of document.querySelectorAll("#acts button")) {
    const { act: name, grade } = button.dataset;
    button.addEventListener("click", () => act(name, grade === undefined ? undefined : Number(grade)));
  }
  of("agreement").addEventListener("toggle", agree);

  if (token === null) say("Open the address that comis-eval judge printed: it holds the key to this page.", true);
  else load().catch(() => say("comis-eval judge does not answer.", true));
})();
