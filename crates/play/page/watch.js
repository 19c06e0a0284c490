// The view that shows the methods step by step.

import { Board, attacks, counted } from "./board.js";
import { Latest } from "./compute.js";

const $ = (id) => document.getElementById(id);
const METHODS = {
  backtracking: ["Backtracking", 20, "Fill the rows from the top. Each queen takes the first column that no queen above attacks. If a row has none, "
    + "go back to the row above and move its queen to the right."],
  columns: ["Column by column", 9, "Begin with the empty board. To every way to fill the first k columns, add a queen in each safe row of the next "
    + "column. After n columns the list holds all solutions."],
  propagation: ["Constraint propagation", 20, "Each row has a domain: its columns that are still possible. A queen removes the squares it attacks. A "
    + "row with one column left, or a column left in one row only, is decided without guessing. A small cross marks a removed square."],
  relaxation: ["Linear relaxation", 12, "A linear program may divide queens into fractions, with at most 1 in total in each row, in each column and on "
    + "each diagonal. If even fractions do not reach n, the branch is a dead end; otherwise decide a square and solve again."],
};

export class WatchView {
  constructor(boardView, trouble) {
    this.boardView = boardView;
    this.trouble = trouble;
    this.tracer = new Latest();
    this.board = new Board($("watch-board"), "Board of the method");
    this.steps = [];
    this.at = 0;
    this.timer = 0;
    for (const id of ["method", "watch-size", "from-board"]) $(id).addEventListener("change", () => this.load());
    $("restart").addEventListener("click", () => this.go(0));
    $("back").addEventListener("click", () => this.go(this.at - 1));
    $("next").addEventListener("click", () => this.go(this.at + 1));
    $("skip-on").addEventListener("click", () => this.nextSolution());
    $("play").addEventListener("click", () => (this.timer ? this.pause() : this.play()));
    $("position").addEventListener("input", () => this.go(Number($("position").value)));
    $("speed").addEventListener("input", () => this.showSpeed());
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) $("speed").value = 0;
    this.showSpeed();
  }

  /** Steps per second. */
  speed() {
    return 2 ** (Number($("speed").value) / 4);
  }

  showSpeed() {
    const speed = this.speed();
    $("speed-text").textContent = speed < 1 ? `a step every ${(1 / speed).toFixed(1)} s` : `${speed.toFixed(speed < 10 ? 1 : 0)} steps/s`;
    $("speed").setAttribute("aria-valuetext", $("speed-text").textContent);
  }

  shown() {
    if (!this.steps.length || ($("from-board").checked && this.hash !== this.boardView.hash)) this.load();
  }

  async load() {
    this.pause();
    const method = $("method").value;
    const [title, most, text] = METHODS[method];
    const fromBoard = $("from-board").checked;
    const size = $("watch-size");
    size.max = most;
    size.disabled = fromBoard;
    this.hash = this.boardView.hash;
    const n = fromBoard ? this.boardView.n : Math.min(most, Math.max(1, Math.trunc(Number(size.value)) || 1));
    size.value = n;
    $("method-title").textContent = title;
    $("method-text").textContent = text;
    const board = fromBoard ? this.boardView.request() : { n };
    this.fixed = new Set((board.placed ?? []).map((square) => square.join(".")));
    this.blocked = new Set((board.blocked ?? []).map((square) => square.join(".")));
    const answer = await this.tracer.ask({ ask: "trace", method, ...board });
    if (!answer) return;
    if (answer.error) {
      [this.steps, this.n, this.method] = [[{ kind: "end", text: `${answer.error}.`, queens: new Array(n).fill(0) }], n, method];
      $("run-text").textContent = "";
    } else {
      [this.steps, this.n, this.method] = [answer.steps, n, method];
      const units = { propagation: "decision", relaxation: "linear program" }[method] ?? "node";
      $("run-text").textContent = answer.complete
        ? `The whole run: ${counted(answer.nodes, units)}, ${counted(answer.solutions, "solution")}, ${counted(answer.steps.length, "step")}.`
        : `The run is longer; these are its first ${answer.steps.length} steps, with ${counted(answer.solutions, "solution")}.`;
    }
    $("position").max = this.steps.length - 1;
    this.go(0);
  }

  go(to) {
    if (!this.steps.length) return;
    this.at = Math.min(this.steps.length - 1, Math.max(0, to));
    this.draw();
    if (this.timer && this.at === this.steps.length - 1) this.pause();
  }

  nextSolution() {
    this.pause();
    const next = this.steps.findIndex((step, at) => at > this.at && step.kind === "solution");
    this.go(next < 0 ? this.steps.length - 1 : next);
  }

  play() {
    if (this.at === this.steps.length - 1) this.go(0);
    // A screen reader would fall behind, so the steps are announced only while the method stands still.
    $("step-text").setAttribute("aria-live", "off");
    $("play").textContent = "Pause";
    const tick = () => {
      // Drawing at most 30 times a second.
      const steps = Math.max(1, Math.round(this.speed() / 30));
      this.timer = setTimeout(tick, (1000 * steps) / this.speed());
      let to = this.at;
      for (let step = 0; step < steps; step++) {
        to++;
        if (this.steps[to]?.kind === "solution") break;
      }
      this.go(to);
      if (this.steps[this.at].kind === "solution") this.pause();
    };
    this.timer = setTimeout(tick, 0);
  }

  pause() {
    clearTimeout(this.timer);
    this.timer = 0;
    $("play").textContent = "Play";
    if ($("step-text").getAttribute("aria-live") === "off") {
      $("step-text").removeAttribute("aria-live");
    }
  }

  draw() {
    const step = this.steps[this.at];
    $("position").value = this.at;
    $("step-number").textContent = `${this.at + 1} of ${this.steps.length}`;
    $("step-text").textContent = step.text;
    $("step-text").className = `step ${step.kind}`;
    $("back").disabled = this.at === 0;
    $("next").disabled = this.at === this.steps.length - 1;
    const marked = new Set((step.marked ?? []).map((square) => square.join(".")));
    const queens = step.queens.flatMap((column, row) => (column ? [[row + 1, column]] : []));
    this.board.show(this.n, (row, column) => this.describe(step, marked, queens, row, column));
    this.drawLists(step.lists);
  }

  describe(step, marked, queens, row, column) {
    const name = `${row}.${column}`;
    const shown = { classes: "", label: "free" };
    const isQueen = step.queens[row - 1] === column;
    if (this.blocked.has(name)) Object.assign(shown, { symbol: "cross", classes: "blocked", label: "blocked" });
    else if (isQueen) Object.assign(shown, { symbol: "queen", label: this.fixed.has(name) ? "queen of your board" : "queen", classes: this.fixed.has(name) ? "given" : "" });
    else if (step.domains) {
      const possible = step.domains[row - 1] >> (column - 1) & 1;
      Object.assign(shown, possible ? { label: "possible", symbol: "", classes: "possible" } : { label: "removed", symbol: "cross", classes: "removed" });
    } else if (!step.values && queens.some((queen) => attacks(queen, [row, column]))) {
      Object.assign(shown, { symbol: "dot", classes: "attacked", label: "attacked" });
    }
    if (step.values && !this.blocked.has(name)) {
      const value = step.values[(row - 1) * this.n + column - 1];
      shown.heat = value;
      shown.label = `${value.toFixed(2)} of a queen${isQueen ? ", decided" : ""}`;
      if (!isQueen && value > 0) shown.text = value.toFixed(2).replace(/^0/, "");
    }
    if (marked.has(name)) {
      shown.classes += ` marked ${step.kind === "fail" ? "fail" : ""}`;
      shown.label += ", of this step";
    }
    return shown;
  }

  drawLists(lists) {
    $("lists").hidden = !lists;
    if (!lists) return;
    const longest = Math.max(...lists);
    $("lists").replaceChildren(...lists.map((length, columns) => {
      const row = document.createElement("div");
      const bar = document.createElement("i");
      bar.style.setProperty("--share", length / longest);
      const number = document.createElement("b");
      number.textContent = length;
      row.append(`${counted(columns, "column")}:`, number, bar);
      return row;
    }));
  }
}
