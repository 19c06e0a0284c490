// A board as a grid of squares: the arrow keys move, and other keys and clicks act on a square.

const SVG = "http://www.w3.org/2000/svg";

/** Creates an SVG element with attributes and children. */
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Creates an element with a class and children. */
export function element(name, className, ...children) {
  const created = document.createElement(name);
  if (className) created.className = className;
  created.append(...children);
  return created;
}

const symbol = (name) => svg("svg", { viewBox: "0 0 32 32", "aria-hidden": "true" }, svg("use", { href: `#${name}` }));

/** Returns a text like "1 queen" or "2 queens". */
export const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

/** Returns whether queens on two different squares `[row, column]` attack each other. */
export const attacks = ([a, b], [c, d]) => a === c || b === d || Math.abs(a - c) === Math.abs(b - d);

/** The squares of a board. `act(action, row, column)` is called for the actions "use", "queen", "block" and "clear". */
export class Board {
  constructor(host, label, act = null) {
    this.host = host;
    this.act = act;
    this.n = 0;
    this.at = [1, 1];
    host.classList.add("board");
    host.setAttribute("role", "grid");
    host.setAttribute("aria-label", label);
    if (!act) host.setAttribute("aria-readonly", "true");
    host.addEventListener("keydown", (event) => this.key(event));
    host.addEventListener("click", (event) => this.pointed(event, event.shiftKey ? "block" : "use"));
    host.addEventListener("contextmenu", (event) => {
      if (act && event.target.closest(".square")) {
        event.preventDefault();
        this.pointed(event, "block");
      }
    });
  }

  pointed(event, action) {
    const square = event.target.closest(".square");
    if (!square) return;
    const { row, column } = square.dataset;
    this.focus(Number(row), Number(column));
    this.act?.(action, Number(row), Number(column));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [row, column] = this.at;
    const last = this.n;
    const to = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      Home: [row, 1], End: [row, last], PageUp: [1, column], PageDown: [last, column],
    }[event.key];
    const action = { " ": "queen", Enter: "queen", q: "queen", x: "block", X: "block", Delete: "clear", Backspace: "clear" }[event.key];
    if (to) this.focus(...to.map((line) => Math.min(last, Math.max(1, line))));
    else if (action && this.act) this.act(action, row, column);
    else return;
    event.preventDefault();
  }

  square(row, column) {
    return this.host.children[row - 1]?.children[column - 1];
  }

  /** Moves the focus to a square. */
  focus(row, column) {
    this.square(...this.at)?.setAttribute("tabindex", "-1");
    this.at = [row, column];
    const square = this.square(row, column);
    square.setAttribute("tabindex", "0");
    square.focus();
  }

  build(n) {
    const hadFocus = this.host.contains(document.activeElement);
    this.n = n;
    this.at = this.at.map((line) => Math.min(n, line));
    this.host.style.setProperty("--n", n);
    this.host.replaceChildren(...Array.from({ length: n }, (_, i) => {
      const row = element("div", "row");
      row.setAttribute("role", "row");
      row.append(...Array.from({ length: n }, (_, j) => {
        const square = element("div", "");
        square.setAttribute("role", "gridcell");
        square.setAttribute("tabindex", i + 1 === this.at[0] && j + 1 === this.at[1] ? "0" : "-1");
        Object.assign(square.dataset, { row: i + 1, column: j + 1 });
        return square;
      }));
      return row;
    }));
    if (hadFocus) this.focus(...this.at);
  }

  /**
   * Shows a board of size `n`. `describe(row, column)` returns the square's `classes`, its `label` for screen readers, and
   * optionally a `symbol`, a `text` and a `heat` from 0 to 1.
   */
  show(n, describe) {
    if (n !== this.n) this.build(n);
    let isHeated = false;
    for (let row = 1; row <= n; row++) {
      for (let column = 1; column <= n; column++) {
        const { classes = "", label, symbol: name = "", text = "", heat } = describe(row, column);
        const square = this.square(row, column);
        square.className = `square ${(row + column) % 2 ? "dark" : "light"} ${classes}${text.length > 3 ? " long" : ""}`;
        square.setAttribute("aria-label", `row ${row}, column ${column}: ${label}`);
        square.title = heat === undefined ? "" : label;
        const content = `${name} ${text}`;
        if (square.content !== content) {
          square.content = content;
          square.replaceChildren(...(name ? [symbol(name)] : []), ...(text ? [element("span", "", text)] : []));
        }
        if (heat !== undefined) isHeated = true;
        square.style.setProperty("--heat", heat ?? 0);
      }
    }
    this.host.classList.toggle("heated", isHeated);
  }
}

/** Draws queens, given as the column in each row, on a small board without squares to act on. */
export function picture(columns, label, marked = "") {
  const n = columns.length;
  const drawing = svg("svg", { viewBox: `0 0 ${n} ${n}`, class: `picture ${marked}` });
  if (label) {
    drawing.setAttribute("role", "img");
    drawing.setAttribute("aria-label", label);
  } else {
    drawing.setAttribute("aria-hidden", "true");
  }
  let dark = "";
  for (let row = 0; row < n; row++) for (let column = (row + 1) % 2; column < n; column += 2) dark += `M${column} ${row}h1v1h-1z`;
  drawing.append(svg("rect", { class: "light", width: n, height: n }), svg("path", { class: "dark", d: dark }));
  columns.forEach((column, row) => {
    if (column) drawing.append(svg("use", { href: "#queen", x: column - 1, y: row, width: 1, height: 1, class: "queen" }));
  });
  return drawing;
}

/** The colours of the rings from the outside to the inside, as in `nqueens beautiful --svg`. */
const RAMP = [[0, [26, 24, 62]], [0.3, [76, 43, 112]], [0.55, [176, 63, 101]], [0.8, [240, 138, 75]], [1, [253, 226, 150]]];

function colour(inside) {
  const above = Math.max(1, RAMP.findIndex(([stop]) => stop >= inside));
  const [[from, a], [to, b]] = [RAMP[above - 1], RAMP[above]];
  const share = Math.min(1, Math.max(0, (inside - from) / (to - from)));
  return `rgb(${a.map((channel, k) => Math.round(channel + share * (b[k] - channel))).join(" ")})`;
}

/** Draws queens on the rings of equal cost; `rings` are `[cost, queens]`, from the largest cost. */
export function ringsPicture(columns, rings, label) {
  const n = columns.length;
  const drawing = svg("svg", { viewBox: `0 0 ${n} ${n}`, class: "picture rings", role: "img", "aria-label": label });
  const radius = (cost) => Math.sqrt(cost) / 2;
  const [largest, least] = [radius(rings[0][0]), radius(rings[rings.length - 1][0])];
  drawing.append(svg("rect", { width: n, height: n, fill: "#0d0c24" }));
  for (const [cost] of rings) {
    drawing.append(svg("circle", {
      cx: n / 2, cy: n / 2, r: radius(cost), fill: colour((largest - radius(cost)) / Math.max(0.5, largest - least)),
      stroke: "#fff", "stroke-opacity": 0.35, "stroke-width": n / 400,
    }));
  }
  columns.forEach((column, row) => {
    drawing.append(svg("circle", { cx: column - 0.5, cy: row + 0.5, r: 0.46, fill: "#fffaf0" }));
    if (n <= 50) drawing.append(svg("use", { href: "#queen", x: column - 0.9, y: row + 0.1, width: 0.8, height: 0.8, class: "queen" }));
  });
  return drawing;
}
