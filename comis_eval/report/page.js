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
      const apart = query.parting === undefined ? "not known, one has no trace"
        : query.parting === null ? "none from search to budget" : query.parting.join(": ");
      parts.push(make("p", "", `First difference: ${apart}.`));
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
    if (told === null) {
      return [make("p", "note", "This evaluation has no trace: its candidates are not known.")];
    }
    const total = told.memory.length;
    const lanes = Object.keys(told.ranks);
    const hits = lanes.map((lane) => {
      const found = told.memory.filter((_, row) => at(told.ranks[lane], row) > 0).length;
      return `${lane} ${found}`;
    });
    const partsAt = query.parting ? query.parting[0] : null;
    const steps = make("ol", "steps");
    for (const [stage, left] of told.stages) {
      add(steps, make("li", stage === partsAt ? "apart" : "", `${stage} ${left}`));
    }
    const shown = columns(told, query, lanes);
    const head = add(make("tr"), ...shown.map((column) => make("th", column.head, column.name)));
    const rows = make("tbody");
    const table = add(make("table", "candidates"), add(make("thead"), head), rows);
    const limit = Math.min(Math.max(FEW, lastIncluded(told)), total);
    const fill = (from, to) => {
      for (let row = from; row < to; row += 1) add(rows, candidate(told, row, shown));
    };
    fill(0, limit);
    const still = unmoved(told);
    const quiet = still.length && total ? ` No candidate is moved by ${still.join(", ")}.` : "";
    const parts = [
      make("p", "muted", `${total} candidates; lanes: ${hits.join(", ") || "none ran"}.${quiet} Left after each stage:`),
      steps, add(make("div", "scroll"), table),
    ];
    if (total > limit) {
      const more = make("button", "plain more", `show all ${total} candidates`);
      more.type = "button";
      more.addEventListener("click", () => { fill(limit, total); more.remove(); });
      parts.push(more);
    }
    return parts;
  }

  // Boosts whose factor is 1 for every candidate of a query.
  function unmoved(told) {
    return all.factors.filter((name) => told.memory.every((_, row) => at(told[name], row) === 1));
  }

  function lastIncluded(told) {
    let end = 0;
    told.memory.forEach((_, row) => { if (all.fates[at(told.fate, row)] === "included") end = row + 1; });
    return end;
  }

  // The columns of a query's candidates; what is the same for all of them needs none.
  function columns(told, query, lanes) {
    const some = (name, test) => told.memory.some((_, row) => test(at(told[name], row), row));
    const number = (name, of) => ({ name, head: "number", fill: (row) => make("td", "number", of(row)) });
    const found = [
      number("place", (row) => String(row + 1)),
      { name: "memory", head: "", fill: (row) => memory(told.memory[row]) },
    ];
    if (all.texts) {
      found.push(
        { name: "grade", head: "number", fill: (row) => grade(query.grades[told.memory[row]]) },
        { name: "trust", head: "", fill: (row) => make("td", "", memories.trust[told.memory[row]]) });
    }
    for (const lane of lanes) found.push(number(lane, (row) => String(at(told.ranks[lane], row) || "-")));
    found.push(number("fused", (row) => score(at(told.fused, row))));
    if (some("reranker", (value) => value !== null)) {
      found.push(number("reranker", (row) => score(at(told.reranker, row))));
    }
    if (some("base", (value, row) => value !== at(told.fused, row))) {
      found.push(number("base", (row) => score(at(told.base, row))));
    }
    const still = unmoved(told);
    for (const name of all.factors.filter((factor) => !still.includes(factor))) {
      found.push({ name: `× ${name}`, head: "number", fill: (row) => factor(at(told[name], row)) });
    }
    found.push(
      number("final", (row) => score(at(told.final, row))),
      { name: "fate", head: "", fill: (row) => fate(told, row) });
    return found;
  }

  function candidate(told, row, shown) {
    const line = make("tr", all.fates[at(told.fate, row)] === "included" ? "included" : "");
    for (const column of shown) {
      const cell = column.fill(row);
      cell.dataset.label = column.name;
      add(line, cell);
    }
    return line;
  }

  function memory(number) {
    const cell = add(make("td", "memory"), make("div", "id", memories.ids[number]));
    if (memories.content && memories.content[number] !== null) {
      add(cell, make("div", "content", memories.content[number]), make("div", "about", memories.about[number]));
    }
    return cell;
  }

  function grade(given) {
    return make("td", given > 0 ? "number relevant" : "number", given === undefined ? "-" : String(given));
  }

  function factor(value) {
    const way = value > 1 ? "up" : value < 1 ? "down" : "even";
    return make("td", `number ${way}`, figure(value));
  }

  function fate(told, row) {
    const by = at(told.by, row);
    return make("td", "fate", all.fates[at(told.fate, row)].replaceAll("_", " ") + (by ? ` by ${by}` : ""));
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
