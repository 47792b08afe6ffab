"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const words = data.words;
  const at = (id) => document.getElementById(id);
  const TITLE = 0, STATUS = 1, SENTENCE = 2, DISTANCE = 3, DISTANCE_TEXT = 4, BOUND = 5, KNOWN = 6, CHANGES = 7, SHARE = 5;
  const statusOrder = Object.keys(data.statuses);
  const haystack = data.rows.map((row) =>
    [row[TITLE], row[SENTENCE], data.statuses[row[STATUS]]].concat(row[CHANGES].map((c) => c[0])).join(" ").toLowerCase());
  let shown = [];
  let page = 0;

  function filled(phrase, values) {
    return phrase.replace(/\{(\w+)\}/g, (whole, key) => (key in values ? String(values[key]) : whole));
  }

  function element(name, text, attributes) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    for (const key in attributes || {}) made.setAttribute(key, attributes[key]);
    return made;
  }

  function isolated(name, text, attributes) {
    const made = element(name, undefined, attributes);
    made.append(element("bdi", text));
    return made;
  }

  const keys = {
    row: (i) => i,
    distance: (i) => (data.rows[i][DISTANCE] === null ? Infinity : data.rows[i][DISTANCE]),
    changes: (i) => data.rows[i][CHANGES].length,
    status: (i) => statusOrder.indexOf(data.rows[i][STATUS]),
  };

  function choose() {
    const wanted = at("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const status = at("status").value;
    const key = keys[at("sort").value];
    const sign = at("descending").checked ? -1 : 1;
    shown = [];
    for (let i = 0; i < data.rows.length; i++) {
      if (status && data.rows[i][STATUS] !== status) continue;
      if (wanted.every((word) => haystack[i].includes(word))) shown.push(i);
    }
    shown.sort((a, b) => {
      const x = key(a), y = key(b);
      return x === y ? a - b : x < y ? -sign : sign;
    });
    page = 0;
    draw();
  }

  function draw() {
    const size = Number(at("size").value);
    const pages = Math.max(1, Math.ceil(shown.length / size));
    page = Math.min(Math.max(page, 0), pages - 1);
    at("list").replaceChildren(...shown.slice(page * size, (page + 1) * size).map(article));
    at("matches").textContent = filled(words.matches, { shown: shown.length, rows: data.rows.length });
    at("page").textContent = filled(words["page x of y"], { page: page + 1, pages: pages });
    at("previous").disabled = page === 0;
    at("next").disabled = page === pages - 1;
  }

  function article(i) {
    const row = data.rows[i];
    const made = element("article", undefined, { "data-row": i });
    made.append(isolated("h3", row[TITLE]));
    made.append(isolated("p", row[SENTENCE]));
    made.append(element("p", data.statuses[row[STATUS]], { class: "status" }));
    if (row[CHANGES].length) {
      const details = element("details");
      const list = row[CHANGES].slice(0, 3).map((c) => c[0]).join(", ") + (row[CHANGES].length > 3 ? ", …" : "");
      details.append(isolated("summary", words.change + ": " + list));
      details.addEventListener("toggle", () => fill(details, row));
      made.append(details);
    }
    if (row[KNOWN]) {
      const proof = element("details", undefined, { class: "proof" });
      proof.append(element("summary", words.proof), isolated("p", row[KNOWN]));
      if (row[DISTANCE_TEXT]) {
        const measured = words.distance + " " + row[DISTANCE_TEXT] + "; " + words["lower bound"] + " " + row[BOUND];
        proof.append(element("p", measured));
      }
      made.append(proof);
    }
    return made;
  }

  function fill(details, row) {
    if (details.childElementCount > 1) return;
    details.append(table(row[CHANGES]), picture(row));
  }

  function table(changes) {
    const made = element("table");
    const head = element("tr");
    for (const word of ["feature", "before", "after", "change", "share"]) head.append(element("th", words[word], { scope: "col" }));
    const top = element("thead");
    top.append(head);
    const body = element("tbody");
    for (const change of changes) {
      const line = element("tr");
      line.append(isolated("th", change[0], { scope: "row" }));
      for (let k = 1; k < SHARE; k++) line.append(isolated("td", change[k]));
      body.append(line);
    }
    made.append(top, body);
    return made;
  }

  function drawn(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function picture(row) {
    const changes = row[CHANGES];
    const step = 26, names = 250, width = 820, values = 130;
    const hasLess = changes.some((c) => c[SHARE] < 0), hasMore = changes.some((c) => c[SHARE] >= 0);
    const sides = (hasLess ? 1 : 0) + (hasMore ? 1 : 0);
    const reach = (width - names - sides * values) / sides / Math.max(...changes.map((c) => Math.abs(c[SHARE])), 1e-9);
    const zero = hasLess ? (hasMore ? names + (width - names) / 2 : width - 6) : names;
    const told = words.picture + " " + changes.map((c) => c[0] + " " + c[3]).join("; ");
    const made = drawn("svg", { viewBox: "0 0 " + width + " " + (changes.length * step + 8), width: width, role: "img", "aria-label": told });
    changes.forEach((change, k) => {
      const y = k * step + 6, long = Math.max(1, Math.abs(change[SHARE]) * reach), more = change[SHARE] >= 0;
      const name = change[0].length > 34 ? change[0].slice(0, 33) + "…" : change[0];
      made.append(drawn("text", { x: names - 10, y: y + 14, "text-anchor": "end", direction: "ltr", "unicode-bidi": "isolate" }, name));
      const x = more ? zero : zero - long;
      made.append(drawn("rect", { x: x, y: y, width: long, height: 18, class: more ? "up" : "down" }));
      for (let s = x + 8; !more && s < x + long - 2; s += 9) {
        made.append(drawn("line", { x1: s, y1: y, x2: s, y2: y + 18, class: "stripe" }));
      }
      made.append(drawn("text", { x: more ? zero + long + 6 : zero - long - 6, y: y + 14, "text-anchor": more ? "start" : "end" }, change[3]));
    });
    made.append(drawn("line", { x1: zero, y1: 2, x2: zero, y2: changes.length * step + 4 }));
    return made;
  }

  function turn(by) {
    page += by;
    draw();
    at("rows").scrollIntoView();
  }

  at("controls").addEventListener("submit", (event) => event.preventDefault());
  at("search").addEventListener("input", choose);
  for (const id of ["status", "sort", "descending"]) at(id).addEventListener("change", choose);
  at("size").addEventListener("change", () => { page = 0; draw(); });
  at("previous").addEventListener("click", () => turn(-1));
  at("next").addEventListener("click", () => turn(1));
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("article details")) {
      fill(details, data.rows[Number(details.closest("article").dataset.row)]);
      details.open = true;
    }
  });
  choose();
})();
