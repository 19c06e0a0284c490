// The drawings: the map of the units, the history of the rate, and a board, all from numbers.

const SVG = "http://www.w3.org/2000/svg";

/** Creates an SVG element with attributes and children. */
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Returns the colours of the theme as RGB triples. */
function palette() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => {
    const hex = style.getPropertyValue(`--${name}`).trim();
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  };
  return Object.fromEntries(["open", "leased", "done", "verified", "poisoned"].map((name) => [name, colour(name)]));
}

/** The map of the units: a cell is one or several units. Only changed cells are redrawn. */
export class UnitMap {
  constructor(canvas, caption) {
    this.canvas = canvas;
    this.caption = caption;
    this.cells = null;
    this.drawn = null;
    this.at = -1;
    new ResizeObserver(() => this.draw(true)).observe(canvas.parentElement);
    addEventListener("themechange", () => this.draw(true));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw(true));
    canvas.addEventListener("pointermove", (event) => this.point(this.under(event)));
    canvas.addEventListener("pointerleave", () => this.point(-1));
    canvas.addEventListener("blur", () => this.point(-1));
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns }[event.key];
      if (!step || !this.cells) return;
      event.preventDefault();
      const last = this.cells.done.length - 1;
      this.point(this.at < 0 ? 0 : Math.min(last, Math.max(0, this.at + step)));
    });
  }

  /** Shows `{units, perCell, done, verified, leased, poisoned}`, with a byte per cell; or nothing for null. */
  show(cells) {
    const isSameSize = cells && this.cells && cells.done.length === this.cells.done.length;
    this.cells = cells;
    if (!isSameSize) this.at = -1;
    this.draw(!isSameSize);
    this.point(this.at);
  }

  /** Returns the index of the cell under the pointer, or -1. */
  under(event) {
    if (!this.cells) return -1;
    const { left, top } = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - left) / this.size);
    const row = Math.floor((event.clientY - top) / this.size);
    const index = row * this.columns + column;
    return column >= 0 && column < this.columns && index >= 0 && index < this.cells.done.length ? index : -1;
  }

  /** Describes a cell in the caption. */
  point(index) {
    this.at = index;
    if (!this.cells) return;
    const { units, perCell, done, verified, leased, poisoned } = this.cells;
    if (index < 0) {
      this.caption.textContent = perCell === 1
        ? "Each square is a unit." : `Each square is ${perCell} units; its colour is the mixture of theirs.`;
      return;
    }
    const first = index * perCell;
    const last = Math.min(units, first + perCell) - 1;
    const share = (bytes) => `${Math.round(bytes[index] / 2.55)} %`;
    const states = perCell === 1
      ? [poisoned[index] ? "set aside" : verified[index] ? "verified" : done[index] ? "counted" : leased[index] ? "leased" : "open"]
      : [`${share(done)} counted`, `${share(verified)} verified`, `${share(leased)} leased`]
        .concat(poisoned[index] ? ["some set aside"] : []);
    const name = first === last ? `Unit ${first}` : `Units ${first} to ${last}`;
    this.caption.textContent = `${name}: ${states.join(", ")}`;
  }

  /** Draws the changed cells, or all of them. */
  draw(all) {
    if (!this.cells) return;
    const { done, verified, leased, poisoned } = this.cells;
    const count = done.length;
    const width = this.canvas.clientWidth;
    if (!width || !count) return;
    if (all || !this.drawn || this.drawn.length !== count) {
      const ratio = Math.min(3, devicePixelRatio || 1);
      // An aspect ratio of about 2.4 to 1, and cells of 3 to 22 px.
      this.size = Math.max(3, Math.min(22, Math.floor(Math.sqrt((width * Math.max(210, width / 2.4)) / count))));
      this.columns = Math.max(1, Math.floor(width / this.size));
      const height = Math.ceil(count / this.columns) * this.size;
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.height = `${height}px`;
      this.context = this.canvas.getContext("2d");
      this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.colours = palette();
      this.drawn = new Int32Array(count).fill(-1);
    }
    const { context, columns, size, drawn, colours } = this;
    const inner = size > 4 ? size - 1 : size;
    for (let index = 0; index < count; index++) {
      const d = done[index], v = Math.min(d, verified[index]), l = Math.min(255 - d, leased[index]), p = poisoned[index];
      const state = (d << 23) ^ (v << 15) ^ (l << 7) ^ (p ? 1 : 0);
      if (drawn[index] === state) continue;
      drawn[index] = state;
      let colour = colours.poisoned;
      if (!p) {
        const mixed = (channel) => (colours.open[channel] * (255 - d - l) + colours.leased[channel] * l
          + colours.done[channel] * (d - v) + colours.verified[channel] * v) / 255;
        colour = [mixed(0), mixed(1), mixed(2)];
      }
      context.fillStyle = `rgb(${colour[0] | 0},${colour[1] | 0},${colour[2] | 0})`;
      context.fillRect((index % columns) * size, Math.floor(index / columns) * size, inner, inner);
    }
  }
}

/** Rounds up to a number with round quarters; to 1 for 0. */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 6, 8, 10].map((factor) => factor * power).find((round) => round >= value * 0.9999);
}

/** Returns at most `most` rates between points `[ms, done, verified]`; fewer for few units. */
export function rates(points, most = 160) {
  const units = points.length ? points[points.length - 1][1] - points[0][1] : 0;
  const steps = Math.min(most, Math.max(12, Math.floor(units / 4)), points.length - 1);
  const result = [];
  for (let step = 0; step < steps; step++) {
    const from = points[Math.floor((step * (points.length - 1)) / steps)];
    const to = points[Math.floor(((step + 1) * (points.length - 1)) / steps)];
    const seconds = (to[0] - from[0]) / 1000;
    if (seconds > 0) {
      // Revoked results must not yield a negative rate.
      result.push([from[0], to[0], Math.max(0, to[1] - from[1]) / seconds, Math.max(0, to[2] - from[2]) / seconds]);
    }
  }
  return result;
}

/** Draws the history of the rate. */
export function historyPicture(points, width, number) {
  const height = 210, left = 46, right = 8, top = 10, bottom = 22;
  const all = rates(points);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  if (!all.length) {
    picture.setAttribute("aria-label", "No history yet");
    picture.append(svg("text", { x: left, y: height / 2 }, "No units counted yet."));
    return picture;
  }
  const begin = all[0][0], end = all[all.length - 1][1];
  const peak = roundUp(Math.max(...all.map((rate) => Math.max(rate[2], rate[3]))));
  const x = (ms) => left + ((ms - begin) / Math.max(1, end - begin)) * (width - left - right);
  const y = (rate) => height - bottom - (rate / peak) * (height - top - bottom);
  for (let line = 0; line <= 4; line++) {
    const rate = (peak * line) / 4;
    picture.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(rate), y2: y(rate) }));
    picture.append(svg("text", { x: left - 7, y: y(rate) + 4, "text-anchor": "end" }, number(rate)));
  }
  const day = end - begin > 86_400_000;
  const label = (ms) => new Date(ms).toLocaleString("en-GB", day
    ? { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" }
    : { hour: "2-digit", minute: "2-digit", second: end - begin < 600_000 ? "2-digit" : undefined });
  const labels = Math.max(2, Math.min(5, Math.floor(width / 120)));
  for (let each = 0; each < labels; each++) {
    const ms = begin + ((end - begin) * each) / (labels - 1);
    const anchor = each === 0 ? "start" : each === labels - 1 ? "end" : "middle";
    picture.append(svg("text", { x: x(ms), y: height - 5, "text-anchor": anchor }, label(ms)));
  }
  const steps = (which) => all.map((rate, at) =>
    `${at ? "L" : "M"}${x(rate[0]).toFixed(1)} ${y(rate[which]).toFixed(1)}L${x(rate[1]).toFixed(1)} ${y(rate[which]).toFixed(1)}`).join("");
  const floor = y(0).toFixed(1);
  picture.append(svg("path", { class: "area", d: `${steps(2)}L${x(end).toFixed(1)} ${floor}L${x(begin).toFixed(1)} ${floor}Z` }));
  picture.append(svg("path", { class: "rate", d: steps(2) }), svg("path", { class: "checked", d: steps(3) }));
  picture.setAttribute("aria-label", `Units per second over time; at most ${number(peak)}, most recently ${number(all[all.length - 1][2])}`);
  return picture;
}

/** A crown, 32 units wide. */
const QUEEN = "M6 11.2a1.9 1.9 0 1 1 2.6 1.8l2.7 4.6 2.6-6.9a1.9 1.9 0 1 1 4.2 0l2.6 6.9 2.7-4.6a1.9 1.9 0 1 1 1.6.1"
  + "L23 22.4H9L7.1 13.1A1.9 1.9 0 0 1 6 11.2zM9 24h14v2.2H9z";

/** Draws a board with queens in these 1-based columns, by row from the top. */
export function boardPicture(columns) {
  const n = columns.length;
  const picture = svg("svg", { viewBox: `0 0 ${n} ${n}`, role: "img" });
  picture.setAttribute("aria-label", `A board of ${n} rows with a queen in each; columns from the top: ${columns.join(" ")}`);
  let dark = "";
  for (let row = 0; row < n; row++) {
    for (let column = (row + 1) % 2; column < n; column += 2) dark += `M${column} ${row}h1v1h-1z`;
  }
  picture.append(svg("rect", { class: "light", width: n, height: n }), svg("path", { class: "dark", d: dark }));
  columns.forEach((column, row) => {
    const middle = `translate(${column - 0.5} ${row + 0.5})`;
    picture.append(n <= 40 ? svg("path", { class: "queen", transform: `${middle} scale(.042) translate(-16 -17.2)`, d: QUEEN })
      : svg("circle", { class: "queen", transform: middle, r: 0.38 }));
  });
  return picture;
}
