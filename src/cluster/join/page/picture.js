// A measurement as an image to share.

/** Draws a measurement. Returns a PNG. */
export function drawPicture({ n, machine, contestants: [result] }, rounded) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [1200, 630];
  const context = canvas.getContext("2d");
  const write = (text, y, size, colour, weight = 400) => {
    context.font = `${weight} ${size}px system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif`;
    context.fillStyle = colour;
    context.fillText(text, 80, y, 1040);
  };
  context.fillStyle = "#121416";
  context.fillRect(0, 0, 1200, 630);
  for (let row = 0; row < 8; row++)
    for (let column = 0; column < 8; column++) {
      context.fillStyle = (row + column) % 2 ? "#1f3733" : "#17211f";
      context.fillRect(880 + 40 * column, 310 + 40 * row, 40, 40);
    }
  context.fillStyle = "#35b394";
  [0, 4, 7, 5, 2, 6, 1, 3].forEach((column, row) => {
    context.beginPath();
    context.arc(900 + 40 * column, 330 + 40 * row, 12, 0, 2 * Math.PI);
    context.fill();
  });
  const [device] = machine.devices;
  write(`${n} queens on a GPU, in a web page`, 120, 36, "#a4a8af");
  write(`${rounded(result.solutions_per_s)} solutions a second`, 220, 72, "#e8e7e3", 650);
  write(device.name, 300, 40, "#58c7b0");
  write(`${device.driver}, ${machine.system}`.slice(0, 60), 360, 26, "#a4a8af");
  write(`median of ${result.elapsed_s.median.toPrecision(3)} s; ${result.solutions} solutions`, 410, 26, "#a4a8af");
  write(`nqueens ${machine.version}, ${machine.date}`, 560, 26, "#a4a8af");
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
