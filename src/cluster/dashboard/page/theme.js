// The theme: that of the system, or the one that was chosen. Loaded before anything is drawn.
"use strict";
(() => {
  const chosen = () => {
    try { return localStorage.getItem("nqueens-theme"); } catch { return null; }
  };
  const show = (theme) => {
    if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  };
  const next = { system: "dark", dark: "light", light: "system" };
  show(chosen());
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (!button) return;
    const label = () => { button.textContent = `Theme: ${chosen() ?? "system"}`; };
    label();
    button.addEventListener("click", () => {
      const theme = next[chosen() ?? "system"] ?? "system";
      try {
        if (theme === "system") localStorage.removeItem("nqueens-theme");
        else localStorage.setItem("nqueens-theme", theme);
      } catch { /* It is forgotten with the page. */ }
      show(theme);
      label();
      dispatchEvent(new Event("themechange"));
    });
  });
})();
