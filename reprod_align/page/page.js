"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement, byId = (id) => document.getElementById(id);
const WORDS = {
  en: { introduced: "introduced", inherited: "inherited", total: "out", backward: "grad", calls: "calls",
    model: "the model", more: "more; search further", nothing: "no module", forward: "forward", floor: "noise floor" },
  zh: { introduced: "引入", inherited: "继承", total: "输出", backward: "梯度", calls: "次调用",
    model: "整个模型", more: "个未显示；请缩小搜索范围", nothing: "没有模块", forward: "前向", floor: "噪声基底" },
};
const word = (name) => WORDS[root.dataset.language][name];
const make = (kind, name, text) => {
  const made = document.createElement(kind);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
};

// ---------------------------------------------------------------- language
const speak = (language) => {
  root.dataset.language = language;
  root.lang = language === "zh" ? "zh-CN" : "en";
  for (const button of document.querySelectorAll("[data-set]"))
    button.setAttribute("aria-pressed", String(button.dataset.set === language));
  for (const one of document.querySelectorAll("[data-en]")) {
    const text = one.dataset[language];
    if (one.tagName === "OPTION") one.textContent = text;
    else { one.setAttribute("aria-label", text); if ("placeholder" in one) one.placeholder = text; }
  }
  try { localStorage.setItem("reprod-align-language", language); } catch { /* a file may not keep it */ }
  for (const draw of redraw) draw();
};
const redraw = [];
for (const button of document.querySelectorAll("[data-set]"))
  button.addEventListener("click", () => speak(button.dataset.set));

// ---------------------------------------------------------------- the tree: only what is open is made
const [DEPTH, PART, NAME, OTHER, KIND, CALLS, INTRODUCED, INHERITED, TOTAL, BACKWARD, STATE] = Array(11).keys();
const rows = data.tree, MOST = 200;
const above = [], inner = rows.map(() => []), chain = [];
rows.forEach((row, at) => {
  chain.length = row[DEPTH];
  above[at] = chain.length ? chain[chain.length - 1] : -1;
  if (above[at] >= 0) inner[above[at]].push(at);
  chain.push(at);
});
const heat = (figure) => {
  const size = Math.log10(Math.max(Number(figure) || (figure === "nan" || figure === "inf" ? 1 : 0), 1e-17));
  return `${Math.round(Math.max(0, Math.min(1, (size + 10) / 10)) * 60)}%`;
};
const chip = (name, figure) => {
  const made = make("span", "chip", `${word(name)} ${typeof figure === "number" ? figure.toExponential(1) : figure}`);
  made.style.setProperty("--heat", (data.limit === null || Number(figure) <= data.limit) ? "0%" : heat(figure));
  return made;
};
const fill = (row, whole) => (line) => {
  line.classList.add("row");
  line.append(make("span", "name", (whole ? row[NAME] : row[PART]) || word("model")));
  if (row[OTHER]) line.append(make("span", "name muted small", `= ${row[OTHER]}`));
  if (row[KIND]) line.append(make("span", "muted small", row[KIND]));
  if (row[CALLS] > 1) line.append(make("span", "muted small", `${row[CALLS]} ${word("calls")}`));
  const chips = make("span", "chips");
  [["introduced", INTRODUCED], ["inherited", INHERITED], ["total", TOTAL], ["backward", BACKWARD]].forEach(
    ([name, at]) => { if (row[at] !== null) chips.append(chip(name, row[at])); });
  line.append(chips);
  return line;
};
const made = new Map();
const grow = (at) => {
  const row = rows[at], many = inner[at].length > 0;
  const node = make(many ? "details" : "div", `${many ? "" : "leaf "}state-${row[STATE]}`);
  node.append(fill(row, false)(make(many ? "summary" : "div")));
  made.set(at, node);
  if (many) node.addEventListener("toggle", () => { if (node.open) unfold(at); });
  return node;
};
const unfold = (at) => {
  const node = made.get(at);
  if (node.dataset.full || !inner[at].length) return node;
  node.dataset.full = "yes";
  const inside = make("div", "inside");
  for (const one of inner[at]) inside.append(grow(one));
  node.append(inside);
  return node;
};
const openTo = (at) => {
  if (above[at] >= 0) { openTo(above[at]); unfold(above[at]).open = true; }
  return made.get(at);
};
const tree = byId("tree");
const plant = () => {
  if (!tree || !rows.length) return;
  made.clear();
  tree.replaceChildren(grow(0));
  unfold(0).open = true;
  rows.forEach((row, at) => { if (row[STATE] === 2) openTo(at); });
};
const goTo = (name) => {
  let at = rows.findIndex((row) => row[NAME] === name);
  for (let part = name; at < 0 && part; ) { part = part.slice(0, Math.max(0, part.lastIndexOf("."))); at = rows.findIndex((row) => row[NAME] === part); }
  if (at < 0) return;
  if (byId("find").value || byId("filter").value !== "all") { byId("find").value = ""; byId("filter").value = "all"; plant(); }
  for (const old of tree.querySelectorAll(".target")) old.classList.remove("target");
  const node = openTo(at);
  node.classList.add("target");
  const line = node.firstElementChild;
  line.tabIndex = 0;
  line.focus({ preventScroll: true });
  node.scrollIntoView({ block: "center" });
};
const KEEPS = {
  all: () => true,
  differs: (row) => row[STATE] > 0 && row[CALLS] > 0,
  introduces: (row) => row[INTRODUCED] !== null && data.limit !== null && !(Number(row[INTRODUCED]) <= data.limit),
  found: (row) => row[STATE] === 2,
};
const look = () => {
  const text = byId("find").value.toLowerCase(), kind = byId("filter").value;
  if (!text && kind === "all") { plant(); return; }
  const found = rows.filter((row) => KEEPS[kind](row)
    && `${row[NAME]} ${row[OTHER]} ${row[KIND]}`.toLowerCase().includes(text));
  const list = found.slice(0, MOST).map((row) => {
    const leaf = make("div", `leaf state-${row[STATE]}`), line = fill(row, true)(make("div"));
    const button = make("button", "small", "→");
    button.type = "button";
    button.setAttribute("aria-label", row[NAME] || word("model"));
    button.addEventListener("click", () => goTo(row[NAME]));
    line.prepend(button);
    leaf.append(line);
    return leaf;
  });
  if (found.length > MOST) list.push(make("p", "muted", `${found.length - MOST} ${word("more")}`));
  tree.replaceChildren(...(list.length ? list : [make("p", "muted", word("nothing"))]));
};
if (tree && rows.length) {
  byId("find").addEventListener("input", look);
  byId("filter").addEventListener("change", look);
  byId("fold").addEventListener("click", () => {
    byId("find").value = ""; byId("filter").value = "all"; plant();
    for (const one of [...made.entries()]) if (one[0] && one[1].open) one[1].open = false;
  });
  redraw.push(() => look());
}
for (const button of document.querySelectorAll("[data-goto]"))
  button.addEventListener("click", () => goTo(button.dataset.goto));

// ---------------------------------------------------------------- the cursor of the plot by layer
const slider = byId("layer"), frame = byId("frame");
if (slider && frame) {
  const LEFT = 0.13, WIDTH = 0.84, count = data.layers.length;
  const show = () => {
    const at = Number(slider.value), [name, forward, backward, floor] = data.layers[at - 1];
    const parts = [`${at}. ${name || word("model")}`];
    if (forward) parts.push(`${word("forward")} ${forward}`);
    if (backward) parts.push(`${word("backward")} ${backward}`);
    if (floor) parts.push(`${word("floor")} ${floor}`);
    byId("reading").textContent = parts.join(" · ");
    slider.setAttribute("aria-valuetext", parts.join(", "));
    byId("cursor").hidden = false;
    byId("cursor").style.left = `${100 * (LEFT + WIDTH * (at - 0.5) / count)}%`;
  };
  slider.addEventListener("input", show);
  frame.addEventListener("pointermove", (event) => {
    const box = frame.getBoundingClientRect(), share = ((event.clientX - box.left) / box.width - LEFT) / WIDTH;
    slider.value = String(Math.max(1, Math.min(count, Math.ceil(share * count))));
    show();
  });
  frame.addEventListener("click", () => goTo(data.layers[Number(slider.value) - 1][0]));
  const first = document.querySelector("[data-goto]")?.dataset.goto;
  slider.value = String(1 + Math.max(0, data.layers.findIndex((one) => one[0] === first)));
  redraw.push(show);
}

// ---------------------------------------------------------------- the rest of long tables, print
for (const button of document.querySelectorAll("[data-more]"))
  button.addEventListener("click", () => {
    const body = byId(button.dataset.more).tBodies[0], heads = body.rows[0].cells;
    for (const [failed, ...cells] of data.tables[Number(button.dataset.table)]) {
      const line = make("tr", failed ? "failed" : "");
      cells.forEach((text, at) => {
        const cell = make("td", "", text);
        cell.dataset.head = heads[at].dataset.head;
        cell.dataset.headZh = heads[at].dataset.headZh;
        line.append(cell);
      });
      body.append(line);
    }
    button.remove();
  });
addEventListener("beforeprint", () => { for (const one of document.querySelectorAll("main > section > ol details")) one.open = true; });

let language = (navigator.language || "en").startsWith("zh") ? "zh" : "en";
try { language = localStorage.getItem("reprod-align-language") || language; } catch { /* as above */ }
speak(language === "zh" ? "zh" : "en");
})();
