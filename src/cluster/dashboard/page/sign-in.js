// The sign-in page: redeems a token for a session.
const form = document.getElementById("form");
const wrong = document.getElementById("wrong");

// After a link from another site, the browser sends the cookie only with this request.
fetch("/sign-in/known").then((answer) => answer.json()).then(({ known }) => { if (known) location.replace("/"); }, () => {});

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  wrong.textContent = "";
  try {
    const token = form.elements.token.value.trim();
    const name = form.elements.name.value.trim().toLowerCase();
    const answer = await fetch("/sign-in", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token, name }),
    });
    if (answer.ok) {
      location.replace("/");
      return;
    }
    wrong.textContent = (await answer.json()).error;
  } catch {
    wrong.textContent = "The coordinator does not answer.";
  } finally {
    button.disabled = false;
  }
});
