"use strict";
const weftwork = (() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const say = () => { button.textContent = `${dark() ? "light" : "dark"} theme`; };
  // A page opened from a file may not be allowed to remember; then the choice lasts as long as the page.
  const remember = (theme) => { try { localStorage.setItem("weftwork-theme", theme); } catch { /* not allowed here */ } };
  try { root.dataset.theme = localStorage.getItem("weftwork-theme") ?? ""; } catch { /* not allowed here */ }
  if (!root.dataset.theme) delete root.dataset.theme;
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; remember(root.dataset.theme); say(); });
  say();

  const tip = document.getElementById("tip");
  const show = (event, lines) => {
    tip.replaceChildren(...lines);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const x = event.clientX + 16 + box.width > innerWidth ? event.clientX - box.width - 12 : event.clientX + 16;
    tip.style.left = `${Math.max(4, x)}px`;
    tip.style.top = `${Math.max(4, Math.min(innerHeight - box.height - 4, event.clientY + 14))}px`;
  };
  const node = (tag, text, kind) => {
    const made = document.createElement(tag);
    made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const shareOf = (event, area) => {
    const box = area.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  };
  const inside = (value, count) => Math.max(0, Math.min(count - 1, value));

  for (const area of document.querySelectorAll(".pa[data-tip]")) {
    const data = JSON.parse(area.dataset.tip);
    const cursor = node("div", "", data.y ? "ring" : "cursor");
    cursor.hidden = true;
    area.append(cursor);
    area.addEventListener("pointermove", (event) => {
      const box = area.getBoundingClientRect();
      const at = shareOf(event, area).map((share) => share * 1000);
      const gap = (place) => data.y
        ? Math.hypot((data.x[place] - at[0]) * box.width, (data.y[place] - at[1]) * box.height)
        : Math.abs(data.x[place] - at[0]);
      let nearest = 0;
      data.x.forEach((_, place) => { if (gap(place) < gap(nearest)) nearest = place; });
      cursor.hidden = false;
      cursor.style.left = `${data.x[nearest] / 10}%`;
      if (data.y) cursor.style.top = `${data.y[nearest] / 10}%`;
      show(event, [node("b", data.t[nearest]), ...data.s.map(([name, colour, values]) => {
        const line = node("div", "");
        line.append(node("i", "", colour), `${name}: ${values[nearest]}`);
        return line;
      })]);
    });
    area.addEventListener("pointerleave", () => { cursor.hidden = true; tip.hidden = true; });
  }

  for (const cells of document.querySelectorAll(".cells")) {
    const area = cells.parentElement;
    const rows = JSON.parse(cells.dataset.rows);
    const bins = Number(cells.dataset.bins);
    let shares = null;
    area.addEventListener("pointermove", (event) => {
      shares ??= Uint8Array.from(atob(cells.dataset.shares), (c) => c.charCodeAt(0));
      const [x, y] = shareOf(event, area);
      const row = inside(Math.floor(y * rows.length), rows.length);
      const bin = inside(Math.floor(x / Number(cells.dataset.width) * bins), bins);
      const share = Number((shares[row * bins + bin] * cells.dataset.high).toPrecision(2));
      show(event, [node("b", rows[row]), node("div", `${share} % in use, bin ${bin + 1} of ${bins}, ${cells.dataset.bin} each`)]);
    });
    area.addEventListener("pointerleave", () => { tip.hidden = true; });
  }
  return { show, node, hide: () => { tip.hidden = true; } };
})();
