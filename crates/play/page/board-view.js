// The view on which queens are placed by hand and the completions counted.

import { Board, attacks, counted } from "./board.js";
import { Latest } from "./compute.js";

const $ = (id) => document.getElementById(id);
const key = (row, column) => `${row}.${column}`;
const LARGEST = 32;
/** Up to this size a count always ends within about two seconds. */
const AT_ONCE = 14;
const MOST_NODES_AT_ONCE = 2_000_000_000;
const MOST_NODES_OF_LARGE = 60_000_000;

export class BoardView {
  constructor(trouble) {
    this.trouble = trouble;
    this.n = 8;
    /** The decided squares, by "row.column": "queen", "guess" (a queen of a completion) or "block". */
    this.squares = new Map();
    this.past = [];
    this.counter = new Latest();
    this.helper = new Latest();
    this.counts = null;
    this.relaxation = null;
    this.board = new Board($("board"), "Board of queens", (action, row, column) => this.act(action, row, column));
    $("size").addEventListener("change", () => this.resize(Number($("size").value)));
    $("overlay").addEventListener("change", () => { this.draw(); this.relax(); });
    $("undo").addEventListener("click", () => this.undo());
    $("clear").addEventListener("click", () => this.change(() => this.squares.clear()));
    $("complete").addEventListener("click", () => this.complete());
    $("link").addEventListener("click", () => this.copy());
    $("more").addEventListener("click", () => this.count(2 ** 50, 60));
    addEventListener("hashchange", () => this.read());
    if (!this.read()) this.update();
  }

  of(kind) {
    return [...this.squares].filter(([, found]) => found === kind).map(([name]) => name.split(".").map(Number));
  }

  /** The board as a request names it. */
  request() {
    return { n: this.n, placed: this.of("queen"), blocked: this.of("block") };
  }

  change(edit) {
    this.past.push([this.n, new Map(this.squares)]);
    this.past.splice(0, this.past.length - 200);
    edit();
    this.update();
  }

  undo() {
    const before = this.past.pop();
    if (!before) return;
    [this.n, this.squares] = before;
    this.update();
  }

  resize(n) {
    if (!(Number.isInteger(n) && n >= 1 && n <= LARGEST)) {
      $("size").value = this.n;
      this.say(`The board size is a whole number from 1 to ${LARGEST}.`);
      return;
    }
    this.change(() => {
      this.n = n;
      for (const name of this.squares.keys()) if (name.split(".").some((line) => Number(line) > n)) this.squares.delete(name);
    });
  }

  /** Shows a whole solution, given as the column of each row. */
  take(columns) {
    this.change(() => {
      this.n = columns.length;
      this.squares = new Map(columns.map((column, row) => [key(row + 1, column), "queen"]));
    });
  }

  act(action, row, column) {
    const name = key(row, column);
    const wanted = action === "use" ? document.querySelector("input[name=tool]:checked").value : action;
    this.change(() => {
      for (const [other, kind] of this.squares) if (kind === "guess" && other !== name) this.squares.delete(other);
      const before = this.squares.get(name);
      if (wanted === "clear" || before === wanted || (action === "use" && before && before !== "guess")) this.squares.delete(name);
      else this.squares.set(name, wanted);
    });
  }

  say(text) {
    $("status").textContent = text;
  }

  update() {
    $("size").value = this.n;
    $("undo").disabled = !this.past.length;
    $("clear").disabled = !this.squares.size;
    this.counts = null;
    this.relaxation = null;
    this.write();
    this.draw();
    this.count();
    this.relax();
  }

  /** Returns "2 queens placed, 1 square blocked". */
  placed() {
    const { placed, blocked } = this.request();
    const parts = [`${counted(placed.length, "queen")} placed`];
    if (blocked.length) parts.push(`${counted(blocked.length, "square")} blocked`);
    return parts.join(", ");
  }

  async count(most_nodes = this.n <= AT_ONCE ? MOST_NODES_AT_ONCE : MOST_NODES_OF_LARGE, limit_s = Infinity) {
    $("more-line").hidden = true;
    const before = this.counts;
    const waiting = setTimeout(() => {
      $("count").textContent = "…";
      this.say(limit_s < Infinity ? "Counting for up to a minute…" : "Counting…");
    }, before ? 0 : 250);
    const request = { ask: "count", most_nodes, ...this.request() };
    const asked = (this.asked = {});
    $("board-view").setAttribute("aria-busy", "true");
    let answer = await this.counter.ask(request, limit_s);
    clearTimeout(waiting);
    if (this.asked !== asked) return;
    $("board-view").removeAttribute("aria-busy");
    if (answer?.error) return this.trouble(answer.error);
    if (!answer) answer = before;
    this.counts = answer;
    this.report(limit_s < Infinity);
    this.draw();
  }

  report(hasWaited) {
    const { completions, complete, conflict } = this.counts;
    const grouped = completions.replace(/\B(?=(\d{3})+$)/g, "\u202f");
    $("count").textContent = complete ? grouped : completions === "0" ? "?" : `≥ ${grouped}`;
    $("count-unit").textContent = completions === "1" ? "completion" : "completions";
    $("more-line").hidden = complete || hasWaited;
    if (conflict) {
      const [one, other] = conflict.map(([row, column]) => `row ${row}, column ${column}`);
      return this.say(`${this.placed()}. The queens on ${one} and on ${other} attack each other, so there is no completion.`);
    }
    const rest = this.of("queen").length === this.n && completions === "1" ? "a solution!"
      : complete ? `${grouped} ${completions === "1" ? "completion" : "completions"} left` : null;
    if (rest) return this.say(`${this.placed()}, ${rest}${rest.endsWith("!") ? "" : "."}`);
    const found = completions === "0" ? "None was found so far, but there may be some."
      : `At least ${grouped} ${completions === "1" ? "completion is" : "completions are"} left.`;
    this.say(`${this.placed()}. There are too many positions to count ${hasWaited ? "in a minute" : "at once"}. ${found}`);
  }

  async relax() {
    if ($("overlay").value !== "relaxation" || this.relaxation) return;
    const answer = await this.helper.ask({ ask: "relaxation", ...this.request() });
    if (!answer) return;
    this.relaxation = answer;
    this.draw();
  }

  async complete() {
    const request = this.request();
    const answer = await this.helper.ask({ ask: "complete", ...request });
    if (!answer) return;
    if (answer.error) return this.trouble(answer.error);
    if (!answer.columns) return this.say(answer.complete ? "There is no completion." : "No completion was found in a few seconds; there may be one.");
    this.change(() => {
      for (const name of this.of("guess").map(([row, column]) => key(row, column))) this.squares.delete(name);
      answer.columns.forEach((column, row) => {
        if (!this.squares.has(key(row + 1, column))) this.squares.set(key(row + 1, column), "guess");
      });
    });
  }

  draw() {
    const overlay = $("overlay").value;
    const queens = this.of("queen"), guesses = this.of("guess");
    const values = overlay === "relaxation" ? this.relaxation?.values : overlay === "count" ? this.counts?.squares : null;
    const most = values ? Math.max(...values, overlay === "count" ? 1 : 0) : 1;
    const note = overlay === "count" && this.counts ? "Each square shows how many completions have a queen there."
      + (this.counts.complete ? "" : " The count is not complete, so the numbers are lower bounds.")
      : overlay === "relaxation" && this.relaxation ? this.relaxation.error ? this.relaxation.error
        : this.relaxation.total === null ? "The queens attack each other, so the linear program has no solution."
          : "Queens may be divided into fractions here, with at most 1 in total in each row, in each column and on each diagonal. "
            + `The largest total is ${this.relaxation.total.toFixed(2)} of ${this.n}`
            + (this.relaxation.total < this.n - 0.001 ? ", so there is no completion." : ".") : "";
    $("overlay-note").textContent = note;
    $("overlay-note").hidden = !note;
    this.board.show(this.n, (row, column) => {
      const kind = this.squares.get(key(row, column));
      const here = [row, column];
      const shown = { classes: "", label: "free" };
      const attackers = queens.concat(guesses).filter((queen) => (queen[0] !== row || queen[1] !== column) && attacks(queen, here));
      if (kind === "queen" || kind === "guess") {
        const clash = attackers.length > 0;
        Object.assign(shown, { symbol: "queen", classes: clash ? "clash" : kind === "guess" ? "guess" : "" });
        shown.label = (kind === "guess" ? "queen of a completion" : "queen") + (clash ? `, attacked by the queen on ${attackers[0].join(",")}` : "");
      } else if (kind === "block") {
        Object.assign(shown, { symbol: "cross", classes: "blocked", label: "blocked" });
      } else if (attackers.length) {
        Object.assign(shown, { symbol: values ? "" : "dot", classes: "attacked", label: `attacked by the queen on ${attackers[0].join(",")}` });
      }
      if (values && kind !== "block") {
        const value = values[(row - 1) * this.n + column - 1];
        shown.heat = most > 0 ? value / most : 0;
        const text = overlay === "count" ? String(value) : value.toFixed(2).replace(/^0/, "");
        shown.label += overlay === "count" ? `, ${counted(value, "completion")}` : `, ${value.toFixed(2)} of a queen`;
        if (this.n <= 12 && value > 0 && (overlay === "count" || kind !== "queen")) shown.text = text;
        if (kind !== "queen") shown.symbol = "";
      }
      return shown;
    });
  }

  /** Writes the board into the address, so that it can be shared. */
  write() {
    const { n, placed, blocked } = this.request();
    const list = (name, squares) => (squares.length ? `&${name}=${squares.map((square) => square.join(".")).join("-")}` : "");
    this.hash = `#n=${n}${list("queens", placed)}${list("blocked", blocked)}`;
    history.replaceState(null, "", this.hash);
  }

  /** Reads the board from the address. Returns whether there is one. */
  read() {
    if (location.hash === this.hash || !location.hash.startsWith("#n=")) return false;
    const fields = new URLSearchParams(location.hash.slice(1));
    const n = Number(fields.get("n"));
    if (!(Number.isInteger(n) && n >= 1 && n <= LARGEST)) return false;
    const squares = new Map();
    for (const [name, kind] of [["blocked", "block"], ["queens", "queen"]]) {
      for (const square of (fields.get(name) ?? "").split("-").slice(0, LARGEST * LARGEST)) {
        const lines = square.split(".").map(Number);
        if (lines.length === 2 && lines.every((line) => Number.isInteger(line) && line >= 1 && line <= n)) squares.set(key(...lines), kind);
      }
    }
    [this.n, this.squares] = [n, squares];
    this.update();
    return true;
  }

  async copy() {
    try {
      await navigator.clipboard.writeText(location.href);
      this.say("The link to this board was copied.");
    } catch {
      this.say(`The link to this board: ${location.href}`);
    }
  }
}
