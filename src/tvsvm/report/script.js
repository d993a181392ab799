"use strict";
// The map and the few buttons of the page. All text goes through textContent, never through HTML.
const root = document.documentElement;
addEventListener("error", (event) => { root.dataset.error = event.message; });

const theme = document.getElementById("theme");
const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
theme.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  dispatchEvent(new Event("themechange"));
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("themechange")));

const copy = document.getElementById("copy");
copy?.addEventListener("click", async () => {
  await navigator.clipboard.writeText(document.getElementById("command").textContent);
  copy.textContent = "Copied";
});

const data = JSON.parse(document.getElementById("data").textContent);
if (data) drawMap(data);
root.dataset.ready = "yes";

function drawMap(data) {
  const LABELED = 1, UNREACHED = 2, MARGIN = 28, REACH = 14;
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const positions = new Uint16Array(bytes(data.positions).buffer);
  const codes = new Uint16Array(bytes(data.codes).buffer);
  const rows = new Uint32Array(bytes(data.rows).buffer);
  const confidence = bytes(data.confidence), flags = bytes(data.flags);
  const n = rows.length, lowest = Math.min(1 / data.classes.length, 0.5) * 255;
  const place = new Map(Array.from(rows, (row, k) => [row, k]));

  const frame = document.querySelector(".map"), stage = frame.querySelector(".stage");
  const [canvas, overlay] = stage.querySelectorAll("canvas");
  const legend = frame.querySelector(".legend"), tip = document.getElementById("tip");
  const reset = document.getElementById("reset");
  frame.hidden = false;

  let color = "class", only = -1, marked = -1, width = 0, height = 0;
  let scale = 1, left = 0, top = 0;  // pixel = 65535ths · scale + offset
  const fit = bounds(positions);

  // Doubtful points stand out, sure ones recede; orange to blue is safe for the colour-blind.
  const RAMP = [[230, 97, 1], [253, 184, 99], [178, 190, 210], [92, 133, 190]];
  const shades = Array.from({ length: 32 }, (_, k) => {
    const t = (k / 31) * (RAMP.length - 1), i = Math.min(Math.floor(t), RAMP.length - 2);
    return `rgb(${RAMP[i].map((low, c) => Math.round(low + (t - i) * (RAMP[i + 1][c] - low))).join(" ")})`;
  });
  const shade = (k) => shades[Math.max(0, Math.min(31, Math.round((31 * (confidence[k] - lowest)) / (255 - lowest))))];
  const paint = (k) => (color === "class" ? data.colors[codes[k]] : shade(k));
  const x = (k) => positions[2 * k] * scale + left;
  const y = (k) => positions[2 * k + 1] * scale + top;

  function bounds(values) {
    let [x0, y0, x1, y1] = [65535, 65535, 0, 0];
    for (let k = 0; k < values.length; k += 2) {
      x0 = Math.min(x0, values[k]); x1 = Math.max(x1, values[k]);
      y0 = Math.min(y0, values[k + 1]); y1 = Math.max(y1, values[k + 1]);
    }
    return { x: x0, y: y0, width: Math.max(x1 - x0, 1), height: Math.max(y1 - y0, 1) };
  }

  // Points by cells of a 256 × 256 grid, so that a hover looks at a handful of them.
  const start = new Uint32Array(65537), members = new Uint32Array(n);
  const cell = (k) => (positions[2 * k + 1] >> 8) * 256 + (positions[2 * k] >> 8);
  for (let k = 0; k < n; k++) start[cell(k) + 1]++;
  for (let c = 0; c < 65536; c++) start[c + 1] += start[c];
  const fill = start.slice();
  for (let k = 0; k < n; k++) members[fill[cell(k)]++] = k;

  function nearest(px, py) {
    const clamp = (value) => Math.max(0, Math.min(255, value >> 8));
    const [u, v, r] = [(px - left) / scale, (py - top) / scale, REACH / scale];
    let best = -1, least = REACH * REACH;
    for (let row = clamp(v - r); row <= clamp(v + r); row++) {
      for (let e = start[row * 256 + clamp(u - r)]; e < start[row * 256 + clamp(u + r) + 1]; e++) {
        const k = members[e];
        if (only >= 0 && codes[k] !== only) continue;
        const near = (x(k) - px) ** 2 + (y(k) - py) ** 2 - (flags[k] & LABELED ? 30 : 0);
        if (near < least) { least = near; best = k; }
      }
    }
    return best;
  }

  function whole() {
    scale = Math.min((width - 2 * MARGIN) / fit.width, (height - 2 * MARGIN) / fit.height);
    left = width / 2 - (fit.x + fit.width / 2) * scale;
    top = height / 2 - (fit.y + fit.height / 2) * scale;
    reset.hidden = true;
    drawPoints();
    drawMark();
  }

  function resize() {
    const ratio = devicePixelRatio || 1;
    ({ width, height } = stage.getBoundingClientRect());
    for (const layer of [canvas, overlay]) {
      layer.width = Math.round(width * ratio);
      layer.height = Math.round(height * ratio);
      layer.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    whole();
  }

  let pending = false;
  function draw() {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => { pending = false; drawPoints(); drawMark(); });
  }

  function drawPoints() {
    const pen = canvas.getContext("2d");
    pen.clearRect(0, 0, width, height);
    const zoom = (scale * Math.max(fit.width, fit.height)) / Math.max(width, height);
    const radius = Math.max(0.7, Math.min(4.5, 150 / Math.sqrt(n))) * Math.min(2, Math.max(1, Math.sqrt(zoom)));
    for (const inside of only < 0 ? [true] : [false, true]) {
      pen.globalAlpha = only >= 0 && !inside ? 0.12 : 0.85;
      for (let k = 0; k < n; k++) {
        const px = x(k), py = y(k);
        if (px < -9 || py < -9 || px > width + 9 || py > height + 9) continue;
        if (only >= 0 && (codes[k] === only) !== inside) continue;
        pen.fillStyle = paint(k);
        if (radius < 1.6) { pen.fillRect(px - radius, py - radius, 2 * radius, 2 * radius); continue; }
        pen.beginPath();
        pen.arc(px, py, radius, 0, 7);
        if (flags[k] & UNREACHED) { pen.strokeStyle = pen.fillStyle; pen.lineWidth = 1.2; pen.stroke(); } else pen.fill();
      }
    }
    pen.globalAlpha = 1;
    const size = n > 20000 ? 7 : 9, edge = isDark() ? "#fff" : "#000";
    for (let k = 0; k < n; k++) {
      if (flags[k] & LABELED && (only < 0 || codes[k] === only)) star(pen, x(k), y(k), size, paint(k), edge);
    }
  }

  function star(pen, px, py, size, fillStyle, strokeStyle) {
    pen.beginPath();
    for (let corner = 0; corner < 10; corner++) {
      const length = corner % 2 ? size * 0.45 : size, angle = (corner * Math.PI) / 5;
      pen.lineTo(px + length * Math.sin(angle), py - length * Math.cos(angle));
    }
    pen.closePath();
    Object.assign(pen, { fillStyle, strokeStyle, lineWidth: 1.2, lineJoin: "round" });
    pen.fill();
    pen.stroke();
  }

  function drawMark() {
    const pen = overlay.getContext("2d");
    pen.clearRect(0, 0, width, height);
    tip.hidden = marked < 0;
    if (marked < 0) return;
    const px = x(marked), py = y(marked);
    pen.beginPath();
    pen.arc(px, py, 9, 0, 7);
    Object.assign(pen, { strokeStyle: isDark() ? "#fff" : "#000", lineWidth: 2 });
    pen.stroke();
    const box = tip.getBoundingClientRect();
    const beside = px + 18 + box.width < width ? px + 18 : px - 18 - box.width;
    tip.style.left = `${Math.max(6, beside)}px`;
    tip.style.top = `${Math.max(6, Math.min(py - 12, height - box.height - 6))}px`;
  }

  function element(kind, text) {
    const made = document.createElement(kind);
    made.textContent = text ?? "";
    return made;
  }

  function mark(k) {
    if (k === marked) return;
    marked = k;
    if (k >= 0) {
      const sure = (confidence[k] / 255).toFixed(2);
      const how = flags[k] & LABELED ? "given" : flags[k] & UNREACHED ? `${sure}, no label reaches it` : sure;
      const lines = [element("b", data.names ? data.names[k] : `row ${rows[k]}`), element("span", `${data.classes[codes[k]]} · ${how}`)];
      data.columns.forEach((name, c) => lines.push(element("small", `${name}: ${data.cells[k][c]}`)));
      const picture = data.pictures[rows[k]];
      if (picture) lines.unshift(Object.assign(element("img"), { src: picture, alt: "" }));
      tip.replaceChildren(...lines);
    }
    drawMark();
  }

  function showLegend() {
    if (color === "confidence") {
      const ramp = element("span"), strip = element("i");
      ramp.className = "ramp";
      strip.style.background = `linear-gradient(90deg, ${shades.join(", ")})`;
      ramp.append((lowest / 255).toFixed(2), strip, "1.00");
      legend.replaceChildren(ramp);
      return;
    }
    legend.replaceChildren(...data.classes.map((name, code) => {
      const button = element("button"), dot = element("i");
      dot.style.background = data.colors[code];
      button.append(dot, name);
      button.setAttribute("aria-pressed", String(code === only));
      button.addEventListener("click", () => { only = code === only ? -1 : code; mark(-1); showLegend(); draw(); });
      return button;
    }));
  }

  function zoom(factor, px, py) {
    left = px - (px - left) * factor;
    top = py - (py - top) * factor;
    scale *= factor;
    reset.hidden = false;
    draw();
  }

  const at = (event) => [event.offsetX, event.offsetY];
  let dragged = null;
  canvas.addEventListener("pointerdown", (event) => { dragged = at(event); canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", () => { dragged = null; });
  canvas.addEventListener("pointercancel", () => { dragged = null; });
  canvas.addEventListener("pointermove", (event) => {
    const [px, py] = at(event);
    if (!dragged) return mark(nearest(px, py));
    if (event.pointerType === "touch" && reset.hidden) return;
    left += px - dragged[0];
    top += py - dragged[1];
    dragged = [px, py];
    reset.hidden = false;
    draw();
  });
  canvas.addEventListener("pointerleave", () => mark(-1));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;  // scrolling the page past the map must not zoom it
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 200), ...at(event));
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => zoom(2, ...at(event)));
  reset.addEventListener("click", whole);
  for (const button of frame.querySelectorAll("[data-color]")) {
    button.addEventListener("click", () => {
      color = button.dataset.color;
      frame.querySelectorAll("[data-color]").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      showLegend();
      draw();
    });
  }
  for (const link of document.querySelectorAll("a[data-row]")) {
    link.addEventListener("click", () => { only = -1; showLegend(); whole(); mark(place.get(Number(link.dataset.row)) ?? -1); });
  }
  addEventListener("themechange", draw);
  new ResizeObserver(resize).observe(stage);
  showLegend();
  resize();
  root.dataset.points = n;
}
