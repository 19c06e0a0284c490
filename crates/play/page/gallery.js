// The gallery of first and most beautiful solutions, and the fundamental solutions with their orbits.

import { counted, element, picture, ringsPicture } from "./board.js";
import { Latest } from "./compute.js";

const $ = (id) => document.getElementById(id);

export class GalleryView {
  constructor(take, trouble) {
    this.trouble = trouble;
    this.asker = new Latest();
    this.columns = null;
    for (const input of document.querySelectorAll("input[name=kind]")) input.addEventListener("change", () => this.load());
    for (const id of ["record-size", "record-slider"]) {
      $(id).addEventListener("input", () => {
        const n = Math.trunc(Number($(id).value));
        if (!(n >= 1 && n <= 100)) return;
        $("record-slider").value = n;
        if (id === "record-slider") $("record-size").value = n;
        this.load();
      });
    }
    $("take").addEventListener("click", () => take(this.columns));
  }

  shown() {
    if (!this.columns) this.load();
  }

  async load() {
    const n = Number($("record-slider").value);
    const kind = document.querySelector("input[name=kind]:checked").value;
    const words = kind === "first" ? "first" : "most beautiful";
    const answer = await this.asker.ask({ ask: "record", kind, n });
    if (!answer) return;
    if (answer.error) return this.trouble(answer.error);
    this.columns = answer.columns ?? null;
    $("record-title").textContent = `${kind === "first" ? "the" : "a"} ${words} solution of ${counted(n, "queen")}`;
    $("take").disabled = !answer.columns || n > 32;
    if (!answer.columns) {
      $("record-text").textContent = answer.status === "none" ? `There is no way to place ${n} queens on this board.`
        : `nqueens has not yet proved which solution of ${n} queens is the first.`;
      $("record").replaceChildren();
      $("record-columns").textContent = "";
      $("rings").tBodies[0].replaceChildren();
      return;
    }
    const rings = counted(answer.rings.length, "ring");
    $("record-text").textContent = `${counted(n, "queen")} on ${rings}; the outermost has the cost ${answer.rings[0][0]}.`;
    $("record").replaceChildren(ringsPicture(answer.columns, answer.rings,
      `${counted(n, "queen")} on ${rings} of equal cost; columns from the top: ${answer.columns.join(" ")}`));
    $("record-columns").textContent = `Columns of the queens, from the top: ${answer.columns.join(" ")}`;
    $("rings").tBodies[0].replaceChildren(...answer.rings.map(([cost, queens]) =>
      element("tr", "", element("td", "", String(cost)), element("td", "", String(queens)))));
  }
}

export class SymmetryView {
  constructor(trouble) {
    this.trouble = trouble;
    this.asker = new Latest();
    for (let n = 1; n <= 10; n++) $("classes-size").append(new Option(String(n), String(n), n === 8, n === 8));
    $("classes-size").addEventListener("change", () => this.load());
  }

  shown() {
    if (!$("classes").children.length) this.load();
  }

  async load() {
    const n = Number($("classes-size").value);
    const answer = await this.asker.ask({ ask: "classes", n });
    if (!answer) return;
    if (answer.error) return this.trouble(answer.error);
    const { solutions, fundamental } = answer;
    $("classes-text").textContent = solutions === 0 ? `There is no way to place ${n} queens on this board.`
      : `${counted(n, "queen")}: ${counted(solutions, "solution")}. Counting turned and mirrored ones once leaves ${fundamental.length}.`;
    $("classes").replaceChildren(...fundamental.map((found, at) => {
      const button = element("button", "", picture(found.columns, ""), `${at + 1}`);
      button.type = "button";
      button.setAttribute("aria-label", `${at + 1}: ${found.columns.join(" ")}, ${counted(found.orbit.length, "image")}`);
      button.addEventListener("click", () => this.choose(fundamental, at));
      return button;
    }));
    this.choose(fundamental, 0);
  }

  choose(fundamental, at) {
    [...$("classes").children].forEach((button, index) => button.setAttribute("aria-pressed", String(index === at)));
    const found = fundamental[at];
    $("orbit-title").textContent = found ? `The orbit of solution ${at + 1}` : "No orbit";
    const images = found?.orbit.length ?? 0;
    $("orbit-text").textContent = !found ? "" : images === 8 ? "Turning and mirroring it gives 8 different solutions."
      : images === 1 ? "Every symmetry of the square leaves it unchanged."
        : `It has only ${images} different images, because ${images === 4 ? "a half turn leaves it" : "even a quarter turn leaves it"} unchanged.`;
    $("orbit").replaceChildren(...(found?.orbit ?? []).map(({ columns, by }) =>
      element("li", "", picture(columns, `Columns from the top: ${columns.join(" ")}`), element("span", "", by.join("; ")))));
  }
}
