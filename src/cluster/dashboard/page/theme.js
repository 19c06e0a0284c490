// The theme: the system's or the selected one. Loaded before the page is drawn.
"use strict";
(() => {
  const selected = () => {
    try { return localStorage.getItem("nqueens-theme"); } catch { return null; }
  };
  const show = (theme) => {
    if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  };
  const next = { system: "dark", dark: "light", light: "system" };
  show(selected());
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (!button) return;
    const label = () => { button.textContent = `Theme: ${selected() ?? "system"}`; };
    label();
    button.addEventListener("click", () => {
      const theme = next[selected() ?? "system"] ?? "system";
      try {
        if (theme === "system") localStorage.removeItem("nqueens-theme");
        else localStorage.setItem("nqueens-theme", theme);
      } catch { /* The choice is lost when the page closes. */ }
      show(theme);
      label();
      dispatchEvent(new Event("themechange"));
    });
  });
})();
