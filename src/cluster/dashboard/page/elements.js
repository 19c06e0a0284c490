// Helpers for elements of the page.

/** Creates an element with a class and text or children. */
export function element(name, className, ...children) {
  const created = document.createElement(name);
  if (className) created.className = className;
  created.append(...children);
  return created;
}
/** Sets an element's text if it has changed. */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}
/** Sets an element's classes if they have changed. */
export function setClass(target, className) {
  if (target.className !== className) target.className = className;
}
/** Fills a list of terms: `[term, text, small text, class]`. */
export function terms(list, entries) {
  while (list.children.length > entries.length) list.lastChild.remove();
  entries.forEach(([term, text, small, className], at) => {
    const row = list.children[at] ?? list.appendChild(element("div", "", element("dt"), element("dd", "", "", element("small"))));
    const [dt, dd] = row.children;
    setText(dt, term);
    if (dd.firstChild.data !== text) dd.firstChild.data = text;
    setText(dd.lastChild, small ?? "");
    dd.lastChild.hidden = !small;
    setClass(dd, className ?? "");
    row.className = (className ?? "").includes("whole") ? "whole" : "";
  });
}
/** Keeps one child element per name, in this order. */
export function keyed(parent, names, make, update) {
  parent.byName ??= new Map();
  const wanted = new Set(names);
  for (const [name, child] of parent.byName) {
    if (!wanted.has(name)) {
      child.remove();
      parent.byName.delete(name);
    }
  }
  names.forEach((name, at) => {
    let child = parent.byName.get(name);
    if (!child) {
      child = make(name);
      parent.byName.set(name, child);
    }
    if (parent.children[at] !== child) parent.insertBefore(child, parent.children[at] ?? null);
    update(child, name);
  });
}
