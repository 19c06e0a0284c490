// The views of the page and the tabs that select one.

import { BoardView } from "./board-view.js";
import { GalleryView, SymmetryView } from "./gallery.js";
import { WatchView } from "./watch.js";

const trouble = (text) => {
  const line = document.getElementById("trouble");
  line.textContent = text;
  line.hidden = !text;
};
addEventListener("unhandledrejection", (event) => trouble(`The page does not work here: ${event.reason?.message ?? event.reason}`));

const tabs = [...document.querySelectorAll("[role=tab]")];
const board = new BoardView(trouble);
const views = {
  "board-view": board,
  "watch-view": new WatchView(board, trouble),
  "gallery-view": new GalleryView((columns) => { board.take(columns); select(tabs[0]); }, trouble),
  "symmetry-view": new SymmetryView(trouble),
};

/** Selects a tab and shows its view. */
function select(chosen) {
  for (const tab of tabs) {
    const panel = tab.getAttribute("aria-controls");
    const isChosen = tab === chosen;
    tab.setAttribute("aria-selected", String(isChosen));
    tab.tabIndex = isChosen ? 0 : -1;
    document.getElementById(panel).hidden = !isChosen;
  }
  if (chosen !== tabs[1]) views["watch-view"].pause();
  views[chosen.getAttribute("aria-controls")].shown?.();
}

tabs.forEach((tab, at) => {
  tab.addEventListener("click", () => select(tab));
  tab.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = tabs[(to + tabs.length) % tabs.length];
    next.focus();
    select(next);
  });
});
