// The query browser. Everything shown comes from JSON blocks of this page and goes through
// textContent: nothing in it is ever parsed as markup.
"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const root = document.getElementById("browser");
  openForPrint();
  if (root === null) return;

  const all = read("overview");
  const memories = read("memories");
  const two = all.sides.length === 2;
  const PAGE = 150;
  const FEW = 25;
  let shownRows = PAGE;
  let chosen = -1;
  let side = all.sides.length - 1;

  function make(name, classes, text) {
    const made = document.createElement(name);
    if (classes) made.className = classes;
    if (text !== undefined && text !== null) made.textContent = text;
    return made;
  }

  function add(parent, ...children) {
    for (const child of children) if (child) parent.appendChild(child);
    return parent;
  }

  const at = (column, place) => (Array.isArray(column) ? column[place] : column);

  // Figures of the page: three decimals, and a dash for what is undefined, which is not 0.
  function figure(value) {
    return value === null || value === undefined ? "-" : value.toFixed(3);
  }

  function score(value) {
    return value === null || value === undefined ? "-" : value.toFixed(4);
  }

  // By how much a query got better, whichever way its metric points; null when undefined.
  const sign = all.lower ? -1 : 1;
  function gain(place) {
    if (!two) return null;
    const [first, second] = all.values.map((values) => values[place]);
    return first === null || second === null ? null : sign * (second - first);
  }

  function standing(place) {
    const value = all.values[side][place];
    return value === null ? null : sign * value;
  }

  // Undefined values come last, whichever way the list is ordered.
  const rising = (of) => (a, b) => {
    const [one, two_] = [of(a), of(b)];
    if (one === null || two_ === null) return Number(one === null) - Number(two_ === null);
    return one - two_;
  };
  const ORDERS = {
    file: () => 0,
    worst: rising(standing),
    lost: rising(gain),
    gained: rising((place) => (gain(place) === null ? null : -gain(place))),
  };

  const search = root.querySelector("input");
  const order = root.querySelector("select");
  const list = root.querySelector("ol");
  const count = root.querySelector(".count");
  const detail = root.querySelector(".chosen");

  const haystack = all.ids.map((id, place) =>
    [id, all.categories[place], all.groups[place], all.texts ? all.texts[place] : ""]
      .join("\n").toLowerCase());

  function matches() {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = all.ids.map((_, place) => place)
      .filter((place) => wanted.every((word) => haystack[place].includes(word)));
    const compare = ORDERS[order.value];
    return found.sort((a, b) => compare(a, b) || a - b);
  }

  function showList() {
    const found = matches();
    list.replaceChildren(...found.slice(0, shownRows).map(entry));
    if (found.length > shownRows) {
      const more = make("button", "plain", `show more (${found.length - shownRows} left)`);
      more.type = "button";
      more.addEventListener("click", () => { shownRows += PAGE; showList(); });
      add(list, add(make("li"), more));
    }
    count.textContent = `${found.length} of ${all.ids.length} queries`;
  }

  function entry(place) {
    const button = make("button");
    button.type = "button";
    button.dataset.query = String(place);
    if (place === chosen) button.setAttribute("aria-current", "true");
    const value = two
      ? `${figure(all.values[0][place])} → ${figure(all.values[1][place])}`
      : figure(all.values[0][place]);
    const change = gain(place) || 0;
    const kind = change === 0 ? "" : change > 0 ? " better" : " worse";
    const under = all.texts ? all.texts[place] : all.categories[place];
    add(button,
      make("span", "id", all.ids[place] + (all.leaks[place] ? "  LEAK" : "")),
      make("span", "value" + kind, value),
      make("span", "under", under));
    button.addEventListener("click", () => choose(place, true));
    return add(make("li"), button);
  }

  function choose(place, told) {
    chosen = place;
    for (const button of list.querySelectorAll("button[data-query]")) {
      if (Number(button.dataset.query) === place) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
    if (told) history.replaceState(null, "", `#query=${place}`);
    showQuery();
  }

  function showQuery() {
    const query = read(`query-${chosen}`);
    const parts = [make("h3", "id", all.ids[chosen])];
    const group = all.groups[chosen] === all.ids[chosen] ? "" : `, group ${all.groups[chosen]}`;
    const asked = query.now ? `, asked ${query.now}` : "";
    const answer = query.answerable === false ? ", unanswerable" : "";
    parts.push(make("p", "lead", `${all.categories[chosen]}${group}${asked}${answer}`));
    for (const [role, text] of query.turns || []) parts.push(make("div", "turn", `${role}: ${text}`));
    if (all.texts) parts.push(make("div", "asked", all.texts[chosen]));
    for (const [id, grade] of query.missed || []) {
      parts.push(make("p", "alarm", `No lane found ${id}, which is relevant (grade ${grade}).`));
    }
    parts.push(values(query));
    if (two) {
      const apart = query.parting === undefined ? "one has no trace"
        : query.parting === null ? "nowhere: every stage has the same outcome" : `at ${query.parting}`;
      parts.push(make("p", "", `The two part ${apart}.`));
      const buttons = all.sides.map((name, number) => {
        const button = make("button", "plain", name);
        button.type = "button";
        button.setAttribute("aria-pressed", String(number === side));
        button.addEventListener("click", () => { side = number; showQuery(); });
        return button;
      });
      parts.push(add(make("div", "switch"), ...buttons));
    }
    detail.replaceChildren(...parts, ...recall(query));
  }

  function values(query) {
    const box = make("div", "figures");
    all.metrics.forEach((name, number) => {
      const told = query.values.map((row) => row[number]);
      if (told.every((value) => value === null)) return;
      add(box, add(make("div"), make("span", "muted", name), make("span", "", told.map(figure).join(" → "))));
    });
    return add(make("details"), make("summary", "", "Every metric of this query"), box);
  }

  function recall(query) {
    const told = query.sides[side];
    if (told === null) return [make("p", "note", "There is no trace of this evaluation: its candidates are not known.")];
    const lanes = Object.keys(told.ranks);
    const steps = make("ol", "steps");
    for (const [stage, left] of told.stages) {
      add(steps, make("li", stage === query.parting ? "apart" : "", `${stage} ${left}`));
    }
    const hits = lanes.map((lane) => {
      const found = told.memory.filter((_, row) => at(told.ranks[lane], row) > 0).length;
      return `${lane} ${found}`;
    });
    const total = told.memory.length;
    const heading = `${total} candidates; lanes: ${hits.join(", ") || "none ran"}. Left after each stage:`;
    const rows = make("tbody");
    const reranked = told.memory.some((_, row) => at(told.reranker, row) !== null);
    const columns = headings(lanes, reranked);
    const table = add(make("table", "candidates"), add(make("thead"), add(make("tr"),
      ...columns.map((name) => make("th", "", name)))), rows);
    const limit = Math.max(FEW, lastIncluded(told));
    const fill = (from, to) => {
      for (let row = from; row < to; row += 1) add(rows, candidate(query, told, row, lanes, reranked));
    };
    fill(0, Math.min(limit, total));
    const parts = [make("p", "muted", heading), steps, add(make("div", "scroll"), table)];
    if (total > limit) {
      const more = make("button", "plain more", `show all ${total} candidates`);
      more.type = "button";
      more.addEventListener("click", () => { fill(limit, total); more.remove(); });
      parts.push(more);
    }
    return parts;
  }

  function lastIncluded(told) {
    let end = 0;
    told.memory.forEach((_, row) => { if (all.fates[at(told.fate, row)] === "included") end = row + 1; });
    return end;
  }

  function headings(lanes, reranked) {
    return ["place", "memory", ...(all.texts ? ["grade", "trust"] : []), ...lanes, "fused",
      ...(reranked ? ["reranker"] : []), "base", ...all.factors.map((name) => `× ${name}`), "final", "fate"];
  }

  function candidate(query, told, row, lanes, reranked) {
    const number = told.memory[row];
    const fate = all.fates[at(told.fate, row)];
    const line = make("tr", fate === "included" ? "included" : "");
    const cell = (label, text, classes = "number") => {
      const made = make("td", classes, text);
      made.dataset.label = label;
      return made;
    };
    const memory = make("td", "memory");
    add(memory, make("div", "id", memories.ids[number]));
    if (memories.content && memories.content[number] !== null) {
      add(memory, make("div", "content", memories.content[number]), make("div", "about", memories.about[number]));
    }
    add(line, cell("place", String(row + 1)), memory);
    if (all.texts) {
      const grade = query.grades[number];
      add(line, cell("grade", grade === undefined ? "-" : String(grade), grade > 0 ? "number relevant" : "number"),
        cell("trust", memories.trust[number]));
    }
    for (const lane of lanes) {
      const rank = at(told.ranks[lane], row);
      add(line, cell(lane, rank ? String(rank) : "-"));
    }
    add(line, cell("fused", score(at(told.fused, row))));
    if (reranked) add(line, cell("reranker", score(at(told.reranker, row))));
    add(line, cell("base", score(at(told.base, row))));
    for (const name of all.factors) {
      const factor = at(told[name], row);
      add(line, cell(`× ${name}`, figure(factor), `number${factor > 1 ? " up" : factor < 1 ? " down" : ""}`));
    }
    const by = at(told.by, row);
    add(line, cell("final", score(at(told.final, row))),
      cell("fate", fate.replaceAll("_", " ") + (by ? ` by ${by}` : ""), "fate"));
    return line;
  }

  // A link such as #query=12 opens a query from anywhere on the page.
  function follow() {
    const asked = /^#query=(\d+)$/.exec(location.hash);
    if (asked === null || Number(asked[1]) >= all.ids.length) return false;
    choose(Number(asked[1]), false);
    root.scrollIntoView();
    return true;
  }

  function openForPrint() {
    let opened = [];
    addEventListener("beforeprint", () => {
      opened = [...document.querySelectorAll("details:not([open])")];
      for (const closed of opened) closed.open = true;
    });
    addEventListener("afterprint", () => { for (const open of opened) open.open = false; });
  }

  search.addEventListener("input", () => { shownRows = PAGE; showList(); });
  order.addEventListener("change", showList);
  addEventListener("hashchange", follow);
  root.hidden = false;
  showList();
  if (!follow() && all.ids.length > 0) choose(matches()[0], false);
})();
