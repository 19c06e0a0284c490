// The sign-in page: redeems a token for a session.
const form = document.getElementById("form");
const error = document.getElementById("error");

// After a link from another site, the browser sends the cookie only with this request.
fetch("/sign-in/known").then((response) => response.json()).then(({ known }) => { if (known) location.replace("/"); }, () => {});

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  error.textContent = "";
  try {
    const token = form.elements.token.value.trim();
    const name = form.elements.name.value.trim().toLowerCase();
    const response = await fetch("/sign-in", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token, name }),
    });
    if (response.ok) {
      location.replace("/");
      return;
    }
    error.textContent = (await response.json()).error;
  } catch {
    error.textContent = "The coordinator does not answer.";
  } finally {
    button.disabled = false;
  }
});
